"""Prompts as the tests here read them: their words, their sections and the examples in them."""

import json
import re
from pathlib import Path

from threadbook.prompts import prompt

FOLDER = Path(__file__).parents[2] / "prompts"
VARIABLE = re.compile(r"\{\{(\w+)\}\}")
_FENCED = re.compile(r"^(`{3,})(\w*)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)


def words(text):
    return " ".join(text.split())


def sections(name):
    """The text under each `## ` heading, heading included, without what is an example's."""
    bare = _FENCED.sub("", prompt(name))
    return [words("## " + each) for each in re.split(r"^## ", bare, flags=re.MULTILINE)[1:]]


def blocks(name, kind):
    return [text for _, language, text in _FENCED.findall(prompt(name)) if language == kind]


def example(name):
    (block,) = blocks(name, "json")
    return json.loads(block)
