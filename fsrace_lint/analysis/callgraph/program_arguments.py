"""Decides which calls a program can reach if a command starts it with some arguments."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from fsrace_lint.analysis.callgraph.argument_parsers import (
    DefinedFlag,
    Described,
    ParsedWords,
    allowed_values,
)
from fsrace_lint.analysis.callgraph.attribute_setters import may_set_any, sets
from fsrace_lint.analysis.callgraph.parameter_values import value_passed
from fsrace_lint.analysis.dataflow.loops import calls_in
from fsrace_lint.analysis.values.abstract_values import Argument, Environment, Expression, Union, UnpackedPart
from fsrace_lint.analysis.values.call_arguments import library_argument
from fsrace_lint.analysis.values.constants import outcome
from fsrace_lint.analysis.values.trace_back import sides_of
from fsrace_lint.engine.query import lazy, query
from fsrace_lint.program.modules import LinkedFunction, Module
from fsrace_lint.program.symbols import as_function, qualified_name
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name
from fsrace_lint.syntax.traversal import bound_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fsrace_lint.analysis.callgraph.entry_states import EntryStates
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.values.abstract_values import Binding
    from fsrace_lint.analysis.values.constants import Values
    from fsrace_lint.catalog.entries import ArgumentParser

_ADDING: Final = "add_argument"
_CHOICES: Final = "choices"
_COMMAND_LINE: Final = "sys.argv"
Item = TypeVar("Item")


class _ParserCall(NamedTuple):
    """A call that describes or parses arguments, and its file."""

    call: m.Call
    module: Module


class ProgramArguments:
    """Evaluates conditions on the arguments of programs.

    Only what is certain counts. The code follows a value to the call that parses the arguments. It reads how
    the arguments are described in the file of that call, and in the files that it imports.
    """

    def __init__(self, entry_states: EntryStates) -> None:
        """Initialize for a project; nothing is computed yet."""
        self.entry_states = entry_states
        self.flows = entry_states.flows
        self.catalog = entry_states.catalog

    def may_reach(self, call_site: CallSite, words: tuple[str, ...]) -> bool:
        """Return whether a call can be reached in its function if the program has some arguments.

        Args:
            call_site: The call.
            words: The arguments. A word that is not known is empty.
        """
        for each in call_site.state.conditions:
            values_of = functools.partial(self._values, scope=each.scope, words=words)
            if each.attempt is None and outcome(each.test, values_of) is (not each.truth):
                return False
        commands = self._commands_of(call_site)
        names = [name for each in commands for name in Described("add-command", each.call).names]
        return not names or self._parsed(words, _modules(commands)).may_run(names)

    def is_restricted(self, name: str) -> bool:
        """Return whether code of the project names all values of an argument of this name."""
        return name in self._restricted

    @lazy
    def _restricted(self) -> frozenset[object]:
        functions = self.entry_states.relevance.using([_ADDING])
        calls = (call for each in functions for call in calls_in(each.facts.body))
        added = (Described("add", call) for call in calls if last_name(call.function) == _ADDING)
        return frozenset(each.destination for each in added if each.passes(_CHOICES))

    @query(provisional=())
    def allowed(self, argument: m.Attribute, scope: Environment) -> Values:
        """Return the values of an attribute of the parsed arguments, or nothing if it can have any value.

        Only what a parser describes counts, and only if no other code sets the attribute.
        """
        modules = self._parsers(argument.value, scope)
        name = argument.name
        if not modules or any(sets(each, name) for each in self.entry_states.relevance.using([name])):
            return ()
        near = {*modules, scope.function.module, *self._imported(modules)}
        if any(may_set_any(function, name) for module in near for function in module.functions):
            return ()
        return allowed_values(self._described(modules), name)

    def _values(self, expr: m.Expr, scope: Environment, words: tuple[str, ...]) -> Values:
        """Return the values that an expression can have, if it depends on the arguments of the program."""
        origins = self._origins(expr, scope)
        if all(isinstance(origin.expr, m.Constant) for origin in origins):
            return ()
        return _all(self._value(origin, words) for origin in origins)

    def _value(self, origin: Expression, words: tuple[str, ...]) -> Values:
        match origin.expr:
            case m.Constant(value=value):
                return (value,)
            case m.Subscript(value=value, index=m.Constant(value=int(place))) if place > 0:
                known = words[:place] if self._is_command_line(value, origin.scope) else ()
                return known[place - 1 :] if all(known) else ()
            case m.Attribute(value=namespace, name=name):
                modules = self._parsers(namespace, origin.scope)
                is_set = any(_sets(module, name) for module in modules)
                return () if is_set else self._parsed(words, modules).values(name)
            case _:
                return ()

    def _parsers(self, namespace: m.Expr, scope: Environment) -> frozenset[Module]:
        """Return the files that parse the arguments in an object, or use the options of the whole program."""
        origins = self._origins(namespace, scope)
        names = [self.flows.resolver.qualify(origin.expr, origin.scope) for origin in origins]
        entries = [name and self.catalog.exact("argument-parser", name) for name in names]
        if entries and all(entry and entry.does == "flags" for entry in entries):
            return frozenset({scope.function.module})
        return _modules(self._calls("parse", namespace, scope))

    def _is_command_line(self, expr: m.Expr, scope: Environment) -> bool:
        return self.flows.resolver.qualify(expr, scope) == _COMMAND_LINE

    @query(provisional=())
    def _origins(self, expr: m.Expr, scope: Environment) -> tuple[Expression, ...]:
        """Return the expressions that a value can come from, or nothing if they are not known."""
        match expr:
            case m.Name() | m.Attribute():
                bound = self.entry_states.rank_tests.known(expr, scope)
                return (Expression(expr, scope),) if bound is None else self._of_binding(bound)
            case m.Conditional():
                values: tuple[Expression, ...] = sides_of(Expression(expr, scope))
            case _:
                values = self.flows.call_results(expr, scope)
        if not values:
            return (Expression(expr, scope),)
        return _all(self._origins(value.expr, value.scope) for value in values)

    def _of_binding(self, bound: Binding) -> tuple[Expression, ...]:
        match bound:
            case (
                Expression(expr=expr, scope=scope)
                | UnpackedPart(source=Expression(expr=m.Call() as expr, scope=scope), index=0)
            ):
                return self._origins(expr, scope)
            case Union(options=options):
                return _all(map(self._of_binding, options))
            case Argument():
                return _all(self._passed(bound))
            case _:
                return ()

    def _passed(self, argument: Argument) -> Iterator[tuple[Expression, ...]]:
        """Yield the origins of the values that callers pass for a parameter, or its default."""
        function, parameter = argument.function, argument.parameter
        default = m.Opaque() if parameter.default is None else parameter.default
        callers = self.entry_states.callers(function)
        for edge in callers:
            value = value_passed(edge, parameter, function) or default
            yield self._origins(value, edge.call_site.state.scope)
        if not callers:
            yield self._origins(default, Environment(function, {}))

    def _calls(self, does: str, expr: m.Expr, scope: Environment) -> tuple[_ParserCall, ...]:
        """Return the calls that an expression comes from, if all of them do something with arguments."""
        return _all(self._call(does, each.expr, each.scope) for each in self._origins(expr, scope))

    def _call(self, does: str, expr: m.Expr, scope: Environment) -> tuple[_ParserCall, ...]:
        """Return a call that does something with arguments, or nothing for another expression."""
        entry = self._entry(expr, scope) if isinstance(expr, m.Call) else None
        if not isinstance(expr, m.Call) or entry is None or entry.does != does:
            return ()
        is_usual = does != "parse" or self._parses_command_line(expr, scope, entry)
        return (_ParserCall(expr, scope.function.module),) if is_usual else ()

    def _entry(self, call: m.Call, scope: Environment) -> ArgumentParser | None:
        """Return the catalog entry of a call of a library that describes or parses arguments."""
        called = self.flows.resolver.symbol(call.function, scope)
        if as_function(called) is not None:
            return None
        name = qualified_name(called) or f"*.{last_name(call.function)}"
        found: ArgumentParser | None = self.catalog.find("argument-parser", name)
        return found

    def _parses_command_line(self, call: m.Call, scope: Environment, entry: ArgumentParser) -> bool:
        """Return whether a call parses the words of the command, into a new object."""
        words = library_argument(call, entry.words)
        count = len(call.arguments) + len(call.keywords)
        return count == (words is not None) and (words is None or self._is_whole(words, scope))

    def _is_whole(self, words: m.Expr, scope: Environment) -> bool:
        """Return whether words to parse are those of the command line: `None`, or all but the first one."""
        match words:
            case m.Subscript(value=value, index=m.Opaque(parts=(m.Constant(value=1),))):
                return self._is_command_line(value, scope)
            case m.Name():
                origins = [each for each in self._origins(words, scope) if each.expr != words]
                return bool(origins) and all(self._is_whole(each.expr, each.scope) for each in origins)
            case _:
                return words == m.Constant(None)

    @query
    def _parsed(self, words: tuple[str, ...], modules: frozenset[Module]) -> ParsedWords:
        return ParsedWords.of(words, self._described(modules))

    @query
    def _described(self, modules: frozenset[Module]) -> tuple[Described, ...]:
        """Return the calls that describe arguments in some files, and in the files that these import."""
        found = dict.fromkeys((*sorted(modules, key=_position), *self._imported(modules)))
        functions = (function for module in found for function in module.functions)
        return tuple(each for function in functions for each in self._described_in(function))

    def _imported(self, modules: Iterable[Module]) -> Iterator[Module]:
        """Yield the files that some files import, also if they import only a function."""
        for module in sorted(modules, key=_position):
            for name in module.imports:
                imported = self.flows.resolver.member(module, name, 0)
                if isinstance(imported, (Module, LinkedFunction)):
                    yield imported if isinstance(imported, Module) else imported.module

    def _described_in(self, function: LinkedFunction) -> Iterator[Described]:
        if not self.entry_states.relevance.may_use(function, self.catalog.last_names["argument-parser"]):
            return
        is_first = True
        for call_site in self.flows.call_sites(function):
            entry = self._entry(call_site.call, call_site.state.scope)
            if entry is not None:
                choices = self._choices(call_site)
                found = (
                    DefinedFlag(entry.does, call_site.call, value=entry.value)
                    if entry.does == "define"
                    else Described(entry.does, call_site.call, is_first, choices)
                )
                yield found
                is_positional = entry.does == "add" and not found.spellings
                is_first = is_first and not is_positional and entry.does != "add-commands"

    def _choices(self, call_site: CallSite) -> Values:
        """Return the constants in the choices of an argument, also if a variable holds them."""
        listed = library_argument(call_site.call, f":{_CHOICES}")
        if isinstance(listed, (m.Name, m.Attribute)):
            bound = self.entry_states.rank_tests.known(listed, call_site.state.scope)
            listed = bound.expr if isinstance(bound, Expression) else None
        items = listed.items if isinstance(listed, m.Sequence) else ()
        constants = tuple(each.value for each in items if isinstance(each, m.Constant))
        return constants if len(constants) == len(items) else ()

    def _commands_of(self, call_site: CallSite) -> tuple[_ParserCall, ...]:
        """Return the calls that add the subcommands to which `set_defaults(func=run)` belongs."""
        called, scope = call_site.call.function, call_site.state.scope
        if not isinstance(called, m.Attribute) or not self._call("set-defaults", call_site.call, scope):
            return ()
        return self._calls("add-command", called.value, scope)


def _position(module: Module) -> int:
    return module.position


def _modules(calls: Iterable[_ParserCall]) -> frozenset[Module]:
    return frozenset(each.module for each in calls)


def _sets(module: Module, name: str) -> bool:
    """Return whether code of a file may assign to an attribute of an object other than `self`."""
    if any(may_set_any(function, name) for function in module.functions):
        return True
    bound = (each for function in module.functions for each in bound_in(function.facts))
    return any(each.endswith(f".{name}") and each != f"self.{name}" for each in bound)


def _all(parts: Iterable[tuple[Item, ...]]) -> tuple[Item, ...]:
    """Return the items of all parts, or nothing if a part is empty."""
    found: list[Item] = []
    for part in parts:
        if not part:
            return ()
        found += part
    return tuple(found)
