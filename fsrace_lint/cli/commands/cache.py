"""The command `cache`, and the option that says where a cache lies."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from fsrace_lint.cli.terminal import FAILED
from fsrace_lint.config import settings
from fsrace_lint.config.settings import SettingsError
from fsrace_lint.pipeline import project_cache, project_settings
from fsrace_lint.report.words import count, visible

if TYPE_CHECKING:
    from fsrace_lint.engine.store import Folder

directory: Final = click.option(
    "--cache-dir",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="The folder of the cache.  [default: .fsrace_cache in the root of the project]",
)
"""The option."""


def chosen(choices: dict[str, Any]) -> str | None:
    """Give the folder that the options name, None for that of the settings.

    Raises:
        click.UsageError: They contradict each other.
    """
    folder: Path | None = choices["cache_dir"]
    if folder is None:
        return None
    if choices.get("no_cache"):
        raise click.UsageError("--cache-dir and --no-cache do not go together")
    if not str(folder) or "\0" in str(folder):
        raise click.UsageError(f"--cache-dir: '{visible(str(folder))}' is not the name of a folder")
    return os.path.abspath(folder)  # noqa: PTH100  # links stay


@click.group()
def cache() -> None:
    """Look at the cache of a project, or delete it.

    `check` and `fix` keep in it what they have read, in .fsrace_cache in the root of the project.
    """


@cache.command()
@click.argument("path", default=".", type=click.Path(path_type=Path))
@directory
def info(path: Path, cache_dir: Path | None) -> None:
    """Tell where the cache of a project lies, and how large it is.

    PATH is a file or a folder of the project, by default the current folder.
    """
    folder = _folder(path, cache_dir)
    click.echo(visible(str(folder.path)))
    files = folder.files() if folder.is_cache() else []
    for file in files:
        written = time.strftime("%Y-%m-%d %H:%M", time.localtime(file.written))
        click.echo(f"  {visible(file.name)}  {_size(file.size)}  {written}")
    if not files:
        click.echo("  nothing is remembered")


@cache.command()
@click.argument("path", default=".", type=click.Path(path_type=Path))
@directory
def clear(path: Path, cache_dir: Path | None) -> None:
    """Delete the cache of a project.

    PATH is a file or a folder of the project, by default the current folder.
    """
    folder = _folder(path, cache_dir)
    if not os.path.lexists(folder.path):
        click.echo(f"There is no cache: {visible(str(folder.path))}")
        return
    try:
        gone = folder.clear()
    except OSError as error:
        _fail(f"{folder.path} is not deleted: {error.strerror or error}")
    click.echo(f"Deleted {count(len(gone), 'file')} ({_size(sum(file.size for file in gone))}).")


def _folder(path: Path, named: Path | None) -> Folder:
    from fsrace_lint.engine.store import Folder  # noqa: PLC0415  # the other commands do without

    if named is not None:
        return Folder(Path(chosen({"cache_dir": named}) or ""))
    if not os.path.lexists(path):
        _fail(f"{path}: no such file or folder")
    try:
        found = project_cache.folder_of(project_settings.read_settings(settings.find_root(path)))
    except SettingsError as error:
        _fail(str(error))
    if found is None:
        _fail(f"{path}: a folder that is no project has no cache, unless --cache-dir names one")
    return Folder(found)


def _fail(message: str) -> NoReturn:
    click.echo(visible(f"Error: {message}"), err=True)
    sys.exit(FAILED)


def _size(size: int) -> str:
    return f"{size / 1_000_000:.1f} MB" if size >= 1_000_000 else f"{size / 1000:.1f} kB"
