"""What must be true after a race: of the log, of the files, of what the racers wrote down."""

from collections import Counter, defaultdict

import msgspec
from threadbook import Memory
from threadbook.domain.events import (
    ArtifactsPublished,
    Cited,
    ForgettingLifted,
    MemoryModeSet,
    OutputWithdrawn,
    Phase2Succeeded,
    RootRendered,
    Stage1LeaseClaimed,
    Stage1Succeeded,
    ThreadForgotten,
    ThreadPolluted,
    ThreadRegistered,
    ThreadRescoped,
)
from threadbook.projections import jobs, stage1_outputs, threads

from tests.application.homes import HOUR_S, content, thread_id
from tests.application.leases import read_again, readings, walked
from tests.application.planted import left_in
from tests.application.race import Race, Told

# What a caller may be told while others are at work: the state does not allow it.
EXPECTED = {"forgotten", "not_forgotten", "unknown_thread"}
NEVER = ("locked", "busy", "write lock", "SQLITE", "deadlock", "being written by")


def held_against(race: Race) -> Counter[str]:
    """Everything; how often the interesting moments were reached."""
    told = written_down(race)
    nobody_saw_an_error(told)
    quiet(race)
    with race.open(race.homes[0]) as memory:
        log = list(memory.log())
    race.reached.update(walked(log, killed=race.killed))
    assert read_again(log) == []
    what_was_told_is_in_the_log(told, log)
    every_citation_counts_once(log)
    nothing_is_published_of_who_is_out(log)
    for home in race.homes:
        the_home_is_sound(race, home)
    nothing_forgotten_is_left(race)
    the_folders_are_as_one_process_would_have_made_them(race)
    race.reached.update(moments(race, told, log))
    return race.reached


def written_down(race: Race) -> list[Told]:
    return [
        msgspec.json.decode(line, type=Told)
        for file in sorted(race.told.iterdir())
        for line in file.read_text().splitlines()
    ]


def nobody_saw_an_error(told: list[Told]) -> None:
    for each in told:
        assert each.error is None or each.error in EXPECTED, f"{each.act}: {each.message}"
        for word in NEVER:
            assert word not in str(each.message) + str(each.result), f"{each.act}: {each.message}"


def quiet(race: Race) -> None:
    """Nobody else is there any more, and every lease has run out. One session is forgotten after
    all that was made of it; then one run on each machine. What is by the rules not read again as
    it is goes on first."""
    race.clock.later(2 * HOUR_S)
    with race.open(race.homes[0]) as memory:
        memory.forget(thread_id(race.doomed[-1]))
    for home in [*race.homes, *race.homes]:
        with race.open(home) as memory:
            memory.run(sessions=[race.sessions_folder])
            given_up, withdrawn = not_read_again(memory)
        race.reached["given up after three deaths"] += len(given_up)
        race.reached["enabled after its output was withdrawn"] += len(withdrawn)
        for number in race.numbers:
            if thread_id(number) in given_up | withdrawn:
                race.goes_on(number, " after all")
    for home in race.homes:
        with race.open(home) as memory:
            report = memory.run(sessions=[race.sessions_folder])
            assert report.waiting == {}
            assert [root.status for root in report.phase2 if root.status != "rendered"] == []
            assert report.stage1.claimed == 0


def not_read_again(memory: Memory) -> tuple[set[str], set[str]]:
    """The sessions that cost three workers their lives, and those whose output was withdrawn while
    they were polluted or disabled."""
    with memory.store.reading() as view:
        given_up = {
            job.job_key
            for job in view.rows(jobs, (jobs.STAGE1,))
            if job.status != "done" and job.retry_remaining <= 0
        }
        enabled = {
            row.thread_id
            for row in view.rows(threads, ())
            if row.mode == "enabled" and row.registered and not row.forgotten
        }
    last = {
        each.event.thread_id: each.event
        for each in memory.log()
        if isinstance(each.event, OutputWithdrawn | Stage1Succeeded | Stage1LeaseClaimed)
    }
    withdrawn = {id_ for id_ in enabled if isinstance(last.get(id_), OutputWithdrawn)}
    return given_up, withdrawn


def what_was_told_is_in_the_log(told: list[Told], log: list) -> None:
    """A kill takes nothing back that somebody was told was done."""
    cited = Counter(each.event.citation_id for each in log if isinstance(each.event, Cited))
    counted: Counter[str] = Counter()
    ends: dict[str, list] = defaultdict(list)
    for each in log:
        if isinstance(each.event, ThreadForgotten | ForgettingLifted | ThreadPolluted):
            ends[each.event.thread_id].append(type(each.event))
    done: Counter[tuple[type, str]] = Counter()
    for each in told:
        if each.error is not None:
            continue
        match each.act:
            case "cite":
                counted[f"{each.session}:{each.turn}"] += each.result or 0
            case "forget":
                assert ThreadForgotten in ends[each.ids[0]], each
            case "lift":
                done[ForgettingLifted, each.ids[0]] += 1
            case "pollute":
                done[ThreadPolluted, each.ids[0]] += bool(each.result)
    for citation_id, count in counted.items():
        assert count <= cited[citation_id], citation_id
    for (kind, id_), count in done.items():
        assert count <= ends[id_].count(kind), (kind, id_)


def every_citation_counts_once(log: list) -> None:
    seen: dict[str, set[str]] = defaultdict(set)
    for each in log:
        match each.event:
            case ThreadForgotten(thread_id=id_):
                seen[id_].clear()
            case Cited(thread_id=id_, citation_id=citation_id):
                assert citation_id not in seen[id_], f"{each.position} counts twice"
                seen[id_].add(citation_id)


def nothing_is_published_of_who_is_out(log: list) -> None:
    """At the moment that a root's success is recorded, each of its sessions is enabled and its."""
    mode: dict[str, str] = {}
    scope: dict[str, str] = {}
    for each in log:
        match event := each.event:
            case ThreadRegistered():
                mode[event.thread_id], scope[event.thread_id] = event.mode, event.scope
            case MemoryModeSet(thread_id=id_):
                mode[id_] = event.mode
            case ThreadPolluted(thread_id=id_):
                mode[id_] = "polluted"
            case ThreadForgotten(thread_id=id_):
                mode[id_] = "forgotten"
            case ForgettingLifted(thread_id=id_):
                mode[id_] = "lifted"  # Without an output, until it is read again.
            case ThreadRescoped(thread_id=id_):
                scope[id_] = event.scope
            case Stage1Succeeded(thread_id=id_) if mode[id_] == "lifted":
                mode[id_] = event.memory_mode
            case Phase2Succeeded():
                for selected in event.selected:
                    told = f"{each.position} is made from {selected}"
                    assert mode[selected.thread_id] == "enabled", told
                    assert event.scope in ("global", scope[selected.thread_id]), told


def the_home_is_sound(race: Race, home) -> None:
    with race.open(home) as memory:
        assert memory.verify().ok
        assert memory.replay_verify() == []
        assert memory.store.pending_erasures() == []
        read = readings(memory.log())
        with memory.store.reading() as view:
            enabled = {
                row.thread_id
                for row in view.rows(threads, ())
                if row.mode == "enabled" and row.registered and not row.forgotten
            }
            for job in view.rows(jobs, ()):
                # What was given back for the dead stays pending where nobody is to claim it.
                waits = job.kind == jobs.PHASE2 or job.job_key not in enabled
                assert job.status == "done" or (waits and job.status == "pending"), job
            outputs = {row.thread_id: row for row in view.rows(stage1_outputs, ())}
            for row in view.rows(threads, ()):
                if row.mode == "enabled" and not row.forgotten and row.registered:
                    watermark = row.updated_at_ms // 1000
                    assert read[row.thread_id, watermark] >= 1
                    assert outputs[row.thread_id].source_updated_at == watermark
    for folder in ("workers", "readers"):
        assert list((home / folder).glob("*")) == [], folder


def nothing_forgotten_is_left(race: Race) -> None:
    with race.open(race.homes[0]) as memory, memory.store.reading() as view:
        forgotten = [row.thread_id for row in view.rows(threads, ()) if row.forgotten]
        for id_ in forgotten:
            owner = f"thread:{id_}"
            assert not view.value("SELECT count(*) FROM bodies WHERE owner = :owner", owner=owner)
    words = [race.words[number] for number in race.doomed if thread_id(number) in forgotten]
    race.reached["forgotten"] += len(words)
    for home in race.homes:
        assert not words or left_in(home, *words) == []


def the_folders_are_as_one_process_would_have_made_them(race: Race) -> None:
    """A process that is alone, with the sessions and what was said of them as they are now."""
    with race.open(race.homes[0]) as memory, memory.store.reading() as view:
        rows = view.rows(threads, ())
    home = race.folder / "alone" / "home"
    with Memory.open(home, clock=race.clock.now, settings=race.settings) as memory:
        for row in rows:
            if row.forgotten:
                memory.forget(row.thread_id)
        memory.ingest([race.sessions_folder])
        for row in rows:
            if row.forgotten:
                continue
            if row.mode == "polluted":
                memory.pollute(row.thread_id, "web_search")
            elif row.mode == "disabled":
                memory.set_mode(row.thread_id, "disabled")
            memory.set_scope(row.thread_id, row.scope)
        memory.run(sessions=[race.sessions_folder])
    alone = folders(home)
    for each in race.homes:
        found = folders(each)
        for scope in found.keys() - alone.keys():  # Everything has left it since.
            text = "".join(found.pop(scope).values())
            assert not any(word in text for word in race.words.values()), scope
        assert found == alone
    race.reached["folders"] += len(alone)


def folders(home) -> dict[str, dict[str, str]]:
    memories = home / "memories" / "v1"
    return {
        root.name: content(root)
        for root in memories.glob("*")
        if root.is_dir() and root.suffix != ".edits"
    }


def moments(race: Race, told: list[Told], log: list) -> Counter[str]:
    """How often a racer died where it matters, by the log and by its last words."""
    found: Counter[str] = Counter()
    published: dict[str, str] = {}  # Of a run: the scope that it has published and not rendered.
    runs: dict[str, int] = {}  # Run -> process.
    for each in log:
        match each.event:
            case Stage1LeaseClaimed(worker_id=worker_id):
                runs[each.run_id] = int(worker_id.split("-")[1])
            case ArtifactsPublished(scope=scope, consolidator="offline"):
                published[each.run_id] = scope
            case RootRendered():
                published.pop(each.run_id, None)
    killed = set(race.killed)
    found["killed between publication and render"] = sum(
        runs.get(run) in killed for run in published
    )
    found["published"] = sum(isinstance(each.event, Phase2Succeeded) for each in log)
    for each in told:
        if each.act == "died":
            found["died at a place"] += 1
            for name in (
                "claims.claim",
                "phase1.begin",
                "outcomes.record",
                "lease.claim",
                "publication.publish",
                "render.render",
                "forget.forget",
                "forget.finish",
                "citing.count",
                "ingest.record_one",
                "sqlite._commit",
                "postgres._commit",
            ):
                found[f"died in {name}"] += name in each.ids
        elif each.error:
            found[f"refused: {each.error}"] += 1
        else:
            found[f"did: {each.act}"] += 1
    for each in told:
        if each.act == "run" and each.result:
            waiting, statuses = each.result
            for why in waiting:
                found[f"waited: {why}"] += 1
            for status in statuses:
                found[f"root: {status}"] += 1
    found["events"] = len(log)
    return found
