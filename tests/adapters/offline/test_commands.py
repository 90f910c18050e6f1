"""A shell line is read far enough to compare it, and no further."""

import pytest
from threadbook.adapters.offline.commands import answers, is_probe, read


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("pytest -q", "pytest"),
        ("cd api && npm run build", "npm run build"),
        ("UV_LINK=1 uv pip install -q responses", "uv pip install"),
        ("timeout -k 5 60s cargo test --all", "cargo test"),
        ("sudo apt-get install -y jq", "apt-get install"),
        ("python3 -m pytest tests/a.py", "python3 -m pytest"),
        ("bash -lc 'git push origin main'", "git push"),
        ("npx vitest run", "npx vitest"),
        ("docker compose up -d", "docker compose up"),
        ("make 2>&1 | tee log.txt", "tee"),
        ("cat <<'EOF' > a.txt\nnever mind; rm -rf x\nEOF\nmypy .", "mypy"),
        ('git commit -m "a; b && c"', "git commit"),
        ("# first the tests, don't worry\npytest", "pytest"),
        ("echo 'an open quote", ""),
        ("", ""),
    ],
)
def test_program_and_sub_command_are_read(line, name):
    assert " ".join(read(line).name) == name


@pytest.mark.parametrize(
    "line",
    [
        "pytest -q | tail -3",
        "pytest | grep -v warning",
        "make test || true",
        "make test; true",
        "pytest; echo $?",
        "pytest; exit 0",
        "pytest &",
        "echo 'an open quote",
    ],
)
def test_a_line_that_hides_its_exit_code_is_masked(line):
    assert read(line).masked


@pytest.mark.parametrize(
    "line",
    ["pytest -q", "set -o pipefail; pytest | tail -3", "cd a; pytest", "echo x | python a.py"],
)
def test_a_line_that_shows_its_exit_code_is_not_masked(line):
    assert not read(line).masked


@pytest.mark.parametrize(
    ("line", "exit_code", "probe"),
    [
        ("grep -n foo src", 1, True),
        ("grep -n foo src", 2, False),
        ("git log | grep fix", 1, True),
        ("test -f a.txt", 1, True),
        ("git diff --quiet", 1, True),
        ("ls missing", 2, True),
        ("which rg", 1, True),
        ("cat a.txt 2>/dev/null", 1, True),
        ("pytest -q", 1, False),
        ("./deploy.sh", 2, False),
    ],
)
def test_a_failed_look_is_a_probe_and_a_failed_act_is_not(line, exit_code, probe):
    assert is_probe(read(line), exit_code) is probe


@pytest.mark.parametrize(
    ("failed", "passed", "told"),
    [
        ("pip install x", "uv pip install x", True),
        ("pip install x", "pip install --user x", True),
        ("pytest", "cd api && pytest -q", True),
        ("cd api && pytest tests", "pytest -q", True),
        ("cd api && pytest", "pytest", True),
        ("git push", "git pull", False),
        ("npm run build", "npm run lint", False),
        ("npm test", "npm test | tail -2", False),
        ("make a && make b", "make a", False),
        ("pytest tests -q", "pytest tests", False),
        ("pytest", "pytest", False),
        ("install x", "pip install y", False),
        ("docker compose up -d db", "docker compose up -d db && pytest -q", True),
        ("make db", "cd api && make db && pytest -q && git push", True),
        ("make a && make b", "make a && make b && make c", True),
        ("make db", "make db; pytest -q", False),
        ("make db", "make db || pytest -q", False),
        ("make db", "make x || make db && pytest -q", False),
        ("make db", "make db && pytest | tail -2", False),
        ("make db", "make db -n && pytest -q", False),
        ("make db", "make x && pytest -q", False),
    ],
)
def test_what_passed_afterwards_is_told_of_the_same_program_only(failed, passed, told):
    found = answers(read(failed), failed, read(passed), passed)

    assert found is told
