"""Normal forms of path expressions, and whether a path is private to a process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from fsrace_lint.analysis.dataflow.infeasible_paths import feasible_exits
from fsrace_lint.analysis.paths.abstract_path import (
    BOUND,
    NO_ORIGINS,
    PARENT,
    RESULT,
    AbstractPath,
    PathVariable,
    all_certain,
    handed_in,
    is_new,
    renamed,
    split_last,
    variables_of,
)
from fsrace_lint.analysis.paths.format_strings import filled_by_format, filled_by_percent
from fsrace_lint.analysis.paths.loop_ranges import LoopRanges
from fsrace_lint.analysis.paths.node_local import NodeLocal
from fsrace_lint.analysis.paths.path_expressions import (
    JOINING,
    SAME_PATH,
    counts,
    is_path_like,
    keeps_the_path,
    part_of_split,
)
from fsrace_lint.analysis.paths.path_variables import (
    OF_LAST,
    VariableFactory,
    are_assumed,
    are_plain,
    origins_of,
)
from fsrace_lint.analysis.paths.rank_dependence import is_given
from fsrace_lint.analysis.paths.replicated_calls import ReplicatedCalls
from fsrace_lint.analysis.paths.shared_ways import SharedWays
from fsrace_lint.analysis.paths.work_items import WorkItems
from fsrace_lint.analysis.values.abstract_values import (
    Argument,
    ContextResult,
    Expression,
    IterationElement,
    Union,
    Unknown,
    UnpackedPart,
)
from fsrace_lint.analysis.values.assignment import is_none
from fsrace_lint.analysis.values.call_arguments import bind, library_argument
from fsrace_lint.analysis.values.entered_values import entered_call
from fsrace_lint.engine.depth_budget import DepthBudget
from fsrace_lint.engine.query import query, recursive_query
from fsrace_lint.program.symbols import ExternalName, Instance, qualified_name
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.identity import Identity
from fsrace_lint.syntax.traversal import target_name
from fsrace_lint.syntax.unparse import spell

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fsrace_lint.analysis.paths.abstract_path import Piece
    from fsrace_lint.analysis.paths.rank_dependence import RankDependence
    from fsrace_lint.analysis.values.abstract_values import Binding, Environment
    from fsrace_lint.catalog.entries import Private
    from fsrace_lint.program.modules import LinkedFunction

_GivenFragments: TypeAlias = "tuple[m.Expr, tuple[Piece, ...] | None]"

_DEEPEST: Final = 24


class PathNormalizer:
    """Normalizes path expressions in the environments of a project."""

    def __init__(self, rank_dependence: RankDependence) -> None:
        """Initialize with the rank dependence of a project."""
        self.rank_dependence = rank_dependence
        self.rank_tests = rank_dependence.rank_tests
        self.resolver = rank_dependence.resolver
        self.catalog = rank_dependence.catalog
        self.results = ReplicatedCalls(self.resolver)
        self.node_local = NodeLocal(self.rank_tests)
        self.work_items = WorkItems(self.rank_tests)
        self.shared_ways = SharedWays(rank_dependence)
        self._variables = VariableFactory(rank_dependence, self.node_local, self.work_items)
        self._derived, self._opaque = self._variables.derived, self._variables.opaque
        self._loop_ranges = LoopRanges(rank_dependence)
        self.budget = DepthBudget(_DEEPEST, self.rank_tests.budget.cycles)

    def normalize(self, expr: m.Expr, scope: Environment) -> AbstractPath | None:
        """Return the normal form of a path.

        Args:
            expr: The expression.
            scope: The environment in which it is evaluated.

        Returns:
            The normal form, or None if unknown. Equal normal forms mean equal paths. Two unknown paths are
            never equal.
        """
        return self._normalized(Identity(expr), scope)

    @query(keep=1_000)
    def _normalized(self, expr: Identity[m.Expr], scope: Environment) -> AbstractPath | None:
        pieces = self.pieces(expr.of, scope, 0)
        return None if pieces is None else AbstractPath.of(pieces)

    def pieces(self, expr: m.Expr, scope: Environment, depth: int) -> tuple[Piece, ...] | None:  # noqa: C901  # one case per kind
        """Return the pieces of a path, or None if it is unknown or nested too deeply."""
        if self.budget.exhausted(depth):
            return None
        own = self._variables.process_or_node(expr, scope)
        if own is not None:
            return (own,)
        match expr:
            case m.Constant(value=str() as text):
                return (text,)
            case m.Constant(value=value) if value is not None:
                return (str(value),)
            case m.Name() | m.Attribute():
                return self._variable(expr, scope, depth + 1)
            case m.Format(parts=parts):
                return self._concatenated(parts, scope, depth + 1)
            case m.Binary(operator=operator, left=left, right=right) if counts(operator, right):
                sides = (self.pieces(left, scope, depth + 1), self.pieces(right, scope, depth + 1))
                return None if None in sides else (self._derived("number", (operator, *sides), expr, scope),)
            case m.Binary(operator="+", left=left, right=right):
                return self._concatenated((left, right), scope, depth + 1)
            case m.Binary(operator="/", left=left, right=right):
                return self._joined((left, right), scope, depth + 1)
            case m.Binary(operator="%", left=m.Constant(value=str() as template), right=values):
                return self._percent(template, values, scope, depth + 1)
            case m.Call():
                return self._call(Identity(expr), scope, depth + 1)
            case m.Walrus(value=value):
                return self.pieces(value, scope, depth + 1)
            case m.Conditional(body=body, orelse=orelse):
                sides = (self.pieces(body, scope, depth + 1), self.pieces(orelse, scope, depth + 1))
                return (self._derived("either", (Identity(expr), scope, *sides), expr, scope),)
            case m.Boolean() if is_given(expr):
                return (
                    PathVariable(
                        ("or", Identity(expr), scope),
                        spell(expr),
                        self.rank_dependence.origins(expr, scope),
                        definition=Expression(expr, scope),
                    ),
                )
            case m.Subscript(value=m.Call() as call, index=m.Constant(value=key)) if (
                part := self._part_of_split(call, key, expr, scope, depth + 1)
            ):
                return part
            case m.Subscript(value=value, index=m.Constant(value=key)):
                base = self.pieces(value, scope, depth + 1)
                return None if base is None else (self._derived("item", (base, repr(key)), expr, scope),)
            case m.Subscript(value=m.Call() as whole, index=m.Opaque(parts=bounds)):
                pieces = self._concatenated((whole, *bounds), scope, depth + 1)
                return (
                    None
                    if pieces is None
                    else (self._derived("slice", (Identity(expr), pieces), expr, scope),)
                )
            case m.Opaque(parts=parts) | m.Sequence(items=parts) if parts:
                pieces = self._concatenated(parts, scope, depth + 1)
                known = pieces is not None
                return (self._derived("opaque", (Identity(expr), pieces), expr, scope),) if known else None
            case _:
                return (self._opaque(expr, scope),)

    def _concatenated(
        self, parts: Iterable[m.Expr], scope: Environment, depth: int
    ) -> tuple[Piece, ...] | None:
        pieces: list[Piece] = []
        for part in parts:
            found = self.pieces(part, scope, depth)
            if found is None:
                return None
            pieces.extend(found)
        return tuple(pieces)

    def _joined(self, parts: Iterable[m.Expr], scope: Environment, depth: int) -> tuple[Piece, ...] | None:
        joined: list[Piece] = []
        for part in parts:
            found = self.pieces(part, scope, depth)
            if found is None:
                return None
            written = [piece for piece in found if piece != ""]
            if not joined or (written and isinstance(written[0], str) and written[0].startswith("/")):
                joined = written
            else:
                joined += ["/", *written]
        return tuple(joined)

    @recursive_query(beyond=None)
    def _call(self, of: Identity[m.Call], scope: Environment, depth: int) -> tuple[Piece, ...] | None:
        call = of.of
        entity = self.resolver.symbol(call.function, scope)
        name = qualified_name(entity) or ""
        if name in JOINING:
            return self._joined(call.arguments, scope, depth)
        if name in SAME_PATH and call.arguments:
            return self.pieces(call.arguments[0], scope, depth)
        if isinstance(call.function, m.Attribute):
            receiver = call.function.value
            if name in SAME_PATH:
                return self.pieces(receiver, scope, depth)
            if name == "pathlib.Path.joinpath":
                return self._joined((receiver, *call.arguments), scope, depth)
            if call.function.name == "format":
                return self._formatted(call, receiver, scope, depth)
            if keeps_the_path(call.function.name, call.arguments):
                return self.pieces(receiver, scope, depth)
        if name == "os.path.dirname" and call.arguments:
            return self._parent(call.arguments[0], call, scope, depth)
        if name == "os.path.basename" and call.arguments:
            last = self._last(call.arguments[0], scope, depth)
            return self._result(call, scope, depth) if last is None else last
        own = self.catalog.find("private", name)
        if own is not None and own.scope == "node":
            return (PathVariable(("node", name), spell(call), local=True),)
        if own is not None and not self.rank_dependence.is_day(call, scope):
            return self._own(own, call, scope, depth)
        return self._result(call, scope, depth)

    def _own(self, own: Private, call: m.Call, scope: Environment, depth: int) -> tuple[Piece, ...]:
        """Return a name that is private to a process.

        A newly created file or directory is in the directory that the call names.
        """
        if own.is_day:
            return (PathVariable(("day",), spell(call), is_plain=True),)
        folder = library_argument(call, own.folder)
        is_local = own.folder != "" and folder in {None, m.Constant(None)}
        name = self._variables.own(own, call, scope, local=is_local)
        before = None if folder is None or is_local else self.pieces(folder, scope, depth)
        return (name,) if before is None else (*before, "/", name)

    def _result(self, call: m.Call, scope: Environment, depth: int) -> tuple[Piece, ...] | None:
        origins = self.rank_dependence.origins(call, scope)
        function = self.resolver.callee(call, scope)
        if self.rank_dependence.sends(call):
            return (PathVariable(("call", Identity(call), scope), spell(call), origins),)
        is_pure = function is None and self.results.is_pure(call, scope)
        known = self._given(call, scope, depth) if is_pure or function is not None else ()
        forms = tuple(form for _, form in known)
        certain = is_pure and all(map(all_certain, forms))
        symbols = variables_of(forms) if is_pure and None not in forms else []
        if is_pure and None not in forms:  # such as the rank in a directory, for the name of a file in it
            origins = (origins & origins_of(symbols)) or NO_ORIGINS
        key: tuple[object, ...] = ("call", Identity(call), scope)
        found_there: tuple[object, ...] = ()
        returned = () if function is None else self._returned(function, call, scope, depth)
        if function is not None:
            certain = self._is_followed(function, call, returned, known)
            if not certain and all(map(all_certain, forms)) and self.results.follow(function):
                certain, found_there = True, key
        if certain and None not in forms:
            names = tuple(keyword.name for keyword in call.keywords)
            made_by = function or self.resolver.qualify(call.function, scope)
            object_ = 1 if function is not None and isinstance(call.function, m.Attribute) else 0
            apart = (found_there, forms[:object_])
            key = (RESULT, made_by, spell(call.function), names, apart, *forms[object_:])
        text, made_of = spell(call), Expression(call, scope)
        return (
            PathVariable(
                key,
                text,
                origins,
                certain,
                is_on_node=bool(returned) and all(map(self._is_local, returned)),
                definition=made_of,
                is_plain=are_plain(symbols, text),
                is_assumed=are_assumed(symbols),
            ),
        )

    def _given(self, call: m.Call, scope: Environment, depth: int) -> tuple[_GivenFragments, ...]:
        """Return the receiver and the arguments of a call, each with its normal form."""
        receiver = (call.function.value,) if isinstance(call.function, m.Attribute) else ()
        values = (*receiver, *call.arguments, *(keyword.value for keyword in call.keywords))
        return tuple((value, self.pieces(value, scope, depth)) for value in values)

    def _returned(
        self, function: LinkedFunction, call: m.Call, scope: Environment, depth: int
    ) -> tuple[tuple[Piece, ...] | None, ...]:
        """Return the normal forms of what a call of a function can return."""
        is_cut = self.budget.exhausted(depth + 1)
        exits = () if is_cut else self.rank_dependence.interpretation.result_points(function)
        return tuple(
            None if way.value is None else self.pieces(way.value, way.state.scope, depth + 2)
            for way in feasible_exits(call, scope, function, exits)
        )

    def _is_local(self, pieces: tuple[Piece, ...] | None) -> bool:
        return pieces is not None and self.node_local.holds(AbstractPath.of(pieces))

    def _is_followed(
        self,
        function: LinkedFunction,
        call: m.Call,
        returned: tuple[tuple[Piece, ...] | None, ...],
        known: tuple[_GivenFragments, ...],
    ) -> bool:
        """Return whether all results of a function are certain, and the arguments that determine them."""
        forms = list(returned)
        handed = handed_in(piece for pieces in forms for piece in pieces or ())
        for parameter in filter(None, (self.parameter_of(symbol, function) for symbol in handed)):
            value = bind(call, function).argument_for(parameter)
            if value is not None:
                forms.append(next((form for other, form in known if other is value), None))
        return bool(forms) and all(map(all_certain, forms))

    def _percent(
        self, template: str, values: m.Expr, scope: Environment, depth: int
    ) -> tuple[Piece, ...] | None:
        items = values.items if isinstance(values, m.Sequence) else (values,)
        filled = filled_by_percent(template, items)
        if filled is None:
            return (
                self._derived("percent", (template, self._concatenated(items, scope, depth)), values, scope),
            )
        return self._concatenated(filled, scope, depth)

    def _formatted(
        self, call: m.Call, template: m.Expr, scope: Environment, depth: int
    ) -> tuple[Piece, ...] | None:
        filled = filled_by_format(template, call.arguments, call.keywords)
        if filled is None:
            return self._result(call, scope, depth)
        return self._concatenated(filled, scope, depth)

    def _parent(
        self, inner: m.Expr, whole: m.Expr, scope: Environment, depth: int
    ) -> tuple[Piece, ...] | None:
        pieces = self.pieces(inner, scope, depth)
        if pieces is None:
            return None
        parent, _ = split_last(pieces)
        return (self._derived(PARENT, (pieces,), whole, scope),) if parent is None else parent

    def _last(self, inner: m.Expr, scope: Environment, depth: int) -> tuple[Piece, ...] | None:
        """Return the pieces of the last component of a path, or None if unknown."""
        pieces = self.pieces(inner, scope, depth)
        return None if pieces is None else split_last(pieces)[1]

    def _part_of_split(
        self, call: m.Call, index: object, whole: m.Expr, scope: Environment, depth: int
    ) -> tuple[Piece, ...] | None:
        """Return the pieces of an item of `os.path.split(path)` or `path.split("/")`, or None if unknown."""
        found = part_of_split(self.resolver.qualify(call.function, scope) or "", call, index)
        if found is None:
            return None
        part, path = found
        if part == "name":
            return self._last(path, scope, depth)
        return self._parent(path, whole, scope, depth)

    def folder(self, expr: m.Expr, scope: Environment) -> AbstractPath | None:
        """Return the normal form of the parent directory of a path, or None if unknown."""
        pieces = self._parent(expr, expr, scope, 0)
        return None if pieces is None else AbstractPath.of(pieces)

    def _variable(
        self, expr: m.Name | m.Attribute, scope: Environment, depth: int
    ) -> tuple[Piece, ...] | None:
        if self.rank_dependence.is_sent(expr, scope.function):
            return (PathVariable(("sent", scope.function, spell(expr)), spell(expr)),)
        binding = self.rank_tests.known(expr, scope)
        if binding is not None and not self._is_setting(expr, binding, scope):
            return self._bound(binding, expr, depth)
        if isinstance(expr, m.Attribute):
            own = self.rank_dependence.of_property(expr, scope)
            if own:
                made_of = Expression(expr, scope)
                return (PathVariable(("property", spell(expr)), spell(expr), own, definition=made_of),)
            owner = self.resolver.symbol(expr.value, scope)
            if expr.name == "parent" and owner in {Instance(ExternalName("pathlib.Path")), None}:
                return self._parent(expr.value, expr, scope, depth)
            last = self._last(expr.value, scope, depth) if expr.name in OF_LAST else None
            if last is not None and owner == Instance(ExternalName("pathlib.Path")):
                return last if expr.name == "name" else (self._derived(expr.name, (last,), expr, scope),)
            base = self.pieces(expr.value, scope, depth)
            if base is None or (expr.name == "name" and is_new(base)):
                return base
            return (self._derived("attribute", (base, expr.name), expr, scope),)
        name = qualified_name(self.resolver.symbol(expr, scope)) or expr.id
        divided = self.work_items.is_data(expr.id)
        return (PathVariable(("name", name), expr.id, is_replicated=not divided, is_work_item=divided),)

    def _is_setting(self, expr: m.Name | m.Attribute, binding: Binding, scope: Environment) -> bool:
        """Return whether an attribute is None at first, or a declared field that methods only convert."""
        if not isinstance(expr, m.Attribute):
            return False
        if is_none(binding):
            return True
        if not isinstance(binding, Union):
            return False
        class_ = self.resolver.class_of(self.resolver.symbol(expr.value, scope))
        kept = any(isinstance(option, Unknown) for option in binding.options)
        return kept and class_ is not None and class_.declares(expr.name)

    def _bound(self, binding: Binding, expr: m.Expr, depth: int) -> tuple[Piece, ...] | None:
        name = target_name(expr) or spell(expr)
        match binding:
            case Expression(expr=value, scope=scope) if is_path_like(value):
                return self.pieces(value, scope, depth + 1)
            case Expression(expr=value, scope=scope):
                key: tuple[object, ...] = ("value", Identity(value), scope)
                origins = self.rank_dependence.origins(value, scope)
                return (PathVariable(key, name, origins, is_replicated=False, definition=binding),)
            case Argument(function=function, parameter=parameter):
                key = ("parameter", function, parameter.name)
                divided = self.work_items.is_data_of(binding)
                origins = self.rank_dependence.origins_of(binding)
                return (
                    PathVariable(
                        key,
                        name,
                        origins,
                        is_replicated=not (divided or origins),
                        parameter=parameter.name,
                        is_work_item=divided,
                    ),
                )
            case Unknown():
                return None
            case (
                ContextResult(source=Expression(expr=m.Call() as call, scope=scope))
                | UnpackedPart(source=Expression(expr=m.Call() as call, scope=scope), index=1)
            ) if self._makes(call, scope):
                return renamed(self.pieces(call, scope, depth + 1), name)
            case ContextResult() if made := entered_call(self.resolver, binding):
                return renamed(self.pieces(made.expr, made.scope, depth + 1), name, binding)
            case UnpackedPart(source=Expression(expr=m.Call() as call, scope=scope), index=int(index)) if (
                part := self._part_of_split(call, index, expr, scope, depth + 1)
            ):
                return part
            case UnpackedPart(source=Expression(expr=whole)) if not (
                self.rank_dependence.origins_of(binding) or isinstance(whole, m.Call)
            ):
                return self.work_items.part(binding, expr)
            case _:
                origins = self.rank_dependence.origins_of(binding)
                options = self._options(binding, expr, depth + 1)
                certain = (
                    self._loop_ranges.are_equal(binding)
                    if isinstance(binding, IterationElement)
                    else (bool(options) and all(map(all_certain, options)))
                )
                varies = isinstance(binding, IterationElement) and not certain
                sources = handed_in(piece for form in options for piece in form or ())
                bound = self._one_of(binding, depth + 1) or (BOUND, binding, name, sources)
                return (PathVariable(bound, name, origins, certain, is_work_item=varies, definition=binding),)

    def _one_of(self, binding: Binding, depth: int) -> tuple[object, ...] | None:
        """Return the key of a loop element, or None.

        Elements of two loops over equal iterables have equal keys.
        """
        if not isinstance(binding, IterationElement) or self.budget.exhausted(depth):
            return None
        expr, scope = binding.source.expr, binding.source.scope
        if isinstance(expr, m.Call) and self._loop_ranges.is_in_order(expr, scope):
            given_to = tuple(form for _, form in self._given(expr, scope, depth))
            return None if None in given_to else ("element", spell(expr.function), given_to, binding.index)
        iterable = self.pieces(expr, scope, depth)
        return None if iterable is None else ("element", iterable, binding.index)

    def _makes(self, call: m.Call, scope: Environment) -> bool:
        """Return whether a call creates a file or directory that is private to a process."""
        entry = self.catalog.find("private", self.resolver.qualify(call.function, scope))
        return entry is not None and entry.folder != ""

    def _options(self, binding: Binding, expr: m.Expr, depth: int) -> list[tuple[Piece, ...] | None]:
        """Return the normal forms of the bindings in a union. A binding to None is skipped."""
        options = binding.options if isinstance(binding, Union) else ()
        told = [option for option in options if not is_none(option)]
        return [
            None if self.budget.exhausted(depth) else self._bound(option, expr, depth + 1) for option in told
        ]

    def parameter_of(self, symbol: PathVariable, function: LinkedFunction) -> m.Parameter | None:
        """Return the parameter of `function` that a variable represents, or None."""
        if not symbol.parameter or symbol.key[1] != function:
            return None
        return function.parameters.get(symbol.parameter)
