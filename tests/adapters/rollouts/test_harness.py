"""What no person typed is cut out, and nothing more."""

import pytest
from threadbook.adapters.rollouts.harness import MEMORY_FENCE, pieces, request


def typed(text):
    return "|".join(piece.text for piece in pieces(text) if piece.whose == "typed")


@pytest.mark.parametrize(
    "text",
    [
        "# AGENTS.md instructions for /srv\n\n<INSTRUCTIONS>\nNever push.\n</INSTRUCTIONS>",
        "# CLAUDE.md\nUse tabs.",
        "<user_instructions>\nUse tabs.\n</user_instructions>",
        "<environment_context>\n  <cwd>/srv</cwd>\n</environment_context>",
        "<turn_aborted>\nThe user interrupted.\n</turn_aborted>",
        "<subagent_notification>done</subagent_notification>",
        "<skill>\n<name>x</name>\n---\nname: x\n</skill>",
        "<task-notification>\n<status>ok</status>\n</task-notification>",
        "<command-name>/clear</command-name>\n<command-args>now</command-args>",
        "<local-command-stdout>ok</local-command-stdout>",
        "<bash-input>ls</bash-input><bash-stdout>a</bash-stdout><bash-stderr></bash-stderr>",
        "[Request interrupted by user]",
        "Caveat: The messages below were made by a command.",
        "This session is being continued from another.",
        "Message Type: TASK\nAlways use tabs.",
        f"<{MEMORY_FENCE} scope='x'>\nUses tabs.\n</{MEMORY_FENCE}>",
        "=== MEMORY_SUMMARY BEGINS ===\nUses tabs.\n=== MEMORY_SUMMARY ENDS ===",
        "<image name=[Image #1]>",
        "</image>",
        "<user_action>\n  <context>A review was asked for.</context>\n</user_action>",
        "<system-reminder>unclosed and long",
        "  \n ",
    ],
)
def test_text_of_the_harness_holds_nothing_typed(text):
    assert typed(text) == ""


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Mend it.", "Mend it."),
        ("<system-reminder>x</system-reminder>Mend it.", "Mend it."),
        ("Mend it.\n<system-reminder>x</system-reminder>\nThen stop.", "Mend it.|Then stop."),
        ("a<skill>x<skill>y</skill>z</skill>b", "a|b"),
        ("Explain the <skill> tag to me.", "Explain the <skill> tag to me."),
        ("Why is </system-reminder> there?", "Why is </system-reminder> there?"),
        ("Use <b>bold</b> text.", "Use <b>bold</b> text."),
        ("$notes write them\n---\nname: notes\nBody.", "$notes write them"),
        ("a\n---\nb", "a\n---\nb"),
        ("<user_query>\nMend it.\n</user_query>", "Mend it."),
        ("<user-memory-input>Use tabs.</user-memory-input>", "Use tabs."),
        ("We need # AGENTS.md in the repo.", "We need # AGENTS.md in the repo."),
        ("# Context\n## My request for Codex:\nMend it.", "Mend it."),
        (
            "## My request for Codex: is a heading I saw",
            "## My request for Codex: is a heading I saw",
        ),
    ],
)
def test_what_a_person_typed_is_kept_word_for_word(text, kept):
    assert typed(text) == kept


def test_pieces_keep_their_order_and_their_cause():
    found = pieces("one <system-reminder>two</system-reminder> three")

    assert [(piece.whose, piece.what) for piece in found] == [
        ("typed", ""),
        ("harness", "system-reminder"),
        ("typed", ""),
    ]


def test_a_hostile_nesting_takes_linear_time():
    deep = "a" + "<skill>" * 200_000 + "b"

    assert typed(deep) == deep


def test_a_preview_shows_what_follows_the_heading():
    assert request("# Files\n\n## My request for Codex:\n  Mend it. \n") == "Mend it."
    assert request(" Mend it. ") == "Mend it."
