"""Settings: every knob once, with its unit, default and reason; read here and nowhere else.

The environment (`THREADBOOK_<KEY>`) beats the user's file. An unknown key is an error with a
suggestion, in either. Numbers out of range are clamped, never refused, as Codex does with its
own file; a wrong type is an error. What is in force is printed by `threadbook status`.

A project's own file (`.threadbook.toml`) comes with a repository, so it is a stranger's word: it
may take away, and any other line in it is an error.
"""

import difflib
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
from msgspec import Struct

from ..application.ports import Failure
from ..application.surroundings import ProjectFile, Restriction
from ..domain.address import is_usable
from ..domain.eligibility import Limits


class SettingsError(Failure):
    """A settings file or variable that cannot be used. The message says which, and what to do."""


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Codex's `[memories]` keys keep their names, defaults and clamps; the others are ours."""

    version: Literal["v1", "v2"] = "v1"
    dual_write: bool = False
    scope: Literal["project", "global"] = "project"
    model: Literal["offline", "openai"] = "offline"
    base_url: str = ""
    database: str = ""
    sources: tuple[str, ...] = ()
    generate_memories: bool = True
    use_memories: bool = True
    context_tokens: int = 2500
    disable_on_external_context: bool = False
    trusted_mcp_servers: tuple[str, ...] = ()
    max_rollout_age_days: int = 10
    min_rollout_idle_hours: int = 6
    max_raw_memories_for_consolidation: int = 256
    max_unused_days: int = 30
    history_days: int = 30
    dedicated_tools: bool = True
    max_rollouts_per_startup: int = 2
    min_rate_limit_remaining_percent: int = 25
    extract_model: str = "gpt-6-luna"  # These two: what Codex was seen to ask, 2026-11-29.
    consolidation_model: str = "gpt-6.1-terra"
    context_window: int = 272_000  # What Codex takes for a model that it does not know.
    max_output_tokens: int = 16_384
    max_tokens_per_run: int = 2_000_000
    max_tokens_per_day: int = 4_000_000
    max_roots_per_run: int = 4
    consolidator: tuple[str, ...] = ()
    consolidator_variables: tuple[str, ...] = ()

    def limits(self) -> Limits:
        return Limits(
            max_rollout_age_days=self.max_rollout_age_days,
            min_rollout_idle_hours=self.min_rollout_idle_hours,
            max_raw_memories_for_consolidation=self.max_raw_memories_for_consolidation,
            max_unused_days=self.max_unused_days,
            max_rollouts_per_startup=self.max_rollouts_per_startup,
        )


REASONS: dict[str, str] = {
    "version": "v1: a handbook (MEMORY.md) and a summary; v2: a summary of task histories alone",
    "dual_write": "true with v1: v2 is written beside it, of the same sessions, at twice the cost",
    "scope": "one memory a project, or one for all (Codex's single folder)",
    "model": "who extracts and consolidates: offline needs no key; openai asks you first",
    "base_url": "an OpenAI-compatible server; empty: OPENAI_BASE_URL, or else OpenAI's own",
    "database": "postgresql://… shared by several machines; empty: one file in the home",
    "sources": "files and folders with sessions; empty: ~/.codex and ~/.claude",
    "generate_memories": "false: sessions seen from now on are registered as disabled",
    "use_memories": "false: no session is given memory when it starts",
    "context_tokens": "tokens, 100-20000: what a session is given of the memory when it starts",
    "disable_on_external_context": "true: web and MCP text in a session pollutes it",
    "trusted_mcp_servers": "MCP servers whose text does not pollute; our own never does",
    "max_rollout_age_days": "days, 0-90: older sessions are not extracted (run --backfill does)",
    "min_rollout_idle_hours": "hours, 1-48: a session rests this long before it is read",
    "max_raw_memories_for_consolidation": "outputs, 1-4096: the best of them make a folder",
    "max_unused_days": "days, 0-365: an output unused for longer leaves the folder",
    "history_days": "days, 0-3650: how long replaced and withdrawn texts stay readable in the past",
    "dedicated_tools": "false: the MCP server offers no tools (Codex's default; here it is true)",
    "max_rollouts_per_startup": "sessions a run, 1-128, with a provider; offline has no cap",
    "min_rate_limit_remaining_percent": "percent, 0-100: what a provider must have left for a run",
    "extract_model": "phase 1's model at a provider; offline has none",
    "consolidation_model": "phase 2's model at a provider; offline has none",
    "context_window": "tokens, 0-100000000, that the models can take in; 0: nobody knows",
    "max_output_tokens": "tokens, 256-131072: the most that one call may write",
    "max_tokens_per_run": "tokens, 0-1000000000, both ways, a run spends at most; 0: no limit",
    "max_tokens_per_day": "tokens, 0-1000000000, that runs of one day (UTC) spend; 0: no limit",
    "max_roots_per_run": "folders a run consolidates with a provider, 1-128; offline has no cap",
    "consolidator": "a command that edits the folder, word by word; empty: the model does",
    "consolidator_variables": "variables it is given, beside PATH, HOME, TERM and the language's",
}
OFFLINE = "offline"
CLAMPS: dict[str, tuple[int, int]] = {
    "max_rollout_age_days": (0, 90),
    "min_rollout_idle_hours": (1, 48),
    "max_raw_memories_for_consolidation": (1, 4096),
    "max_unused_days": (0, 365),
    "history_days": (0, 3650),
    "context_tokens": (100, 20_000),
    "max_rollouts_per_startup": (1, 128),
    "min_rate_limit_remaining_percent": (0, 100),
    "context_window": (0, 100_000_000),
    "max_output_tokens": (256, 131_072),
    "max_tokens_per_run": (0, 1_000_000_000),
    "max_tokens_per_day": (0, 1_000_000_000),
    "max_roots_per_run": (1, 128),
}
# Names that Codex used earlier.
ALIASES = {"no_memories_if_mcp_or_web_search": "disable_on_external_context"}


def load(
    file: Path | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
) -> Settings:
    """What is in force. `file` must exist if named; the default one need not.

    Raises SettingsError.
    """
    environment = os.environ if environment is None else environment
    if file is None:
        default = user_file(environment)
        values = from_file(default) if default.exists() else {}
    else:
        values = from_file(file)
    values |= from_environment(environment)
    values |= {key: value for key, value in (flags or {}).items() if value is not None}
    return validated(values, "settings")


def expanded(path: Path | str) -> Path:
    """A path with a leading `~` as the folder it stands for. Raises SettingsError."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise SettingsError(
            f"{path}: nobody's home folder is known by that name; write the whole path"
        ) from error


def user_file(environment: Mapping[str, str]) -> Path:
    if named := environment.get("THREADBOOK_CONFIG"):
        return expanded(named)
    from platformdirs import user_config_path

    return user_config_path("threadbook", appauthor=False) / "config.toml"


def default_home(environment: Mapping[str, str] | None = None) -> Path:
    if named := (os.environ if environment is None else environment).get("THREADBOOK_HOME"):
        return expanded(named)
    from platformdirs import user_data_path

    return user_data_path("threadbook", appauthor=False)


def from_file(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise SettingsError(f"{path}: no such settings file; create it or drop --config") from error
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: cannot be read ({error}); check the file") from error
    values, table = parsed(text, str(path))
    for old, name in ALIASES.items():
        for where in (values, table):
            if old in where:
                where.setdefault(name, where.pop(old))
    if twice := sorted(values.keys() & table.keys()):
        raise SettingsError(f"{path}: `{twice[0]}` is set twice, once under [memories]; keep one")
    values |= table
    validated(values, str(path))
    return values


def parsed(text: str, where: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What stands at the top, and under [memories]: Codex's own table may be pasted as it is."""
    try:
        values = tomllib.loads(text)
    except RecursionError as error:
        raise SettingsError(f"{where}: nested beyond reason; check the file") from error
    except ValueError as error:  # Not only of TOML: Python takes no number of 4,301 digits.
        raise SettingsError(f"{where}: not valid TOML: {error}; mend or remove it") from error
    table = values.pop("memories", {})
    if not isinstance(table, dict):
        raise SettingsError(f"{where}: `memories` must be a table: write [memories]")
    return values, table


# What stands between the parts of a list in the environment.
SEPARATORS = {"sources": os.pathsep, "trusted_mcp_servers": ",", "consolidator_variables": ","}


def from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name in environment:
        if name.startswith("THREADBOOK_") and name not in NO_SETTINGS:
            key = name.removeprefix("THREADBOOK_").lower()
            # A stranger's variable may begin like ours; one that is nearly ours is a slip.
            if key not in FIELDS and near(key):
                raise unknown(key, name)
    for key in Settings.__struct_fields__:
        name = f"THREADBOOK_{key.upper()}"
        if name not in environment:
            continue
        written = environment[name]
        if separator := SEPARATORS.get(key):
            values[key] = [part for part in map(str.strip, written.split(separator)) if part]
            continue
        if key == "consolidator":
            values[key] = words(written, name)
            continue
        try:
            values[key] = msgspec.convert(written, FIELDS[key], strict=False)
        except msgspec.ValidationError as error:
            raise SettingsError(f"{name}={written}: {explained(key)}") from error
    return values


def words(written: str, name: str) -> Any:
    """A command in one variable: a JSON list, or words as a shell takes them."""
    try:
        if written.lstrip().startswith("["):
            return msgspec.json.decode(written)
        import shlex

        return shlex.split(written)
    except ValueError as error:  # Also what is no JSON.
        raise SettingsError(
            f'{name}: no list of words ({error}); write it as ["cmd", "word"], or as in a shell'
        ) from error


FIELDS: dict[str, Any] = {field.name: field.type for field in msgspec.structs.fields(Settings)}


# What else the environment may say that is no setting.
NO_SETTINGS = (
    "THREADBOOK_HOME",
    "THREADBOOK_CONFIG",
    "THREADBOOK_INSIDE",
    "THREADBOOK_STORE_TOPIC",
)


def near(key: str) -> str | None:
    return next(iter(difflib.get_close_matches(key, FIELDS, n=1)), None)


def unknown(key: str, where: str) -> SettingsError:
    meant = near(key)
    advice = f"did you mean `{meant}`?" if meant else f"known: {', '.join(FIELDS)}"
    return SettingsError(f"{where}: unknown key `{key}`; {advice}")


def validated(values: Mapping[str, Any], where: str) -> Settings:
    for key in values:
        if key not in FIELDS:
            raise unknown(key, where)
    converted: dict[str, Any] = {}
    for key, value in values.items():
        try:
            converted[key] = msgspec.convert(value, FIELDS[key])
        except msgspec.ValidationError as error:
            raise SettingsError(f"{where}: `{key}`: {explained(key)}") from error
        if key.endswith("_model") and converted[key].strip() in ("", OFFLINE):
            raise SettingsError(f"{where}: `{key}` must name a model of the provider")
        if key.endswith("_model") and not converted[key].isprintable():
            raise SettingsError(f"{where}: `{key}` holds what cannot be printed; write its name")
        if key in ("extract_model", "consolidation_model", "base_url"):
            converted[key] = converted[key].strip()
        if key == "base_url" and value and not converted[key].startswith(("http://", "https://")):
            raise SettingsError(
                f"{where}: `base_url` must begin with https:// or http://, or be empty"
            )
        if key == "base_url" and value and not is_usable(converted[key]):
            # Without the address itself: a key may stand in it.
            raise SettingsError(
                f"{where}: `base_url` is no address of a server; write https://, its name, its"
                " port if it has one, and a path, with nothing behind a ? or a #"
            )
        if key == "database" and value and not is_dsn(value):
            raise SettingsError(f"{where}: `database` must begin with postgresql://, or be empty")
        if key == "consolidator" and value:
            refuse_command(converted[key], where)
        if key in CLAMPS:
            low, high = CLAMPS[key]
            converted[key] = min(max(converted[key], low), high)
    return Settings(**converted)


def refuse_command(argv: tuple[str, ...], where: str) -> None:
    name = argv[0].strip()
    if not name or any("\0" in word for word in argv):
        raise SettingsError(f"{where}: `consolidator` must begin with a command's name")
    if "/" in name and not os.path.isabs(name):
        # It is started in a folder that holds nothing but the memory.
        raise SettingsError(
            f"{where}: `consolidator`: {name} is relative; give the command's name, or its whole"
            " path"
        )


# A key of many parts takes the square of its length to parse: a stranger's file could hold up a
# run for hours.
PROJECT_CHARS_MAX = 4096
# The only value that a project may give each of these.
TAKES_AWAY = {
    "generate_memories": False,
    "use_memories": False,
    "disable_on_external_context": True,
}


def restriction(files: Iterable[ProjectFile]) -> Restriction:
    """What the files of a project take away, all together. Raises SettingsError."""
    taken: dict[str, Any] = {}
    sources: list[set[str]] = []
    for file in files:
        for key, value in values_of(file).items():
            if key == "sources":
                sources.append(set(narrower(file, value)))
            elif key not in TAKES_AWAY:
                can = ", ".join(f"{k} = {str(v).lower()}" for k, v in TAKES_AWAY.items())
                raise SettingsError(
                    f"{file.path}: a project's file may not set `{key}`; it can only take away:"
                    f" {can}, sources"
                )
            elif value is not TAKES_AWAY[key]:
                raise SettingsError(
                    f"{file.path}: `{key}` can only be {str(TAKES_AWAY[key]).lower()} here; what"
                    " gives more belongs into your own settings"
                )
            else:
                taken[key] = value
    common = tuple(sorted(set.intersection(*sources))) if sources else None
    return Restriction(**taken, sources=common)


def values_of(file: ProjectFile) -> dict[str, Any]:
    if file.text is None:
        raise SettingsError(f"{file.path}: cannot be read; check the file, or remove it")
    if len(file.text) > PROJECT_CHARS_MAX:
        raise SettingsError(
            f"{file.path}: longer than the {PROJECT_CHARS_MAX:,} characters that are read of a"
            " project's file; shorten it, or remove it"
        )
    values, table = parsed(file.text, file.path)
    return values | table


def narrower(file: ProjectFile, value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise SettingsError(f"{file.path}: `sources`: must be a list of texts in brackets")
    above = Path(file.path).parent
    return [str(above / expanded(each)) for each in value]


EXPECTED: dict[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    tuple[str, ...]: "a list of texts in brackets",
}


def is_dsn(place: object) -> bool:
    return isinstance(place, str) and place.startswith(("postgresql://", "postgres://"))


def without_password(dsn: str) -> str:
    """A DSN as it may be shown."""
    dsn = re.sub(r"(//[^/?#@]*?):[^/?#]*@", r"\1@", dsn)
    return re.sub(r"([?&](?:ssl)?password)=[^&]*", r"\1=***", dsn)


def explained(key: str) -> str:
    choices = get_args(FIELDS[key])
    if choices and all(isinstance(choice, str) for choice in choices):
        return f"must be one of {', '.join(choices)}"
    wanted = EXPECTED.get(FIELDS[key], "another value")
    return f"must be {wanted}: {REASONS[key]}"
