"""The user settings: the tables `[tool.fsrace-lint]` of a project as frozen data."""

from __future__ import annotations

import functools
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

import msgspec

from fsrace_lint.config.roots import root_above
from fsrace_lint.config.suggestions import did_you_mean
from fsrace_lint.config.tables import (
    OWN_FILES,
    TABLE,
    ProgramSettings,
    Role,
    Table,
    convert,
    parsed,
    read_nested_table,
    read_table,
    settings_file,
)
from fsrace_lint.config.validation import (
    SettingsError,
    check_catalog,
    check_function,
    check_globs,
    check_module,
    check_places,
    level,
    one_of,
)
from fsrace_lint.files.globs import glob
from fsrace_lint.files.source import relative_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

Profile: TypeAlias = Literal["default", "strict"]
Filesystem: TypeAlias = Literal["auto", "shared", "local"]
Severity: TypeAlias = Literal["error", "warning", "note"]
Confidence: TypeAlias = Literal["high", "medium", "low"]
FixTier: TypeAlias = Literal["local", "atomic", "coordination"]

SEVERITIES: Final[tuple[str, ...]] = get_args(Severity)
CONFIDENCES: Final[tuple[str, ...]] = get_args(Confidence)
"""The severities and confidences, highest first."""
FAMILY: Final = "FSR"
UNCHOSEN: Final = ("FSR001", "FSR002")
"""The rules about files that could not be checked: enabled unless they are ignored."""

_ADDED: Final = frozenset({"extend_select", "extend_exclude"})
"""The fields that add to inherited values instead of replacing them."""

_ROOTED: Final = frozenset({"exclude", "extend_exclude", "per_file_ignores"})
"""The fields whose patterns on the command line are relative to the project root."""

_IN_FILES: Final = frozenset({"catalog", "extend", "programs", "root"})
"""The keys that only a file can contain."""

_COMMAND: Final = re.compile(r"[\w.-]+")
"""The name of an installed command."""


class Settings(msgspec.Struct, frozen=True):
    """All user settings: those of one table, and of the tables below it.

    Findings below `min_severity` or `min_confidence` are not reported. None means `warning` in the default
    profile and `note` in the strict profile, or `low`. `fail_on` is the lowest severity at which a check
    fails. None means that each reported finding fails it. `fix_tiers` names the unsafe fixes to apply.

    `helpers` contains the functions of the project that fixes call: the key of each, and its dotted name.

    `root` is the absolute project root, which is analyzed as a whole. An empty `select`
    means all rules. `exclude` is None for the default list. Selectors are canonical code
    prefixes, as `normalize_selectors` returns them. `shared_paths` and `local_paths` name
    places that all nodes share and places that each node has for itself; `filesystem`
    applies to all other paths. `catalog` contains the user's library models as JSON, or is
    empty, and `catalog_origin` is their file and table, for error messages. `programs` says how
    programs are launched, and `programs_file` is the absolute path of the file that says so, or
    empty. `baseline` is the
    absolute path of the baseline, or empty. `cache_dir` is the absolute path of the cache
    directory, or empty for the default one in the root. `ignore_noqa` reports findings regardless of
    `# noqa` comments. `config_file` is the absolute path of the file that replaces the settings
    files of the project, or empty; `is_isolated` ignores all of these.

    `folder` is the directory of the table, relative to the root, or empty. Patterns are relative to it.
    `nested` contains the settings of the tables in other directories of the project, and `overrides` the
    choices of the command line, which apply to these too. Its patterns stay there, because they are relative
    to the root.
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
    fix_tiers: tuple[str, ...] = ()
    helper_module: str | None = None
    helpers: tuple[tuple[str, str], ...] = ()
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
    ignore_noqa: bool = False
    config_file: str = ""
    is_isolated: bool = False
    folder: str = ""
    nested: tuple[Settings, ...] = ()
    overrides: tuple[tuple[str, Any], ...] = ()

    @property
    def every(self) -> tuple[Settings, ...]:
        """The settings of all tables of the project."""
        return (self, *self.nested)

    @property
    def file(self) -> Path:
        """The file that contains the table, or would contain it."""
        return Path(self.config_file) if self.config_file else settings_file(self.root / self.folder)

    @property
    def storage(self) -> tuple[Filesystem, tuple[str, ...], tuple[str, ...]]:
        """The settings of the project about filesystems: for all paths, for shared and for local paths."""
        filesystem: Filesystem = "auto"
        for one in reversed(self.every):
            filesystem = filesystem if one.filesystem == "auto" else one.filesystem
        shared = dict.fromkeys(place for one in self.every for place in one.shared_paths)
        local = dict.fromkeys(place for one in self.every for place in one.local_paths)
        return filesystem, tuple(shared), tuple(local)

    @property
    def catalogs(self) -> tuple[tuple[str, str], ...]:
        """The library models of the project, each with their file and table."""
        return tuple(dict.fromkeys((one.catalog, one.catalog_origin) for one in self.every if one.catalog))

    @property
    def helper_modules(self) -> tuple[str, ...]:
        """The modules with copies of the safe helpers."""
        return tuple(dict.fromkeys(one.helper_module for one in self.every if one.helper_module))

    @property
    def named_helpers(self) -> tuple[tuple[str, str], ...]:
        """The functions that fixes call, from all tables: the key of each, and its dotted name."""
        return tuple(dict.fromkeys(helper for one in self.every for helper in one.helpers))

    def of(self, path: str) -> Settings:
        """Return the settings that apply to a file, given by its path from the project root."""
        around = (one for one in self.nested if path.startswith(f"{one.folder}/"))
        return max(around, key=lambda one: len(one.folder), default=self)

    def inside(self, path: str) -> str:
        """Return a path from the project root as a path from the directory of the table."""
        return path[len(self.folder) + 1 :] if self.folder else path

    def reports(self, severity: str, confidence: str) -> bool:
        """Return whether findings of a severity and a confidence are reported."""
        lowest = self.min_severity or ("note" if self.profile == "strict" else "warning")
        certain = self.min_confidence or "low"
        return is_at_least(severity, lowest, SEVERITIES) and is_at_least(confidence, certain, CONFIDENCES)

    def fails_on(self, severity: str, code: str) -> bool:
        """Return whether a reported finding makes a check fail.

        Findings about files that could not be checked do so only if `fail_on` or a selector asks for it.

        Args:
            severity: The severity of the finding.
            code: The code of its rule.
        """
        if self.fail_on is not None:
            return is_at_least(severity, self.fail_on, SEVERITIES)
        named = (one for one in (*self.select, *self.extend_select) if one != FAMILY)
        return code not in UNCHOSEN or code.startswith(tuple(named))

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
        governing = self.of(path)
        if governing is not self:
            # patterns of the command line are relative to the root
            ignored = "per_file_ignores" in dict(self.overrides) and self._ignores_in(code, path)
            return governing.selects(code, path) and not ignored
        path = self.inside(path)
        select = (*self.select, FAMILY) if not self.select or code in UNCHOSEN else self.select
        chosen = _longest(code, select, self.extend_select)
        return chosen > _longest(code, self.ignore) and not self._ignores_in(code, path)

    def _ignores_in(self, code: str, path: str) -> bool:
        """Return whether `per-file-ignores` disables a rule for a path from the directory of the table."""
        return any(
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
            `extend_select` and `extend_exclude` are added to the field. Sequences are lists or
            tuples. Selectors must be canonical.

    Returns:
        The new settings.

    Raises:
        SettingsError: A pattern or the module name is malformed.
    """
    given = {name: value for name, value in changes.items() if value is not None}
    given |= {name: tuple(value) for name, value in given.items() if isinstance(value, list)}
    chosen = tuple(given.items())
    for name in _ADDED & given.keys():
        given[name] = getattr(settings, name) + given[name]
    check_globs((*given.get("exclude", ()), *given.get("extend_exclude", ())), "--exclude")
    check_globs((pattern for pattern, _ in given.get("per_file_ignores", ())), "--per-file-ignores")
    check_module(given.get("helper_module"), "--helper-module")
    return msgspec.structs.replace(settings, **given, overrides=tuple(sorted(chosen)))


def with_nested(settings: Settings, nested: Iterable[Settings]) -> Settings:
    """Add the settings of the other tables of a project.

    Raises:
        SettingsError: The tables contradict each other about the whole project.
    """
    whole = msgspec.structs.replace(settings, nested=tuple(sorted(nested, key=lambda one: one.folder)))
    shared = {place: one for one in whole.every for place in one.shared_paths}
    for one in whole.nested:
        if one.cache_dir not in ("", settings.cache_dir):
            raise SettingsError(f"{one.file}: `cache-dir`: only {settings.file} can set it")
        if one.filesystem not in ("auto", whole.storage[0]):
            other = next(other for other in whole.every if other.filesystem == whole.storage[0])
            what = f"`{one.filesystem}` contradicts `{other.filesystem}` in {other.file}"
            raise SettingsError(f"{one.file}: `filesystem`: {what}")
    for one in whole.every:
        for place in one.local_paths:
            if place in shared:
                what = f"`{place}` is in `shared-paths` of {shared[place].file}"
                raise SettingsError(f"{one.file}: `local-paths`: {what}")
    return whole


def with_everywhere(settings: Settings, **changes: Any) -> Settings:
    """Change fields of the settings of all tables of a project."""
    nested = tuple(msgspec.structs.replace(one, **changes) for one in settings.nested)
    return msgspec.structs.replace(settings, **changes, nested=nested)


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


def load(
    folder: Path, rules: Mapping[str, str], *, config_file: str | None = None, is_isolated: bool = False
) -> Settings:
    """Read the settings in the root directory of a project.

    Args:
        folder: The root, as `find_root` returns it. It need not contain a settings file.
        rules: Rule names by code.
        config_file: The absolute path of a file to read instead.
        is_isolated: Whether to read no file.

    Returns:
        The settings, with defaults for the keys that the file does not contain.

    Raises:
        SettingsError: The file cannot be read, or it contains a mistake.
    """
    root = Path(os.path.abspath(folder))
    settings = Settings(root=root)
    if is_isolated:
        return settings
    file = Path(config_file) if config_file else settings_file(root)
    table = read_table(file)
    return settings if table is None else _read(file, table, settings, rules)


def fields_of(text: str, rules: Mapping[str, str]) -> dict[str, Any]:
    """Return a setting of the command line as fields of `Settings`.

    Args:
        text: The setting, as in a settings file: `min-severity = "error"`. Paths are relative to the current
            directory.
        rules: Rule names by code.

    Raises:
        SettingsError: The setting is invalid, or only a file can contain it.
    """
    try:
        values = parsed("--config", text)
    except SettingsError as error:
        what = str(error).replace("--config:1:", "--config:")
        raise SettingsError(f"{what}; text needs quotes, as in 'profile=\"strict\"'") from error
    for key in _IN_FILES & values.keys():
        raise SettingsError(f"--config: `{key}`: only a file can contain this setting")
    file = Path(os.path.abspath(OWN_FILES[0]))
    try:
        table = convert(file, values)
        _check(file, table)
        fields = _fields(file, table, Settings(root=file.parent), rules)
    except SettingsError as error:
        raise SettingsError(str(error).replace(str(file), "--config")) from error
    return {name: fields[name] for name in (key.replace("-", "_") for key in values)}


def load_nested(folder: str, above: Settings, rules: Mapping[str, str]) -> Settings | None:
    """Read the table in another directory of a project.

    Args:
        folder: The directory, relative to the project root.
        above: The settings of the project.
        rules: Rule names by code.

    Returns:
        The settings, or None if the directory has no table. Only `extend` inherits settings of other tables.

    Raises:
        SettingsError: The file contains a mistake.
    """
    if above.config_file or above.is_isolated:
        return None
    file = settings_file(above.root / folder)
    table = read_nested_table(file)
    if table is None:
        return None
    settings = _read(file, table, Settings(root=above.root, folder=folder), rules)
    given = dict(above.overrides)
    rooted = {key: given.pop(key) for key in _ROOTED & given.keys()}
    replaced: dict[str, Any] = {key: () for key in rooted if key not in _ADDED}
    settings = with_overrides(settings, **given, **replaced)
    return msgspec.structs.replace(settings, overrides=above.overrides)


def origins(file: Path) -> dict[str, Path]:
    """Return the keys that a file sets or inherits, each with the file that sets it last.

    Raises:
        SettingsError: The file cannot be read.
    """
    table = read_table(file) or {}
    inherited = origins(_extended(file, table["extend"])) if "extend" in table else {}
    return {**inherited, **dict.fromkeys(table, file)}


def _read(
    file: Path,
    values: dict[str, Any],
    settings: Settings,
    rules: Mapping[str, str],
    seen: tuple[Path, ...] = (),
) -> Settings:
    """Apply a table, and the tables that it extends, to the default settings of its directory."""
    table = convert(file, values)
    _check(file, table)
    if table.root is not None and root_above(file.parent, table.root) is None:
        what = f"`{table.root}` is not the directory of this file, or one above it"
        raise SettingsError(f"{file}: `root`: {what}")
    if table.extend is not None:
        other, seen = _extended(file, table.extend), (*seen, file)
        inherited = None if other in seen else read_table(other)
        if inherited is None:
            what = "extends this file" if other in seen else f"contains no [tool.{TABLE}]"
            raise SettingsError(f"{file}: `extend`: {other} {what}")
        settings = _read(other, inherited, settings, rules, seen)
    given = {key.replace("-", "_") for key in values}
    fields = {name: value for name, value in _fields(file, table, settings, rules).items() if name in given}
    for name in _ADDED & fields.keys():
        fields[name] = getattr(settings, name) + fields[name]
    if "catalog" in fields:
        fields["catalog_origin"] = f"{file}: `tool.{TABLE}.catalog`" if fields["catalog"] else ""
    if "programs" in fields:
        fields["programs_file"] = str(file) if table.programs else ""
    return msgspec.structs.replace(settings, **fields)


def _extended(file: Path, text: str) -> Path:
    """Return the file that the setting `extend` of a file names.

    Raises:
        SettingsError: There is no such file.
    """
    other = Path(os.path.normpath(file.parent / text))
    if "\0" in text or not other.is_file():
        raise SettingsError(f"{file}: `extend`: `{text}` is not an existing file")
    return other


def _fields(file: Path, table: Table, settings: Settings, rules: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of a table as fields of the settings."""

    def canonical(key: str, selectors: Iterable[str]) -> tuple[str, ...]:
        return normalize_selectors(selectors, rules, origin=f"{file}: `{key}`")

    per_file = table.per_file_ignores.items()
    return {
        "profile": one_of(Profile, file, "profile", table.profile),
        "min_severity": level(Severity, file, "min-severity", table.min_severity),
        "min_confidence": level(Confidence, file, "min-confidence", table.min_confidence),
        "fail_on": level(Severity, file, "fail-on", table.fail_on),
        "select": canonical("select", table.select),
        "extend_select": canonical("extend-select", table.extend_select),
        "ignore": canonical("ignore", table.ignore),
        "exclude": table.exclude,
        "extend_exclude": table.extend_exclude,
        "per_file_ignores": tuple((text, canonical(f"per-file-ignores.{text}", of)) for text, of in per_file),
        "fix_tiers": tuple(one_of(FixTier, file, "fix-tiers", name) for name in table.fix_tiers),
        "helper_module": table.helper_module,
        "helpers": tuple(msgspec.to_builtins(table.helpers).items()),
        "include_tests": table.include_tests,
        "respect_gitignore": table.respect_gitignore,
        "filesystem": one_of(Filesystem, file, "filesystem", table.filesystem),
        "shared_paths": table.shared_paths,
        "local_paths": table.local_paths,
        "catalog": check_catalog(file, table.catalog),
        "programs": tuple(_programs(file, settings.root, table.programs)),
        "baseline": os.path.normpath(file.parent / table.baseline) if table.baseline else "",
        "cache_dir": os.path.normpath(file.parent / table.cache_dir) if table.cache_dir else "",
    }


def _check(file: Path, table: Table) -> None:
    """Check the patterns and the module name of a table."""
    check_globs(table.exclude or (), f"{file}: `exclude`")
    check_globs(table.extend_exclude, f"{file}: `extend-exclude`")
    check_globs(table.per_file_ignores, f"{file}: `per-file-ignores`")
    check_module(table.helper_module, f"{file}: `helper-module`")
    for key, name in msgspec.to_builtins(table.helpers).items():
        check_function(name, f"{file}: `helpers.{key}`")
    check_places(table.shared_paths, f"{file}: `shared-paths`")
    check_places(table.local_paths, f"{file}: `local-paths`")
    both = [text for text in table.local_paths if text in table.shared_paths]
    if both:
        raise SettingsError(f"{file}: `local-paths`: `{both[0]}` is also in `shared-paths`")


def _programs(file: Path, root: Path, programs: Iterable[ProgramSettings]) -> Iterator[ProgramSettings]:
    """Check that each table names one program, and yield it with its file relative to the project root."""
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
            if not (is_below and (file.parent / name).is_file()):
                what = "is not a file below the directory of this file"
                raise SettingsError(f"{file}: `{table}.file`: `{name}` {what}")
        elif kind == "module":
            check_module(name, f"{file}: `{table}.module`")
        elif not _COMMAND.fullmatch(name):
            raise SettingsError(f"{file}: `{table}.command`: `{name}` is not the name of a command")
        if program.role not in get_args(Role):
            known = get_args(Role)
            hint = did_you_mean(program.role, known) or "; expected one of `rank`, `worker`"
            raise SettingsError(f"{file}: `{table}.role`: unknown role `{program.role}`{hint}")
        below = relative_path(str(file.parent / name), str(root)) if kind == "file" else None
        yield msgspec.structs.replace(program, file=below)
