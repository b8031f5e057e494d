"""The programs that one command starts, from its words."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Final, Literal, Protocol

import msgspec

from fsrace_lint.launches.launchers import (
    UNKNOWN,
    Launcher,
    Options,
    Wrapper,
    integer,
    module_program,
    options_of,
    program_of,
    python,
)
from fsrace_lint.launches.launchers import launcher as find_launcher
from fsrace_lint.launches.model import Target

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from fsrace_lint.launches.launchers import Program

ROOT: Final = "\ue001"
"""The text of a path to the root of the repository, in a word."""
SCRIPT: Final = "sh"
"""The launcher of a shell script. Such a start counts only in a launcher of multiple processes."""
_DEEPEST: Final = 12
_MOST_TARGETS: Final = 8
_MOST_ARGUMENTS: Final = 256
_SHELLS: Final = frozenset({"bash", "sh", "zsh", "dash", "ksh"})
_MODULE: Final = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_APPLICATION: Final = re.compile(r"([^\W\d]\w*(?:\.[^\W\d]\w*)*)(?::.*)?")
_DEVICES: Final = re.compile(r"(?:[\w.-]+:)?([0-9]+(?:,[0-9]+)*)")
_TEMPLATE: Final = re.compile(r"\{[\w.#%/+-]*\}")
"""Parts that `xargs`, `parallel`, and Python replace, such as `{}` and `{name}`."""
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)


class Invocation(msgspec.Struct, frozen=True):
    """A program that a command starts. The fields are those of a `Launch`.

    Attributes:
        all_nodes: Whether `processes` counts the processes of all nodes.
        varies: Whether each process, or each round of a loop, gets other arguments.
        folder: The directory; None for that of the command.
    """

    launcher: str
    target: Target
    arguments: tuple[str, ...]
    processes: int | None = 1
    role: Literal["rank", "worker"] = "rank"
    all_nodes: bool = False
    folder: str | None = None
    varies: bool = False
    on_one_node: bool = True

    @property
    def several(self) -> bool:
        """Whether the command starts multiple processes."""
        return self.processes != 1


class Surroundings(Protocol):
    """What a command is read with."""

    @property
    def commands(self) -> Collection[str]:
        """The console scripts of the repository."""

    @property
    def scheduled(self) -> Mapping[str, str]:
        """The options in `#SBATCH` lines."""

    @property
    def folder(self) -> str:
        """The current directory."""

    def run(self, text: str) -> list[Invocation]:
        """Read a command line that a shell gets as a string."""

    def configured(self, path: str) -> int | None:
        """Return the number of processes in a configuration file of Accelerate, or None."""


def invocations(words: Sequence[str], around: Surroundings, depth: int = 0) -> list[Invocation]:
    """Return the programs that a command starts.

    Args:
        words: The words of the command, expanded.
        around: What the command is read with.
        depth: How many launchers and wrappers precede the command.

    Returns:
        The programs. Wrappers and nested launchers are resolved.
    """
    begin = next((index for index, word in enumerate(words) if not _ASSIGNMENT.fullmatch(word)), len(words))
    words = words[begin:]
    if not words or depth > _DEEPEST:
        return []
    first, name = words[0], posixpath.basename(words[0])
    if first == UNKNOWN:
        # the word can be a launcher, so a plain start after it is no evidence of one process
        return [each for each in invocations(words[1:], around, depth + 1) if each.several]
    if name in _SHELLS:
        return _of_shell(words[1:], around)
    found = program_of(words)
    if found is not None:
        program, length = found
        return _of_program(program, words[length:], around, depth)
    is_path = first.startswith((".", "/", UNKNOWN, ROOT)) or ("/" in first and len(words) > 1)
    if name in around.commands or (is_path and name.endswith((".py", ".sh", ".bash"))):
        return _plain(first, words[1:], around)
    return []


def _plain(word: str, rest: Sequence[str], around: Surroundings) -> list[Invocation]:
    """Return the start of a file, or of a console script, by its name."""
    name = posixpath.basename(word)
    if name in around.commands:
        return [Invocation("command", Target("command", name), _arguments(rest))]
    target = file_target(word, around.folder)
    launcher = python().names[0] if name.endswith(".py") else SCRIPT
    return [] if target is None else [Invocation(launcher, target, _arguments(rest))]


def _of_shell(words: Sequence[str], around: Surroundings) -> list[Invocation]:
    """Read `bash -c TEXT` and `bash FILE`."""
    waiting = iter(words)
    for word in waiting:
        if word in {"-o", "+o", "-O", "--rcfile", "--init-file"}:
            next(waiting, None)
        elif word.startswith("-") and not word.startswith("--") and word.endswith("c"):
            text = next((each for each in waiting if not each.startswith("-")), "")
            return around.run(text)
        elif not word.startswith(("-", "+")):
            return _plain(word, [*waiting], around) if word.endswith((".sh", ".bash")) else []
    return []


def _of_program(program: Program, words: Sequence[str], around: Surroundings, depth: int) -> list[Invocation]:
    if isinstance(program, Wrapper):
        return _of_wrapper(program, words, around, depth)
    return _of_launcher(program, words, around, depth)


def _of_wrapper(wrapper: Wrapper, words: Sequence[str], around: Surroundings, depth: int) -> list[Invocation]:
    is_script = wrapper.target == "python"

    def fits(word: str) -> bool:
        return bool(wrapper.operands) or (_is_script(word) if is_script else _is_command(word, around))

    options = options_of(wrapper, words, fits)
    if wrapper.text and wrapper.text in options.values:
        return around.run(options.values[wrapper.text])
    names_script = bool(wrapper.module and options.rest) and _is_script(options.rest[0])
    if is_script or names_script or not options.flags.isdisjoint(wrapper.module):
        return _python_target(options, wrapper.module, around, depth)
    rest = options.rest[wrapper.operands :]
    if rest[:1] == ("--",):
        rest = rest[1:]
    if wrapper.target == "shell":
        return around.run(" ".join(rest))
    return invocations(rest, around, depth + 1)


def _of_launcher(
    launcher: Launcher, words: Sequence[str], around: Surroundings, depth: int
) -> list[Invocation]:
    if launcher.needs and launcher.needs not in words:
        return []
    end = next((index for index, word in enumerate(words) if word in launcher.ends), len(words))

    def fits(word: str) -> bool:
        match launcher.target:
            case "python":
                return _is_script(word) or posixpath.basename(word) in around.commands
            case "tests":
                return _is_test(word)
            case "application":
                return ":" in word and _APPLICATION.fullmatch(word) is not None
            case _:
                return _is_command(word, around)

    mixed = launcher.target in {"application", "app-option", "tests"}
    options = options_of(launcher, words[:end], fits, mixed=mixed)
    processes, all_nodes = _count(launcher, options, around)
    match launcher.target:
        case "python" if options.flags.isdisjoint(launcher.program):
            inner = _python_target(options, launcher.module, around, depth)
        case "python" | "command":
            inner = invocations(options.rest, around, depth + 1)
        case "shell":
            inner = around.run(" ".join(options.rest))
        case "tests":
            inner = [Invocation("", target, _arguments(words)) for target in _tests(options.rest, around)]
        case _:
            named = [options.value(launcher.app) or ""] if launcher.app else options.rest
            inner = [Invocation("", target, _arguments(words)) for target in _application(named)]
    if launcher.role == "worker" and launcher.target in {"command", "shell"}:
        inner = [
            msgspec.structs.replace(each, arguments=(*each.arguments, ""), varies=True) for each in inner
        ]
    outer = Invocation(
        launcher.names[0],
        Target("file", ""),
        (),
        processes,
        launcher.role,
        all_nodes,
        on_one_node=_is_on_one_node(launcher, options, around),
    )
    return [each if launcher is python() else _combined(outer, each) for each in inner]


def _combined(outer: Invocation, inner: Invocation) -> Invocation:
    """Return what a launcher makes of the command that it starts."""
    together = outer.on_one_node and inner.on_one_node
    if not inner.several:
        return msgspec.structs.replace(
            outer,
            target=inner.target,
            arguments=inner.arguments,
            folder=inner.folder,
            varies=inner.varies and outer.role == "worker",
            on_one_node=together,
        )
    if not outer.several or inner.all_nodes or "worker" in {outer.role, inner.role}:
        return msgspec.structs.replace(inner, on_one_node=together)
    product = inner.processes and outer.processes and inner.processes * outer.processes
    return msgspec.structs.replace(inner, processes=product, all_nodes=True, on_one_node=together)


def _count(launcher: Launcher, options: Options, around: Surroundings) -> tuple[int | None, bool]:
    """Return the number of processes, and whether it counts all nodes."""
    given = (options.value(launcher.total), options.value(launcher.each), options.value(launcher.nodes))
    total, each, nodes = given
    if launcher.scheduler and total is None:
        lines = Options({**around.scheduled}, frozenset(), ())
        slurm = find_launcher("srun")
        if given == (None, None, None):
            total = lines.value(slurm.total)
        each = lines.value(slurm.each) if each is None else each
        nodes = lines.value(slurm.nodes) if nodes is None else nodes
    if total is not None:
        return _positive(total), True
    if each is not None:
        product = _positive(each), _positive(nodes) if nodes is not None else 1
        return product[0] and product[1] and product[0] * product[1], nodes is not None
    devices = _DEVICES.fullmatch(options.value(launcher.listed) or "")
    if devices is not None and nodes is None:
        return devices[1].count(",") + 1, False
    if nodes is not None:
        return (_positive(nodes) if launcher.alone else None), True
    if options.value(launcher.requests) is not None:
        return 1, True
    config = options.value(launcher.config)
    if config is not None:
        return around.configured(config), True
    return launcher.default, launcher.default is not None


def _is_on_one_node(launcher: Launcher, options: Options, around: Surroundings) -> bool:
    """Return whether a launcher starts all processes on one node."""
    if options.is_open or options.value(launcher.hosts) is not None:
        return False
    nodes = options.value((*launcher.nodes, *launcher.machines))
    if nodes is None and launcher.scheduler:
        nodes = Options({**around.scheduled}, frozenset(), ()).value(find_launcher("srun").nodes)
    return launcher.local or launcher.role == "worker" if nodes is None else nodes == "1"


def _positive(text: str) -> int | None:
    return integer(text) or None


def _python_target(
    options: Options, module: Collection[str], around: Surroundings, depth: int
) -> list[Invocation]:
    """Return the script or the module that an interpreter runs."""
    rest = options.rest
    if not rest or "-c" in options.flags:
        return []
    if not options.flags.isdisjoint(module):
        found = module_program(rest)
        if found is not None:
            return _of_program(found[0], rest[found[1] :], around, depth + 1)
        name = Target("module", rest[0]) if _MODULE.fullmatch(rest[0]) else None
        return [] if name is None else [Invocation(python().names[0], name, _arguments(rest[1:]))]
    if posixpath.basename(rest[0]) in around.commands:
        # `torchrun $(which my-train)`
        return _plain(rest[0], rest[1:], around)
    found = program_of(rest) if _is_script(rest[0]) else None
    if found is not None and depth <= _DEEPEST:
        return _of_program(found[0], rest[found[1] :], around, depth + 1)
    target = file_target(rest[0], around.folder) if _is_script(rest[0]) or _is_package(rest[0]) else None
    return [] if target is None else [Invocation(python().names[0], target, _arguments(rest[1:]))]


def _is_script(word: str) -> bool:
    return word.endswith(".py")


def _is_test(word: str) -> bool:
    return "/" in word or "." in word or word.startswith("test")


def _is_package(word: str) -> bool:
    """Return whether a word can be a directory with a `__main__.py`, or a script without a suffix."""
    return "/" in word and "." not in posixpath.basename(word) and not word.endswith("/")


def _is_command(word: str, around: Surroundings) -> bool:
    name = posixpath.basename(word)
    return (
        name.endswith((".py", ".sh"))
        or name in _SHELLS
        or name in around.commands
        or program_of([word]) is not None
    )


def _application(words: Sequence[str]) -> list[Target]:
    """Return the module of `module:app`, the first of these words."""
    found = _APPLICATION.fullmatch(words[0]) if words else None
    return [] if found is None else [Target("module", found[1])]


def _tests(words: Sequence[str], around: Surroundings) -> list[Target]:
    """Return the files and directories of tests."""
    words = [word for word in words if UNKNOWN not in word]
    paths = [
        word.partition("::")[0] for word in words if "/" in word or word.startswith("test") or "." in word
    ]
    found = [file_target(path.rstrip("/"), around.folder) for path in paths[:_MOST_TARGETS]]
    return [target for target in found if target is not None] if words else [Target("file", ".")]


def file_target(word: str, folder: str) -> Target | None:
    """Return the target for a path in a command, or None if its name is not known.

    A directory whose value is not known is left out at the beginning: `$SCRIPTS/train.py` is `train.py`.
    """
    if word.startswith(ROOT):
        name = posixpath.relpath(word[len(ROOT) :].lstrip("/") or ".", folder or ".")
    else:
        name = posixpath.normpath(word.removeprefix(f"{UNKNOWN}/"))
    return None if UNKNOWN in name or ROOT in name or not word else Target("file", name)


def _arguments(words: Sequence[str]) -> tuple[str, ...]:
    """Return the arguments of a program: words that are not known are empty.

    An option whose value is not known ends with `=`.
    """
    return tuple(map(_argument, words[:_MOST_ARGUMENTS]))


def _argument(word: str) -> str:
    word = _TEMPLATE.sub(UNKNOWN, word)
    if UNKNOWN not in word and ROOT not in word:
        return word
    name, equals, _ = word.partition("=")
    return f"{name}=" if equals and name.startswith("-") and UNKNOWN not in name else ""
