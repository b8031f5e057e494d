"""What each step of a run did to names and contents, so that other states can be derived from it."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, NamedTuple

from fsrace_lint.explore.running.disk_tree import TOP, DiskTree, Names, Node
from fsrace_lint.instrument.model import EVERY_FILE, WORLD

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fsrace_lint.explore.moves import Move
    from fsrace_lint.explore.running.stage import Stage
    from fsrace_lint.instrument.model import CallOutcome


class NameChange(NamedTuple):
    """A name that appeared, vanished (`number` is 0), or refers to another file."""

    folder: int
    name: str
    number: int


class Step(NamedTuple):
    """What one move did to the disk.

    Attributes:
        move: The index of the move.
        rank: The process that made it.
        text: The call, for display.
        names: The names that changed, all at once.
        data: The files whose contents changed, and their contents afterwards.
        modes: The files whose mode changed, and the mode afterwards.
        synced: The files and directories that were synced; `EVERY_FILE` stands for all of them.
    """

    move: int
    rank: int
    text: str
    names: tuple[NameChange, ...]
    data: tuple[tuple[int, bytes], ...]
    modes: tuple[tuple[int, int], ...]
    synced: tuple[int, ...]

    @property
    def has_changed(self) -> bool:
        """Whether the step changed anything on the disk."""
        return bool(self.names or self.data or self.modes)


class DiskJournal:
    """The names and contents at the start of a run, and the steps since then.

    Args:
        stage: The scratch directory with the initial tree.

    Attributes:
        steps: The steps that changed or synced anything, in order.
    """

    def __init__(self, stage: Stage) -> None:
        self.steps: list[Step] = []
        self._stage = stage
        self._numbers: dict[int, int] = {}
        self._last = TOP - 1
        self._nodes: dict[int, Node] = {}
        self._inodes: set[int] = set()
        self._contents: dict[int, bytes] = {}
        self._synced_nameless: set[int] = set()
        self._initial: dict[int, str] = {}
        self._names: Names = self._scan()
        self._base = self._names
        self._modes = {number: node.mode for number, node in self._nodes.items()}
        self._initial = {number: path for path, number in self.tree([], [], {}).walk()}

    def note(self, index: int, move: Move, outcome: CallOutcome) -> None:
        """Record what a move did.

        Args:
            index: The index of the move.
            move: The move.
            outcome: The outcome of its call.
        """
        if not (move.has_changed or outcome.created or outcome.synced):
            return
        for inode in outcome.created:
            # the kernel reuses the inode number of a deleted file
            self._numbers.pop(inode, None)
            self._number(inode)
        before, known = self._names, dict(self._nodes)
        names = self._names = self._scan()
        changed = [
            NameChange(*entry, names.get(entry, 0))
            for entry in dict.fromkeys([*before, *names])
            if before.get(entry) != names.get(entry)
        ]
        modes = [
            (at, node.mode) for at, node in self._nodes.items() if at in known and node.mode != known[at].mode
        ]
        synced = [at if at == EVERY_FILE else self._number(at) for at in outcome.synced]
        data = self._changed_data(outcome, synced, known)
        self._modes.update({at: self._nodes[at].mode for at in self._nodes.keys() - known.keys()})
        text = f"{move.name} {move.target}".rstrip()
        self.steps.append(
            Step(index, move.choice.rank, text, tuple(changed), tuple(data), tuple(modes), tuple(synced))
        )

    def _changed_data(
        self, outcome: CallOutcome, synced: list[int], known: Mapping[int, Node]
    ) -> list[tuple[int, bytes]]:
        """Read the contents that changed; a file without a name has them when it gets one."""
        dirtied = {self._number(inode) for inode in outcome.dirtied}
        self._synced_nameless = (self._synced_nameless - dirtied) | (set(synced) - self._nodes.keys())
        is_opaque = WORLD in outcome.footprint.writes
        looked = {
            number
            for number, node in self._nodes.items()
            if is_opaque or number in dirtied or number not in known or node.stamp != known[number].stamp
        }
        paths = (
            {number: path for path, number in DiskTree(self._names, self._nodes, self.contents).walk()}
            if looked
            else {}
        )
        found = []
        for number in sorted(looked):
            if number not in paths or not stat.S_ISREG(self._nodes[number].mode):
                continue
            with open(self._stage.top / paths[number], "rb") as file:
                data = file.read()
            if data != self.contents(number):
                self._contents[number] = data
                found.append((number, data))
            if number not in known and number in self._synced_nameless:
                synced.append(number)
        return found

    def contents(self, number: int) -> bytes:
        """Return the current contents of a file."""
        return self._contents[number] if number in self._contents else self.initial(number)

    def initial(self, number: int) -> bytes:
        """Return the contents of a file at the start of the run, or b"" for a new one."""
        return self._stage.initial(self._initial[number]) if number in self._initial else b""

    def is_folder(self, number: int) -> bool:
        """Return whether this is a directory."""
        return number in self._nodes and stat.S_ISDIR(self._nodes[number].mode)

    def tree(self, named: Iterable[Step], steps: Iterable[Step], contents: Mapping[int, bytes]) -> DiskTree:
        """Return the tree after some steps.

        Args:
            named: The steps whose names are there, in order.
            steps: The steps whose modes are there, in order.
            contents: The contents of the files that do not have their initial contents.

        Returns:
            The tree.
        """
        names = dict(self._base)
        for step in named:
            for folder, name, number in step.names:
                if number:
                    names[folder, name] = number
                else:
                    names.pop((folder, name), None)
        nodes = self._nodes
        if any(step.modes for step in self.steps):
            modes = self._modes | {number: mode for step in steps for number, mode in step.modes}
            nodes = {number: node._replace(mode=modes[number]) for number, node in nodes.items()}
        return DiskTree(names, nodes, lambda at: contents[at] if at in contents else self.initial(at))

    def _number(self, inode: int) -> int:
        if inode not in self._numbers:
            self._last += 1
            self._numbers[inode] = self._last
        return self._numbers[inode]

    def _scan(self) -> Names:
        top = str(self._stage.top)
        found: Names = {}
        inodes = {os.stat(top).st_ino}
        self._add(os.stat(top), "")
        folders = [(top, TOP)]
        while folders:
            folder, number = folders.pop()
            with os.scandir(folder) as entries:
                for entry in entries:
                    status = entry.stat(follow_symlinks=False)
                    is_link = stat.S_ISLNK(status.st_mode)
                    found[number, entry.name] = at = self._add(
                        status, os.readlink(entry.path) if is_link else ""
                    )
                    inodes.add(status.st_ino)
                    if stat.S_ISDIR(status.st_mode):
                        folders.append((entry.path, at))
        for inode in self._inodes - inodes:
            self._numbers.pop(inode, None)
        self._inodes = inodes
        return found

    def _add(self, status: os.stat_result, link: str) -> int:
        number = self._number(status.st_ino)
        stamp = (status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        self._nodes[number] = Node(status.st_mode, link, (status.st_atime_ns, status.st_mtime_ns), stamp)
        return number
