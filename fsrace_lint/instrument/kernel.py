"""The original functions of `posix`, which this package calls while those of the module are replaced."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import posix
else:
    try:
        import posix as _posix
    except ImportError:  # Windows, where nothing is replaced
        posix = None
    else:
        posix = types.SimpleNamespace(**vars(_posix))

__all__ = ["posix"]
