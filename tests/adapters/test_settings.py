"""Settings: Codex's table as it is, ours beside it, and what a project's own file may say."""

import pytest
from threadbook.adapters.places import look
from threadbook.adapters.settings import Settings, SettingsError, load, restriction
from threadbook.adapters.wiring import policy
from threadbook.application.surroundings import ProjectFile, Restriction

CODEXS_TABLE = """
[memories]
disable_on_external_context = false
generate_memories = true
dedicated_tools = true
max_raw_memories_for_consolidation = 256
max_unused_days = 30
max_rollout_age_days = 10
max_rollouts_per_startup = 2
min_rollout_idle_hours = 6
min_rate_limit_remaining_percent = 25
extract_model = "gpt-6-luna"
consolidation_model = "gpt-6.1-terra"
"""


@pytest.fixture
def told(tmp_path):
    """What is in force with this text as the user's file."""

    def load_text(text, **environment):
        file = tmp_path / "config.toml"
        file.write_text(text)
        return load(file, environment=environment)

    return load_text


def project(text, path="/srv/fern/.threadbook.toml"):
    return ProjectFile(path=path, text=text)


def test_codexs_own_table_may_be_pasted_as_it_is(told):
    found = told(CODEXS_TABLE)

    assert (found.max_rollouts_per_startup, found.min_rate_limit_remaining_percent) == (2, 25)
    assert (found.extract_model, found.consolidation_model) == ("gpt-6-luna", "gpt-6.1-terra")


@pytest.mark.parametrize(
    ("key", "given", "kept"),
    [
        ("max_raw_memories_for_consolidation", 0, 1),
        ("max_raw_memories_for_consolidation", 5000, 4096),
        ("max_rollouts_per_startup", 0, 1),
        ("max_rollouts_per_startup", 129, 128),
        ("max_unused_days", -1, 0),
        ("max_unused_days", 366, 365),
        ("max_rollout_age_days", -1, 0),
        ("max_rollout_age_days", 91, 90),
        ("min_rollout_idle_hours", 0, 1),
        ("min_rollout_idle_hours", 49, 48),
        ("min_rate_limit_remaining_percent", 101, 100),
        ("min_rate_limit_remaining_percent", -1, 0),
    ],
)
def test_a_number_out_of_range_is_clamped_in_the_file_and_in_the_environment(
    told, key, given, kept
):
    assert getattr(told(f"[memories]\n{key} = {given}\n"), key) == kept
    assert getattr(told("", **{f"THREADBOOK_{key.upper()}": str(given)}), key) == kept


def test_a_name_that_codex_used_earlier_is_known(told):
    assert told("[memories]\nno_memories_if_mcp_or_web_search = true").disable_on_external_context


def test_a_setting_under_its_old_and_its_new_name_is_refused(told):
    text = "no_memories_if_mcp_or_web_search = true\n[memories]\ndisable_on_external_context = true"

    with pytest.raises(SettingsError, match="set twice"):
        told(text)


def test_a_projects_files_take_away_and_all_of_them_hold():
    files = [
        project("generate_memories = false"),
        project("[memories]\ndisable_on_external_context = true", "/srv/.threadbook.toml"),
    ]

    found = restriction(files)

    assert found == Restriction(generate_memories=False, disable_on_external_context=True)
    assert restriction([]) == Restriction()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("generate_memories = true", "can only be false"),
        ("disable_on_external_context = false", "can only be true"),
        ("use_memories = 0", "can only be false"),
        ('database = "postgresql://elsewhere/x"', "may not set `database`"),
        ("max_rollout_age_days = 90", "may not set `max_rollout_age_days`"),
        ("sources = 3", "list of texts"),
        ("generate_memories =", "not valid TOML"),
        ("memories = 3", "must be a table"),
        (None, "cannot be read"),
    ],
)
def test_a_project_cannot_give_itself_anything(text, told):
    with pytest.raises(SettingsError, match=told) as refused:
        restriction([project(text)])

    assert "/srv/fern/.threadbook.toml" in str(refused.value)


def test_sources_are_those_that_every_file_names_relative_to_it():
    files = [
        project('sources = ["a", "/logs"]', "/srv/fern/.threadbook.toml"),
        project('sources = ["/logs", "fern/a", "b"]', "/srv/.threadbook.toml"),
    ]

    assert restriction(files).sources == ("/logs", "/srv/fern/a")


@pytest.fixture
def repository(tmp_path):
    root = tmp_path / "work" / "fern"
    (root / ".git").mkdir(parents=True)
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (root / "deep" / "er").mkdir(parents=True)
    return root


def seen(folder, tmp_path):
    return [file.path for file in look(str(folder), home=tmp_path / "nobody").files]


def test_the_files_from_a_folder_up_to_the_repositorys_root_are_seen(repository, tmp_path):
    for folder in (tmp_path / "work", repository, repository / "deep"):
        (folder / ".threadbook.toml").write_text("")

    found = seen(repository / "deep" / "er", tmp_path)

    assert found == [
        str(repository / "deep/.threadbook.toml"),
        str(repository / ".threadbook.toml"),
    ]


def test_without_a_repository_only_the_folders_own_file_counts(tmp_path):
    below = tmp_path / "loose" / "below"
    below.mkdir(parents=True)
    (tmp_path / "loose" / ".threadbook.toml").write_text("")

    assert seen(below, tmp_path) == []
    assert seen(below.parent, tmp_path) == [str(tmp_path / "loose/.threadbook.toml")]


def test_a_file_that_is_there_and_cannot_be_read_is_no_missing_one(repository, tmp_path):
    (repository / ".threadbook.toml").mkdir()
    (found,) = look(str(repository), home=tmp_path / "nobody").files
    (repository / ".threadbook.toml").rmdir()
    (repository / ".threadbook.toml").write_text("#" * (1 << 19))
    (large,) = look(str(repository), home=tmp_path / "nobody").files

    assert (found.text, large.text) == (None, None)


def test_a_number_that_python_does_not_read_is_no_toml(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text("history_days = " + "1" * 5000)

    with pytest.raises(SettingsError, match="not valid TOML"):
        load(file, environment={})


def test_codexs_words_for_the_version_are_ours(told):
    found = told('[memories]\nversion = "v2"\ndual_write = true\n')

    assert (found.version, found.dual_write) == ("v2", True)
    assert (told("").version, told("").dual_write) == ("v1", False)
    assert told("", THREADBOOK_VERSION="v2", THREADBOOK_DUAL_WRITE="true").dual_write


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        ('version = "V2"', "must be one of v1, v2"),
        ("version = 2", "must be one of v1, v2"),
        ('version = "v3"', "must be one of v1, v2"),
        ('dual_write = "yes"', "must be true or false"),
    ],
)
def test_another_word_for_the_version_is_an_error(told, given, advice):
    with pytest.raises(SettingsError, match=advice):
        told(given)


@pytest.mark.parametrize(
    ("version", "dual_write", "written"),
    [
        ("v1", False, ("v1",)),
        ("v2", False, ("v2",)),
        ("v1", True, ("v1", "v2")),
        ("v2", True, ("v2",)),
    ],
)
def test_both_versions_are_written_where_v1_is_read(version, dual_write, written):
    found = policy(Settings(version=version, dual_write=dual_write))

    assert (found.memory_version, found.versions) == (version, written)


def test_a_project_may_not_say_which_version_is_written():
    with pytest.raises(SettingsError, match="may not set `dual_write`"):
        restriction([project("dual_write = true")])
