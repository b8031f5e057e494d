"""Shell commands: the operation of a command line, according to the catalog."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from fsrace_lint.analysis.accesses.command_options import options_of, valued
from fsrace_lint.analysis.accesses.command_words import COMPUTED, begin_of, lines_of, text_of
from fsrace_lint.analysis.values.abstract_values import Expression
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.record import Record

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    from fsrace_lint.analysis.accesses.command_options import Options
    from fsrace_lint.analysis.accesses.command_words import Command, Word
    from fsrace_lint.catalog import Catalog, Op
    from fsrace_lint.catalog.entries import CommandEntry

HERE: Final = m.Constant(".")
_SINKS: Final = frozenset({"-", "/dev/null", "/dev/stdout", "/dev/stderr"})
_ASKING: Final = "--version --help"
"""The options by which a program only prints something about itself."""
_FIRST: Final = ("extract", "download")
"""The operations of a command line that count more than the others."""
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")
_ABSOLUTE: Final = frozenset({"/", "~", "$"})
_DEEPEST: Final = 4


class Touched(Record, frozen=True):
    """What a command does to a path.

    Attributes:
        op: The operation.
        path: The path.
        tolerant: Whether it accepts the result of another process.
        exclusive: Whether it fails if the path exists.
        atomic: Whether the result appears atomically.
        appends: Whether it keeps the content of the file.
        tree: Whether it copies or deletes a directory with its whole content.
        target: The new path of a rename.
    """

    op: Op
    path: Word
    tolerant: bool = False
    exclusive: bool = False
    atomic: bool = False
    appends: bool = False
    tree: bool = False
    target: Word | None = None


def expression_of(word: Word) -> m.Expr:
    """Return a word as one expression, with all its parts in the same environment."""
    parts = [part.expr if isinstance(part, Expression) else m.Constant(part) for part in word]
    return parts[0] if len(parts) == 1 else m.Format(tuple(parts))


class ShellCommands:
    """Finds what commands do."""

    def __init__(self, catalog: Catalog) -> None:
        """Initialize for a project."""
        self._catalog = catalog
        names: dict[str, list[str]] = {}
        for name in sorted(catalog.names("command"), key=len, reverse=True):
            names.setdefault(name.partition(" ")[0], []).append(name)
        self._names = names

    def touched(self, commands: Iterable[Command], folder: Word = ()) -> Touched | None:
        """Return what some commands do.

        Args:
            commands: The commands.
            folder: The working directory; empty for the current one.

        Returns:
            The operation with the gravest consequences, or None if they do nothing known to a path.
        """
        found = [*self._all(commands, folder)]
        ranked = (each for op in _FIRST for each in found if each.op == op)
        return next(ranked, next(iter(found), None))

    def plain(self, commands: Iterable[Command], depth: int = 0) -> Iterator[Command]:
        """Yield the commands without those that only run another one, such as `sudo` and `bash -c`."""
        for command in commands:
            entry, words = self._entry(command.words)
            if entry is None or entry.runs is None or depth > _DEEPEST:
                yield command
            elif not (options := options_of(entry, words)).any_of(entry.without):
                yield from self.plain(_inner(entry, options, command), depth + 1)

    def _all(self, commands: Iterable[Command], folder: Word) -> Iterator[Touched]:
        piped: Op = "write"
        for command in self.plain(commands):
            if command.output:
                if _is_file(command.output):
                    yield Touched(piped, _inside(folder, command.output), appends=command.appends)
                continue
            if len(command.words) > 1 and text_of(command.words[0]) == "cd":
                folder = _inside(folder, command.words[1])
            entry, words = self._entry(command.words)
            done = None if entry is None else _done(entry, options_of(entry, words), folder)
            prints = done is None and entry is not None and entry.op == "download" and not entry.least
            piped = "download" if prints else "write"
            yield from () if done is None else (done,)

    def _entry(self, words: tuple[Word, ...]) -> tuple[CommandEntry | None, list[Word]]:
        """Return the entry of a command, and the words of the command after those of its name."""
        begin = (index for index, word in enumerate(words) if not _ASSIGNMENT.match(begin_of(word)))
        first = next(begin, len(words))
        program = text_of(words[first]).rpartition("/")[2] if first < len(words) else ""
        for name in self._names.get(program, ()):
            entry = self._catalog.exact("command", name)
            rest = _without_name(words[first + 1 :], name.split(" ")[1:], valued(entry))
            if rest is not None:
                return entry, rest
        return None, []


def _without_name(words: Sequence[Word], name: Sequence[str], valued: Container[str]) -> list[Word] | None:
    """Return the words without those that name what a program does, or None if one of these is missing."""
    rest: list[Word] = []
    waiting, left = iter(words), list(name)
    for word in waiting:
        text = text_of(word)
        if left and text == left[0]:
            left.pop(0)
            continue
        if left and not begin_of(word).startswith("-"):
            return None
        rest.append(word)
        if left and text in valued:
            rest += [value for value in [next(waiting, None)] if value is not None]
    return None if left else rest


def _inner(entry: CommandEntry, options: Options, command: Command) -> Iterable[Command]:
    """Return the commands that a command runs."""
    if entry.runs == "words":
        begin = next((int(place) for place in entry.path.split() if place.isdecimal()), 0)
        return (replace(command, words=tuple(options.operands[begin:])),)
    text = options.at(entry.path)
    return () if text is None else lines_of(text, command.scope)


def _done(entry: CommandEntry, options: Options, folder: Word) -> Touched | None:
    """Return what a command does, or None if its options or arguments do not fit the operation."""
    if options.any_of(_ASKING):
        return None
    missing = bool(entry.needs) and not options.any_of(entry.needs)
    fitting = entry.least <= len(options.operands) <= (entry.most or len(options.operands))
    if entry.op is None or missing or not fitting or options.any_of(entry.without):
        return None
    given = options.at(entry.folder)
    around = folder if given is None else _inside(folder, given)
    path = options.at(entry.path)
    if path is not None:
        path = _inside(around, path)
    elif options.any_of(entry.here):
        path = around or (".",)
    if path is None or not _is_file(path) or (entry.remote and not _is_from_afar(entry, options, path)):
        return None
    target = options.at(entry.target)
    return Touched(
        entry.op,
        path,
        tolerant=options.any_of(entry.tolerant),
        exclusive=entry.exclusive,
        atomic=entry.atomic and not options.any_of(entry.in_place),
        appends=options.any_of(entry.appends),
        tree=options.any_of(entry.tree),
        target=None if target is None else _inside(around, target),
    )


def _is_file(path: Word) -> bool:
    """Return whether a path is not a device, and not computed by the shell, which can make it private."""
    computed = any(isinstance(part, Expression) and part.expr is COMPUTED for part in path)
    return not computed and text_of(path) not in _SINKS


def _is_from_afar(entry: CommandEntry, options: Options, path: Word) -> bool:
    """Return whether a command copies from another host to this one."""
    remote = tuple(entry.remote.split())
    return begin_of(options.operands[-2]).startswith(remote) and not begin_of(path).startswith(remote)


def _inside(folder: Word, path: Word) -> Word:
    """Return a path in a command as seen from the directory in which the program starts it."""
    begins = begin_of(path)[:1]
    if not folder or begins in _ABSOLUTE:
        return path
    return folder if path == (".",) else (*folder, "/", *path)
