"""The command `cache`, and the option for the cache directory."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from fsrace_lint.cli.commands.grouped_options import CommandGroup
from fsrace_lint.cli.terminal import FAILED
from fsrace_lint.config import settings
from fsrace_lint.config.roots import find_root
from fsrace_lint.config.validation import SettingsError
from fsrace_lint.pipeline import project_cache, project_settings
from fsrace_lint.report.words import count, visible

if TYPE_CHECKING:
    from fsrace_lint.engine.store import Folder

directory: Final = click.option(
    "--cache-dir",
    metavar="DIRECTORY",
    type=click.Path(path_type=Path),
    help="Cache directory.  [default: .fsrace_cache in the project root]",
)
"""The option `--cache-dir`."""


def chosen(choices: dict[str, Any]) -> str | None:
    """Return the cache directory that the options name, or None to use the settings.

    Raises:
        click.UsageError: The options contradict each other, or the name is invalid.
    """
    folder: Path | None = choices["cache_dir"]
    if folder is None:
        return None
    if choices.get("no_cache"):
        raise click.UsageError("--cache-dir cannot be used with --no-cache")
    if not str(folder) or "\0" in str(folder):
        raise click.UsageError(f"--cache-dir: '{visible(str(folder))}' is not a directory name")
    return os.path.abspath(folder)  # noqa: PTH100  # links are not resolved


@click.group(cls=CommandGroup)
def cache() -> None:
    """Show or delete the cache of a project.

    `check` and `fix` store their analysis results in .fsrace_cache in the project root.
    """


@cache.command()
@click.argument("path", default=".", type=click.Path(path_type=Path))
@directory
def info(path: Path, cache_dir: Path | None) -> None:
    """Print the location and the size of the cache of a project.

    PATH is a file or directory in the project. The default is the current directory.
    """
    folder = _folder(path, cache_dir)
    click.echo(visible(str(folder.path)))
    files = folder.files() if folder.is_cache() else []
    for file in files:
        written = time.strftime("%Y-%m-%d %H:%M", time.localtime(file.written))
        click.echo(f"  {visible(file.name)}  {_size(file.size)}  {written}")
    if not files:
        click.echo("  (empty)")


@cache.command()
@click.argument("path", default=".", type=click.Path(path_type=Path))
@directory
def clear(path: Path, cache_dir: Path | None) -> None:
    """Delete the cache of a project.

    PATH is a file or directory in the project. The default is the current directory.
    """
    folder = _folder(path, cache_dir)
    if not os.path.lexists(folder.path):
        click.echo(f"No cache found: {visible(str(folder.path))}")
        return
    try:
        gone = folder.clear()
    except OSError as error:
        _fail(f"{folder.path} was not deleted: {error.strerror or error}")
    click.echo(f"Deleted {count(len(gone), 'file')} ({_size(sum(file.size for file in gone))}).")


def _folder(path: Path, named: Path | None) -> Folder:
    from fsrace_lint.engine.store import Folder  # noqa: PLC0415  # other commands do not need it

    if named is not None:
        return Folder(Path(chosen({"cache_dir": named}) or ""))
    if not os.path.lexists(path):
        _fail(f"{path}: no such file or directory")
    try:
        found = project_cache.folder_of(settings.load(find_root(path), project_settings.NAMES))
    except SettingsError as error:
        _fail(str(error))
    if found is None:
        _fail(f"{path}: not part of a project, so there is no default cache; pass --cache-dir")
    return Folder(found)


def _fail(message: str) -> NoReturn:
    click.echo(visible(f"Error: {message}"), err=True)
    sys.exit(FAILED)


def _size(size: int) -> str:
    return f"{size / 1_000_000:.1f} MB" if size >= 1_000_000 else f"{size / 1000:.1f} kB"
