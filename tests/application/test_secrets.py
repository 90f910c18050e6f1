"""No secret of a session is in any file of the home: rows, folders, git objects, logs."""

import importlib.util
import json
import shutil

import pytest
from msgspec.structs import replace
from threadbook.adapters.offline import OfflineConsolidator
from threadbook.application.ports import Extracted

from tests.application.homes import FERN, FIXTURES, NOON, Session, Telling, content, rfc
from tests.application.planted import called, left_in, said

CHUNK = 65_536  # So much of a file is read at once.


def secrets():
    path = FIXTURES / "secrets" / "open_shapes.py"
    spec = importlib.util.spec_from_file_location("open_shapes", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [case for case in module.cases() if case["verdict"] == "REDACT"]


CASES = secrets()
VANISH = [text for case in CASES for text in case["vanish"]]


class Leaky(Session, kw_only=True):
    """Each secret is typed as a wish, run in a command that fails, printed, and written to a file.

    `filled`: each begins some bytes before the end of a chunk of the file, and ends behind it.
    """

    number: int = 1
    filled: bool = False

    def text(self):
        meta = self.records()[0]
        lines = [json.dumps(meta)]
        payloads = [said(f"from now on always use {CASES[0]['vanish'][0]} for staging")]
        for case in CASES:
            text, call = case["text"], case["id"]
            payloads += [
                said(f"from now on always remember in this project: {text}"),
                *called(call, f"deploy --with '{text}'", 1, f"error: {text}"),
                *called(f"{call}-again", f"deploy '{text}' --force", 0, text),
                {
                    "type": "custom_tool_call",
                    "name": "apply_patch",
                    "call_id": f"{call}-p",
                    "input": f"*** Begin Patch\n*** Add File: {call}.env\n+{text}\n*** End Patch",
                },
                {"type": "custom_tool_call_output", "call_id": f"{call}-p", "output": "Success."},
            ]
        for at, payload in enumerate(payloads):
            stamp = rfc(self.ended_at - len(payloads) + at + 1)
            line = json.dumps({"timestamp": stamp, "type": "response_item", "payload": payload})
            if self.filled:
                lines.append(filler(sum(len(each) + 1 for each in lines), line))
            lines.append(line)
        return "".join(f"{line}\n" for line in lines if line)


def filler(before, line):
    """A line that teaches nothing, so long that a chunk ends inside of the next line's secret."""
    inside = [line.find(text) + len(text) // 2 for text in VANISH if text in line]
    if not inside:
        return ""
    empty = json.dumps({"type": "event_msg", "payload": {"type": "token_count", "info": ""}})
    missing = -(before + len(empty) + 1 + inside[0]) % CHUNK
    return empty.replace('""', f'"{"x" * missing}"')


@pytest.mark.parametrize("filled", [False, True])
def test_no_secret_of_a_session_reaches_any_file_of_the_home(home, filled):
    session = Leaky(filled=filled)
    home.write(session)
    if filled:
        cut = home.file(session).read_bytes()
        borders = [cut[at - 4 : at + 4].decode() for at in range(CHUNK, len(cut), CHUNK)]
        whole = json.dumps(VANISH)
        assert sum(border in whole for border in borders) >= len(CASES)

    report = home.run()

    assert report.stage1.succeeded == 1
    assert left_in(home.path, *VANISH, whole=True) == []
    told = "".join(content(home.root()).values())
    assert "[REDACTED" in told
    assert "deploy" in told
    assert home.memory.verify().ok
    shutil.copytree(home.path, home.folder / "control")
    (home.folder / "control" / "planted").write_text(VANISH[3])
    assert left_in(home.folder / "control", *VANISH, whole=True)


def test_a_reply_that_repeats_a_secret_is_redacted_again(home):
    home.write(Session(number=1))
    text = "\n".join(case["text"] for case in CASES)

    def repeat(header, items):
        return Extracted(
            raw_memory=text,
            rollout_summary=text,
            rollout_slug=CASES[0]["text"],
            evidence=json.dumps([{"quote": case["text"]} for case in CASES]),
        )

    home.run_with(extractor=Telling(**{Session(number=1).id: repeat}))

    assert left_in(home.path, *VANISH, whole=True) == []
    assert home.outputs()


def test_a_token_in_the_remotes_address_is_not_kept(home):
    token = next(case for case in CASES if case["family"] == "github-classic")["vanish"][0]
    home.write(Session(number=1, repository_url=f"https://x:{token}@git.example.test/o/p.git"))

    home.run()

    assert left_in(home.path, token, whole=True) == []
    assert home.scope_of(Session(number=1)).startswith("project:p-")


def test_a_persons_edit_with_a_secret_is_redacted_in_the_log_and_kept_as_it_was_beside(home):
    home.write(Session(number=1))
    home.run()
    memory_file = home.root() / "MEMORY.md"
    memory_file.write_text(memory_file.read_text() + f"\n{CASES[0]['text']}\n")
    home.write(Session(number=2, says=("please never use tabs in this project",), ended_at=NOON))

    home.later(12 * 3600).run()

    left = left_in(home.path, *VANISH, whole=True)
    assert left
    assert all(f"{home.root().name}.edits/" in each for each in left)


KEY = "ghp_" + "a1B2c3D4e5F6" * 3


def test_no_secret_in_a_session_s_names_or_in_a_cause_is_in_the_home(home):
    named = Session(number=1, source=f"editor {KEY}")
    branched = Session(number=2)
    home.write(named, branched)
    meta = json.loads(home.file(branched).read_text().splitlines()[0])
    meta["payload"]["git"] = {"branch": f"feature/{KEY}"}
    rest = home.file(branched).read_text().partition("\n")[2]
    home.file(branched).write_text(f"{json.dumps(meta)}\n{rest}")

    home.run()
    home.memory.pollute(branched.id, f"pasted {KEY}", detail=f"with {KEY}")
    home.run()

    assert len(home.memory.threads()) == 2
    assert not left_in(home.path, KEY)


class Inventing:
    """A consolidator that is no program of ours, and writes every secret into its files."""

    name = "other"
    kind = "command"

    def propose(self, task):
        honest = OfflineConsolidator().propose(task)
        secrets = "".join(f"- {case['text'].splitlines()[0]} [Task 1]\n" for case in CASES)
        files = {path: f"{text}{secrets}" for path, text in honest.files.items()}
        return replace(honest, files=files | {"skills/deploy/SKILL.md": f"# Deploy\n\n{KEY}\n"})


def test_what_another_consolidator_writes_is_not_published_with_a_secret_in_it(home):
    home.write(Session(number=1))

    (root,) = home.run_with(consolidator=Inventing()).phase2

    assert (root.status, root.reason) == ("failed", "failed_invalid_artifacts")
    assert left_in(home.path, *VANISH, KEY, whole=True) == []


def test_no_secret_of_a_note_an_import_or_a_word_of_a_tool_is_kept_or_exported(home, tmp_path):
    home.write(Session(number=1))
    home.run()
    for number, case in enumerate(CASES):
        home.memory.note(f"note {number}: {case['text']}", cwd=FERN)
    foreign = tmp_path / "claude" / "projects" / "-srv-fern" / "memory"
    foreign.mkdir(parents=True)
    (foreign / "MEMORY.md").write_text("\n".join(case["text"] for case in CASES))
    (foreign.parent / "0.jsonl").write_text(json.dumps({"type": "user", "cwd": FERN}) + "\n")
    codex = tmp_path / "codex"
    shutil.copytree(FIXTURES / "memory-base-v1", codex)
    for file in codex.rglob("*.md"):
        secrets = "".join(f"- {case['text'].splitlines()[0]}\n" for case in CASES)
        file.write_text(f"{file.read_text()}\n{secrets}")

    imported = home.memory.import_folder(tmp_path / "claude", projects=["-srv-fern"])
    home.memory.import_folder(codex)
    home.later(3600).run()
    home.memory.export(tmp_path / "exported")

    assert "[REDACTED_SECRET]" in str(content(home.root(home.scope_of(Session(number=1)))))
    assert imported.projects
    assert left_in(home.path, *VANISH, whole=True) == []
    assert left_in(tmp_path / "exported", *VANISH, whole=True) == []
