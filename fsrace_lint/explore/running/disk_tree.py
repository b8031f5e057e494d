"""A tree of files in memory: a state that the real tree does not have, such as after a power failure."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

TOP = 1
"""The number of the top directory."""

Names = dict[tuple[int, str], int]
"""The file that each name in each directory refers to. Files and directories have numbers, never reused."""


class Node(NamedTuple):
    """A file or a directory, without its contents.

    Attributes:
        mode: Its type and permissions.
        link: The target of a symbolic link.
        times: The access and modification time, in nanoseconds.
        stamp: Differs if the file was changed, also by a call that was not seen: its size and times.
    """

    mode: int
    link: str
    times: tuple[int, int]
    stamp: tuple[int, ...] = ()


class DiskTree:
    """A tree of files in memory.

    Args:
        names: All names.
        nodes: The files and directories by number.
        contents: Returns the contents of a regular file.

    Attributes:
        digest: The fingerprint of the tree, once it is known.
    """

    def __init__(self, names: Names, nodes: Mapping[int, Node], contents: Callable[[int], bytes]) -> None:
        self.digest = b""
        self._nodes = nodes
        self._contents = contents
        self._folders: dict[int, list[tuple[str, int]]] = {}
        for (folder, name), number in names.items():
            self._folders.setdefault(folder, []).append((name, number))

    def walk(self) -> Iterator[tuple[str, int]]:
        """Yield all paths with their numbers, in the order in which the stage walks the real tree."""
        yield "", TOP
        folders, seen = [("", TOP)], {TOP}
        while folders:
            prefix, folder = folders.pop()
            for name, number in sorted(self._folders.get(folder, ())):
                yield prefix + name, number
                if stat.S_ISDIR(self._nodes[number].mode) and number not in seen:
                    seen.add(number)
                    folders.append((f"{prefix}{name}/", number))

    def entries(self) -> Iterator[tuple[str, int, bytes]]:
        """Yield each path with its mode, and its contents or link target."""
        for path, number in self.walk():
            node = self._nodes[number]
            data = os.fsencode(node.link)
            yield path, node.mode, self._contents(number) if stat.S_ISREG(node.mode) else data

    def write(self, target: Path) -> None:
        """Create the tree in an empty directory."""
        made: dict[int, str] = {}
        folders = []
        for name, number in self.walk():
            node, there = self._nodes[number], os.path.join(target, name)
            if not name or stat.S_ISSOCK(node.mode):
                continue
            if stat.S_ISDIR(node.mode):
                os.mkdir(there)  # noqa: FSR105  # below the scratch directory of this process
                folders.append((there, node))
            elif stat.S_ISLNK(node.mode):
                os.symlink(node.link, there)
            elif number in made:
                os.link(made[number], there)
            elif stat.S_ISREG(node.mode):
                with open(there, "wb") as file:
                    file.write(self._contents(number))
                os.chmod(there, stat.S_IMODE(node.mode))
                os.utime(there, ns=node.times)
                made[number] = there
            else:
                os.mkfifo(there, stat.S_IMODE(node.mode))
        for there, node in reversed(folders):
            os.chmod(there, stat.S_IMODE(node.mode))
            os.utime(there, ns=node.times)
