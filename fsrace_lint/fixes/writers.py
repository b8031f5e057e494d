"""The calls that write to the path that they are given, and how they are given it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.fixes.arguments import needed
from fsrace_lint.fixes.callee import called
from fsrace_lint.fixes.recipe import RefusalError

if TYPE_CHECKING:
    import libcst as cst

    from fsrace_lint.fixes.recipe import Target

OPEN: Final = ("file", "mode", "buffering", "encoding", "errors", "newline")
"""The parameters of `open`."""
_WRITERS: Final = {
    "torch.save": (1, "f"),
    "numpy.save": (0, "file"),
    "numpy.savez": (0, "file"),
    "numpy.savez_compressed": (0, "file"),
    "joblib.dump": (1, "filename"),
    "shutil.copyfile": (1, "dst"),
    "safetensors.torch.save_file": (1, "filename"),
    "safetensors.numpy.save_file": (1, "filename"),
    ".to_csv": (0, "path_or_buf"),
    ".to_json": (0, "path_or_buf"),
    ".to_parquet": (0, "path"),
    ".to_pickle": (0, "path"),
    ".savefig": (0, "fname"),
}
"""The position and the name of the parameter with the path; methods of any object begin with a dot."""


def written_path(target: Target) -> cst.BaseExpression:
    """Give the path that a call is given to write to.

    Raises:
        RefusalError: It is not known to be given one.
    """
    name = called(target.tree, target.call)
    if name not in _WRITERS:
        raise RefusalError(f"{name.lstrip('.')} is not known to write to the path that it is given")
    return needed(target.call, *_WRITERS[name])
