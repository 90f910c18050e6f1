"""What is put into a prompt is named here, is all put in, and is looked at no second time."""

import pytest
from threadbook.prompts import filled, prompt

from tests.prompts.demands import OTHERS
from tests.prompts.texts import FOLDER, VARIABLE

# What each variable holds is said beside it.
VARIABLES = {
    "stage_one_input_v1": {
        "rollout_path": "/s/a.jsonl",  # The transcript's place; it is not opened by a model.
        "rollout_cwd": "/srv/pottery",  # As the transcript says, or `unknown`.
        "contents": '[{"type":"message"}]',  # The evidence.
    },
    "stage_one_input_v2": {
        "rollout_path": "/s/a.jsonl",
        "rollout_cwd": "/srv/pottery",
        "git_branch": "main",  # Or `unknown`.
        "contents": '[human user]\n{"type":"message"}\n',
    },
    "consolidation_input": {  # Of both versions.
        "mode": "incremental",  # Or `init`, where an artifact is missing or empty.
        "diff_file": "phase2_workspace_diff.md",
        "edited": "- MEMORY.md: 1 line added, 2 removed",  # A line a file, or `nothing`.
        "extensions": "- extensions/ad_hoc/instructions.md",  # A line a file, or `none`.
        "tools": "- list, read, search, write, replace, move, delete\n- finish ends the work",
        "budget": "- 60 replies\n- 30 minutes",  # Hints; what holds is counted by code.
    },
    "consolidation_refused": {
        "refusals": "- MEMORY.md:14: a statement names no task",  # A line each: where, and why.
    },
}


def test_these_are_all_the_prompts_that_take_something_in():
    taking = {p.stem for p in FOLDER.glob("*.md") if VARIABLE.search(p.read_text("utf-8"))}

    assert taking - OTHERS == set(VARIABLES)


@pytest.mark.parametrize("name", VARIABLES)
def test_a_prompt_takes_each_of_its_variables_once_and_no_other(name):
    assert sorted(VARIABLE.findall(prompt(name))) == sorted(VARIABLES[name])


@pytest.mark.parametrize("name", VARIABLES)
def test_a_filled_prompt_has_every_value_and_no_variable_left(name):
    text = filled(name, VARIABLES[name])

    assert all(value in text for value in VARIABLES[name].values())
    assert "{{" not in text
    assert "}}" not in text


@pytest.mark.parametrize(
    ("name", "variable"), [(name, variable) for name in VARIABLES for variable in VARIABLES[name]]
)
def test_a_value_that_looks_like_a_variable_stays_what_it_is(name, variable):
    value = r"{{contents}} {{nothing}} \1 \g<0>"

    assert value in filled(name, VARIABLES[name] | {variable: value})


@pytest.mark.parametrize("name", VARIABLES)
def test_a_variable_without_a_value_is_an_error(name):
    for variable in VARIABLES[name]:
        some = {key: value for key, value in VARIABLES[name].items() if key != variable}

        with pytest.raises(KeyError):
            filled(name, some)
