"""Every log that an earlier version wrote is read today, and nothing of it is lost."""

import json
from pathlib import Path
from typing import Literal, get_args, get_origin

import pytest
from msgspec import Struct
from msgspec.structs import fields
from threadbook.adapters.store.codec import Codec, tag_of
from threadbook.domain.events import AnyEvent
from threadbook.projections.catalog import SYNCHRONOUS
from threadbook.projections.fold import fold_all, read

from tests.adapters.stores import append, open_store
from tests.projections.specimens import tables

LOGS = Path(__file__).resolve().parents[1] / "fixtures" / "logs"
VERSIONS = sorted(
    (folder.name for folder in LOGS.iterdir() if (folder / "log.jsonl").exists()),
    key=lambda name: tuple(map(int, name.split("."))),
)


def lines(version):
    text = (LOGS / version / "log.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def decoded(line):
    return Codec().decode(line["position"], line["type"], json.dumps(line["data"]))


def kept(old, new):
    """Whether every field of the one is in the other, as it was."""
    if isinstance(old, dict) and isinstance(new, dict):
        return all(name in new and kept(value, new[name]) for name, value in old.items())
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(kept, old, new))
    return type(old) is type(new) and old == new


@pytest.mark.parametrize("version", VERSIONS)
def test_an_old_event_is_read_and_keeps_every_field_that_it_had(version):
    for line in lines(version):
        event = decoded(line)

        assert event is not None, f"{line['type']} is not known any more"
        again = json.loads(Codec().encode(event))
        assert kept(line["data"], again), (line["data"], again)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_projection_folds_an_old_log_one_by_one_and_at_once(version):
    log = [decoded(line) for line in lines(version)]

    at_once = [fold_all(SYNCHRONOUS, log[:end]) for end in range(len(log) + 1)]
    db = tables(log)

    for projection in SYNCHRONOUS:
        assert read(projection, (), db) == at_once[-1][projection]
        filled = any(rows[projection] for rows in at_once)
        assert filled or version != VERSIONS[-1], f"nothing was ever in {projection.NAME}"


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize("version", VERSIONS)
def test_an_old_log_in_a_database_is_verified_rebuilt_and_gone_on_with(tmp_path, version):
    store = open_store(tmp_path / "home")
    old = lines(version)
    with store._writing(actor="pipeline", run_id=None) as writing:
        for line in old:  # As it was written: what a row did not have then is not in it.
            after_ours = line["version"] + (line["stream"] == "store")
            data = json.dumps(line["data"], ensure_ascii=False)
            writing.record(line["stream"], after_ours, line["type"], data)

    store.replay_rebuild()

    found = store.verify()
    assert (found.ok, found.checked, found.unknown) == (True, len(old) + 1, {})
    assert found.quarantined == ()
    append(store, thread_id="t2")
    assert store.replay_verify() == []
    store.close()


@pytest.mark.parametrize("version", VERSIONS)
def test_an_old_log_is_numbered_as_a_log_is(version):
    found = lines(version)

    assert [line["position"] for line in found] == list(range(1, len(found) + 1))
    streams = {line["stream"] for line in found}
    for stream in streams:
        versions = [line["version"] for line in found if line["stream"] == stream]
        assert versions == list(range(1, len(versions) + 1))


def test_the_newest_log_shows_every_event_every_field_and_every_code_of_today():
    newest = lines(VERSIONS[-1])

    for event in get_args(AnyEvent):
        data = [line["data"] for line in newest if line["type"] == tag_of(event)]
        assert data, f"{tag_of(event)} is missing: tests/fixtures/logs/README.md"
        shown(event, data, tag_of(event))
    assert {line["type"] for line in newest} == {tag_of(event) for event in get_args(AnyEvent)}


def shown(struct, data, where):
    """Hold what stands in the log against a class, and the classes within it."""
    for field in fields(struct):
        values = [each[field.name] for each in data if field.name in each]
        at = f"{where}.{field.name}"
        assert any(value != field.default for value in values), f"{at} is never set"
        codes = [code for part in parts(field.type, Literal) for code in get_args(part)]
        assert set(codes) <= {value for value in values if isinstance(value, str)}, at
        for inner in parts(field.type, Struct):
            groups = [value if isinstance(value, list) else [value] for value in values if value]
            shown(inner, [each for group in groups for each in group], at)


def parts(annotation, wanted):
    """Each Literal, or each Struct, in an annotation."""
    if get_origin(annotation) is Literal:
        return [annotation] if wanted is Literal else []
    if isinstance(annotation, type) and issubclass(annotation, Struct):
        return [annotation] if wanted is Struct else []
    return [found for part in get_args(annotation) for found in parts(part, wanted)]
