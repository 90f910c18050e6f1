"""facts: what is said of a question and of an answer. No words, no path of a disk, no message.

Ids are taken from answers and events. What a caller gave for one may be anything, and is said only
where it has the form of one.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct, field

from ...application.certificate import Certificate
from ...application.context import Context
from ...application.notes import NoteReceipt
from ...application.questions import ListAnswer, ReadAnswer, SearchAnswer, UseAnswer
from ...application.ranked import RankedAnswer
from ...application.reports import CiteReport, ForgetReport, IngestReport, RootReport, RunReport
from ...application.reset import ResetReport
from ...application.roots import Root
from ...application.tools import Tools
from ...domain.events import Tokens
from ...domain.redaction import redact

Value = str | int | float | bool

# The operation of the conventions that ours is; one that has none has a name of its own.
GEN_AI = {
    "extract": "upsert_memory",
    "consolidate": "upsert_memory",
    "context": "search_memory",
    "list": "search_memory",
    "read": "search_memory",
    "search": "search_memory",
    "search_ranked": "search_memory",
    "add_ad_hoc_note": "create_memory",
    "note": "create_memory",
    "import_folder": "create_memory",
    "import_log": "create_memory_store",
    "set_mode": "update_memory",
    "pollute": "update_memory",
    "set_scope": "update_memory",
    "remove_note": "delete_memory",
    "forget": "delete_memory",
    "reset": "delete_memory",
}
TOOLS = ("list", "read", "search", "search_ranked", "add_ad_hoc_note", "report_use")
STORE = "gen_ai.memory.store.id"
RECORD = "gen_ai.memory.record.id"
COUNT = "gen_ai.memory.record.count"
QUERY = "gen_ai.memory.query.text"
RECORDS = "gen_ai.memory.records"
CONVERSATION = "gen_ai.conversation.id"
ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Facts(Struct, kw_only=True):
    """`words` are made only if they may be told. `spent` and `uses` are what was counted."""

    said: dict[str, Value] = field(default_factory=dict)
    words: dict[str, Callable[[], str]] = field(default_factory=dict)
    outcome: str = "succeeded"
    error: str | None = None
    truncated: bool | None = None
    uses: int = 0
    spent: Tokens | None = None


def asked_of(operation: str, asked: Mapping[str, Any] | Struct) -> Facts:
    """What a question says by itself."""
    known = asked if isinstance(asked, Mapping) else msgspec.structs.asdict(asked)
    facts = Facts(said={"threadbook.operation": operation})
    if known.get("dry_run"):
        facts.outcome = "rehearsed"
    elif name := GEN_AI.get(operation):
        facts.said["gen_ai.operation.name"] = name
    of_root(facts, known.get("memory_version"), known.get("scope"))
    is_id(facts, RECORD, known.get("thread_id"))
    is_id(facts, CONVERSATION, known.get("session"))
    if operation in TOOLS:
        facts.said["threadbook.scope_class"] = scope_class(operation, known.get("path"))
    queries = known.get("queries", known.get("query"))
    if queries is not None:
        facts.words[QUERY] = lambda: redact(
            queries if isinstance(queries, str) else "\n".join(queries)
        )
    note = known.get("note", known.get("text"))
    if isinstance(note, str):
        facts.words[RECORDS] = lambda: records([{"content": redact(note)}])
    return facts


def told(facts: Facts, answer: object) -> None:
    """Add what came of it."""
    said, words = facts.said, facts.words
    match answer:
        case Tools(root=root, session=session):
            is_id(facts, CONVERSATION, session)
            if root is not None:
                of_root(facts, root.memory_version, root.scope)
        case Root(memory_version=version, scope=scope):
            of_root(facts, version, scope)
        case ListAnswer(entries=entries, truncated=truncated):
            said[COUNT], facts.truncated = len(entries), truncated
        case ReadAnswer(truncated=truncated) as read:
            said[COUNT], facts.truncated = 1, truncated
            words[RECORDS] = lambda: records([{"id": read.path, "content": read.content}])
        case SearchAnswer(matches=matches, truncated=truncated):
            said[COUNT], facts.truncated = len(matches), truncated
            words[RECORDS] = lambda: records(
                [{"id": each.path, "content": each.content} for each in matches]
            )
        case RankedAnswer(results=results):
            said[COUNT], facts.truncated = len(results), False
            words[RECORDS] = lambda: records(
                [
                    {"id": each.path, "content": each.content, "score": each.score}
                    for each in results
                ]
            )
        case NoteReceipt(scope=scope, added=added, secrets_hidden=hidden):
            said |= {
                COUNT: 1,
                "threadbook.scope": scope,
                "threadbook.added": added,
                "threadbook.secrets_hidden": hidden,
            }
        case Context(manifest=manifest) as context:
            facts.outcome = context.state
            if manifest is not None:
                of_root(facts, manifest.version, manifest.scope)
                said |= {
                    "threadbook.notes": manifest.notes,
                    "threadbook.tokens": manifest.tokens,
                    "threadbook.omitted_lines": manifest.omitted_lines,
                }
                words[RECORDS] = lambda: records([{"content": context.text}])
        case CiteReport(counted=counted, not_counted=others):
            used(facts, len(counted), len(others))
        case UseAnswer(counted=counted, not_counted=others):
            used(facts, len(counted), len(others))
        case IngestReport(sessions=sessions):
            said["threadbook.sessions"] = sessions
        case RunReport() as run:
            of_run(facts, run)
        case RootReport(status=status, reason=reason) as root:
            facts.outcome = "failed" if status.startswith("failed") else status
            if facts.outcome == "failed":
                facts.error = reason or status  # One of Codex's labels.
            changed = len(root.added) + len(root.modified) + len(root.deleted)
            said["threadbook.files_changed"] = changed
        case Certificate(thread_id=thread_id, verdict=verdict, report=report):
            is_id(facts, RECORD, thread_id)
            facts.outcome = verdict
            said["threadbook.texts_erased"] = report.bodies_erased
        case ForgetReport(thread_id=thread_id, bodies_erased=erased):
            is_id(facts, RECORD, thread_id)
            said["threadbook.texts_erased"] = erased
        case ResetReport(outputs=outputs, bodies_erased=erased):
            said |= {COUNT: outputs, "threadbook.texts_erased": erased}
        case "succeeded" | "no_output" | "failed" as outcome:  # One session's reading.
            facts.outcome = outcome
            if outcome == "failed":
                facts.error = "extraction_failed"
        case bool() as changed:
            said["threadbook.changed"] = changed
        case int() as count if said["threadbook.operation"] in ("cited", "count_uses"):
            used(facts, count, 0)
        case int() as count:
            said["threadbook.sessions_changed"] = count
        case Mapping() as folders:
            said["threadbook.folders"] = len(folders)
        case _:
            more(facts, answer)


def more(facts: Facts, answer: object) -> None:
    """Answers of what is seldom asked, whose modules need not be loaded to know them."""
    for name in ("events", "imported", "notes"):
        value = getattr(answer, name, None)
        if isinstance(value, int):
            facts.said[f"threadbook.{name}"] = value
        elif isinstance(value, list):
            facts.said[f"threadbook.{name}"] = len(value)


def of_run(facts: Facts, run: RunReport) -> None:
    if run.all_failed:
        facts.outcome, facts.error = "failed", "every_job_failed"
    facts.spent = run.tokens
    facts.said |= {
        "threadbook.sessions": run.sessions,
        "threadbook.sessions_changed": run.ingested,
        "threadbook.pruned": run.pruned,
        "threadbook.outputs.succeeded": run.stage1.succeeded,
        "threadbook.outputs.no_output": run.stage1.no_output,
        "threadbook.outputs.failed": run.stage1.failed,
        "threadbook.roots": len(run.phase2),
        "threadbook.waiting": sum(run.waiting.values()),
        "threadbook.left_out": sum(run.left_out.values()),
    }


def used(facts: Facts, counted: int, others: int) -> None:
    facts.uses += counted
    facts.said |= {"threadbook.uses": counted, "threadbook.not_counted": others}


def of_root(facts: Facts, version: object, scope: object) -> None:
    if isinstance(version, str) and isinstance(scope, str):
        facts.said[STORE] = f"{version}/{scope}"
        facts.said["threadbook.memory_version"] = version
        facts.said["threadbook.scope"] = scope


def is_id(facts: Facts, name: str, value: object) -> None:
    if isinstance(value, str) and ID.fullmatch(value):
        facts.said[name] = value


def records(found: list[dict[str, Any]]) -> str:
    return json.dumps(found, ensure_ascii=False)


PLACES = (
    ("MEMORY.md", "memory_md"),
    ("memory_summary.md", "memory_summary"),
    ("raw_memories.md", "raw_memories"),
)
FOLDERS = (
    ("rollout_summaries", "rollout_summaries"),
    ("skills", "skills"),
    ("extensions/ad_hoc/notes", "ad_hoc_notes"),
)


def scope_class(operation: str, path: object) -> str:
    """Which part of a memory a tool was asked for, as Codex's telemetry divides it."""
    if operation == "add_ad_hoc_note":
        return "ad_hoc_notes"
    if not isinstance(path, str):
        return "root" if operation == "list" else "all"
    plain = path.strip("/").removeprefix("./")
    return next(classes(plain), "other")


def classes(plain: str) -> Iterator[str]:
    if plain in ("", "."):
        yield "root"
    yield from (name for file, name in PLACES if plain == file)
    yield from (name for folder, name in FOLDERS if f"{plain}/".startswith(f"{folder}/"))
