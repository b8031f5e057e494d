"""What a user can configure: `[tool.fsrace-lint]` of pyproject.toml as frozen data."""

from __future__ import annotations

import functools
import keyword
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast, get_args

import msgspec

from fsrace_lint.config.suggestions import did_you_mean, in_toml_words
from fsrace_lint.files.bounded_read import read
from fsrace_lint.files.globs import glob

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Profile: TypeAlias = Literal["default", "strict"]
Filesystem: TypeAlias = Literal["auto", "shared", "local"]

FAMILY: Final = "FSR"
TABLE: Final = "fsrace-lint"
UNCHOSEN: Final = ("FSR001", "FSR002")
"""What could not be checked: on whatever is selected, unless it is ignored."""

_DEEPEST: Final = 10
"""How deep tables and arrays of the catalog may stand in each other; the kinds need three levels."""

ROOT_MARKERS: Final = ("pyproject.toml", ".git", "setup.py", "setup.cfg")


class SettingsError(Exception):
    """The configuration is wrong; the message is for the user and names the file and the key."""


class Settings(msgspec.Struct, frozen=True):
    """Everything that a user can choose.

    `root` is the absolute project root, over which linking happens. An empty
    `select` means all rules. `exclude` is None for the built-in list. Selectors
    are canonical code prefixes, as `normalize_selectors` gives them. `shared_paths`
    and `local_paths` name what all nodes share and what each has for itself;
    `filesystem` says it of all other paths. `catalog`
    is the user's part of the catalog as JSON, empty where there is none, and
    `catalog_origin` the file and the table it stands in, for errors. `baseline` is
    the absolute path of the baseline, empty where there is none. `cache_dir` is the absolute
    path of the folder of the cache, empty for the one in the root.
    """

    root: Path
    profile: Profile = "default"
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
    baseline: str = ""
    cache_dir: str = ""

    @property
    def storage(self) -> tuple[Filesystem, tuple[str, ...], tuple[str, ...]]:
        """What is said of the filesystems: of all paths, of those shared, of those of each node."""
        return self.filesystem, self.shared_paths, self.local_paths

    def selects(self, code: str, path: str) -> bool:
        """Tell whether a rule is on for a file.

        The most specific selector decides; where `ignore` is as specific as
        `select`, `ignore` does. A match in `per-file-ignores` always turns the
        rule off. FSR001 and FSR002 are on although `select` leaves them out.

        Args:
            code: The rule's code.
            path: The file's path from the project root, with forward slashes.

        Returns:
            True if the rule is on.
        """
        select = (*self.select, FAMILY) if not self.select or code in UNCHOSEN else self.select
        chosen = _longest(code, select, self.extend_select)
        if chosen <= _longest(code, self.ignore):
            return False
        return not any(
            code.startswith(selectors) and glob(text).covers(path)
            for text, selectors in self.per_file_ignores
        )


@functools.lru_cache
def _longest(code: str, *groups: tuple[str, ...]) -> int:
    """Give the length of the longest selector that matches a code, or 0."""
    return max((len(item) for group in groups for item in group if code.startswith(item)), default=0)


def with_overrides(settings: Settings, **changes: Any) -> Settings:
    """Lay command-line choices over settings.

    Args:
        settings: The settings from the file.
        **changes: New values by field name. None leaves the field as it is, what
            is given for `extend_select` and `extend_exclude` is added to it, and
            sequences may be of any kind. Selectors must be canonical already.

    Returns:
        The new settings.

    Raises:
        SettingsError: A pattern or the module name is not well formed.
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
        path: A file or a folder.

    Returns:
        The nearest folder upward that holds `pyproject.toml`, `.git`, `setup.py`
        or `setup.cfg`; if there is none, the folder itself, or the file's folder.
    """
    start = os.path.abspath(path)
    if not os.path.isdir(start):
        start = os.path.dirname(start)
    folder = Path(start)
    for candidate in (folder, *folder.parents):
        if any(os.path.lexists(candidate / marker) for marker in ROOT_MARKERS):
            return candidate
    return folder


def normalize_selectors(
    selectors: Iterable[str], rules: Mapping[str, str], *, origin: str
) -> tuple[str, ...]:
    """Turn what users write for rules into code prefixes.

    Args:
        selectors: Codes, code prefixes, rule names or `ALL`; one string may hold
            several with commas between them.
        rules: Rule names by code.
        origin: Where the selectors stand, for the error message.

    Returns:
        Canonical prefixes in the order given, without repeats.

    Raises:
        SettingsError: A selector means no known rule.
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
    if lower in codes:
        return codes[lower]
    hint = did_you_mean(lower, codes) or did_you_mean(upper, rules)
    raise SettingsError(f"{origin}: unknown rule `{selector}`{hint}")


class Table(msgspec.Struct, rename="kebab"):
    """`[tool.fsrace-lint]` as TOML spells it; docs/settings.schema.json describes it in these words."""

    profile: str = "default"
    """What is reported: what is worth a change (`default`), or everything (`strict`)."""
    select: tuple[str, ...] = ()
    """The rules to run; empty for all."""
    extend_select: tuple[str, ...] = ()
    """Rules to run besides those of `select`."""
    ignore: tuple[str, ...] = ()
    """Rules not to run."""
    exclude: tuple[str, ...] | None = None
    """Files and folders to leave out, in place of the built-in list."""
    extend_exclude: tuple[str, ...] = ()
    """Files and folders to leave out besides those of `exclude`."""
    per_file_ignores: dict[str, tuple[str, ...]] = {}
    """Rules that say nothing about the files that match a pattern."""
    root: str | None = None
    """The project root, counted from the folder of this file."""
    helper_module: str | None = None
    """The dotted name of the project's own copy of the safe helpers."""
    include_tests: bool = False
    """Whether tests and documentation are checked too."""
    respect_gitignore: bool = True
    """Whether what `.gitignore` files ignore is left out."""
    filesystem: str = "auto"
    """What nodes share: all paths (`shared`), none (`local`), or not known (`auto`)."""
    shared_paths: tuple[str, ...] = ()
    """Places that all nodes share: a path, an environment variable, or the name of an option or a folder."""
    local_paths: tuple[str, ...] = ()
    """Places that each node has for itself, written likewise."""
    catalog: Any = {}
    """What your own libraries mean, as tables of guards, barriers, effects and so on."""
    baseline: str = ""
    """The file with the findings that are known already, counted from the folder of this file."""
    cache_dir: str = ""
    """The folder of the cache, counted from the folder of this file."""


KEYS: Final = Table.__struct_encode_fields__


def load(root: Path, rules: Mapping[str, str]) -> Settings:
    """Read the settings of a project.

    Args:
        root: The folder whose `pyproject.toml` counts; it need not hold one.
        rules: Rule names by code.

    Returns:
        The settings, with the defaults for what the file does not say.

    Raises:
        SettingsError: The file cannot be read or says something wrong.
    """
    root = Path(os.path.abspath(root))
    file = root / "pyproject.toml"
    table = _convert(file, _read_table(file))

    def canonical(key: str, selectors: Iterable[str]) -> tuple[str, ...]:
        return normalize_selectors(selectors, rules, origin=f"{file}: `{key}`")

    _check(file, table)
    catalog, per_file = _catalog(file, table.catalog), table.per_file_ignores.items()
    return Settings(
        root=root if table.root is None else _folder(file, table.root),
        profile=cast("Profile", _one_of(Profile, file, "profile", table.profile)),
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
        baseline=os.path.normpath(root / table.baseline) if table.baseline else "",
        cache_dir=os.path.normpath(root / table.cache_dir) if table.cache_dir else "",
    )


def keys_given(root: Path) -> frozenset[str]:
    """Tell which keys the `pyproject.toml` of a folder gives.

    Raises:
        SettingsError: The file cannot be read.
    """
    return frozenset(_read_table(Path(root) / "pyproject.toml"))


def _read_table(file: Path) -> dict[str, Any]:
    """Give `[tool.fsrace-lint]` of a file; empty if the file or the table is missing."""
    try:
        data = read(file)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SettingsError(f"{file}: cannot be read: {error.strerror or error}") from error
    try:
        table: Any = tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SettingsError(f"{file}:{line}: is not encoded as UTF-8") from error
    except (ValueError, RecursionError) as error:
        where = re.search(r"at line (\d+)", str(error))
        place = f"{file}:{where[1]}" if where else f"{file}"
        raise SettingsError(f"{place}: is not valid TOML: {error}") from error
    for key in ("tool", f"tool.{TABLE}"):
        table = table.get(key.rpartition(".")[2], {})
        if not isinstance(table, dict):
            raise SettingsError(f"{file}: `{key}`: expected table, found {type(table).__name__}")
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
        raise SettingsError(f"{file}: `local-paths`: `{both[0]}` stands in `shared-paths` too")


def _one_of(choices: Any, file: Path, key: str, text: str) -> str:  # a Literal
    """Check that a text is one of a few."""
    known = get_args(choices)
    if text not in known:
        listed = ", ".join(f"`{choice}`" for choice in known[:-1]) + f" and `{known[-1]}`"
        hint = did_you_mean(text, known) or f"; there are {listed}"
        raise SettingsError(f"{file}: `{key}`: unknown {key} `{text}`{hint}")
    return text


def _catalog(file: Path, tables: Any) -> str:  # TOML gives anything
    """Write the user's part of the catalog as JSON, in which only the order of an array's items counts."""
    if not isinstance(tables, dict):
        raise SettingsError(f"{file}: `catalog`: must be a table")
    _check_json(file, tables, "catalog")
    return msgspec.json.encode(tables, order="deterministic").decode() if tables else ""


def _check_json(file: Path, value: Any, key: str, depth: int = 0) -> None:  # TOML gives anything
    if depth > _DEEPEST:
        raise SettingsError(f"{file}: `catalog`: is nested too deeply")
    if isinstance(value, dict):
        for name, item in value.items():
            _check_json(file, item, f"{key}.{name}", depth + 1)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _check_json(file, item, f"{key}[{index}]", depth + 1)
    elif not isinstance(value, (str, int)):
        kinds = "strings, booleans, arrays and tables"
        raise SettingsError(f"{file}: `{key}`: the catalog holds {kinds}, not a {type(value).__name__}")


def _folder(file: Path, text: str) -> Path:
    folder = Path(os.path.normpath(file.parent / text))
    if "\0" in text or not folder.is_dir():
        raise SettingsError(f"{file}: `root`: `{text}` is not an existing folder")
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
            what = "a folder, a glob such as `/mnt/*/runs`, `$VARIABLE` or the name of an option"
            raise SettingsError(f"{origin}: `{text}` is not {what}")


def _check_module(name: str | None, origin: str) -> None:
    parts = [] if name is None else name.split(".")
    if not all(part.isidentifier() and not keyword.iskeyword(part) for part in parts):
        raise SettingsError(f"{origin}: `{name}` is not a dotted module name such as `mypackage.fs_safe`")
