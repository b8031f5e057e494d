"""The output of `check --show-settings`: the effective settings as TOML, and their sources."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click
import msgspec

from fsrace_lint import report, rules
from fsrace_lint.cli import terminal
from fsrace_lint.cli.commands.options import changes_of, leave, load, problems_of_settings
from fsrace_lint.config.settings import origins
from fsrace_lint.config.tables import KEYS, TABLE
from fsrace_lint.files.source import Unreadable
from fsrace_lint.pipeline import discover
from fsrace_lint.pipeline.discover import Found
from fsrace_lint.pipeline.exclusions import DEFAULT_EXCLUDES
from fsrace_lint.pipeline.run import Checked
from fsrace_lint.report.words import count, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from fsrace_lint.config.settings import Settings

_BELOW: Final = ("extend", "per-file-ignores", "helpers", "catalog", "programs")
"""The settings that are tables, or that are resolved."""


def _refuse_mixtures(option: str, choices: dict[str, Any], others: Sequence[str]) -> None:
    """Refuse options that change files or reports.

    Raises:
        click.UsageError: An option cannot be combined with the given one.
    """
    acts = [key for key in ("write_baseline", "prune_baseline", "add_noqa", "silent") if choices[key]]
    unfit = [*(f"--{key.replace('_', '-')}" for key in acts), *others]
    if unfit:
        raise click.UsageError(f"{option} cannot be used with {unfit[0]}")


def show_files(paths: Sequence[Path], choices: dict[str, Any], others: Sequence[str]) -> NoReturn:
    """Print the absolute paths of the files that a check of some paths reports on, and exit.

    Args:
        paths: The paths that the user named. If empty, the current directory.
        choices: The option values of `check`.
        others: The options about reports that are given.

    Raises:
        click.UsageError: An option cannot be combined with `--show-files`.
        SystemExit: The files were printed.
    """
    _refuse_mixtures("--show-files", choices, others)
    chosen, problems = load(paths, choices)
    named: dict[Settings, list[Path]] = {}
    for path, project in chosen.items():
        named.setdefault(project, []).append(path)
    files: list[str] = []
    with problems_of_settings(problems):
        for project, of in named.items():
            for item in discover.find(of, project, force_exclude=choices["force_exclude"]):
                if isinstance(item, Unreadable):
                    problems.append(report.Problem(item.path, item.reason))
                else:
                    files.append(f"{visible(str(item))}\n")
    terminal.show("".join(sorted(files)))
    leave(Checked(report.Outcome(errors=tuple(dict.fromkeys(problems))), {}), findings=0)


def show(paths: Sequence[Path], choices: dict[str, Any], others: Sequence[str]) -> NoReturn:
    """Print the settings that apply to each path, and exit.

    Args:
        paths: The paths that the user named. If empty, the current directory.
        choices: The option values of `check`.
        others: The options about reports that are given.

    Raises:
        click.UsageError: An option cannot be combined with `--show-settings`.
        SystemExit: The settings were printed.
    """
    _refuse_mixtures("--show-settings", choices, others)
    name = choices["stdin_filename"]
    paths = paths if name is None else [name]
    given = [key.replace("_", "-") for key, value in changes_of(choices).items() if value is not None]
    chosen, problems = load(paths, choices, is_there=name is None)
    tables: dict[tuple[Settings, Settings], list[Path]] = {}
    with problems_of_settings(problems):
        for path, project in chosen.items():
            tables.setdefault((discover.applying(path, project), project), []).append(path)
        shown = []
        for (one, project), named in tables.items():
            found = discover.look(named, project, force_exclude=choices["force_exclude"])
            shown.append(_table(one, found, given))
        terminal.show("\n".join(shown))
    leave(Checked(report.Outcome(errors=tuple(dict.fromkeys(problems))), {}), findings=0)


def _table(chosen: Settings, found: Sequence[Found | Unreadable], given: Collection[str]) -> str:
    """Return settings, and the number of files below the paths to which they apply."""
    said = {} if chosen.is_isolated else origins(chosen.file)
    checked = count(sum(not isinstance(item, Unreadable) and not item.is_launch for item in found), "file")
    nested = [item.table.file for item in found if isinstance(item, Found) and item.table is not None]

    def origin(key: str) -> str:
        file = _shown(said[key], chosen) if key in said else ""
        places = ["command line"] * (key in given) + [file] * (key in said)
        return " and ".join(places) if key.startswith("extend-") and places else [*places, "default"][0]

    lines = [
        _comment(_state_of_file(chosen)),
        _comment(f"root: {chosen.root}"),
        *(_comment(f"other settings below: {file}") for file in nested if file != chosen.file),
        _comment(f"{checked} would be checked"),
        *_rules(chosen),
        f"[tool.{TABLE}]",
        *_plain(chosen, origin),
        *_tables(chosen, said),
    ]
    return "\n".join(lines) + "\n"


def _state_of_file(chosen: Settings) -> str:
    if chosen.is_isolated:
        return "no settings file is read"
    return f"{chosen.file}" if chosen.file.exists() else f"{chosen.file} does not exist"


def _shown(file: Path, chosen: Settings) -> str:
    """Return a file relative to the directory of the settings."""
    with contextlib.suppress(ValueError):  # a different drive
        return Path(os.path.relpath(file, chosen.file.parent)).as_posix()
    return str(file)


def _comment(text: str) -> str:
    return f"# {visible(text)}"


def _rules(chosen: Settings) -> Iterator[str]:
    """Yield the enabled rules, and whether the profile disables them."""
    on = [loaded for loaded in rules.load() if chosen.selects(loaded.rule.code, "")]
    strict = "" if chosen.profile == "strict" else "; rules marked `strict only` report nothing"
    yield _comment(
        f"{len(on)} of {count(len(rules.load()), 'rule')} selected, profile {chosen.profile}{strict}:"
    )
    for loaded in on:
        rule = loaded.rule
        is_off = rule.default_from is None and chosen.profile != "strict"
        yield _comment(f"  {rule.code} {rule.name}{' (strict only)' if is_off else ''}")


def _plain(chosen: Settings, origin: Callable[[str], str]) -> Iterator[str]:
    """Yield the lines of the main table. Settings without a value are comments."""
    for key in KEYS:
        if key in _BELOW:
            continue
        value = getattr(chosen, key.replace("-", "_"))
        if key == "root":
            value = os.path.relpath(value, chosen.file.parent)
        if key == "exclude" and value is None:
            yield f"# exclude = {_toml(DEFAULT_EXCLUDES)}  # default"
        elif value is None:
            yield f"# {key} is not set  # default"
        else:
            yield f"{key} = {_toml(value)}  # {origin(key)}"


def _tables(chosen: Settings, said: Mapping[str, Path]) -> Iterator[str]:
    """Yield the tables below the main table. Only files can set these."""

    def origin(key: str) -> str:
        return _shown(said[key], chosen)

    if chosen.per_file_ignores:
        yield f"\n[tool.{TABLE}.per-file-ignores]  # {origin('per-file-ignores')}"
        for pattern, selectors in chosen.per_file_ignores:
            yield f"{_toml(pattern)} = {_toml(selectors)}"
    if chosen.helpers:
        yield f"\n[tool.{TABLE}.helpers]  # {origin('helpers')}"
        yield from (f"{key} = {_toml(name)}" for key, name in chosen.helpers)
    for program in chosen.programs:
        yield f"\n[[tool.{TABLE}.programs]]  # {origin('programs')}"
        given = msgspec.to_builtins(program)
        yield from (f"{key} = {_toml(value)}" for key, value in given.items() if value is not None)
    tables: Mapping[str, Any] = msgspec.json.decode(chosen.catalog) if chosen.catalog else {}
    for kind, entries in tables.items():
        for entry in entries:
            yield f"\n[[tool.{TABLE}.catalog.{kind}]]  # {origin('catalog')}"
            yield from (f"{key} = {_toml(value)}" for key, value in entry.items())


def _toml(value: Any) -> str:
    """Return a string, a boolean, or an array of strings as TOML: JSON with escapes that TOML supports."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_toml, value))}]"
    encoded = msgspec.json.encode(value, enc_hook=str).decode("utf-8")
    return "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in encoded)
