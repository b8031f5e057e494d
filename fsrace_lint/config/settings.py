"""The user settings: `[tool.fsrace-lint]` of pyproject.toml as frozen data."""

from __future__ import annotations

import functools
import keyword
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias, cast, get_args

import msgspec

from fsrace_lint.config.suggestions import did_you_mean, in_toml_words
from fsrace_lint.files.bounded_read import read
from fsrace_lint.files.globs import glob

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Profile: TypeAlias = Literal["default", "strict"]
Filesystem: TypeAlias = Literal["auto", "shared", "local"]
Severity: TypeAlias = Literal["error", "warning", "note"]
Confidence: TypeAlias = Literal["high", "medium", "low"]
Role: TypeAlias = Literal["rank", "worker"]

SEVERITIES: Final[tuple[str, ...]] = get_args(Severity)
CONFIDENCES: Final[tuple[str, ...]] = get_args(Confidence)
"""The severities and confidences, highest first."""
FAMILY: Final = "FSR"
TABLE: Final = "fsrace-lint"
UNCHOSEN: Final = ("FSR001", "FSR002")
"""The rules about files that could not be checked: enabled unless they are ignored."""

_DEEPEST: Final = 10
"""How deep tables and arrays of library models can be nested; the kinds need three levels."""

_COMMAND: Final = re.compile(r"[\w.-]+")
"""The name of an installed command."""

ROOT_MARKERS: Final = ("pyproject.toml", ".git", "setup.py", "setup.cfg")


class SettingsError(Exception):
    """The configuration is invalid; the message is for the user and names the file and the key."""


class ProgramSettings(
    msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True, omit_defaults=True
):
    """How a program of the project is launched. Exactly one of `file`, `module`, and `command` is given."""

    file: str | None = None
    """A program that is started as a file, relative to the project root."""
    module: str | None = None
    """A program that is started with `python -m`: its dotted name."""
    command: str | None = None
    """A program that is started as an installed command: its name."""
    processes: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """The number of processes. 1 means a single process; without it, multiple processes."""
    role: str = "rank"
    """What the processes are: ranks of one job (`rank`), or workers that share out work (`worker`)."""
    launcher: str = ""
    """The command that launches the program, to show in reports."""

    @property
    def target(self) -> tuple[Literal["file", "module", "command"], str]:
        """The kind and the name of the program."""
        if self.file is not None:
            return "file", self.file
        return ("module", self.module) if self.module is not None else ("command", self.command or "")


class Settings(msgspec.Struct, frozen=True):
    """All user settings.

    Findings below `min_severity` or `min_confidence` are not reported. None means `warning` in the default
    profile and `note` in the strict profile, or `low`. `fail_on` is the lowest severity at which a check
    fails. None means that each reported finding fails it.

    `root` is the absolute project root, which is analyzed as a whole. An empty `select`
    means all rules. `exclude` is None for the default list. Selectors are canonical code
    prefixes, as `normalize_selectors` returns them. `shared_paths` and `local_paths` name
    places that all nodes share and places that each node has for itself; `filesystem`
    applies to all other paths. `catalog` contains the user's library models as JSON, or is
    empty, and `catalog_origin` is their file and table, for error messages. `programs` says how
    programs are launched, and `programs_file` is the absolute path of the file that says so, or
    empty. `baseline` is the
    absolute path of the baseline, or empty. `cache_dir` is the absolute path of the cache
    directory, or empty for the default one in the root.
    """

    root: Path
    profile: Profile = "default"
    min_severity: Severity | None = None
    min_confidence: Confidence | None = None
    fail_on: Severity | None = None
    select: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] | None = None
    extend_exclude: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    helper_module: str | None = None
    include_tests: bool = False
    respect_gitignore: bool = True
    filesystem: Filesystem = "auto"
    shared_paths: tuple[str, ...] = ()
    local_paths: tuple[str, ...] = ()
    catalog: str = ""
    catalog_origin: str = ""
    programs: tuple[ProgramSettings, ...] = ()
    programs_file: str = ""
    baseline: str = ""
    cache_dir: str = ""

    @property
    def storage(self) -> tuple[Filesystem, tuple[str, ...], tuple[str, ...]]:
        """The settings about filesystems: for all paths, for shared paths, and for local paths."""
        return self.filesystem, self.shared_paths, self.local_paths

    def reports(self, severity: str, confidence: str) -> bool:
        """Return whether findings of a severity and a confidence are reported."""
        lowest = self.min_severity or ("note" if self.profile == "strict" else "warning")
        certain = self.min_confidence or "low"
        return is_at_least(severity, lowest, SEVERITIES) and is_at_least(confidence, certain, CONFIDENCES)

    def fails_on(self, severity: str) -> bool:
        """Return whether a reported finding of a severity makes a check fail."""
        return self.fail_on is None or is_at_least(severity, self.fail_on, SEVERITIES)

    def selects(self, code: str, path: str) -> bool:
        """Return whether a rule is enabled for a file.

        The most specific selector decides. If `ignore` is as specific as `select`, `ignore`
        decides. A match in `per-file-ignores` always disables the rule. FSR001 and FSR002 are
        enabled even if `select` leaves them out.

        Args:
            code: The rule's code.
            path: The file's path from the project root, with forward slashes.

        Returns:
            True if the rule is enabled.
        """
        select = (*self.select, FAMILY) if not self.select or code in UNCHOSEN else self.select
        chosen = _longest(code, select, self.extend_select)
        if chosen <= _longest(code, self.ignore):
            return False
        return not any(
            code.startswith(selectors) and glob(text).covers(path)
            for text, selectors in self.per_file_ignores
        )


def is_at_least(value: str, lowest: str, order: Sequence[str]) -> bool:
    """Return whether a value comes before another one in an order, or is the same."""
    return order.index(value) <= order.index(lowest)


@functools.lru_cache
def _longest(code: str, *groups: tuple[str, ...]) -> int:
    """Return the length of the longest selector that matches a code, or 0."""
    return max((len(item) for group in groups for item in group if code.startswith(item)), default=0)


def with_overrides(settings: Settings, **changes: Any) -> Settings:
    """Override settings with the choices of the command line.

    Args:
        settings: The settings from the file.
        **changes: New values by field name. None keeps the field. The values of
            `extend_select` and `extend_exclude` are added to the field. Sequences can be of
            any kind. Selectors must be canonical.

    Returns:
        The new settings.

    Raises:
        SettingsError: A pattern or the module name is malformed.
    """
    given = {name: value for name, value in changes.items() if value is not None}
    for name in ("select", "extend_select", "ignore", "exclude", "extend_exclude"):
        if name in given:
            added = tuple(given[name])
            given[name] = getattr(settings, name) + added if name.startswith("extend_") else added
    _check_globs((*given.get("exclude", ()), *given.get("extend_exclude", ())), "--exclude")
    _check_module(given.get("helper_module"), "--helper-module")
    return msgspec.structs.replace(settings, **given)


def find_root(path: Path) -> Path:
    """Find the project that a path belongs to.

    Args:
        path: A file or a directory.

    Returns:
        The nearest directory upward that contains `pyproject.toml`, `.git`, `setup.py`, or
        `setup.cfg`; otherwise the directory itself, or the directory of the file.
    """
    start = os.path.abspath(path)
    if not os.path.isdir(start):
        start = os.path.dirname(start)
    folder = Path(start)
    for candidate in (folder, *folder.parents):
        if any(os.path.lexists(candidate / marker) for marker in ROOT_MARKERS):
            return candidate
    return folder


RENAMED: Final[Mapping[str, str]] = {
    "collective-under-file-check": "collective-under-filesystem-check",
    "collective-under-guard": "divergent-collective",
    "run-once-called-eagerly": "run-once-given-result",
    "timestamp-in-path": "per-rank-timestamp-in-path",
}
"""Former names of rules, which settings and comments can still use."""


def normalize_selectors(
    selectors: Iterable[str], rules: Mapping[str, str], *, origin: str = ""
) -> tuple[str, ...]:
    """Convert selectors as users write them into code prefixes.

    Args:
        selectors: Codes, code prefixes, rule names, or `ALL`. One string can contain
            multiple selectors, separated by commas.
        rules: Rule names by code.
        origin: Where the selectors come from, for the error message. Empty if that is clear.

    Returns:
        Canonical prefixes in the given order, without duplicates.

    Raises:
        SettingsError: A selector matches no known rule.
    """
    pieces = [piece.strip() for selector in selectors for piece in selector.split(",")]
    if not any(pieces):
        return ()  # the rules need not be loaded
    codes = {name: code for code, name in rules.items()}
    found = [_normalize(piece, rules, codes, origin) for piece in pieces if piece]
    return tuple(dict.fromkeys(found))


def _normalize(selector: str, rules: Mapping[str, str], codes: Mapping[str, str], origin: str) -> str:
    upper, lower = selector.upper(), selector.lower()
    if upper in ("ALL", FAMILY):
        return FAMILY
    if upper.startswith(FAMILY) and any(code.startswith(upper) for code in rules):
        return upper
    name = RENAMED.get(lower, lower)
    if name in codes:
        return codes[name]
    hint = did_you_mean(lower, codes) or did_you_mean(upper, rules)
    hint = hint or "; run `fsrace-lint rules` to list all rules"
    raise SettingsError(f"{origin}{': ' if origin else ''}unknown rule `{selector}`{hint}")


class Table(msgspec.Struct, rename="kebab"):
    """`[tool.fsrace-lint]` as TOML spells it; docs/settings.schema.json uses these descriptions."""

    profile: str = "default"
    """Report likely problems (`default`), or every possible problem (`strict`)."""
    min_severity: str | None = None
    """The lowest severity to report: `error`, `warning`, or `note`. The default depends on the profile."""
    min_confidence: str | None = None
    """The lowest confidence to report: `high`, `medium`, or `low`."""
    fail_on: str | None = None
    """The lowest severity that makes a check fail. By default, every reported finding does."""
    select: tuple[str, ...] = ()
    """The rules to run. Empty means all rules."""
    extend_select: tuple[str, ...] = ()
    """Rules to run in addition to those of `select`."""
    ignore: tuple[str, ...] = ()
    """Rules not to run."""
    exclude: tuple[str, ...] | None = None
    """Files and directories to exclude instead of the default ones."""
    extend_exclude: tuple[str, ...] = ()
    """Files and directories to exclude in addition to those of `exclude`."""
    per_file_ignores: dict[str, tuple[str, ...]] = {}
    """Rules to disable in the files that match a pattern."""
    root: str | None = None
    """The project root, relative to the directory of this file."""
    helper_module: str | None = None
    """The dotted name of the module with the project's copy of the safe helpers."""
    include_tests: bool = False
    """Whether to check tests and documentation too."""
    respect_gitignore: bool = True
    """Whether to skip the files that `.gitignore` files ignore."""
    filesystem: str = "auto"
    """Whether nodes share all paths (`shared`) or none (`local`), or this is unknown (`auto`)."""
    shared_paths: tuple[str, ...] = ()
    """Places that all nodes share: a path, an environment variable, or the name of an option or directory."""
    local_paths: tuple[str, ...] = ()
    """Places that each node has for itself, in the same format."""
    catalog: Any = {}
    """Models of your own libraries: tables of rank checks, barriers, effects, and so on."""
    programs: tuple[ProgramSettings, ...] = ()
    """How programs of the project are launched, if the repository does not say so, or says it wrong."""
    baseline: str = ""
    """The file with the known findings, relative to the directory of this file."""
    cache_dir: str = ""
    """The cache directory, relative to the directory of this file."""


KEYS: Final = Table.__struct_encode_fields__
PROGRAM_KEYS: Final = ProgramSettings.__struct_encode_fields__


def load(root: Path, rules: Mapping[str, str]) -> Settings:
    """Read the settings of a project.

    Args:
        root: The directory of the `pyproject.toml`, which need not exist.
        rules: Rule names by code.

    Returns:
        The settings, with defaults for the keys that the file does not contain.

    Raises:
        SettingsError: The file cannot be read, or it contains a mistake.
    """
    root = Path(os.path.abspath(root))
    file = root / "pyproject.toml"
    table = _convert(file, _read_table(file))

    def canonical(key: str, selectors: Iterable[str]) -> tuple[str, ...]:
        return normalize_selectors(selectors, rules, origin=f"{file}: `{key}`")

    _check(file, table)
    catalog, per_file = _catalog(file, table.catalog), table.per_file_ignores.items()
    top = root if table.root is None else _folder(file, table.root)
    _check_programs(file, top, table.programs)
    return Settings(
        root=top,
        profile=cast("Profile", _one_of(Profile, file, "profile", table.profile)),
        min_severity=cast("Severity | None", _level(Severity, file, "min-severity", table.min_severity)),
        min_confidence=cast(
            "Confidence | None", _level(Confidence, file, "min-confidence", table.min_confidence)
        ),
        fail_on=cast("Severity | None", _level(Severity, file, "fail-on", table.fail_on)),
        select=canonical("select", table.select),
        extend_select=canonical("extend-select", table.extend_select),
        ignore=canonical("ignore", table.ignore),
        exclude=table.exclude,
        extend_exclude=table.extend_exclude,
        per_file_ignores=tuple((text, canonical(f"per-file-ignores.{text}", of)) for text, of in per_file),
        helper_module=table.helper_module,
        include_tests=table.include_tests,
        respect_gitignore=table.respect_gitignore,
        filesystem=cast("Filesystem", _one_of(Filesystem, file, "filesystem", table.filesystem)),
        shared_paths=table.shared_paths,
        local_paths=table.local_paths,
        catalog=catalog,
        catalog_origin=f"{file}: `tool.{TABLE}.catalog`" if catalog else "",
        programs=table.programs,
        programs_file=str(file) if table.programs else "",
        baseline=os.path.normpath(root / table.baseline) if table.baseline else "",
        cache_dir=os.path.normpath(root / table.cache_dir) if table.cache_dir else "",
    )


def keys_given(root: Path) -> frozenset[str]:
    """Return the keys that the `pyproject.toml` of a directory contains.

    Raises:
        SettingsError: The file cannot be read.
    """
    return frozenset(_read_table(Path(root) / "pyproject.toml"))


def _read_table(file: Path) -> dict[str, Any]:
    """Return `[tool.fsrace-lint]` of a file, or an empty table if the file or the table is missing."""
    try:
        data = read(file)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SettingsError(f"{file}: cannot read the file: {error.strerror or error}") from error
    try:
        table: Any = tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SettingsError(f"{file}:{line}: not encoded as UTF-8") from error
    except (ValueError, RecursionError) as error:
        where = re.search(r"at line (\d+)", str(error))
        place = f"{file}:{where[1]}" if where else f"{file}"
        raise SettingsError(f"{place}: not valid TOML: {error}") from error
    for key in ("tool", f"tool.{TABLE}"):
        table = table.get(key.rpartition(".")[2], {})
        if not isinstance(table, dict):
            raise SettingsError(f"{file}: `{key}`: expected a table, found {type(table).__name__}")
        for name in table if key == "tool" and TABLE not in table else ():
            if name.lower().replace("_", "-") in (TABLE, TABLE.replace("-", "")):
                raise SettingsError(f"{file}: unknown table [tool.{name}]; did you mean [tool.{TABLE}]?")
    return cast("dict[str, Any]", table)


def _convert(file: Path, values: dict[str, Any]) -> Table:
    """Check the keys and the types of a table."""
    for key in values:
        if key not in KEYS:
            hint = did_you_mean(key.lower().replace("_", "-"), KEYS)
            raise SettingsError(f"{file}: unknown key `{key}` in [tool.{TABLE}]{hint}")
    programs = values.get("programs")
    for entry in programs if isinstance(programs, list) else ():
        for key in entry if isinstance(entry, dict) else ():
            if key not in PROGRAM_KEYS:
                hint = did_you_mean(key.lower().replace("_", "-"), PROGRAM_KEYS)
                raise SettingsError(f"{file}: unknown key `{key}` in [[tool.{TABLE}.programs]]{hint}")
    try:
        return msgspec.convert(values, Table)
    except msgspec.ValidationError as error:
        key, what = in_toml_words(error)
        raise SettingsError(f"{file}: `{key}`: {what}") from error


def _check(file: Path, table: Table) -> None:
    """Check the patterns and the module name of a table."""
    _check_globs(table.exclude or (), f"{file}: `exclude`")
    _check_globs(table.extend_exclude, f"{file}: `extend-exclude`")
    _check_globs(table.per_file_ignores, f"{file}: `per-file-ignores`")
    _check_module(table.helper_module, f"{file}: `helper-module`")
    _check_places(table.shared_paths, f"{file}: `shared-paths`")
    _check_places(table.local_paths, f"{file}: `local-paths`")
    both = [text for text in table.local_paths if text in table.shared_paths]
    if both:
        raise SettingsError(f"{file}: `local-paths`: `{both[0]}` is also in `shared-paths`")


def _one_of(choices: Any, file: Path, key: str, text: str) -> str:  # a Literal
    """Check that a text is one of the allowed choices."""
    known = get_args(choices)
    if text not in known:
        listed = ", ".join(f"`{choice}`" for choice in known)
        hint = did_you_mean(text, known) or f"; expected one of {listed}"
        raise SettingsError(f"{file}: `{key}`: unknown {key} `{text}`{hint}")
    return text


def _level(choices: Any, file: Path, key: str, text: str | None) -> str | None:  # a Literal
    """Check that a text, if there is one, is one of the allowed choices."""
    return None if text is None else _one_of(choices, file, key, text)


def _catalog(file: Path, tables: Any) -> str:  # a TOML value of any type
    """Return the user's library models as JSON, in which only the order of array items matters."""
    if not isinstance(tables, dict):
        raise SettingsError(f"{file}: `catalog`: must be a table")
    _check_json(file, tables, "catalog")
    return msgspec.json.encode(tables, order="deterministic").decode() if tables else ""


def _check_json(file: Path, value: Any, key: str, depth: int = 0) -> None:  # a TOML value of any type
    if depth > _DEEPEST:
        raise SettingsError(f"{file}: `catalog`: nested too deeply")
    if isinstance(value, dict):
        for name, item in value.items():
            _check_json(file, item, f"{key}.{name}", depth + 1)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _check_json(file, item, f"{key}[{index}]", depth + 1)
    elif not isinstance(value, (str, int)):
        kinds = "a string, boolean, array, or table"
        raise SettingsError(f"{file}: `{key}`: expected {kinds}, found {type(value).__name__}")


def _check_programs(file: Path, root: Path, programs: Iterable[ProgramSettings]) -> None:
    """Check that each table names one program, and that the named files exist."""
    for place, program in enumerate(programs):
        table = f"programs[{place}]"
        named = [key for key in ("file", "module", "command") if getattr(program, key) is not None]
        if len(named) != 1:
            found = " and ".join(f"`{key}`" for key in named) or "none of them"
            what = "a program needs exactly one of `file`, `module`, and `command`"
            raise SettingsError(f"{file}: `{table}`: {what}, found {found}")
        kind, name = program.target
        if kind == "file":
            is_below = not name.startswith("/") and ".." not in name.split("/") and "\0" not in name
            if not (is_below and (root / name).is_file()):
                what = "is not a file below the project root"
                raise SettingsError(f"{file}: `{table}.file`: `{name}` {what}")
        elif kind == "module":
            _check_module(name, f"{file}: `{table}.module`")
        elif not _COMMAND.fullmatch(name):
            raise SettingsError(f"{file}: `{table}.command`: `{name}` is not the name of a command")
        if program.role not in get_args(Role):
            known = get_args(Role)
            hint = did_you_mean(program.role, known) or "; expected one of `rank`, `worker`"
            raise SettingsError(f"{file}: `{table}.role`: unknown role `{program.role}`{hint}")


def _folder(file: Path, text: str) -> Path:
    folder = Path(os.path.normpath(file.parent / text))
    if "\0" in text or not folder.is_dir():
        raise SettingsError(f"{file}: `root`: `{text}` is not an existing directory")
    return folder


def _check_globs(texts: Iterable[str], origin: str) -> None:
    text = ""
    try:
        for text in texts:
            glob(text)
    except ValueError as error:
        raise SettingsError(f"{origin}: `{text}` is {error}") from error


def _check_places(texts: Iterable[str], origin: str) -> None:
    for text in texts:
        if not text.strip("/${}*") or "\0" in text or any(part in {".", ".."} for part in text.split("/")):
            what = "a directory, a glob such as `/mnt/*/runs`, a `$VARIABLE`, or an option name"
            raise SettingsError(f"{origin}: `{text}` is not {what}")


def _check_module(name: str | None, origin: str) -> None:
    parts = [] if name is None else name.split(".")
    if not all(part.isidentifier() and not keyword.iskeyword(part) for part in parts):
        raise SettingsError(f"{origin}: `{name}` is not a dotted module name such as `mypackage.fs_safe`")
