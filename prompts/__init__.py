"""Prompts are Markdown, loaded by name. `{{word}}` stands for what is put in, in one pass: what was
put in is not looked at again."""

import re
from collections.abc import Mapping
from pathlib import Path

_VARIABLE = re.compile(r"\{\{(\w+)\}\}")


def prompt(name: str) -> str:
    return (Path(__file__).parent / f"{name}.md").read_text(encoding="utf-8")


def filled(name: str, values: Mapping[str, str]) -> str:
    """Raises `KeyError` for a variable that has no value."""
    return _VARIABLE.sub(lambda found: values[found[1]], prompt(name))
