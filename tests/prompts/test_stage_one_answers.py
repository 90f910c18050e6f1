"""The examples of stage one fit the schemas that answers are checked by, and the digest that stands
in an event tells one text of a prompt from another."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from threadbook.adapters.models.schemas import STAGE_ONE, fitted
from threadbook.adapters.models.stage_one import schema, texts

from tests.prompts.texts import FOLDER, blocks, example

ROOT = Path(__file__).parents[2]
# Says the digests of both versions, then again after each prompt that is named has one word more.
SAYS = """
import sys
from pathlib import Path
from threadbook import prompts
from threadbook.adapters.models.stage_one import digest

folder = Path(prompts.__file__).parent
for name in ["", *sys.argv[1:]]:
    if name:
        file = folder / f"{name}.md"
        file.write_text(file.read_text("utf-8") + "more\\n", "utf-8")
    digest.cache_clear()
    print(digest("v1"), digest("v2"))
"""


@pytest.mark.parametrize("version", STAGE_ONE)
def test_an_example_fits_the_schema_and_every_field_of_it_is_shown(version):
    (text,) = blocks(f"stage_one_{version}", "json")

    said = fitted(STAGE_ONE[version], text)

    assert said.model_dump() == example(f"stage_one_{version}")
    assert set(example(f"stage_one_{version}")) == set(schema(version).json["required"])


@pytest.mark.parametrize("version", STAGE_ONE)
def test_an_example_is_kept_as_it_stands_and_the_answer_for_nothing_is_nothing(version):
    reply = example(f"stage_one_{version}")
    empty = "{" + ", ".join(f'"{key}": ""' for key in reply) + "}"
    (text,) = blocks(f"stage_one_{version}", "json")

    kept = (reply.get("raw_memory", ""), reply["rollout_summary"], reply["rollout_slug"])

    assert texts(version, text) == kept
    assert texts(version, empty) == ("", "", None)


def test_a_word_more_in_a_prompt_is_another_digest_of_its_version_and_of_no_other(tmp_path):
    package = tmp_path / "threadbook"
    package.mkdir()
    shutil.copy(ROOT / "src" / "threadbook" / "__init__.py", package)
    shutil.copytree(FOLDER, package / "prompts", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in ("domain", "projections", "application", "adapters"):
        (package / folder).symlink_to(ROOT / folder, target_is_directory=True)
    names = ["stage_one_v1", "stage_one_input_v1", "stage_one_v2", "stage_one_input_v2", "read_v1"]

    done = subprocess.run(
        [sys.executable, "-c", SAYS, *names],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
    )

    v1, v2 = zip(*(line.split() for line in done.stdout.splitlines()), strict=True)
    assert len(set(v1[:3])) == 3
    assert len(set(v1[2:])) == 1
    assert len(set(v2[:3])) == 1
    assert len(set(v2[2:5])) == 3
    assert v2[4] == v2[5]
