"""A refused path: which rule it is, what to do, and nothing that a terminal would obey."""

import pytest
from threadbook.domain.path import BadName, folded, names_of

REASONS = {
    "": "is empty; name a file",
    "/etc/passwd": "is absolute; give it relative",
    "a\\b": "has a backslash; put / between names",
    "C:/x": "begins with a drive; paths are relative",
    "skills/../x": "goes up with ..; only what is below",
    "skills//x": "has an empty name; put one /",
    "./x": "is hidden; memory has no hidden files",
    "git~1": "is hidden; memory has no hidden files",
    "~/x": "begins a name with ~",
    "x\u200b.md": "has a control character, an invisible one, or half of one; use letters",
    "x.": "ends a name with a dot or a space; leave that off",
    "xy:z": "has a colon",
    "a/nul.md": "is a device's name on Windows; choose another",
    "ü" * 128: "has a name of 256 bytes; 255 are the most",
    "a/" * 16 + "x": "has 17 names; use at most 16",
    "a" * 5_000: "has 5000 characters; shorten it",
}


@pytest.mark.parametrize(("path", "said"), REASONS.items(), ids=range(len(REASONS)))
def test_a_refusal_names_the_rule_and_the_way_out(path, said):
    with pytest.raises(BadName) as refused:
        names_of(path)

    assert said in str(refused.value)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 300


def test_a_path_is_its_names():
    assert names_of("skills/a b/SKILL.md") == ["skills", "a b", "SKILL.md"]


@pytest.mark.parametrize(
    ("one", "other"),
    [("A", "a"), ("e\u0301", "\u00c9"), ("stra\u00dfe", "STRASSE"), ("\u212a", "k")],
)
def test_names_that_some_file_system_takes_for_one_have_one_key(one, other):
    assert folded(one) == folded(other)
