"""A model that consolidates honestly, without a mind: it reads what there is, and writes every fact
with its source.

What it does next it sees from the conversation alone, so that it may be asked by several at once.
A summary has no room for everything: the newest of it goes in.
"""

import itertools
import re
from typing import Any

from tests.model_server import Asked, Reply, call, response
from tests.model_turns import outputs

THREAD = re.compile(r"^## Thread `(?P<id>[^`]+)`\n(?P<rest>.*?)(?=^## Thread `|\Z)", re.M | re.S)
FIELD = r"^{}: (.*)$"
PAGE = re.compile(r"^characters \d+ to (\d+) of (\d+)")
SUMMARY_BYTES = 9_000
HEADINGS = ("## User Profile", "## User preferences", "## General Tips", "## What's in Memory")


def consolidates(asked: Asked) -> Reply:
    given = [text for _, text in outputs(asked)]
    if "# Keeping the memory summary" in asked.text:
        name, arguments = second_version(given)
    else:
        name, arguments = first_version(given)
    return Reply(response(call(name, arguments, call_id=f"call_{len(given) + 1}")))


def read(path: str, offset: int = 0) -> tuple[str, dict[str, Any]]:
    return "read", {"path": path, "offset": offset}


def write(path: str, content: str) -> tuple[str, dict[str, Any]]:
    return "write", {"path": path, "content": content}


def body(page: str) -> str:
    return page.partition("\n\n")[2]


def first_version(given: list[str]) -> tuple[str, dict[str, Any]]:
    pages = list(itertools.takewhile(PAGE.match, given))
    at, size = map(int, PAGE.match(pages[-1]).groups()) if pages else (0, 1)
    if at < size:
        return read("raw_memories.md", at)
    threads = [(each["id"], each["rest"]) for each in THREAD.finditer("".join(map(body, pages)))]
    steps = (
        write("MEMORY.md", memory(threads)),
        write("memory_summary.md", summary(threads)),
        ("finish", {}),
    )
    return steps[len(given) - len(pages)]


def second_version(given: list[str]) -> tuple[str, dict[str, Any]]:
    if not given:
        return "list", {"path": "rollout_summaries", "start": None}
    names = [line.split("  ")[0] for line in given[0].splitlines()[1:]]
    histories = given[1 : len(names) + 1]
    if len(histories) < len(names):
        return read(f"rollout_summaries/{names[len(histories)]}")
    steps = (write("memory_summary.md", of_histories(map(body, histories))), ("finish", {}))
    return steps[len(given) - len(names) - 1]


def field(name: str, text: str) -> str:
    found = re.search(FIELD.format(name), text, re.M)
    return found[1] if found else "unknown"


def facts(text: str) -> list[str]:
    """The bullets; of a text without any, its last line."""
    lines = [line for line in text.splitlines() if line.strip()]
    return re.findall(r"^- (.*)$", text, re.M) or lines[-1:] or ["nothing was said"]


def memory(threads: list[tuple[str, str]]) -> str:
    blocks = []
    for number, (thread_id, text) in enumerate(threads, 1):
        cwd = field("cwd", text)
        source = (
            f"rollout_summaries/{field('rollout_summary_file', text).rpartition('/')[2]}"
            f" (cwd={cwd}, rollout_path={field('rollout_path', text)},"
            f" updated_at={field('updated_at', text)}, thread_id={thread_id})"
        )
        known = "\n".join(f"- {fact} [Task {number}]" for fact in facts(text))
        blocks.append(
            f"# Task Group: {cwd}, {number}\nscope: what was said there\n"
            f"applies_to: cwd={cwd}; reuse_rule=this project only\n\n"
            f"## Task {number}: {facts(text)[0]}, success\n\n"
            f"### rollout_summary_files\n- {source}\n\n### keywords\n- stub\n\n"
            f"## Reusable knowledge\n{known}\n"
        )
    return "\n".join(blocks)


def summary(threads: list[tuple[str, str]]) -> str:
    index = [
        f"### {field('cwd', text)}\n\n#### {field('updated_at', text)[:10]}\n"
        f"- {facts(text)[0]}: stub [Task {number}]\n"
        f"  - desc: {facts(text)[0]} [Task {number}]\n"
        for number, (_, text) in enumerate(threads, 1)
    ]
    return indexed(index)


def of_histories(histories: Any) -> str:
    index = [
        f"### {field('cwd', text)}\n\n#### {field('updated_at', text)[:10]}\n"
        + "\n".join(f"- {fact}; thread_id={field('thread_id', text)}" for fact in facts(text))
        for text in histories
    ]
    return indexed(index)


def indexed(index: list[str]) -> str:
    """`index` from the oldest on, as ids of version 7 are."""
    room = SUMMARY_BYTES - len("\n\n".join(["v1", *HEADINGS]))
    shown = []
    for each in map(str.strip, reversed(index)):
        room -= len(each.encode()) + 2
        if room >= 0:
            shown.append(each)
    return "\n\n".join(["v1", *HEADINGS, *shown]) + "\n"
