"""Files and trees that the helpers write, and functions to inspect them."""

from __future__ import annotations

import io
import os
import tarfile
from typing import TYPE_CHECKING, Any

from fsrace_lint import safe

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


OLD, NEW = b"old" * 5000, b"new" * 7000


TREE = {"a": NEW, "b/c": OLD, "b/d/e": b"e"}


def visible(directory: Path) -> list[str]:
    return sorted(name for name in os.listdir(directory) if not name.startswith("."))


def hidden(directory: Path) -> list[str]:
    return sorted(set(os.listdir(directory)) - set(visible(directory)))


def read_tree(tree: Path) -> dict[str, bytes]:
    return {str(path.relative_to(tree)): path.read_bytes() for path in tree.rglob("*") if path.is_file()}


def make_tar(path: Path, members: dict[str, bytes] = TREE, mode: Any = "w") -> Path:
    with tarfile.open(path, mode) as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def remove_tree(directory: Path, step: Callable[[], None]) -> None:
    safe.remove_tree(directory / "tree")


def prepare(directory: Path, act: Any) -> None:
    (directory / "file").write_bytes(OLD)
    (directory / "link").symlink_to("old")
    make_tar(directory / "archive")
    if act is remove_tree:
        for name, data in TREE.items():
            safe.ensure_dir((directory / "tree" / name).parent)
            (directory / "tree" / name).write_bytes(data)


def make_tree(root: Path, *names: str) -> Path:
    """Create empty files, and a directory for each name that ends with a slash."""
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            path.mkdir(exist_ok=True)
        else:
            path.touch()
    return root
