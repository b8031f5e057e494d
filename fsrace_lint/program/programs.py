"""The programs of a project: what a person or a scheduler starts, and how the repository says so."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final

from fsrace_lint.launches.launchers import test_runner
from fsrace_lint.launches.model import Origin
from fsrace_lint.program.module_table import common_folders
from fsrace_lint.program.python_commands import composes, read_python
from fsrace_lint.syntax.ast_names import decorator_names
from fsrace_lint.syntax.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from fsrace_lint.launches.launchers import Launcher
    from fsrace_lint.launches.model import Launch
    from fsrace_lint.program.module_table import ModuleTable
    from fsrace_lint.program.modules import LinkedFunction, Module


_DEEPEST: Final = 4
"""The maximum number of modules from which the function of an installed command is imported."""


_STARTING: Final = "subprocess"
"""The module that files import which start other programs."""


class Program(Record, frozen=True):
    """A program of the project.

    Attributes:
        function: The function that the program runs: the code of a module, or the function of a command.
        launches: The commands that start it, those that start multiple processes first.
    """

    function: LinkedFunction
    launches: tuple[Launch, ...]


class Programs:
    """Finds the functions that the launch commands of a repository start."""

    def __init__(
        self, table: ModuleTable, launches: Sequence[Launch] = (), commands: Mapping[str, str] | None = None
    ) -> None:
        """Initialize for a project.

        Args:
            table: The modules of the project.
            launches: The launch commands in its files.
            commands: The installed commands, each with `module:function`.
        """
        self._table = table
        self._read = launches
        self._commands = commands or {}

    def launches_of(self, function: LinkedFunction) -> tuple[Launch, ...]:
        """Return the commands that start a function, those that start multiple processes first.

        If the settings say how it is started, only they count.
        """
        program = self._by_function.get(function)
        return () if program is None else program.launches

    @functools.cached_property
    def is_told(self) -> bool:
        """Whether the repository says of any program how it is started."""
        return bool(self._by_function)

    @functools.cached_property
    def single(self) -> frozenset[LinkedFunction]:
        """The programs that the settings run in one process."""
        first = {function: program.launches[0] for function, program in self._by_function.items()}
        return frozenset(
            function
            for function, launch in first.items()
            if launch.origin is Origin.SETTINGS and not launch.several
        )

    def is_command(self, function: LinkedFunction) -> bool:
        """Return whether an installed command runs a function."""
        return function in self._installed

    def is_composed(self, function: LinkedFunction) -> bool:
        """Return whether the package of a function composes a command line that runs it.

        Then other programs start the function, such as those of a cluster.
        """
        modules, here = self._table.modules, function.module.relative
        return any(
            composes(modules[place], name)
            for name in self.commands_of(function)
            for place in self._table.heads.having("texts", name)
            if common_folders(modules[place].relative, here)
        )

    def all(self) -> list[Program]:
        """Return the programs of the project, in the order of their files.

        These are the programs that some command starts, the functions of installed commands, and files that
        test whether they are run as a script.
        """
        found = {
            **{
                module.code: Program(module.code, ())
                for module in self._table.modules
                if module.facts.is_script
            },
            **{function: Program(function, ()) for function in self._installed},
            **{
                function: program
                for function, program in self._by_function.items()
                if function.index == 0 or function in self._installed
            },
        }
        return sorted(found.values(), key=lambda program: program.function.order)

    def commands_of(self, function: LinkedFunction) -> tuple[str, ...]:
        """Return the names of the installed commands that run a function."""
        return tuple(self._installed.get(function, ()))

    def unmatched(self) -> list[Launch]:
        """Return the launches of the settings that name no program of the project."""
        named = (launch for launch in self._launches if launch.origin is Origin.SETTINGS)
        return [launch for launch in named if not any(True for _ in self._started_by(launch))]

    @functools.cached_property
    def _launches(self) -> Sequence[Launch]:
        """The launches in files of all kinds."""
        places = self._table.heads.having("imported", _STARTING)
        started = (read_python(self._table.modules[place], self._commands) for place in places)
        return (*self._read, *(launch for found in started for launch in found))

    @functools.cached_property
    def _installed(self) -> Mapping[LinkedFunction, list[str]]:
        found: dict[LinkedFunction, list[str]] = {}
        for name in sorted(self._commands):
            function = self._function_of(name)
            if function is not None:
                found.setdefault(function, []).append(name)
        return found

    def _function_of(self, command: str) -> LinkedFunction | None:
        """Return the function that an installed command runs, also if its module imports the function."""
        name, _, function = self._commands.get(command, "").partition(":")
        module = self._table.exact(name) or self._table.exact(f"src.{name}")
        for _ in range(_DEEPEST):
            if module is None or function in module.top_functions:
                break
            row = module.imports.get(function)
            if row is None or row.name is None:
                return None
            if row.level:
                module = self._table.exact(self._table.relative(row, module))
            else:
                module = self._table.find(row.module, module)
            function = row.name
        return None if module is None else module.top_functions.get(function)

    @functools.cached_property
    def _by_function(self) -> Mapping[LinkedFunction, Program]:
        found: dict[LinkedFunction, list[Launch]] = {}
        for launch in self._launches:
            for function in self._started_by(launch):
                found.setdefault(function, []).append(launch)
        return {
            function: Program(function, tuple(sorted(_counting(launches), key=_strength)))
            for function, launches in found.items()
        }

    def _started_by(self, launch: Launch) -> Iterable[LinkedFunction]:
        """Yield the functions that a command starts: the code of a module, or an installed command."""
        kind, name = launch.target.kind, launch.target.name
        runner = test_runner(launch.launcher) if launch.several else None
        if runner is not None:
            yield from self._collected(launch, runner)
            return
        if kind == "command":
            named = self._function_of(name)
            if named is not None:
                yield named
        else:
            found = self._file(launch) if kind == "file" else self._module(name)
            if found is not None:
                yield found.code

    def _collected(self, launch: Launch, runner: Launcher) -> Iterator[LinkedFunction]:
        """Yield what all processes of a test run can run: the code of files, and functions such as fixtures.

        A test without parameters runs in only one of the processes.
        """
        top = _normalized(f"{launch.folder}/{launch.target.name}")
        for module in self._table.modules:
            is_below = module.relative == top or module.relative.startswith(f"{top}/".lstrip("/"))
            if is_below and runner.imports(module.relative):
                yield module.code
                for function in module.functions[1:]:
                    if not set(runner.repeated).isdisjoint(decorator_names(function.facts)):
                        yield function

    def _module(self, name: str) -> Module | None:
        """Return the module that `python -m` runs: of a package, its `__main__` file."""
        for each in (f"{name}.__main__", name):
            found = self._table.exact(each) or self._table.exact(f"src.{each}")
            if found is not None:
                return found
        return None

    def _file(self, launch: Launch) -> Module | None:
        """Return the file that a command starts.

        The name is relative to the directory of the command, the directory of the file that contains the
        command, or the root. If it is neither, a unique file whose path ends with the name is meant. In
        documentation, such a name can be that of a program of the user, unless it contains a directory.
        """
        name = launch.target.name
        beside = launch.path.rpartition("/")[0]
        for folder in dict.fromkeys((launch.folder, beside, "")):
            found = self._by_path.get(_normalized(f"{folder}/{name}"))
            if found is not None:
                return found
        if launch.origin is Origin.DOCUMENTATION and "/" not in name:
            return None
        ends = self._by_last_part.get(name.rpartition("/")[2], [])
        same = [module for module in ends if f"/{module.relative}".endswith(f"/{_normalized(name)}")]
        near = [common_folders(module.relative, launch.path) for module in same]
        return same[near.index(max(near))] if near and near.count(max(near)) == 1 else None

    @functools.cached_property
    def _by_path(self) -> Mapping[str, Module]:
        return {module.relative: module for module in self._table.modules}

    @functools.cached_property
    def _by_last_part(self) -> Mapping[str, list[Module]]:
        found: dict[str, list[Module]] = {}
        for module in self._table.modules:
            found.setdefault(module.relative.rpartition("/")[2], []).append(module)
        return found


def _normalized(path: str) -> str:
    """Return a path without `.`, and without `..` after a directory."""
    found: list[str] = []
    for part in path.split("/"):
        if part == ".." and found:
            found.pop()
        elif part not in {"", "."}:
            found.append(part)
    return "/".join(found)


def _counting(launches: list[Launch]) -> list[Launch]:
    """Return the launches of the settings, if there are any, and otherwise all."""
    return [launch for launch in launches if launch.origin is Origin.SETTINGS] or launches


def _strength(launch: Launch) -> tuple[bool, bool, int, str, int]:
    """Return the key that sorts launches, the most convincing first."""
    return (not launch.several, launch.varies, launch.origin.value, launch.path, launch.line)
