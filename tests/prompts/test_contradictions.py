"""What upstream's prompts say in two ways, ours say in one: nothing here may stand in a prompt.

Each row has a sentence that would break the rule, so that a pattern that finds nothing is seen.
"""

import re

import pytest
from threadbook.prompts import prompt

from tests.prompts.texts import words

STAGE_ONE = ("stage_one_v1", "stage_one_v2")
CONSOLIDATION = (
    "consolidation_v1",
    "consolidation_v2",
    "consolidation_input",
    "consolidation_refused",
    "ad_hoc_instructions",
)
CONTRADICTIONS = {
    "a slug that storage cuts": (
        STAGE_ONE,
        r"\b80\b|hyphen",
        "Slug: lowercase, hyphens, up to 80 characters.",
    ),
    "a slug that may be null": (
        STAGE_ONE,
        r"\bor null\b|null (?:slug|if|when|for)|(?:be|is|use|to) `?null",
        "Set `rollout_slug` to null if there is none.",
    ),
    "preferences of the whole session": (
        STAGE_ONE,
        r"#{1,3} (?:User )?preferences",
        "Then a section `## User preferences` for the whole session.",
    ),
    "values that nobody was given": (
        STAGE_ONE,
        r"(?:prior|previous|existing|earlier) (?:values?|memor|output)|unchanged",
        "Otherwise return the unchanged prior values.",
    ),
    "files where there is only an answer": (
        STAGE_ONE,
        r"\b(?:edit|change|write|create|touch|modify) (?:no |any |the )?files?\b",
        "If there is nothing to keep, change no files.",
    ),
    "every change is the user's": (
        CONSOLIDATION,
        r"(?:every|all|any|each) (?:change|edit)s?\b[^.]*(?:authoritative|decided|by (?:the|a) "
        r"(?:user|person)|the user's|presum|from the user)",
        "Every change in the diff is authoritative and presumed to be the user's.",
    ),
    "a text that is obeyed": (
        STAGE_ONE + CONSOLIDATION,
        r"\b(?:follow|obey|carry out|execute|act on) (?:the |any |every |its |their |all )?"
        r"(?:notes?|instructions?|requests?|orders?)",
        "Read every note and carry out its instructions.",
    ),
    "transcripts that are opened": (
        CONSOLIDATION,
        r"\b(?:open|read|check|consult|search) (?:the |a |its |original )*"
        r"(?:transcript|rollout_path|session log)",
        "In doubt, open the original transcript.",
    ),
    "a statement that may go without a source": (
        CONSOLIDATION,
        r"(?<!a person wrote may )\b(?:needs?|requires?|has|have) no (?:source|mark)"
        r"|sources? (?:is|are) optional"
        r"|without (?:a )?(?:source|mark)s? (?:is|are) (?:fine|allowed|accepted)"
        r"|depends on every",
        "A line of the summary needs no mark.",
    ),
    "tasks that are counted anew": (
        ("consolidation_v1",),
        r"renumber|numbered? (?:anew|from 1)|within (?:its|a|the) block",
        "Tasks are numbered from 1 within each block.",
    ),
    "a deleted statement that may stay": (
        CONSOLIDATION,
        r"(?<!not )\b(?:keep|leave|preserve|rephrase|generali[sz]e) "
        r"(?:what was |a |the )?(?:deleted|removed)",
        "You may keep a deleted statement if it is useful.",
    ),
    "a preference nobody stated": (
        STAGE_ONE + CONSOLIDATION,
        r"infer(?:red)? (?:a |the |new )?preferences?|guess what the user",
        "Infer preferences from how the user works.",
    ),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_no_prompt_says_it_the_second_way(name):
    prompts, pattern, broken = CONTRADICTIONS[name]

    assert re.search(pattern, broken, re.IGNORECASE)
    for each in prompts:
        assert re.findall(pattern, words(prompt(each)), re.IGNORECASE) == [], each
