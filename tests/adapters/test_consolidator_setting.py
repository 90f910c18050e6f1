"""Who consolidates: a command of the user's before a provider's model before ours."""

import subprocess
import sys

import pytest
from threadbook.adapters import wiring
from threadbook.adapters.settings import Settings, SettingsError, load, restriction
from threadbook.application.surroundings import ProjectFile

from tests.application.homes import ROOT

CODEX = ("codex", "exec", "--skip-git-repo-check", "-")


@pytest.mark.parametrize(
    ("settings", "name", "kind"),
    [
        (Settings(), "offline", "offline"),
        (Settings(model="openai"), "gpt-6.1-terra", "agent"),
        (Settings(model="openai", consolidation_model="luna"), "luna", "agent"),
        (Settings(model="openai", consolidator=CODEX), "command:codex", "agent"),
        (Settings(consolidator=("/opt/bin/mine", "--secret", "x")), "command:mine", "agent"),
    ],
)
def test_who_consolidates_follows_from_the_settings(tmp_path, settings, name, kind):
    chosen = wiring.consolidator(settings, tmp_path)

    assert (chosen.name, chosen.kind) == (name, kind)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("model", ["offline", "openai"])
def test_nothing_heavy_is_loaded_before_there_is_something_to_propose(tmp_path, model):
    code = f"""
import sys
from pathlib import Path
from threadbook.adapters import wiring
from threadbook.adapters.settings import Settings
for argv in ((), ("codex", "exec")):
    wiring.consolidator(Settings(model={model!r}, consolidator=argv), Path({str(tmp_path)!r}))
heavy = ("openai", "pydantic", "asyncio", "shlex", "subprocess", "threadbook.adapters.staging")
print([name for name in heavy if name in sys.modules])
"""
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert told.stdout == "[]\n"


@pytest.mark.parametrize(
    ("written", "argv"),
    [
        ('["codex", "exec", "--skip-git-repo-check", "-"]', CODEX),
        (' ["a b", "c\\"d"]', ("a b", 'c"d')),
        ("codex exec --skip-git-repo-check -", CODEX),
        ("claude -p 'two words' --x=\"y z\"", ("claude", "-p", "two words", "--x=y z")),
        ("", ()),
        ("[]", ()),
    ],
)
def test_in_the_environment_it_is_a_list_or_the_words_of_a_shell(tmp_path, written, argv):
    file = tmp_path / "config.toml"
    file.write_text("")

    settings = load(file, environment={"THREADBOOK_CONSOLIDATOR": written})

    assert settings.consolidator == argv


def test_in_the_file_it_is_a_list_and_the_variables_are_named(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text('consolidator = ["claude", "-p"]\nconsolidator_variables = ["ANTHROPIC_KEY"]\n')

    settings = load(file, environment={})
    named = load(file, environment={"THREADBOOK_CONSOLIDATOR_VARIABLES": "A_KEY, B_KEY"})

    assert settings.consolidator == ("claude", "-p")
    assert settings.consolidator_variables == ("ANTHROPIC_KEY",)
    assert named.consolidator_variables == ("A_KEY", "B_KEY")


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ('"codex exec"', "list of texts"),
        ('["./mine"]', "is relative"),
        ('["tools/mine", "x"]', "is relative"),
        ('[""]', "must begin with a command's name"),
        ('["mine", "a\\u0000b"]', "must begin with a command's name"),
        ("[3]", "list of texts"),
    ],
)
def test_one_that_could_not_be_started_is_told_before_anything_runs(tmp_path, written, told):
    file = tmp_path / "config.toml"
    file.write_text(f"consolidator = {written}\n")

    with pytest.raises(SettingsError, match=told):
        load(file, environment={})


@pytest.mark.parametrize("written", ["codex 'exec", '["codex"', '{"a": 1}x"'])
def test_a_variable_that_is_no_command_says_how_to_write_one(tmp_path, written):
    file = tmp_path / "config.toml"
    file.write_text("")

    with pytest.raises(SettingsError, match="THREADBOOK_CONSOLIDATOR: no list of words"):
        load(file, environment={"THREADBOOK_CONSOLIDATOR": written})


@pytest.mark.parametrize("key", ["consolidator", "consolidator_variables"])
def test_no_project_may_name_a_command(key):
    file = ProjectFile(path="/srv/fern/.threadbook.toml", text=f'{key} = ["curl", "evil"]')

    with pytest.raises(SettingsError, match=f"may not set `{key}`"):
        restriction([file])
