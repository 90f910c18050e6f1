"""The house keeps its direction: adapters -> application -> projections -> domain."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("domain", "projections", "application", "adapters", "prompts")
MAY_IMPORT = {
    "domain": {"domain"},
    "projections": {"projections", "domain"},
    "application": {"application", "projections", "domain"},
    "adapters": {"adapters", "application", "projections", "domain", "prompts"},
    "prompts": {"prompts"},
}
# Where adapters meet: the wiring, and the faces that it is handed to.
MEETING_PLACES = ("wiring.py", "inspection.py", "memory.py", "care.py", "cli/")
# What a domain may know of the standard library: shapes and arithmetic, no machine.
PURE = {
    "__future__", "base64", "binascii", "bisect", "collections", "contextlib", "copy",
    "dataclasses", "datetime", "difflib", "enum", "fnmatch", "fractions", "functools",
    "hashlib", "heapq", "html", "ipaddress", "itertools", "json", "math", "ntpath",
    "operator", "posixpath", "re", "statistics", "string", "struct", "textwrap", "types",
    "typing", "unicodedata", "urllib", "uuid", "zlib",
}  # fmt: skip
ALLOWED_PARTY = {"domain": {"msgspec"}}


def modules(folder):
    return sorted((ROOT / folder).rglob("*.py"))


def imports(path):
    """(folder of ours or None, top-level name, dotted name) of each import."""
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(None, name.name.split(".")[0], name.name) for name in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.append((None, node.module.split(".")[0], node.module))
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1]
            inside = ".".join((*base, *(node.module.split(".") if node.module else ())))
            if inside:
                found.append((inside.split(".")[0], None, inside))
            else:
                found += [(name.name, None, name.name) for name in node.names]
    return found


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_arrow_points_the_wrong_way(folder):
    for path in modules(folder):
        for ours, _, dotted in imports(path):
            assert ours is None or ours in MAY_IMPORT[folder], f"{path}: imports {dotted}"


def test_two_driven_adapters_never_import_each_other():
    for path in modules("adapters"):
        where = path.relative_to(ROOT / "adapters").as_posix()
        if where.startswith(MEETING_PLACES):
            continue
        home = where.split("/")[0].removesuffix(".py")
        for ours, _, dotted in imports(path):
            if ours == "adapters":
                target = [*dotted.split("."), ""][1]
                assert target in ("", home), f"{path}: imports {dotted}"


def test_nothing_imports_a_folder_by_its_name_at_the_root():
    for path in [*(ROOT / "tests").rglob("*.py"), *(p for f in FOLDERS for p in modules(f))]:
        for _, top, dotted in imports(path):
            assert top not in FOLDERS, f"{path}: import threadbook.{dotted}, or a relative name"


def test_the_domain_knows_no_machine():
    for path in modules("domain"):
        for _, top, dotted in imports(path):
            assert top is None or top in PURE | ALLOWED_PARTY["domain"], f"{path}: {dotted}"


def loaded(code):
    ran = subprocess.run(
        [sys.executable, "-I", "-c", f"{code}\nimport sys; print(*sorted(sys.modules))"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(ran.stdout.split())


def bare():
    """What an interpreter of this environment has loaded before it imports anything of ours."""
    return loaded("pass")


def test_the_domain_alone_loads_msgspec_and_nothing_else():
    whole_domain = "\n".join(
        f"import threadbook.domain.{path.stem}" for path in modules("domain") if path.stem[0] != "_"
    )

    for code in ("import threadbook.domain", whole_domain):
        new = loaded(code) - bare()
        third_party = {name.split(".")[0] for name in new} - set(sys.stdlib_module_names)
        assert third_party <= {"threadbook", "msgspec", "typing_extensions"}
        ours = {name for name in new if name.startswith("threadbook.")}
        assert all(name.startswith("threadbook.domain") for name in ours)
