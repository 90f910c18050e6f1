import os
import subprocess
import threading

import pytest
from threadbook.adapters.places import look, origin_url
from threadbook.application.surroundings import Seen

CONFIG = '[core]\n\tbare = false\n[remote "origin"]\n\turl = git@forge.test:fern/works.git\n'


@pytest.fixture
def home(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    return home.resolve()


def repository(folder, config=CONFIG):
    git = folder / ".git"
    git.mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "config").write_text(config)
    return folder


def worktree(main, folder, *, back=None):
    git = main / ".git" / "worktrees" / folder.name
    git.mkdir(parents=True)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".git").write_text(f"gitdir: {git}\n")
    (git / "commondir").write_text("../..\n")
    (git / "gitdir").write_text(f"{back or folder / '.git'}\n")
    return folder


def test_a_folder_below_a_repository_has_its_root_and_remote(home):
    root = repository(home / "fern")
    (root / "src" / "deep").mkdir(parents=True)

    seen = look(str(root / "src" / "deep"), home=home)

    assert seen == Seen(root=str(root), remote="git@forge.test:fern/works.git")


def test_a_repository_without_a_remote_has_a_root_only(home):
    root = repository(home / "fern", "[core]\n\tbare = false\n")

    seen = look(str(root), home=home)

    assert seen == Seen(root=str(root), remote=None)


def test_a_linked_worktree_belongs_to_the_main_one(home):
    main = repository(home / "fern")
    branch = worktree(main, home / "elsewhere" / "branch")
    (branch / "src").mkdir()

    seen = look(str(branch / "src"), home=home)

    assert seen == Seen(root=str(main), remote="git@forge.test:fern/works.git")


def test_what_git_itself_makes_is_read_right(home):
    def git(*arguments):
        subprocess.run(
            ["git", "-c", "user.name=T", "-c", "user.email=t@t.test", *arguments],
            check=True,
            capture_output=True,
            env={"PATH": os.environ["PATH"], "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"},
        )

    main, branch = home / "main", home / "branch"
    git("init", "-q", str(main))
    git("-C", str(main), "commit", "-q", "--allow-empty", "-m", "first")
    git("-C", str(main), "remote", "add", "origin", "https://forge.test/a/b.git")
    git("-C", str(main), "worktree", "add", "-q", str(branch))

    seen = look(str(branch), home=home)

    assert seen == Seen(root=str(main), remote="https://forge.test/a/b.git")


def test_a_worktree_that_the_main_repository_does_not_know_stays_a_stranger(home):
    main = repository(home / "fern")
    stranger = worktree(main, home / "stranger", back=home / "branch" / ".git")

    seen = look(str(stranger), home=home)

    assert seen == Seen(root=str(stranger), remote=None)


def test_a_submodule_is_a_project_of_its_own(home):
    outer = repository(home / "outer", '[remote "origin"]\nurl = https://forge.test/outer\n')
    git = outer / ".git" / "modules" / "inner"
    git.mkdir(parents=True)
    (git / "config").write_text('[remote "origin"]\nurl = https://forge.test/inner\n')
    (outer / "inner").mkdir()
    (outer / "inner" / ".git").write_text("gitdir: ../.git/modules/inner\n")

    seen = look(str(outer / "inner"), home=home)

    assert seen == Seen(root=str(outer / "inner"), remote="https://forge.test/inner")


def test_a_repository_of_dotfiles_takes_no_other_folder_in(home):
    repository(home)
    (home / "notes").mkdir()

    below, itself = look(str(home / "notes"), home=home), look(str(home), home=home)

    assert below == Seen()
    assert itself.root == str(home)


def test_the_nearest_repository_counts(home):
    repository(home / "outer")
    inner = repository(home / "outer" / "inner", "")

    assert look(str(inner), home=home) == Seen(root=str(inner), remote=None)


def test_a_symbolic_link_leads_to_the_same_project(home):
    root = repository(home / "fern")
    (home / "link").symlink_to(root)

    assert look(str(home / "link"), home=home) == look(str(root), home=home)


@pytest.mark.parametrize("cwd", [None, "", "relative/fern", "~", "C:\\Users\\Dana", "/a\0b"])
def test_what_is_no_absolute_path_here_says_nothing(cwd):
    assert look(cwd) == Seen()


@pytest.mark.parametrize("cwd", ["//server/share/fern", "\\\\wsl$\\Ubuntu\\home\\dana"])
def test_a_network_path_is_never_touched(cwd):
    touched = []

    seen = look(cwd, disk=lambda path, *, home: touched.append(path))

    assert seen == Seen()
    assert touched == []


def test_a_folder_that_is_gone_or_no_folder_says_nothing(home):
    (home / "file").write_text("text")

    assert look(str(home / "gone"), home=home) == Seen()
    assert look(str(home / "file"), home=home) == Seen()


def test_a_disk_that_does_not_answer_is_not_waited_for(home):
    answers = threading.Event()

    seen = look(str(home), timeout_s=0.05, disk=lambda *_, **__: answers.wait(30))

    assert seen == Seen()
    assert not answers.is_set()
    answers.set()


def test_a_pipe_in_place_of_a_file_does_not_hold_us_up(home):
    root = repository(home / "fern")
    (root / ".git" / "config").unlink()
    os.mkfifo(root / ".git" / "config")

    assert look(str(root), home=home) == Seen(root=str(root), remote=None)


def test_a_git_file_that_points_to_the_network_or_nowhere_is_a_root_without_a_remote(home):
    (home / "a").mkdir()
    for pointer in ("gitdir: //server/share/repo", "gitdir:", "something else", ""):
        (home / "a" / ".git").write_text(pointer)

        assert look(str(home / "a"), home=home) == Seen(root=str(home / "a"), remote=None)


def test_a_hostile_configuration_sets_nothing_off(home):
    trap = home / "trap"
    hostile = (
        f'[core]\n\tfsmonitor = "touch {trap}"\n\tsshCommand = touch {trap}\n'
        f"[include]\n\tpath = {home}/more\n"
        f'[remote "origin"]\n\tuploadpack = touch {trap}\n\turl = ext::sh -c "touch {trap}"\n'
    )
    root = repository(home / "fern", hostile)
    (home / "more").write_text('[remote "origin"]\n\turl = https://forge.test/stolen\n')

    seen = look(str(root), home=home)

    assert seen == Seen(root=str(root), remote=f"ext::sh -c touch {trap}")
    assert not trap.exists()


@pytest.mark.parametrize(
    ("config", "url"),
    [
        ("", None),
        ('[remote "upstream"]\nurl = https://h.test/a\n', None),
        ('[remote "origin"]\nfetch = +refs\n[branch "url"]\nurl = no\n', None),
        ('[remote "origin"]\n\turl = "https://h.test/a b" ; note\n', "https://h.test/a b"),
        ('[remote "origin"] url = https://h.test/a # note\n', "https://h.test/a"),
        ('[REMOTE "origin"]\nURL=https://h.test/a\r\n', "https://h.test/a"),
        ('[remote "origin"]\nurl = https://h.test/\\\na\n', "https://h.test/a"),
        ('[remote "origin"]\nurl = one\nurl = two\n', "one"),
        ('[remote "origin"]\npushurl = no\n', None),
        ('# [remote "origin"]\nurl = no\n', None),
    ],
)
def test_a_configuration_is_read_as_git_reads_it(config, url):
    assert origin_url(config) == url
