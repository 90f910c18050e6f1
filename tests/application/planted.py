"""A session whose words nobody else has, one in each place that is kept, and a search for them."""

import json
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.application.homes import HOUR_S, NOON, Session, rfc

# Of one word each: eight bytes in a row of any of them are in nothing else.
PLANTED = {
    "preview": "grumbelfinkenau",
    "preference": "Zwickelbornstedt",
    "command": "frobnitzelwerker",
    "error": "hundertwasserlich",
    "file": "plomquisterhagen",
    "accents": "überzwölfkantigst",
    "script": "고사리밭고랑모서리",
    "quoted": 'knarrenbüx"tal\\ende',
}


class Planted(Session, kw_only=True):
    """It says all of PLANTED, then what it `says`."""

    number: int = 1
    says: tuple[str, ...] = ()

    def records(self) -> list[dict[str, object]]:
        w = PLANTED
        meta = super().records()[0]
        patch = f"*** Begin Patch\n*** Add File: src/{w['file']}.py\n+pass\n*** End Patch"
        typed = (
            f"the {w['preview']} page is broken, please mend it",
            f"from now on always run {w['preference']} before you commit",
            f"please never say {w['accents']} in this project, always say round",
            f"from now on always write {w['script']} in the headings",
            f"please never write {w['quoted']} in this project",
        )
        payloads: list[dict[str, object]] = [said(text) for text in typed]
        payloads += called("c1", f"make {w['command']}", 2, f"{w['error']}: no such rule")
        payloads += called("c2", f"make {w['command']} again", 0, "built")
        payloads += [
            {"type": "custom_tool_call", "name": "apply_patch", "call_id": "p", "input": patch},
            {
                "type": "custom_tool_call_output",
                "call_id": "p",
                "output": f"Success. Updated the following files:\nA src/{w['file']}.py\n",
            },
        ]
        payloads += [said(text) for text in self.says]
        began = self.ended_at - 60
        stamps = [began + at for at in range(len(payloads) - 1)] + [self.ended_at]
        items = [
            {"timestamp": rfc(stamp), "type": "response_item", "payload": payload}
            for stamp, payload in zip(stamps, payloads, strict=True)
        ]
        return [meta, *items]


def said(text: str) -> dict[str, object]:
    return {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": text}],
    }


def called(call_id: str, command: str, code: int, output: str) -> list[dict[str, object]]:
    arguments = json.dumps({"cmd": command})
    told = f"Wall time: 1.0000 seconds\nProcess exited with code {code}\nOutput:\n{output}\n"
    call: dict[str, object] = {
        "type": "function_call",
        "name": "exec_command",
        "arguments": arguments,
        "call_id": call_id,
    }
    return [call, {"type": "function_call_output", "call_id": call_id, "output": told}]


def fork_of(parent: Session, number: int, *says: str, ended_at: int = NOON - 7 * HOUR_S) -> str:
    """A fork as Codex writes it: its own head, the parent's, all that it said, then its own."""
    child = Session(number=number, says=says, ended_at=ended_at)
    own, *later = child.records()
    began = own["timestamp"]
    own["payload"]["forked_from_id"] = parent.id  # type: ignore[index]
    copied = [{**record, "timestamp": began} for record in parent.records()]
    later = [{**record, "timestamp": rfc(ended_at - 30 + at)} for at, record in enumerate(later)]
    return "".join(json.dumps(each) + "\n" for each in [own, *copied, *later])


def left_in(home: Path, *words: str, whole: bool = False) -> list[str]:
    """Which words are in which file under the home: its name, its bytes, or what they hold
    compressed, git objects among it. Eight bytes in a row are a word (`whole`: all of it is)."""
    wanted = {word: list(forms(word, whole=whole)) for word in words or PLANTED.values()}
    found = []
    for file in sorted(each for each in home.rglob("*") if each.is_file()):
        content = file.read_bytes()
        blobs = [str(file.relative_to(home)).encode().lower(), content.lower(), *inflated(content)]
        for word, pieces in wanted.items():
            if any(piece in blob for piece in pieces for blob in blobs):
                found.append(f"{word} in {file.relative_to(home)}")
    return found


def forms(word: str, *, whole: bool) -> Iterator[bytes]:
    escaped = (word, json.dumps(word)[1:-1], json.dumps(word, ensure_ascii=False)[1:-1])
    for form in {each.encode().lower() for each in escaped}:
        size = len(form) if whole else 8
        for start in range(len(form) - size + 1):
            piece = form[start : start + size]
            if whole or not piece.startswith((b"\\u", b"u00", b"u0")):
                yield piece


def inflated(content: bytes) -> Iterable[bytes]:
    """What lies compressed anywhere in it. A pack is a row of such streams."""
    for head in re.finditer(rb"\x78[\x01\x5e\x9c\xda]", content):
        try:
            yield zlib.decompressobj().decompress(content[head.start() :]).lower()
        except zlib.error:
            continue  # Two bytes that looked like a beginning.
