import re
from pathlib import Path

import msgspec
import pytest
from threadbook.domain.events import ProjectLinked, ThreadForgotten, ThreadRescoped
from threadbook.domain.refusals import BadScope
from threadbook.domain.remote import normalised, public_url
from threadbook.domain.scope import (
    checked,
    folder_name,
    has_root,
    link,
    place_key,
    scope_of,
)
from threadbook.domain.thread import evolve

from tests.support import NOON, registered

CASES = Path(__file__).parents[1] / "fixtures" / "open" / "windows_wsl_paths.jsonl"
REMOTE = "https://forge.test/fern/works.git"


def scope(cwd="/home/dana/fern", **facts):
    return scope_of(**{"thread_id": "t1", "cwd": cwd, "machine_id": "m1"} | facts)


def first_cwds():
    lines = CASES.read_text().splitlines()
    return [msgspec.json.decode(line)["first_line"]["payload"].get("cwd") for line in lines]


# O12: one folder is one project, whatever system wrote its name.


def test_windows_and_wsl_names_of_one_folder_are_one_project():
    scopes = [scope(cwd) for cwd in first_cwds()]

    groups = [[0, 1, 2, 3, 4, 5], [6, 7], [8, 9, 10]]
    for group in groups:
        assert len({scopes[case] for case in group}) == 1, group
    assert len({scopes[group[0]] for group in groups}) == 3


def test_what_is_no_absolute_path_is_no_project():
    cwds = first_cwds()

    assert [scope(cwds[case]) for case in (11, 12, 13)] == ["quarantine:t1"] * 3


def test_every_folder_has_a_name_that_every_file_system_takes():
    for cwd in [*first_cwds(), "/w/a:b?c*d.", "/w/trailing ", "/w/..dots..", "/w/日本"]:
        name = folder_name(scope(cwd))

        assert re.fullmatch(r"[\w.-]*[\w-]", name), name
    assert folder_name("global") == "global"
    assert folder_name("../../etc") == "-..-etc"
    assert folder_name("...") == "-"


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("C:\\A\\..\\B\\.\\c. ", "c:/b/c"),
        ("\\\\?\\UNC\\Server\\Share\\Fern", "//server/share/fern"),
        ("//Server/Share/Fern/", "//server/share/fern"),
        ("\\\\.\\d:\\x", "d:/x"),
        ("/mnt/c", "c:/"),
        ("/mnt/cd/Fern", "/mnt/cd/Fern"),
        ("/home/Dana//fern/.", "/home/Dana/fern"),
        ("/../fern", "/fern"),
        ("/odd\\name", "/odd\\name"),
        ("/cafe\u0301", "/caf\u00e9"),
        ("C:", None),
        ("C:fern", None),
        ("\\fern", None),
        ("\\\\server", None),
        ("~/fern", None),
        ("fern", None),
        ("", None),
        (None, None),
    ],
)
def test_a_path_is_told_apart_by_its_form(path, key):
    assert place_key(path) == key


# What names a project.


def test_a_remote_names_the_project_wherever_its_folder_lies():
    here = scope("/home/dana/fern", repository_url=REMOTE)
    there = scope("C:\\fern", remote="git@forge.test:fern/works.git", machine_id="m2")

    assert here == there
    assert re.fullmatch(r"project:works-[0-9a-f]{8}", here)


def test_what_the_transcript_says_of_its_remote_counts_before_the_disk():
    assert scope(repository_url=REMOTE, remote="https://forge.test/x") == scope(remote=REMOTE)


def test_a_remote_names_the_project_even_in_a_home_directory():
    assert scope("/home/dana", remote=REMOTE) == scope(remote=REMOTE)


def test_a_folder_without_a_remote_is_this_machines_alone():
    assert scope(machine_id="m1") != scope(machine_id="m2")


def test_the_root_counts_before_the_cwd():
    in_src, in_docs = (scope(f"/w/fern/{name}", root="/w/fern") for name in ("src", "docs"))

    assert in_src == in_docs == scope("/w/fern")


def test_two_folders_of_one_name_are_two_projects():
    assert scope("/a/fern") != scope("/b/fern")


@pytest.mark.parametrize(
    "cwd",
    [
        "/",
        "C:\\",
        "/home/dana",
        "/home",
        "/Users/dana/",
        "/root",
        "C:\\Users\\Dana",
        "/mnt/c/Users/Dana",
        "\\\\wsl$\\Ubuntu\\home\\dana",
        "/export/people/dana",
    ],
)
def test_a_home_or_root_directory_is_no_project(cwd):
    assert scope(cwd, home_dirs=["/export/people/dana"]) == "quarantine:t1"


def test_a_linked_root_has_its_remotes_scope():
    linked = {"/w/fern": REMOTE}

    assert scope("/w/fern/src", root="/w/fern/", linked=linked) == scope(remote=REMOTE)
    assert scope("/w/other", linked=linked) == scope("/w/other")


def test_quarantine_and_user_have_no_folder():
    assert [has_root(each) for each in ("global", "project:a-1", "user", "quarantine:t1")] == [
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("text", ["global", "user", "project:fern-0a1b2c3d", "project:f\u00e9e"])
def test_a_scope_that_a_person_may_set(text):
    assert checked(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "quarantine:t1",
        "project:",
        "project:../x",
        "project:a.",
        "project:Fern",  # On a Mac the folder of `project:fern`.
        "project:fe\u0301e",  # There the folder of `project:f\u00e9e`, too.
        "project:fern.edits",  # Where the edits of `project:fern` are kept.
        f"project:{'a' * 200}",
        "project:\ud800",
    ],
)
def test_a_scope_that_no_person_may_set(text):
    with pytest.raises(BadScope):
        checked(text)


# Remotes.


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("git@forge.test:fern/works.git", "forge.test/fern/works"),
        ("ssh://git@Forge.Test:22/fern/works", "forge.test/fern/works"),
        ("https://dana:hunter2@FORGE.test/fern/works.git/?a=b#c", "forge.test/fern/works"),
        ("https://forge.test/fern//works.GIT", "forge.test/fern/works"),
        ("http://forge.test:80/Fern/Works", "forge.test/Fern/Works"),
        ("https://forge.test:8443/a", "forge.test:8443/a"),
        ("forge.test:/srv/fern.git", "forge.test/srv/fern"),
        ("dana@[::1]:a/b", "[::1]/a/b"),
        ("file:///srv/fern.git", None),
        ("/srv/fern.git", None),
        ("../fern", None),
        ("C:\\fern", None),
        ("C:/fern", None),
        ("ext::sh -c true", None),
        ("https://forge.test/", None),
        ("http://[::1", None),
        ("https://h.test:port/a", None),
        ("", None),
        (None, None),
    ],
)
def test_one_remote_has_one_name_however_it_is_written(url, name):
    assert normalised(url) == name


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("https://dana:hunter2@forge.test/a.git?token=b#c", "https://forge.test/a.git"),
        ("https://dana:hu@nter2@forge.test/a", "https://forge.test/a"),
        ("ssh://git@forge.test:22/a", "ssh://forge.test:22/a"),
        ("git@forge.test:a/b.git", "forge.test:a/b.git"),
        ("dana:hunter2@forge.test:a/b.git", "forge.test:a/b.git"),
        ("https://dana:hunter/2@forge.test/a", None),
        ("/srv/fern.git", "/srv/fern.git"),
        (" ", None),
        (None, None),
    ],
)
def test_what_is_kept_of_an_address_has_no_credentials(url, kept):
    assert public_url(url) == kept


# A root's first remote.


def linking(threads, **terms):
    known = {"root": "/w/fern", "remote": REMOTE, "known_remote": None, "machine_id": "m1"}
    return link(**known | terms, threads=threads, now=NOON)


def test_the_first_remote_of_a_root_takes_its_threads_along():
    thread = registered("t1", scope=scope("/w/fern"), root="/w/fern")

    linked, moved = linking([thread])

    there = scope(remote=REMOTE)
    assert linked == ProjectLinked(at=NOON, scope=there, root="/w/fern", remote=REMOTE)
    assert isinstance(moved, ThreadRescoped)
    assert (moved.thread_id, moved.scope, moved.scope_before) == ("t1", there, thread.scope)


def test_a_second_remote_joins_nothing():
    thread = registered("t1", scope=scope("/w/fern"), root="/w/fern")

    assert linking([thread], known_remote="https://forge.test/first") == ()


def test_a_thread_that_was_told_its_root_later_follows():
    late = registered("t2", scope=scope("/w/fern"), root="/w/fern")

    (moved,) = linking([late], known_remote="git@forge.test:fern/works.git")

    assert (moved.thread_id, moved.scope) == ("t2", scope(remote=REMOTE))


def test_only_threads_that_the_root_alone_placed_move():
    here = scope("/w/fern")
    gone = evolve(
        registered("t3", scope=here), ThreadForgotten(at=NOON, thread_id="t3", reason="person")
    )
    threads = [
        registered("t1", scope="project:by-hand"),
        registered("t2", scope=scope(remote="https://forge.test/fork")),
        gone,
    ]

    assert len(linking(threads)) == 1


def test_an_address_that_names_no_host_links_nothing():
    assert linking([], remote="/srv/fern.git") == ()


def test_no_password_is_recorded_with_a_link():
    (linked,) = linking([], remote="https://dana:hunter2@forge.test/a?b")

    assert linked.remote == "https://forge.test/a"
