"""Read the settings in a file, and check their keys and types.

The file is `.fsrace-lint.toml`, `fsrace-lint.toml`, or a `pyproject.toml` with `[tool.fsrace-lint]`.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias, cast

import msgspec

from fsrace_lint.config.suggestions import did_you_mean, in_toml_words
from fsrace_lint.config.validation import SettingsError
from fsrace_lint.files.bounded_read import read

if TYPE_CHECKING:
    from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TABLE: Final = "fsrace-lint"
FILE: Final = "pyproject.toml"
OWN_FILES: Final = (".fsrace-lint.toml", "fsrace-lint.toml")
"""The files that contain only settings of fsrace-lint. The first one in a directory takes precedence."""
Role: TypeAlias = Literal["rank", "worker"]
_HINT: Final = re.compile(rb"fsrace", re.IGNORECASE)
"""In any file with the table, however it is spelled."""


class ProgramSettings(
    msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True, omit_defaults=True
):
    """How a program of the project is launched. Exactly one of `file`, `module`, and `command` is given."""

    file: str | None = None
    """A program that is started as a file, relative to the directory of this file."""
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


class HelperSettings(
    msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True, omit_defaults=True
):
    """The functions of the project that fixes call, by their dotted names: `mypackage.dist.synchronize`."""

    is_main_process: str | None = None
    """The check for the main process: `is_main_process()`."""
    barrier: str | None = None
    """The function in which all processes wait for each other: `barrier()`."""
    ensure_dir: str | None = None
    """The function that creates a directory and its parents, unless it exists: `ensure_dir(path)`."""
    atomic_write: str | None = None
    """The context manager that opens a file and replaces the target: `with atomic_write(path, mode) as f`."""
    atomic_path: str | None = None
    """The context manager for a path that replaces the target: `with atomic_path(path) as temporary`."""
    publish_symlink: str | None = None
    """The function that creates or redirects a link in one step: `publish_symlink(target, link)`."""
    extract_once: str | None = None
    """The function that unpacks an archive once: `extract_once(archive, directory)`."""
    download_once: str | None = None
    """The function that downloads a file once: `download_once(url, path)`."""
    lock: str | None = None
    """The context manager that locks a file: `with lock(path)`."""


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
    extend: str | None = None
    """A `pyproject.toml` to inherit settings from, relative to the directory of this file."""
    root: str | None = None
    """The project root: the directory of this file (`.`), or one above it, relative to that directory."""
    fix_tiers: tuple[str, ...] = ()
    """The unsafe fixes that `fix` applies too: `local`, `atomic`, or `coordination`."""
    helper_module: str | None = None
    """The dotted name of the module with the project's copy of the safe helpers."""
    helpers: HelperSettings = HelperSettings()
    """The functions of your project that fixes call instead."""
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


def settings_file(folder: Path) -> Path:
    """Return the file in a directory that contains the settings, or would contain them."""
    found = (folder / name for name in OWN_FILES)
    return next((file for file in found if file.is_file()), folder / FILE)


KEYS: Final = Table.__struct_encode_fields__
PROGRAM_KEYS: Final = ProgramSettings.__struct_encode_fields__
HELPER_KEYS: Final = HelperSettings.__struct_encode_fields__


def read_table(file: Path) -> dict[str, Any] | None:
    """Return the settings in a file, or None if the file or its table is missing.

    Raises:
        SettingsError: The file cannot be read, or is not valid TOML.
    """
    try:
        data = read(file)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SettingsError(f"{file}: cannot read the file: {error.strerror or error}") from error
    return _table(file, data)


def read_nested_table(file: Path) -> dict[str, Any] | None:
    """Return the settings in a file below the project root, like `read_table`.

    Files that do not mention fsrace-lint are not parsed, so a mistake in them is no error.
    """
    try:
        data = read(file)
    except OSError:
        return None
    return _table(file, data) if _is_own(file) or _HINT.search(data) else None


def _is_own(file: Path) -> bool:
    """Return whether the name says that a file contains only settings, without `[tool.fsrace-lint]`."""
    return file.name in OWN_FILES


def parsed(origin: str, text: str) -> dict[str, Any]:
    """Parse settings.

    Args:
        origin: Where they come from, for the error message.
        text: The settings in TOML, without `[tool.fsrace-lint]`.

    Raises:
        SettingsError: The text is not valid TOML.
    """
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        where = re.search(r"at line (\d+)", str(error))
        place = f"{origin}:{where[1]}" if where else origin
        raise SettingsError(f"{place}: not valid TOML: {error}") from error


def _table(file: Path, data: bytes) -> dict[str, Any] | None:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SettingsError(f"{file}:{line}: not encoded as UTF-8") from error
    table: Any = parsed(str(file), text)
    if _is_own(file) or (file.name != FILE and "tool" not in table):
        return cast("dict[str, Any]", table)
    for key in ("tool", f"tool.{TABLE}"):
        above, table = table, table.get(key.rpartition(".")[2])
        for name in above if key != "tool" and table is None else ():
            if name.lower().replace("_", "-") in (TABLE, TABLE.replace("-", "")):
                raise SettingsError(f"{file}: unknown table [tool.{name}]; did you mean [tool.{TABLE}]?")
        if table is None:
            return None
        if not isinstance(table, dict):
            raise SettingsError(f"{file}: `{key}`: expected a table, found {type(table).__name__}")
    return cast("dict[str, Any]", table)


def convert(file: Path, values: dict[str, Any]) -> Table:
    """Check the keys and the types of a table.

    Raises:
        SettingsError: A key is unknown, or a value has a wrong type.
    """
    above = "" if _is_own(file) else f"tool.{TABLE}."
    _check_keys(file, values, KEYS, above and f" in [tool.{TABLE}]")
    programs, helpers = values.get("programs"), values.get("helpers")
    for entry in programs if isinstance(programs, list) else ():
        _check_keys(file, entry, PROGRAM_KEYS, f" in [[{above}programs]]")
    _check_keys(file, helpers, HELPER_KEYS, f" in [{above}helpers]")
    try:
        return msgspec.convert(values, Table)
    except msgspec.ValidationError as error:
        key, what = in_toml_words(error)
        raise SettingsError(f"{file}: `{key}`: {what}") from error


def _check_keys(
    file: Path, table: Any, known: tuple[str, ...], shown: str
) -> None:  # a TOML value of any type
    for key in table if isinstance(table, dict) else ():
        if key not in known:
            hint = did_you_mean(key.lower().replace("_", "-"), known)
            if key == "tool" and not shown:
                hint = f"; {file.name} contains the settings without [tool.{TABLE}]"
            raise SettingsError(f"{file}: unknown key `{key}`{shown}{hint}")
