"""Commands in Python code: lists of words that are passed to a call, such as `run(["torchrun", "a.py"])`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from fsrace_lint.launches.launchers import UNKNOWN
from fsrace_lint.launches.model import Origin
from fsrace_lint.launches.shell import Script, Shell
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.traversal import all_in, evaluated, within

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from fsrace_lint.launches.model import Launch
    from fsrace_lint.program.modules import Module

_INTERPRETER: Final = m.Attribute(m.Name("sys"), "executable")


def read_python(module: Module, commands: Collection[str]) -> Iterator[Launch]:
    """Yield the commands in the code of a file that start multiple processes.

    A plain start says nothing, because each of multiple processes can run the code.

    Args:
        module: The file.
        commands: The names of the installed commands.
    """
    shell = Shell(Script(Path(), module.relative, Origin.PYTHON, commands, lambda *_: None))
    for function in module.functions:
        lines: dict[tuple[str, ...], int] = {}  # a list that is also printed counts where it is used last
        lists: dict[str, tuple[str, ...]] = {}
        for statement in all_in(function.facts.body):
            for call in _calls(statement):
                words = _words(call.arguments[0], lists) if call.arguments else ()
                if len(words) > 1:
                    lines[words] = call.span.line
            if isinstance(statement, m.Assign) and statement.value is not None:
                words = _words(statement.value, lists)
                lists |= {each.id: words for each in statement.targets if isinstance(each, m.Name)}
        for words, line in lines.items():
            shell.words(words, line)
    for launch in shell.finish():
        if launch.several:
            yield replace(launch, reported=module.path)


def composes(module: Module, command: str) -> bool:
    """Return whether the code of a file makes a list of words that begins with an installed command."""
    return any(
        isinstance(expr, m.Sequence) and len(expr.items) > 1 and expr.items[0] == m.Constant(command)
        for function in module.functions
        for statement in all_in(function.facts.body)
        for read in evaluated(statement)
        for expr in within(read)
    )


def _calls(statement: m.Statement) -> Iterator[m.Call]:
    for expr in evaluated(statement):
        yield from (each for each in within(expr) if isinstance(each, m.Call))


def _words(value: m.Expr, lists: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the words of a list, or nothing. A variable can be extended by words that are not known."""
    match value:
        case m.Sequence(items=items):
            return tuple(map(_word, items))
        case m.Binary(operator="+", left=left):
            words = _words(left, lists)
        case m.Name(id=name):
            words = lists.get(name, ())
        case _:
            return ()
    is_open = words[-2:] == (UNKNOWN, UNKNOWN)
    return (*words, UNKNOWN) if words and not is_open else words


def _word(item: m.Expr) -> str:
    match item:
        case m.Constant(value=str(text)):
            return text
        case m.Format(parts=parts):
            return "".join(map(_word, parts))
        case _:
            return "python" if item == _INTERPRETER else UNKNOWN
