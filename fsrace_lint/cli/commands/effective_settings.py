"""The output of `check --show-settings`: the effective settings as TOML, and their sources."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click
import msgspec

from fsrace_lint import report, rules
from fsrace_lint.cli import terminal
from fsrace_lint.cli.commands.options import changes_of, leave, load
from fsrace_lint.config import settings
from fsrace_lint.files.source import Unreadable
from fsrace_lint.pipeline import discover
from fsrace_lint.pipeline.run import Checked
from fsrace_lint.report.words import count, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from fsrace_lint.config.settings import Settings

_BELOW: Final = ("per-file-ignores", "catalog", "programs")
"""The settings that are tables."""


def show(paths: Sequence[Path], choices: dict[str, Any], others: Sequence[str]) -> NoReturn:
    """Print the settings of each project that contains a path, and exit.

    Args:
        paths: The paths that the user named. If empty, the current directory.
        choices: The option values of `check`.
        others: The options about reports that are given.

    Raises:
        click.UsageError: An option cannot be combined with `--show-settings`.
        SystemExit: The settings were printed.
    """
    acts = [key for key in ("write_baseline", "prune_baseline", "add_noqa", "silent") if choices[key]]
    unfit = [*(f"--{key.replace('_', '-')}" for key in acts), *others]
    if unfit:
        raise click.UsageError(f"--show-settings cannot be used with {unfit[0]}")
    name = choices["stdin_filename"]
    paths = paths if name is None else [name]
    given = [key.replace("_", "-") for key, value in changes_of(choices).items() if value is not None]
    chosen, problems = load(paths, choices, is_there=name is None)
    projects: dict[Path, list[Path]] = {}
    for path in chosen:
        projects.setdefault(settings.find_root(path), []).append(path)
    terminal.show(
        "\n".join(
            _project(root, chosen[named[0]], named, given, force_exclude=choices["force_exclude"])
            for root, named in projects.items()
        )
    )
    leave(Checked(report.Outcome(errors=tuple(dict.fromkeys(problems))), {}), findings=0)


def _project(
    folder: Path, chosen: Settings, paths: Sequence[Path], given: Collection[str], *, force_exclude: bool
) -> str:
    """Return the settings of a project whose `pyproject.toml` is, or would be, in a directory."""
    file = folder / "pyproject.toml"
    there = file.exists()
    said = settings.keys_given(folder)
    found = [*discover.find(paths, chosen, force_exclude=force_exclude)]
    checked = count(sum(not isinstance(item, Unreadable) for item in found), "file")

    def origin(key: str) -> str:
        places = ["command line"] * (key in given) + ["pyproject.toml"] * (key in said)
        return " and ".join(places) if key.startswith("extend-") and places else [*places, "default"][0]

    lines = [
        _comment(f"{file}" if there else f"{file} does not exist"),
        _comment(f"root: {chosen.root}"),
        _comment(f"{checked} would be checked"),
        *_rules(chosen),
        f"[tool.{settings.TABLE}]",
        *_plain(chosen, folder, origin),
        *_tables(chosen),
    ]
    return "\n".join(lines) + "\n"


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


def _plain(chosen: Settings, folder: Path, origin: Callable[[str], str]) -> Iterator[str]:
    """Yield the lines of the main table. Settings without a value are comments."""
    for key in settings.KEYS:
        value = getattr(chosen, key.replace("-", "_"))
        if key in _BELOW:
            continue
        if key == "root":
            with contextlib.suppress(ValueError):  # a different drive
                value = os.path.relpath(value, folder)
        if key == "exclude" and value is None:
            yield f"# exclude = {_toml(discover.DEFAULT_EXCLUDES)}  # default"
        elif value is None:
            yield f"# {key} is not set  # default"
        else:
            yield f"{key} = {_toml(value)}  # {origin(key)}"


def _tables(chosen: Settings) -> Iterator[str]:
    """Yield the tables below the main table. Only pyproject.toml can set these."""
    if chosen.per_file_ignores:
        yield f"\n[tool.{settings.TABLE}.per-file-ignores]  # pyproject.toml"
        for pattern, selectors in chosen.per_file_ignores:
            yield f"{_toml(pattern)} = {_toml(selectors)}"
    for program in chosen.programs:
        yield f"\n[[tool.{settings.TABLE}.programs]]  # pyproject.toml"
        given = msgspec.to_builtins(program)
        yield from (f"{key} = {_toml(value)}" for key, value in given.items() if value is not None)
    tables: Mapping[str, Any] = msgspec.json.decode(chosen.catalog) if chosen.catalog else {}
    for kind, entries in tables.items():
        for entry in entries:
            yield f"\n[[tool.{settings.TABLE}.catalog.{kind}]]  # pyproject.toml"
            yield from (f"{key} = {_toml(value)}" for key, value in entry.items())


def _toml(value: Any) -> str:
    """Return a string, a boolean, or an array of strings as TOML: JSON with escapes that TOML supports."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_toml, value))}]"
    encoded = msgspec.json.encode(value, enc_hook=str).decode("utf-8")
    return "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in encoded)
