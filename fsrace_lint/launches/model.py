"""Launches: commands in which a repository starts its programs."""

from __future__ import annotations

import enum
from typing import Literal

import msgspec

LONGEST_COMMAND = 160
"""The maximum number of characters of `Launch.command`."""


class Origin(enum.IntEnum):
    """The kind of file that contains a command, by weight: the first one counts the most.

    If the settings name a program, its other commands do not count.
    """

    SETTINGS = 0
    SCRIPT = 1
    CI = 2
    BUILD = 3
    CONTAINER = 4
    CONFIGURATION = 5
    PYTHON = 6
    DOCUMENTATION = 7


class Target(msgspec.Struct, frozen=True, order=True):
    """The program that a command starts.

    Attributes:
        kind: `file` for a script of Python or of a shell, or a directory of tests; `module` for a module;
            `command` for a console script.
        name: `train.py` or `../tools/train.py`, relative to the directory of the command; `pkg.train`; or
            `my-command`. If the directory of the command is not known, a path can be relative to the root, or
            to the directory of the file that contains the command. A variable at the beginning is left out.
    """

    kind: Literal["file", "module", "command"]
    name: str


class Launch(msgspec.Struct, frozen=True):
    """One command that starts a program.

    Attributes:
        path: The file that contains the command, relative to the root, with forward slashes.
        line: The line of the command, from 1.
        origin: The kind of the file.
        command: The command in one line, shortened.
        folder: The directory in which the command runs, relative to the root. It is an empty string for the
            root itself, and if the directory is not known.
        launcher: The name of the launcher, as in `launchers.toml`; `python` for a plain start, `command` for
            a plain console script, `&` for a command that a loop starts in the background.
        target: The program.
        processes: The number of processes, or None if it is not a literal.
        several: Whether the command starts multiple processes: true for a launcher unless its number is 1.
        role: `rank` if the processes are ranks of one job, `worker` if they share out work.
        arguments: The arguments of the program. A word whose value is not known is an empty string, and an
            option such as `--output=$OUTPUT` ends with `=`. For servers, queues, and tests, these are all
            words after the launcher.
        varies: Whether each process gets other arguments, such as the variable of the loop.
        on_one_node: Whether all processes run on one node, as far as the command says.
        reported: The path of the file as a report shows it. Empty until the caller sets it.
    """

    path: str
    line: int
    origin: Origin
    command: str
    folder: str
    launcher: str
    target: Target
    processes: int | None
    several: bool
    role: Literal["rank", "worker"]
    arguments: tuple[str, ...]
    varies: bool = False
    on_one_node: bool = False
    reported: str = ""

    @property
    def position(self) -> tuple[str, int, str, str, str, str, Target, int, tuple[str, ...], bool]:
        """The sort key. It contains all fields that can differ between launches of one line."""
        count = -1 if self.processes is None else self.processes
        how = (self.folder, self.launcher, self.role, self.target, count, self.arguments, self.varies)
        return self.path, self.line, self.command, *how


def shortened(command: str) -> str:
    """Return a command in one line, with at most `LONGEST_COMMAND` characters that can be printed."""
    text = command[: 100 * LONGEST_COMMAND].replace("\\\n", " ")
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return line if len(line) <= LONGEST_COMMAND else f"{line[: LONGEST_COMMAND - 3]}..."
