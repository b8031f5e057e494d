"""The launchers and wrappers in `launchers.toml`, and how their options are read."""

from __future__ import annotations

import fnmatch
import functools
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

UNKNOWN: Final = "\ue000"
"""The text of a part of a word whose value is not known. This private character is in no file."""

Follows: TypeAlias = Literal["python", "command", "shell", "application", "app-option", "tests"]
_PYTHON: Final = re.compile(r"(?:python|pypy)[\d.]*w?(?:\.exe)?")
_SHORT: Final = 2
"""The length of an option with one letter."""


class Launcher(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A program that can start multiple processes. `launchers.toml` describes the fields."""

    names: tuple[str, ...]
    role: Literal["rank", "worker"]
    target: Follows
    modules: tuple[str, ...] = ()
    total: tuple[str, ...] = ()
    each: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    alone: bool = False
    machines: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    local: bool = False
    requests: tuple[str, ...] = ()
    listed: tuple[str, ...] = ()
    valued: tuple[str, ...] = ()
    paired: tuple[str, ...] = ()
    module: tuple[str, ...] = ()
    program: tuple[str, ...] = ()
    app: tuple[str, ...] = ()
    config: tuple[str, ...] = ()
    needs: str = ""
    ends: tuple[str, ...] = ()
    default: int | None = None
    scheduler: bool = False
    collects: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    own: tuple[str, ...] = ()

    def imports(self, path: str) -> bool:
        """Return whether every process of a test run imports a file, by its name."""
        name = path.rpartition("/")[2]
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in self.collects)

    @property
    def with_value(self) -> frozenset[str]:
        """All options that take one value."""
        counts = (*self.total, *self.each, *self.nodes, *self.machines, *self.listed)
        return frozenset((*counts, *self.requests, *self.hosts, *self.valued, *self.app))


class Wrapper(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A program that starts one command unchanged. `launchers.toml` describes the fields."""

    names: tuple[str, ...]
    modules: tuple[str, ...] = ()
    target: Literal["python", "command", "shell"] = "command"
    valued: tuple[str, ...] = ()
    paired: tuple[str, ...] = ()
    module: tuple[str, ...] = ()
    operands: int = 0
    text: str = ""

    @property
    def with_value(self) -> frozenset[str]:
        """All options that take one value."""
        return frozenset((*self.valued, *([self.text] if self.text else ())))


Program: TypeAlias = "Launcher | Wrapper"


class _Data(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    launcher: tuple[Launcher, ...]
    wrapper: tuple[Wrapper, ...]


@functools.cache
def known() -> tuple[Program, ...]:
    """Return all launchers and wrappers."""
    text = Path(__file__).with_name("launchers.toml").read_text("utf-8")
    data = msgspec.convert(tomllib.loads(text), _Data)
    return *data.launcher, *data.wrapper


@functools.cache
def _index(attribute: Literal["names", "modules"]) -> dict[str, list[tuple[tuple[str, ...], Program]]]:
    """Return the programs by the first word of their names. Longer names come first."""
    found: dict[str, list[tuple[tuple[str, ...], Program]]] = {}
    for program in known():
        for name in program.names if attribute == "names" else program.modules:
            words = tuple(name.split())
            found.setdefault(words[0], []).append((words, program))
    for rows in found.values():
        rows.sort(key=lambda row: -len(row[0]))
    return found


@functools.cache
def launcher(name: str) -> Launcher:
    """Return the entry of a launcher that exists."""
    return next(each for each in known() if isinstance(each, Launcher) and each.names[0] == name)


@functools.cache
def test_runner(name: str) -> Launcher | None:
    """Return the entry of a launcher that runs tests, or None if it runs something else."""
    runners = (each for each in known() if isinstance(each, Launcher) and each.collects)
    return next((each for each in runners if each.names[0] == name), None)


def is_own_directory(parameter: str, path: str) -> bool:
    """Return whether a test runner passes a directory of one process, or what creates one, as a parameter.

    Args:
        parameter: The name of the parameter.
        path: The file of the function.
    """
    runners = (each for each in known() if isinstance(each, Launcher) and parameter in each.own)
    return any(each.imports(path) for each in runners)


def python() -> Launcher:
    """Return the entry of the interpreter itself."""
    return launcher("python")


def program_of(words: Sequence[str]) -> tuple[Program, int] | None:
    """Return the program that a command starts, and how many words its name has.

    Args:
        words: The words of the command. The first one can be a path.

    Returns:
        The program and the number of words, or None if it is not known.
    """
    name = words[0].rpartition("/")[2]
    if _PYTHON.fullmatch(name):
        return python(), 1
    return _starting(_index("names"), (name, *words[1:4]))


def module_program(words: Sequence[str]) -> tuple[Program, int] | None:
    """Return the program that `python -m` starts with these words, and how many of them name it."""
    return _starting(_index("modules"), words)


def _starting(
    index: dict[str, list[tuple[tuple[str, ...], Program]]], words: Sequence[str]
) -> tuple[Program, int] | None:
    for name, program in index.get(words[0], ()):
        if tuple(words[: len(name)]) == name:
            return program, len(name)
    return None


class Options(msgspec.Struct, frozen=True):
    """The options of a launcher, as written in one command.

    Attributes:
        values: The last value of each option.
        flags: The options without a value.
        rest: The words that are not options.
        is_open: Whether a word whose value is not known can contain more options.
    """

    values: dict[str, str]
    flags: frozenset[str]
    rest: tuple[str, ...]
    is_open: bool = False

    def value(self, names: Iterable[str]) -> str | None:
        """Return the value of the first of these options that is given."""
        return next((self.values[name] for name in names if name in self.values), None)


def options_of(
    program: Program, words: Sequence[str], fits: Callable[[str], bool], *, mixed: bool = False
) -> Options:
    """Read the options of a program.

    Args:
        program: The program.
        words: The words after its name.
        fits: Whether a word can be the target. After an unknown option, another word is its value.
        mixed: Whether options can follow other words. If not, the first other word ends them. A word whose
            value is not known can contain options, so a target after it must fit.

    Returns:
        The options, and the other words.
    """
    values: dict[str, str] = {}
    flags: set[str] = set()
    rest: list[str] = []
    valued = program.with_value
    known_flags = {*program.module, *(program.program if isinstance(program, Launcher) else ())}
    unknown = skipped = False
    waiting = iter(words)
    for word in waiting:
        if word == "--":
            break
        if word == UNKNOWN and not mixed and not (isinstance(program, Wrapper) and program.operands):
            # options, or the target
            skipped = True
            continue
        if len(word) < _SHORT or not word.startswith("-"):
            if unknown and not flags & known_flags and not fits(word):
                unknown = False
                continue
            rest.append(word if fits(word) or not skipped or flags & known_flags else UNKNOWN)
            if mixed:
                continue
            break
        name, equals, value = word.partition("=")
        name = name.replace("_", "-")
        unknown = False
        if name in program.paired:
            next(waiting, None)
            next(waiting, None)
        elif equals:
            values[name] = value
        elif name in valued:
            values[name] = next(waiting, UNKNOWN)
        elif (attached := _attached(word, valued)) is not None:
            values[word[:_SHORT]] = attached
        else:
            if skipped and name not in known_flags:
                rest.append(UNKNOWN)
                break
            flags.add(name)
            unknown = name not in known_flags and program is not python()
    return Options(values, frozenset(flags), (*rest, *waiting), skipped)


def _attached(word: str, valued: Collection[str]) -> str | None:
    """Return the value in a word such as `-n4`."""
    fits = word[:_SHORT] in valued and word[1] != "-" and (word[_SHORT:].isdigit() or word[1] == "I")
    return word[_SHORT:] if fits else None


def integer(text: str) -> int | None:
    """Return a literal number of at most nine digits, or None for any other text."""
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else None


def trigger(commands: Collection[str]) -> re.Pattern[bytes]:
    """Return a pattern for files that can contain a launch.

    Args:
        commands: The names of the console scripts of the repository.
    """
    starting = [each for each in known() if isinstance(each, Launcher) or each.module]
    names = {
        name if isinstance(each, Wrapper) else name.split()[0] for each in starting for name in each.names
    }
    words = {"pypy", r"\.py", r"\.sh\b", "PYTHON", *map(re.escape, (*names, *commands))}
    return re.compile("|".join(sorted(words)).encode())
