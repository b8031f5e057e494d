"""The command `vendor`, which copies the safe helpers into a project."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from fsrace_lint.cli.terminal import CLEAN, FAILED, FOUND
from fsrace_lint.integrations import vendor
from fsrace_lint.report.words import visible


@click.command(
    "vendor",
    short_help="Copy the safe helpers into a project.",
    epilog="""\b
Examples:
  fsrace-lint vendor src/fs_safe.py
  fsrace-lint vendor src/fs_safe.py atomic_write barrier
  fsrace-lint vendor --check src/fs_safe.py
""",
)
@click.argument("path", type=click.Path())
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--check", "only_check", is_flag=True, help="Check whether the copy is up to date and write nothing."
)
@click.option("--force", is_flag=True, help="Overwrite a file that was changed or is not a copy.")
def vendor_helpers(path: str, names: tuple[str, ...], *, only_check: bool, force: bool) -> None:
    """Copy the safe helpers to PATH, a single file that imports only the standard library.

    The copy contains the helpers with these NAMEs, else those that the project imports from it, else all of
    them. If PATH is a directory, the file name is `fs_safe.py`. To make fixes import the copy, set
    `helper-module` in pyproject.toml.

    Exit status: 0 if the copy is up to date, 1 if it is missing, outdated, or changed, 2 if it cannot be
    read or written.
    """
    is_folder = Path(path).is_dir() or path.endswith(("/", os.sep))
    file = Path(path, vendor.NAME) if is_folder else Path(path)
    if not file.parent.is_dir():
        raise click.UsageError(visible(f"{path}: no directory {file.parent}; create it first"))
    unknown = [name for name in names if name not in vendor.helpers()]
    if unknown:
        raise click.UsageError(visible(f"no helper `{unknown[0]}`; there are {', '.join(vendor.helpers())}"))
    chosen = names or vendor.names_in_use(file)
    try:
        copy = vendor.look(file, chosen) if only_check else vendor.write(file, chosen, force=force)
    except OSError as error:
        click.echo(visible(f"Error: {file}: {error.strerror}"), err=True)
        sys.exit(FAILED)
    if not only_check and copy is not vendor.Copy.CURRENT and (copy.is_ours or force):
        click.echo(visible(f"Wrote {file}."), err=True)
        return
    click.echo(visible(f"{file} {copy.value}."), err=True)
    sys.exit(CLEAN if copy is vendor.Copy.CURRENT else FOUND)
