"""Write patches atomically: a file always contains its old text or its new text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.files.atomic_write import ObstacleError, exchange

if TYPE_CHECKING:
    from pathlib import Path

    from fsrace_lint.fixes import Patch


def write(patch: Patch, *, within: Path | None = None, link: bool | None = None) -> str | None:
    """Replace a file with its fixed text.

    A symbolic link stays, and its target is replaced. Owner, mode, and attributes are kept.

    Args:
        patch: The patch.
        within: The directory that a symbolic link must not lead out of; None for no limit.
        link: Whether the file was a symbolic link when it was read; None if unknown.

    Returns:
        None if the file now has the text of the patch; otherwise the reason why it was skipped.

    Raises:
        OSError: The file cannot be written because of a disk or system failure.
    """
    if patch.before == patch.after:
        return None
    try:
        if link is False and patch.file.is_symlink():
            return "was replaced by a symbolic link during the run"
        exchange(patch.file, patch.before, patch.after, below=within)
    except ObstacleError as obstacle:
        return str(obstacle)
    return None
