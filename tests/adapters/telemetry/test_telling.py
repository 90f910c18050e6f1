"""What OpenTelemetry is told: the conventions' names, counts and ids, and no words unless asked."""

import json
from contextlib import nullcontext

import pytest
from msgspec.structs import replace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from threadbook.adapters.mcp.desk import Desk
from threadbook.adapters.ranking import Ranking
from threadbook.adapters.telemetry.spans import CAPTURE, Telemetry
from threadbook.application.ranked import RankedSearch
from threadbook.application.reading import AmbiguousScope, NotFound
from threadbook.domain.refusals import Refused

from tests.adapters.telemetry.conftest import A, B
from tests.adapters.telemetry.watching import Watching
from tests.application.homes import FERN, MOSS, Session

SESSION = "019b7a00-00ff-7000-8000-0000000000ff"
SECRET = "ghp_" + "q7Xv2Lm9" * 4 + "zzzz"


def store_of(home, folder):
    return f"v1/{home.memory.scope(folder)}"


def test_a_run_is_a_span_over_its_sessions_and_folders(home):
    watching = Watching()
    watching.over(home.memory)

    home.run()

    run = watching.span("run")
    assert (run.name, run.kind, run.parent) == ("threadbook run", SpanKind.INTERNAL, None)
    assert run.attributes["threadbook.outputs.succeeded"] == 2
    inside = [each for each in watching.spans() if each is not run]
    assert {each.parent.span_id for each in inside} == {run.context.span_id}
    told = [each.attributes["threadbook.operation"] for each in inside]
    assert told == ["survey", "ingest", "extract", "extract", "consolidate", "consolidate"]
    read = {
        each.attributes["gen_ai.memory.record.id"]: each.attributes["gen_ai.memory.store.id"]
        for each in watching.spans("extract")
    }
    assert read == {A.id: store_of(home, FERN), B.id: store_of(home, MOSS)}
    for each in (*watching.spans("extract"), *watching.spans("consolidate")):
        assert each.name == each.attributes["gen_ai.operation.name"] == "upsert_memory"
        assert each.attributes["threadbook.outcome"] == "succeeded"
    assert watching.points("threadbook.outputs") == [({"threadbook.outcome": "succeeded"}, 2)]


def test_what_a_session_is_given_is_a_search_of_its_projects_memory(home, watching):
    given = home.memory.context(FERN, SESSION)

    told = watching.span("context")
    assert told.name == "search_memory"
    assert dict(told.attributes) == {
        "gen_ai.operation.name": "search_memory",
        "gen_ai.memory.store.id": store_of(home, FERN),
        "gen_ai.conversation.id": SESSION,
        "threadbook.operation": "context",
        "threadbook.outcome": "shown",
        "threadbook.memory_version": "v1",
        "threadbook.scope": home.memory.scope(FERN),
        "threadbook.notes": 0,
        "threadbook.tokens": given.tokens,
        "threadbook.omitted_lines": 0,
    }
    assert watching.points("threadbook.context.tokens") == [({}, given.tokens)]


def test_each_operation_has_the_name_that_the_conventions_have_for_it(home, watching, tmp_path):
    memory = home.memory

    memory.list(cwd=FERN)
    memory.read("MEMORY.md", cwd=FERN)
    memory.search("make", cwd=FERN)
    memory.search_ranked("make check", cwd=FERN)
    note = memory.note("use uv", cwd=FERN)
    memory.remove_note(note.path, cwd=FERN)
    memory.set_mode(A.id, "disabled")
    memory.set_mode(A.id, "enabled")
    memory.export(tmp_path / "out")
    memory.export_log(tmp_path / "log.jsonl")
    memory.forget(B.id)
    memory.reset(dry_run=True)
    memory.reset()

    assert [(each.name, each.attributes["threadbook.operation"]) for each in watching.spans()] == [
        ("search_memory", "list"),
        ("search_memory", "read"),
        ("search_memory", "search"),
        ("search_memory", "search_ranked"),
        ("create_memory", "note"),
        ("delete_memory", "remove_note"),
        ("update_memory", "set_mode"),
        ("update_memory", "set_mode"),
        ("threadbook export", "export"),
        ("threadbook export_log", "export_log"),
        ("delete_memory", "forget"),
        ("threadbook reset", "reset"),
        ("delete_memory", "reset"),
    ]
    assert watching.span("forget").attributes["gen_ai.memory.record.id"] == B.id
    assert {each.status.status_code for each in watching.spans()} == {StatusCode.UNSET}
    took = {each["threadbook.operation"] for each, _ in points_of(watching)}
    assert took == {each.attributes["threadbook.operation"] for each in watching.spans()}


def test_a_tool_says_whose_memory_it_asked_also_where_it_fails(home, watching):
    home.memory.search_ranked("tabs or spaces", cwd=MOSS, session=SESSION)
    with pytest.raises(NotFound):
        home.memory.read("nothing.md", cwd=MOSS, session=SESSION)
    with pytest.raises(AmbiguousScope):
        home.memory.list(cwd="/")

    *known, unknown = watching.spans()
    for each in known:
        assert each.attributes["gen_ai.memory.store.id"] == store_of(home, MOSS)
        assert each.attributes["gen_ai.conversation.id"] == SESSION
    assert known[0].attributes["gen_ai.memory.record.count"] >= 1
    assert "gen_ai.memory.store.id" not in unknown.attributes
    assert unknown.attributes["error.type"] == "ambiguous_scope"


def points_of(watching):
    return watching.points("threadbook.operation.duration")


def test_uses_are_counted_where_they_count(home, watching):
    memory = home.memory
    memory.context(FERN, SESSION)
    reply = f"Done.<oai-mem-citation><rollout_ids>{A.id}\n{B.id}</rollout_ids></oai-mem-citation>"

    memory.cite(reply, SESSION, 1)
    memory.cite(reply, SESSION, 1)

    assert watching.points("threadbook.uses") == [({"threadbook.operation": "cite"}, 1)]
    first, second = watching.spans("cite")
    assert (first.attributes["threadbook.uses"], second.attributes["threadbook.uses"]) == (1, 0)
    assert first.attributes["threadbook.not_counted"] == 1


def test_what_fails_is_told_by_its_code_alone(home, watching):
    with pytest.raises(NotFound):
        home.memory.read("walrus/walrus.md", cwd=FERN)

    told = watching.span("read")
    assert (told.status.status_code, told.status.description) == (StatusCode.ERROR, None)
    assert (told.attributes["error.type"], told.events) == ("not_found", ())
    assert told.attributes["threadbook.outcome"] == "failed"
    assert "walrus" not in watching.everything()


CALLS = (
    ("list", {}, "root", "false"),
    ("list", {"path": "rollout_summaries", "max_results": 1}, "rollout_summaries", "false"),
    ("list", {"path": "/"}, "root", "unknown"),
    ("list", {"path": "./"}, "root", "false"),
    ("list", {"max_results": 1}, "root", "true"),
    ("read", {"path": "MEMORY.md"}, "memory_md", "false"),
    ("read", {"path": "./memory_summary.md/"}, "memory_summary", "false"),
    ("read", {"path": "raw_memories.md", "max_lines": 1}, "raw_memories", "true"),
    ("read", {"path": "skills/nothing/SKILL.md"}, "skills", "unknown"),
    ("read", {"path": "skillset"}, "other", "unknown"),
    ("read", {"path": "extensions/ad_hoc/notes/none.md"}, "ad_hoc_notes", "unknown"),
    ("search", {"queries": ["make"]}, "all", "false"),
    ("search", {"queries": ["make"], "path": "MEMORY.md"}, "memory_md", "false"),
    ("search", {"queries": []}, "all", "unknown"),
    ("search_ranked", {"query": "make"}, "all", "false"),
    (
        "add_ad_hoc_note",
        {"filename": "2026-11-29T12-00-00-uv.md", "note": "use uv"},
        "ad_hoc_notes",
        "not_applicable",
    ),
    ("report_use", {"thread_ids": [A.id]}, "all", "not_applicable"),
)


@pytest.mark.parametrize(("name", "arguments", "part", "truncated"), CALLS)
def test_a_tools_call_is_counted_with_codexs_tags(home, watching, name, arguments, part, truncated):
    answer = desk(home).answer(name, arguments)

    assert watching.points("threadbook.tool.calls") == [
        (
            {
                "threadbook.tool": f"memories/{name}",
                "threadbook.operation": name,
                "threadbook.scope_class": part,
                "threadbook.status": "failed" if answer.is_error else "succeeded",
                "threadbook.truncated": truncated,
            },
            1,
        )
    ]


def test_a_call_that_nobody_could_understand_is_not_counted(home, watching):
    answer = desk(home).answer("read", {"path": "MEMORY.md", "colour": "blue"})

    assert answer.is_error
    assert watching.points("threadbook.tool.calls") == []


def desk(home):
    return Desk(
        opened=lambda _: nullcontext(home.memory._around),
        reads=lambda: "v1",
        ranked=RankedSearch(Ranking),
        complain=print,
        cwd=FERN,
        session=SESSION,
    )


def everything_with_words(home, tmp_path):
    """A memory of a canary is asked for it in every way, and each answer is checked to have it."""
    memory = home.memory
    folder = str(tmp_path / "walrus" / "project")
    home.write(Session(number=3, cwd=folder, says=("from now on always feed the walrus first",)))
    home.run()
    assert "walrus" in memory.context(folder, "walrus").text
    assert "walrus" in memory.read("MEMORY.md", cwd=folder, session="walrus").content
    assert memory.search("walrus", cwd=folder).matches
    assert memory.search_ranked("the walrus", cwd=folder).results
    memory.list(cwd=folder)
    note = memory.note(f"the walrus has the key {SECRET}", cwd=folder)
    assert "walrus" in note.path
    memory.read(note.path, cwd=folder)
    memory.cite("walrus <oai-mem-citation>walrus</oai-mem-citation>", "walrus", 1)
    for question in (
        lambda: memory.read("walrus.md", cwd=folder),
        lambda: memory.search(" ", path="walrus", cwd=folder),
        lambda: memory.remove_note("walrus", cwd=folder),
        lambda: memory.set_mode("walrus", "disabled"),
    ):
        with pytest.raises(Refused):
            question()
    memory.remove_note(note.path, cwd=folder)
    memory.export(tmp_path / "walrus-out")
    memory.forget(Session(number=3).id)
    memory.forget("walrus walrus")


def test_no_words_and_no_paths_are_told(home, watching, tmp_path):
    everything_with_words(home, tmp_path)

    told = watching.everything()
    assert {each.attributes["threadbook.operation"] for each in watching.spans()} == {
        *("run", "survey", "ingest", "extract", "consolidate"),
        *("context", "list", "read", "search", "search_ranked", "note", "remove_note"),
        *("cite", "set_mode", "export", "forget"),
    }
    assert "walrus" not in told.lower()
    assert SECRET not in told
    assert str(tmp_path) not in told
    assert "rollout-" not in told


def test_words_are_told_where_somebody_has_asked_for_them(home, watching, tmp_path, monkeypatch):
    monkeypatch.setenv(CAPTURE, "SPAN_ONLY")

    everything_with_words(home, tmp_path)

    assert watching.spans("search")[0].attributes["gen_ai.memory.query.text"] == "walrus"
    asked = watching.span("search_ranked").attributes
    assert asked["gen_ai.memory.query.text"] == "the walrus"
    (best, *_) = json.loads(asked["gen_ai.memory.records"])
    assert best.keys() == {"id", "content", "score"}
    assert "walrus" in best["content"]
    for operation in ("context", "read", "note"):
        first, *_ = watching.spans(operation)
        (record,) = json.loads(first.attributes["gen_ai.memory.records"])
        assert "walrus" in record["content"]
    assert SECRET not in watching.everything()
    words = {"gen_ai.memory.query.text", "gen_ai.memory.records"}
    for each in watching.spans():
        plain = {name: told for name, told in each.attributes.items() if name not in words}
        assert "walrus" not in str(plain)


@pytest.mark.parametrize("said", ["", "false", "NO_CONTENT", "EVENT_ONLY", "yes please"])
def test_nothing_else_is_taken_for_asking(home, watching, monkeypatch, said):
    monkeypatch.setenv(CAPTURE, said)

    home.memory.search("make", cwd=FERN)

    assert not {"gen_ai.memory.query.text", "gen_ai.memory.records"} & set(
        watching.span("search").attributes
    )


class Broken:
    """A provider, a tracer, a span and a meter that fail at whatever they are asked."""

    def __init__(self, *fails):
        self.fails = fails

    def __getattr__(self, name):
        if name in self.fails:
            raise RuntimeError(f"no {name}")
        return lambda *_, **__: Broken(*self.fails)


@pytest.mark.parametrize(
    "fails",
    [("start_span",), ("set_attributes",), ("end",), ("record", "add"), ("is_recording", "end")],
    ids=",".join,
)
def test_a_provider_that_fails_fails_alone(home, fails):
    home.run()
    broken = Telemetry(tracers=Broken(*fails), meters=Broken(*fails))
    home.memory._around = replace(home.memory._around, watch=broken.watch)

    assert home.memory.context(FERN, SESSION).state == "shown"
    assert home.memory.read("MEMORY.md", cwd=FERN).content
    assert home.memory.note("use uv", cwd=FERN).added
    assert home.run().sessions == 2
    with pytest.raises(NotFound):
        home.memory.read("nothing.md", cwd=FERN)


class Down(SpanExporter):
    def export(self, spans):
        raise ConnectionError("nobody is there")


def test_an_exporter_that_fails_fails_alone(home):
    home.run()
    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(SimpleSpanProcessor(Down()))
    home.memory._around = replace(home.memory._around, watch=Telemetry(tracers=tracers).watch)

    assert home.memory.context(FERN, SESSION).state == "shown"
