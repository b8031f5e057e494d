"""Write a patch: a file is either as it was or as it should be, at every instant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.placing import ObstacleError, exchange

if TYPE_CHECKING:
    from fsrace_lint.fixes import Patch


def write(patch: Patch) -> str | None:
    """Replace a file by its repaired text.

    A symbolic link stays one, and its target is replaced. Mode bits are kept.

    Args:
        patch: The patch.

    Returns:
        None if the file is as the patch says, else why it was left alone.
    """
    if patch.before == patch.after:
        return None
    try:
        exchange(patch.file, patch.before, patch.after)
    except ObstacleError as obstacle:
        return str(obstacle)
    except (OSError, RuntimeError) as error:
        return f"cannot be written: {getattr(error, 'strerror', None) or error}"
    return None
