"""What upstream's prompts say in two ways, ours say in one: nothing here may stand in a prompt.

Each row has a sentence that would break the rule, so that a pattern that finds nothing is seen.
"""

import re

import pytest
from threadbook.prompts import prompt

from tests.prompts.texts import words

STAGE_ONE = ("stage_one_v1", "stage_one_v2")
CONTRADICTIONS = {
    "a slug that storage cuts": (
        STAGE_ONE,
        r"\b80\b|hyphen",
        "Slug: lowercase, hyphens, up to 80 characters.",
    ),
    "a slug that may be null": (
        STAGE_ONE,
        r"\bor null\b|null (?:slug|if|when|for)|(?:be|is|use|to) `?null",
        "Set `rollout_slug` to null if there is none.",
    ),
    "preferences of the whole session": (
        STAGE_ONE,
        r"#{1,3} (?:User )?preferences",
        "Then a section `## User preferences` for the whole session.",
    ),
    "values that nobody was given": (
        STAGE_ONE,
        r"(?:prior|previous|existing|earlier) (?:values?|memor|output)|unchanged",
        "Otherwise return the unchanged prior values.",
    ),
    "files where there is only an answer": (
        STAGE_ONE,
        r"\b(?:edit|change|write|create|touch|modify) (?:no |any |the )?files?\b",
        "If there is nothing to keep, change no files.",
    ),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_no_prompt_says_it_the_second_way(name):
    prompts, pattern, broken = CONTRADICTIONS[name]

    assert re.search(pattern, broken, re.IGNORECASE)
    for each in prompts:
        assert re.findall(pattern, words(prompt(each)), re.IGNORECASE) == [], each
