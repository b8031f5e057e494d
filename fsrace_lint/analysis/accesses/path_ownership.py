"""Whether a path is private to a process, including the values that callers pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from fsrace_lint.analysis.callgraph.parameter_values import differs, value_passed
from fsrace_lint.analysis.paths.abstract_path import PARENT, PathVariable, handed_in
from fsrace_lint.analysis.paths.work_items import Share
from fsrace_lint.analysis.values.abstract_values import Argument, Expression
from fsrace_lint.engine.query import query
from fsrace_lint.program.modules import LinkedFunction
from fsrace_lint.syntax import model as m

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fsrace_lint.analysis.accesses.path_alternatives import PathAlternatives
    from fsrace_lint.analysis.callgraph.call_edges import CallEdge
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite, PathCondition
    from fsrace_lint.analysis.paths.abstract_path import AbstractPath
    from fsrace_lint.analysis.values.abstract_values import Binding, Environment

Conditions: TypeAlias = "Sequence[PathCondition]"

_DEEPEST: Final = 4


class PathOwnership:
    """Follows the paths of functions to the arguments of all callers."""

    def __init__(self, alternatives: PathAlternatives, *, by_default: bool = False) -> None:
        """Initialize for a project; nothing is computed yet.

        Args:
            alternatives: The alternatives of the paths.
            by_default: Whether settings have their defaults.
        """
        self.alternatives = alternatives
        self.entry_states = entry_states = alternatives.entry_states
        self.paths = entry_states.paths
        self._by_default = by_default

    def of(
        self,
        path: AbstractPath | None,
        function: LinkedFunction,
        depth: int = 0,
        *,
        is_folder: bool = False,
        conditions: Conditions = (),
    ) -> tuple[bool, bool]:
        """Return whether a path is private to a process, and whether that is certain.

        A directory that an unknown caller passes counts as shared if the file in it has a known name, in this
        function or in the one that it calls.

        Args:
            path: The path, in terms of `function`.
            function: The function.
            depth: The number of calls from the function to the path of the access.
            is_folder: Whether a callee names the file in this directory.
            conditions: The tests before the path is used.
        """
        if path is None:
            return False, False
        private = any(self._is_own(each, function, conditions) for each in path.variables())
        certain = path.certain and private == path.rank_dependent
        names_the_file = is_folder or path.names_its_last_part
        private = private or any(
            self._share(each, function, depth, conditions) is Share.ONE
            or self._is_own_folder(each, function, depth)
            for each in path.variables()
        )
        private = private or any(self._is_passed_within(each, function, depth) for each in path.variables())
        for symbol in handed_in(path.variables()):
            parameter = self.paths.parameter_of(symbol, function)
            private = private or self._is_given_to_object(symbol, function, depth)
            if parameter is None or private:
                certain = certain and names_the_file
                continue
            if not self.entry_states.callers(function):
                certain = certain and names_the_file
                continue
            private, passed_certain = self._passed(parameter, function, depth, names_the_file)
            certain = certain and passed_certain
        return private, certain

    def _is_own(self, symbol: PathVariable, function: LinkedFunction, conditions: Conditions) -> bool:
        """Return whether a variable itself differs between the ranks on every way."""
        if self._by_default and self.alternatives.is_private_by_default(symbol):
            return True
        return self.alternatives.are_private(symbol, function, conditions)

    def _is_given_to_object(self, symbol: PathVariable, function: LinkedFunction, depth: int) -> bool:
        """Return whether a variable is an argument with which an object is created, always a private one."""
        creator = symbol.key[1]
        if not isinstance(creator, LinkedFunction) or creator is function or creator.facts.name != "__init__":
            return False
        parameter = self.paths.parameter_of(symbol, creator)
        is_folder = False
        if parameter is None or not self.entry_states.callers(creator):
            return False
        return self._passed(parameter, creator, depth + 1, is_folder)[0]

    def _is_passed_within(self, symbol: PathVariable, function: LinkedFunction, depth: int) -> bool:
        """Return whether a variable is an attribute of a parameter, and always private: `kit.folder`."""
        parameter, name = self._attribute(symbol, function)
        is_folder = False
        if parameter is None or not self.entry_states.callers(function):
            return False
        return self._passed(parameter, function, depth, is_folder, name)[0]

    def _attribute(self, symbol: PathVariable, function: LinkedFunction) -> tuple[m.Parameter | None, str]:
        """Return the parameter that a variable is an attribute of, if any, and the name of the attribute."""
        if symbol.key[0] != "attribute":
            return None, ""
        whole, name = symbol.key[1:]
        only = whole[0] if isinstance(whole, tuple) and len(whole) == 1 else None
        if not isinstance(only, PathVariable) or not isinstance(name, str):
            return None, ""
        return self.paths.parameter_of(only, function), name

    def callers_by_ownership(
        self, path: AbstractPath | None, function: LinkedFunction, depth: int = 0
    ) -> tuple[bool, tuple[CallSite, ...]]:
        """Return whether some callers pass a private path, and the calls that pass another one.

        Args:
            path: The path, in terms of `function`.
            function: The function.
            depth: The number of calls from the function to the path of the access.
        """
        is_private = False
        others: list[CallSite] = []
        symbols = () if path is None else tuple(path.variables())
        for symbol in dict.fromkeys((*symbols, *handed_in(symbols))):
            parameter, name = self._attribute(symbol, function)
            parameter = self.paths.parameter_of(symbol, function) or parameter
            if parameter is not None and depth <= _DEEPEST:
                found, shared = self._split(parameter, function, depth, name)
                is_private |= found
                others += shared
        return is_private, tuple(others)

    @query(provisional=(False, ()))
    def _split(
        self, parameter: m.Parameter, function: LinkedFunction, depth: int, attribute: str
    ) -> tuple[bool, tuple[CallSite, ...]]:
        """Return whether some callers pass a private value, and the calls that pass another one.

        With an attribute, this is about that attribute of the arguments.
        """
        is_private = False
        others: list[CallSite] = []
        for value, call_site in self._given(parameter, function, attribute):
            state = call_site.state
            path, caller = (
                None if value is None else self.paths.normalize(value, state.scope),
                state.scope.function,
            )
            if self.of(path, caller, depth + 1, conditions=state.conditions)[0]:
                is_private = True
                continue
            above, shared = self.callers_by_ownership(path, caller, depth + 1)
            is_private |= above
            others += shared if above else (call_site,)
        return is_private, tuple(others)

    def _given(
        self, parameter: m.Parameter, function: LinkedFunction, attribute: str
    ) -> Iterator[tuple[m.Expr | None, CallSite]]:
        """Yield what callers pass for a parameter, or an attribute of it, and their calls.

        If no callers are known, they pass an object that the project creates.
        """
        edges = self.entry_states.callers(function)
        passed = ((value_passed(edge, parameter, function), edge.call_site) for edge in edges)
        objects = passed if edges or not attribute else self._objects(Argument(function, parameter))
        for value, call_site in objects:
            yield (m.Attribute(value, attribute) if value is not None and attribute else value), call_site

    def _objects(self, argument: Argument) -> Iterator[tuple[m.Expr, CallSite]]:
        """Yield the calls that create objects of the class that a parameter is declared with."""
        resolver, flows = self.entry_states.flows.resolver, self.entry_states.flows
        class_ = resolver.class_of(resolver.of_binding(argument))
        calling = () if class_ is None else self.entry_states.relevance.calling(class_.facts.name)
        for call_site in (each for function in calling for each in flows.call_sites(function)):
            if resolver.symbol(call_site.call.function, call_site.state.scope) == class_:
                yield call_site.call, call_site

    def _is_own_folder(self, symbol: PathVariable, function: LinkedFunction, depth: int) -> bool:
        """Return whether a variable is the private directory of a file that callers pass."""
        inner = symbol.key[1] if symbol.key[0] == PARENT else ()
        only = inner[0] if isinstance(inner, tuple) and len(inner) == 1 else ""
        parameter = self.paths.parameter_of(only, function) if isinstance(only, PathVariable) else None
        if parameter is None or depth > _DEEPEST:
            return False
        edges = self.entry_states.callers(function)
        return bool(edges) and all(
            self._is_in_own_folder(value_passed(edge, parameter, function), edge.call_site.state.scope, depth)
            for edge in edges
        )

    def _is_in_own_folder(self, file: m.Expr | None, scope: Environment, depth: int) -> bool:
        """Return whether the directory of a file is private to the process, not only the file."""
        folder = None if file is None else self.paths.folder(file, scope)
        if folder is None or not folder.is_some_parent:
            return self.of(folder, scope.function, depth + 1)[0]
        folders = [self.paths.folder(made.expr, made.scope) for made in self._made_by(folder)]
        own = (each is not None and each.rank_dependent and not each.is_some_parent for each in folders)
        return bool(folders) and all(own)

    def _made_by(self, folder: AbstractPath) -> tuple[Expression, ...]:
        """Return the return values of the function that creates the name of the file in a directory."""
        inner = next(iter(folder.variables())).key[1]
        made = (
            inner[0].definition if isinstance(inner, tuple) and isinstance(inner[0], PathVariable) else None
        )
        if not isinstance(made, Expression):
            return ()
        return self.entry_states.flows.call_results(made.expr, made.scope)

    def share(self, path: AbstractPath | None, function: LinkedFunction, conditions: Conditions) -> Share:
        """Return which processes have the same path, as far as the work is divided among them."""
        found = Share.ALL
        for symbol in () if path is None else path.variables():
            parameter = self.paths.parameter_of(symbol, function)
            passed = Share.ALL if parameter is None else self._share_passed(parameter, function, 0)
            found = max(found, passed, self._share(symbol, function, 0, conditions))
        return found

    def share_of_call(self, call_site: CallSite) -> Share:
        """Return which processes make a call for the same item of the work."""
        made_of = Expression(call_site.call, call_site.state.scope)
        return self._share_of(made_of, call_site.function, 0, call_site.state.conditions)

    def _share(
        self, symbol: PathVariable, function: LinkedFunction, depth: int, conditions: Conditions
    ) -> Share:
        """Return which processes have the same text, by the work items that it is derived from."""
        if symbol.definition is None:
            return Share.ALL
        return self._share_of(symbol.definition, function, depth, conditions)

    def _share_of(
        self, made_of: Binding, function: LinkedFunction, depth: int, conditions: Conditions
    ) -> Share:
        items = self.paths.work_items
        origins = items.origins(made_of, function, items.dealt_out(conditions))
        shares = (
            each if isinstance(each, Share) else self._share_passed(each, function, depth) for each in origins
        )
        return max(shares, default=Share.ALL)

    @query(provisional=Share.ALL)
    def _share_passed(self, parameter: m.Parameter, function: LinkedFunction, depth: int) -> Share:
        """Return which processes have the same value for a parameter: the weakest of all callers.

        One process makes the other calls of a function that it also starts workers for.
        """
        if is_index(parameter, function):
            return Share.FEW
        edges = self.entry_states.callers(function) if depth <= _DEEPEST else ()
        if not edges:
            return self.paths.work_items.share_by_name(parameter.name)
        found = self._weakest(parameter, function, edges, depth)
        started = tuple(edge for edge in edges if edge.starts_several)
        if found is Share.ALL and started:
            return min(Share.FEW, self._weakest(parameter, function, started, depth))
        return found

    def _weakest(
        self, parameter: m.Parameter, function: LinkedFunction, edges: Sequence[CallEdge], depth: int
    ) -> Share:
        found = Share.ONE
        for edge in edges:
            if differs(edge, parameter, function):
                continue
            value, state = value_passed(edge, parameter, function), edge.call_site.state
            if value is None:
                return Share.ALL
            made_of, caller = Expression(value, state.scope), state.scope.function
            found = min(found, self._share_of(made_of, caller, depth + 1, state.conditions))
        return found

    @query(provisional=(False, False))
    def _passed(
        self,
        parameter: m.Parameter,
        function: LinkedFunction,
        depth: int,
        is_folder: bool,  # noqa: FBT001  # a part of the key
        attribute: str = "",
    ) -> tuple[bool, bool]:
        """Join the arguments of all callers for a parameter: private only if it is private for all.

        With an attribute, this is about that attribute of the arguments.
        """
        answers = []
        for edge in self.entry_states.callers(function):
            if depth > _DEEPEST:
                return False, False
            if not attribute and differs(edge, parameter, function):
                answers.append((True, True))
                continue
            value = value_passed(edge, parameter, function)
            if value is None and edge.passed_as_callback:
                return False, is_folder
            if value is None:
                answers.append((False, parameter.default is not None))
                continue
            scope, conditions = edge.call_site.state.scope, edge.call_site.state.conditions
            path = self.paths.normalize(m.Attribute(value, attribute) if attribute else value, scope)
            answers.append(
                self.of(path, scope.function, depth + 1, is_folder=is_folder, conditions=conditions)
            )
        return all(private for private, _ in answers), all(certain for _, certain in answers)


def is_index(parameter: m.Parameter, function: LinkedFunction) -> bool:
    """Return whether a parameter is the index of a sample of a data set, and not the key of a mapping."""
    class_ = function.owner
    if class_ is None or function.facts.name != "__getitem__" or class_.method("__setitem__") is not None:
        return False
    return parameter in function.facts.parameters[1:]
