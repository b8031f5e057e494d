"""The words of commands, from the expressions that a program starts them with."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from fsrace_lint.analysis.paths.format_strings import filled_by_format, filled_by_percent
from fsrace_lint.analysis.values.abstract_values import Argument, Expression, Looped, Union
from fsrace_lint.analysis.values.call_arguments import bind
from fsrace_lint.launches.command_lines import command_lines
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name
from fsrace_lint.syntax.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.values.abstract_values import Binding, Environment
    from fsrace_lint.analysis.values.resolve import Resolver
    from fsrace_lint.program.modules import LinkedFunction

Part: TypeAlias = "str | Expression"
Word: TypeAlias = "tuple[Part, ...]"
"""A word of a command: literal text, and expressions with their environments."""
Calls: TypeAlias = "tuple[tuple[CallSite, LinkedFunction], ...]"
"""The calls that lead to a function, the nearest one first, each with the function that it runs."""

_DEEPEST: Final = 40
_MOST_STEPS: Final = 1_000
_Item = TypeVar("_Item")
_FIRST_MARK: Final = 0xE200
"""The first character that stands for an expression in the text of a command. They are for private use."""
_MOST_MARKS: Final = 1_000
_CONVERTING: Final = frozenset({"str", "quote", "fspath", "abspath", "strip", "as_posix"})
"""Functions and methods whose result is a word with the same meaning."""
_QUOTING: Final = frozenset({"join", "list2cmdline"})
"""Functions and methods that make a text of words, such as `" ".join`."""
_OF_MODULES: Final = frozenset({"os", "path", "shlex"})
_COPYING: Final = frozenset({"list", "tuple"})
_ADDING: Final = frozenset({"append", "extend"})
_OF_MAP: Final = 2
COMPUTED: Final = m.Opaque()
"""A word that a shell computes."""
_COMPUTED: Final = ("$(", "`", "$$", "$RANDOM")
"""Parts of a word that a shell replaces by a text that can differ between processes."""


class Command(Record, frozen=True):
    """One command, or one redirection of the output of commands.

    Attributes:
        scope: The environment in which it is read.
        words: The words; empty for a redirection.
        output: The file of a redirection.
        appends: Whether the redirection keeps the content of the file.
    """

    scope: Environment
    words: tuple[Word, ...] = ()
    output: Word = ()
    appends: bool = False


def text_of(word: Word) -> str:
    """Return the text of a word, or an empty string if an expression is a part of it."""
    return "".join(part for part in word if isinstance(part, str)) if is_literal(word) else ""


def is_literal(word: Sequence[Part]) -> bool:
    """Return whether a word is only literal text."""
    return all(isinstance(part, str) for part in word)


def is_unknown_list(word: Word) -> bool:
    """Return whether a word stands for an unknown number of words, as `*words` does."""
    return any(isinstance(part, Expression) and isinstance(part.expr, m.Starred) for part in word)


def begin_of(word: Word) -> str:
    """Return the literal text with which a word begins."""
    return word[0] if word and isinstance(word[0], str) else ""


class CommandWords:
    """Reads the words of commands."""

    def __init__(self, resolver: Resolver) -> None:
        """Initialize for a project."""
        self._resolver = resolver

    def commands(self, command: m.Expr, scope: Environment, calls: Calls = ()) -> tuple[Command, ...]:
        """Return the commands in an expression: a list of words, or a text for a shell.

        Args:
            command: The expression.
            scope: The environment in which it is evaluated.
            calls: The calls that lead to its function, and decide what its parameters are.
        """
        reader = _Reader(self._resolver, calls)
        words = reader.listed(command, scope, 0)
        if words is not None:
            return (Command(scope, tuple(words)),)
        return tuple(lines_of(reader.text(command, scope, 0, whole=True), scope))

    def word(self, expr: m.Expr, scope: Environment, calls: Calls = ()) -> Word:
        """Return the word that an expression is; the parameters are as in `commands`."""
        return () if expr == m.Constant(None) else tuple(_Reader(self._resolver, calls).text(expr, scope, 0))


class _Reader:
    """Reads one command, with the calls that lead to its function."""

    def __init__(self, resolver: Resolver, calls: Calls, steps: Iterator[int] | None = None) -> None:
        self._resolver, self._calls = resolver, calls
        self._steps = itertools.count() if steps is None else steps

    def listed(self, expr: m.Expr, scope: Environment, depth: int) -> list[Word] | None:
        """Return the words of a list, or None for other expressions. Unknown items are one starred word."""
        if self._gives_up(depth):
            return None
        match expr:
            case m.Sequence(items=items):
                return [word for item in items for word in self._item(item, scope, depth + 1)]
            case m.Binary(operator="+", left=left, right=right):
                words = self.listed(left, scope, depth + 1)
                if words is None:
                    return None
                return words + self._item(m.Starred(right), scope, depth + 1)
            case m.Conditional(body=body, orelse=orelse):
                words = self.listed(body, scope, depth + 1)
                return self.listed(orelse, scope, depth + 1) if words is None else words
            case m.Comprehension(generators=(m.Generator(iterable=iterable),)):
                return self.listed(iterable, scope, depth + 1)
            case m.Name(id=name):
                return self._of_binding(self._resolver.binding(name, scope), name, scope, depth + 1)
            case m.Call(function=function, arguments=arguments):
                return self._of_call(last_name(function), function, arguments, scope, depth + 1)
            case _:
                return None

    def _item(self, item: m.Expr, scope: Environment, depth: int) -> list[Word]:
        if not isinstance(item, m.Starred):
            return [tuple(self.text(item, scope, depth))]
        words = self.listed(item.value, scope, depth)
        return [(Expression(item, scope),)] if words is None else words

    def _of_call(
        self, name: str, function: m.Expr, arguments: tuple[m.Expr, ...], scope: Environment, depth: int
    ) -> list[Word] | None:
        if name in _COPYING and len(arguments) == 1:
            return self.listed(arguments[0], scope, depth)
        if name == "map" and len(arguments) == _OF_MAP:
            return self.listed(arguments[1], scope, depth)
        if name == "copy" and isinstance(function, m.Attribute):
            return self.listed(function.value, scope, depth)
        if name != "split":
            return None
        text = _subject(function, arguments)
        lines = [] if text is None else lines_of(self.text(text, scope, depth, whole=True), scope)
        return next((list(line.words) for line in lines), None)

    def _of_binding(
        self, binding: Binding | None, name: str, scope: Environment, depth: int
    ) -> list[Word] | None:
        match binding:
            case Expression():
                words = self.listed(binding.expr, binding.scope, depth)
                return None if words is None else words + self._added(name, binding, depth)
            case Argument():
                passed = self._passed(binding)
                if passed is not None:
                    return self._outside().listed(passed.expr, passed.scope, depth)
                return None if self._calls else [(Expression(m.Starred(m.Name(name)), scope),)]
            case Union(options=options) if not self._gives_up(depth):
                return _best(self._of_binding(option, name, scope, depth + 1) for option in options)
            case Looped(before=before):
                return self._of_binding(before, name, scope, depth)
            case _:
                return None

    def _added(self, name: str, binding: Expression, depth: int) -> list[Word]:
        """Return the words that methods add to the list of a variable."""
        function, words = binding.scope.function, list[Word]()
        if _ADDING.isdisjoint(function.facts.referenced_names):
            return words
        for call_site in self._resolver.interpretation.call_sites(function):
            called, arguments = call_site.call.function, call_site.call.arguments
            here = isinstance(called, m.Attribute) and called.name in _ADDING and called.value == m.Name(name)
            if here and len(arguments) == 1 and call_site.state.scope.get(name) is binding:
                item = arguments[0] if last_name(called) == "append" else m.Starred(arguments[0])
                words += self._item(item, call_site.state.scope, depth)
        return words

    def _outside(self) -> _Reader:
        """Return a reader for the function that makes the nearest call."""
        return _Reader(self._resolver, self._calls[1:], self._steps)

    def _gives_up(self, depth: int) -> bool:
        """Return whether a command is put together in too many steps."""
        return depth > _DEEPEST or next(self._steps) > _MOST_STEPS

    def _passed(self, argument: Argument) -> Expression | None:
        """Return what the nearest call passes for a parameter, or None if that is not known."""
        function, parameter = argument.function, argument.parameter
        if not self._calls or self._calls[0][1] is not function:
            return None
        call_site = self._calls[0][0]
        if parameter.kind == "args":
            rest = call_site.call.arguments[len(function.positional) :]
            return Expression(m.Sequence("tuple", rest), call_site.state.scope)
        value = bind(call_site.call, function).argument_for(parameter)
        return None if value in {None, m.Opaque()} else Expression(value, call_site.state.scope)

    def text(self, expr: m.Expr, scope: Environment, depth: int, *, whole: bool = False) -> list[Part]:
        """Return the parts of a text.

        Args:
            expr: The expression.
            scope: The environment in which it is evaluated.
            depth: The number of steps so far.
            whole: Whether the expression is a whole command, and not a part of one. Variables in a command
                stay as they are, unless their value is a literal or contains spaces.
        """
        parts = self._filled_in(expr)
        if self._gives_up(depth):
            return [Expression(expr, scope)]
        if parts is not None:
            return [each for part in parts for each in self.text(part, scope, depth + 1)]
        match expr:
            case m.Constant(value=value) if value is not None:
                return [str(value)]
            case m.Name(id=name):
                found = self._named(self._resolver.binding(name, scope), depth + 1, whole=whole)
                return [Expression(expr, scope)] if found is None else found
            case m.Call(
                function=m.Attribute(value=m.Constant(value=str(space)), name="join"), arguments=(items,)
            ):
                words = self.listed(items, scope, depth + 1)
                return [Expression(expr, scope)] if words is None else _joined(words, space)
            case m.Call(function=function, arguments=arguments) if last_name(function) in _CONVERTING:
                return self.text(_subject(function, arguments) or expr, scope, depth + 1, whole=whole)
            case m.Call(function=function, arguments=(items,)) if last_name(function) in _QUOTING:
                words = self.listed(items, scope, depth + 1)
                return [Expression(expr, scope)] if words is None else _joined(words, " ")
            case _:
                return [Expression(expr, scope)]

    @staticmethod
    def _filled_in(expr: m.Expr) -> Sequence[m.Expr] | None:
        """Return the parts of a concatenation or a filled template, or None for other expressions."""
        match expr:
            case m.Format(parts=parts):
                return parts
            case m.Binary(operator="+", left=left, right=right):
                return left, right
            case m.Binary(operator="%", left=m.Constant(value=str(template)), right=right):
                return filled_by_percent(template, right.items if isinstance(right, m.Sequence) else (right,))
            case m.Call(function=m.Attribute(value=template, name="format"), arguments=given, keywords=named):
                return filled_by_format(template, given, named)
            case _:
                return None

    def _named(self, binding: Binding | None, depth: int, *, whole: bool) -> list[Part] | None:
        """Return the parts of the value of a variable, or None if the variable stays as it is."""
        match binding:
            case Expression(expr=expr, scope=scope):
                parts = self.text(expr, scope, depth, whole=whole)
                spaced = any(isinstance(part, str) and " " in part for part in parts)
                literal = all(isinstance(part, str) for part in parts)
                return parts if spaced or literal or whole else None
            case Argument():
                passed = self._passed(binding)
                return (
                    None
                    if passed is None
                    else self._outside().text(passed.expr, passed.scope, depth, whole=whole)
                )
            case Union(options=options) if whole and not self._gives_up(depth):
                return _best(self._named(option, depth + 1, whole=True) for option in options)
            case _:
                return None


def _subject(function: m.Expr, arguments: tuple[m.Expr, ...]) -> m.Expr | None:
    """Return the text that a call changes: the object of a method, or the argument of a function."""
    is_method = isinstance(function, m.Attribute) and last_name(function.value) not in _OF_MODULES
    if is_method and isinstance(function, m.Attribute):
        return function.value
    return next(iter(arguments), None)


def _best(read: Iterable[list[_Item] | None]) -> list[_Item] | None:
    """Return the first words, or parts of a text, that begin with a literal; otherwise the first ones."""
    first: list[_Item] | None = None
    for items in read:
        if items and (isinstance(items[0], str) or (isinstance(items[0], tuple) and is_literal(items[0]))):
            return items
        first = first or items
    return first


def _joined(words: Iterable[Word], space: str) -> list[Part]:
    return [part for word in words for part in (space, *word)][1:]


def lines_of(parts: Sequence[Part], scope: Environment) -> Iterator[Command]:
    """Yield the commands in a text for a shell. Expressions are parts of words."""
    marks = {chr(_FIRST_MARK + index): part for index, part in enumerate(parts[:_MOST_MARKS])}
    text = "".join(part if isinstance(part, str) else mark for mark, part in marks.items())
    for line in command_lines(text):
        words = tuple(_marked(word, marks, scope) for word in line.words)
        yield Command(scope, words, _marked(line.output, marks, scope), line.appends)


def _marked(text: str, marks: dict[str, Part], scope: Environment) -> Word:
    """Return a word in which the marks are the expressions that they stand for."""
    if any(each in text for each in _COMPUTED):
        return (Expression(COMPUTED, scope),)
    parts: list[Part] = []
    for character in text:
        part = marks.get(character, character)
        if isinstance(part, str) and parts and isinstance(parts[-1], str):
            parts[-1] += part
        else:
            parts.append(part)
    return tuple(parts)
