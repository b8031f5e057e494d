"""The command `vendor`: writes the safe helpers into a project."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from fsrace_lint.cli.terminal import CLEAN, FAILED, FOUND
from fsrace_lint.integrations import vendor
from fsrace_lint.report.words import visible


@click.command(
    "vendor",
    short_help="Write the safe helpers into a project.",
    epilog="""\b
Examples:
  fsrace-lint vendor src/fs_safe.py
  fsrace-lint vendor --check src/fs_safe.py
""",
)
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--check", "only_check", is_flag=True, help="Write nothing; say whether the copy is ours and new."
)
@click.option("--force", is_flag=True, help="Write it although somebody has changed the copy.")
def vendor_helpers(path: Path, *, only_check: bool, force: bool) -> None:
    """Write the safe helpers to PATH, one file that imports nothing but the standard library.

    In a folder the file is fs_safe.py. With `helper-module` in the settings, fixes import it.

    Exit status: 0 the copy is as it should be, 1 it is not, or somebody has changed it.
    """
    file = path / vendor.NAME if path.is_dir() else path
    try:
        copy = vendor.look(file) if only_check else vendor.write(file, force=force)
    except OSError as error:
        click.echo(visible(f"Error: {file}: {error.strerror}"), err=True)
        sys.exit(FAILED)
    if not only_check and copy is not vendor.Copy.CURRENT and (copy.is_ours or force):
        click.echo(visible(f"Wrote {file}."), err=True)
        return
    click.echo(visible(f"{file} {copy.value}."), err=True)
    sys.exit(CLEAN if copy is vendor.Copy.CURRENT else FOUND)
