"""Write a patch: a file is either as it was or as it should be, at every instant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.files.atomic_write import ObstacleError, exchange

if TYPE_CHECKING:
    from pathlib import Path

    from fsrace_lint.fixes import Patch


def write(patch: Patch, *, within: Path | None = None, link: bool | None = None) -> str | None:
    """Replace a file by its repaired text.

    A symbolic link stays one, and its target is replaced. Owner, mode and attributes are kept.

    Args:
        patch: The patch.
        within: The folder that a link must not lead out of; None for any.
        link: Whether the file was a symbolic link when it was read; None where that is not known.

    Returns:
        None if the file is as the patch says, else why it was left alone.

    Raises:
        OSError: It cannot be written: the disk or the system fails.
    """
    if patch.before == patch.after:
        return None
    try:
        if link is False and patch.file.is_symlink():
            return "was replaced by a link in the meantime"
        exchange(patch.file, patch.before, patch.after, below=within)
    except ObstacleError as obstacle:
        return str(obstacle)
    return None
