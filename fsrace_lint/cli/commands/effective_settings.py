"""What `check --show-settings` prints: the settings that hold, as TOML, and where each comes from."""

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

_BELOW: Final = ("per-file-ignores", "catalog")
"""The keys that are tables."""


def show(paths: Sequence[Path], choices: dict[str, Any], others: Sequence[str]) -> NoReturn:
    """Print the settings of each project of which something is named, and end.

    Args:
        paths: What the user named; nothing is the current folder.
        choices: The values of the options of check.
        others: Options about reports that are given too.

    Raises:
        click.UsageError: Something else is wanted as well.
        SystemExit: Always else.
    """
    acts = [key for key in ("write_baseline", "prune_baseline", "add_noqa", "silent") if choices[key]]
    unfit = [*(f"--{key.replace('_', '-')}" for key in acts), *others]
    if unfit:
        raise click.UsageError(f"--show-settings and {unfit[0]} do not go together")
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
    """Give the settings of the project whose `pyproject.toml` is in a folder, or would be."""
    file = folder / "pyproject.toml"
    there = file.exists()
    said = settings.keys_given(folder)
    found = [*discover.find(paths, chosen, force_exclude=force_exclude)]
    checked = count(sum(not isinstance(item, Unreadable) for item in found), "file")

    def origin(key: str) -> str:
        places = ["command line"] * (key in given) + ["pyproject.toml"] * (key in said)
        return " and ".join(places) if key.startswith("extend-") and places else [*places, "default"][0]

    lines = [
        _comment(f"{file}" if there else f"{file}: there is no such file"),
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
    """List the rules that are on, and what the profile makes of them."""
    on = [loaded for loaded in rules.load() if chosen.selects(loaded.rule.code, "")]
    quiet = "" if chosen.profile == "strict" else ", and what is for the strict profile is left out"
    yield _comment(f"{len(on)} of {count(len(rules.load()), 'rule')} on, profile {chosen.profile}{quiet}:")
    for loaded in on:
        rule = loaded.rule
        silent = rule.default_from is None and chosen.profile != "strict"
        yield _comment(f"  {rule.code} {rule.name}{' (strict only)' if silent else ''}")


def _plain(chosen: Settings, folder: Path, origin: Callable[[str], str]) -> Iterator[str]:
    """Give the keys of the table itself; what is not set and has no spelling is a comment."""
    for key in settings.KEYS:
        value = getattr(chosen, key.replace("-", "_"))
        if key in _BELOW:
            continue
        if key == "root":
            with contextlib.suppress(ValueError):  # another drive
                value = os.path.relpath(value, folder)
        if key == "exclude" and value is None:
            yield f"# exclude = {_toml(discover.DEFAULT_EXCLUDES)}  # default"
        elif value is None:
            yield f"# {key} is not set  # default"
        else:
            yield f"{key} = {_toml(value)}  # {origin(key)}"


def _tables(chosen: Settings) -> Iterator[str]:
    """Give the tables below the table; only the file can give them."""
    if chosen.per_file_ignores:
        yield f"\n[tool.{settings.TABLE}.per-file-ignores]  # pyproject.toml"
        for pattern, selectors in chosen.per_file_ignores:
            yield f"{_toml(pattern)} = {_toml(selectors)}"
    tables: Mapping[str, Any] = msgspec.json.decode(chosen.catalog) if chosen.catalog else {}
    for kind, entries in tables.items():
        for entry in entries:
            yield f"\n[[tool.{settings.TABLE}.catalog.{kind}]]  # pyproject.toml"
            yield from (f"{key} = {_toml(value)}" for key, value in entry.items())


def _toml(value: Any) -> str:
    """Write a text, a boolean or an array of texts: as JSON, with escapes that TOML knows."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_toml, value))}]"
    encoded = msgspec.json.encode(value, enc_hook=str).decode("utf-8")
    return "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in encoded)
