"""Normal forms of path expressions, and whether a path is private to a process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from fsrace_lint.analysis.dataflow.infeasible_paths import feasible_exits
from fsrace_lint.analysis.paths.abstract_path import (
    BOUND,
    NO_ORIGINS,
    PARENT,
    RANK_ALONE,
    RESULT,
    AbstractPath,
    PathVariable,
    all_certain,
    handed_in,
    is_new,
    renamed,
    variables_of,
)
from fsrace_lint.analysis.paths.format_strings import filled_by_format, filled_by_percent
from fsrace_lint.analysis.paths.loop_ranges import LoopRanges
from fsrace_lint.analysis.paths.node_local import NodeLocal
from fsrace_lint.analysis.paths.rank_dependence import is_given
from fsrace_lint.analysis.paths.replicated_calls import ReplicatedCalls
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
from fsrace_lint.engine.query import query
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
_SAME_PATH: Final = frozenset(
    {
        "str", "os.fspath", "os.fsdecode", "os.path.abspath", "os.path.normpath", "os.path.realpath",
        "pathlib.Path.absolute", "pathlib.Path.resolve", "pathlib.Path.as_posix", "os.path.expanduser",
        "pathlib.Path.expanduser",
    }
)  # fmt: skip
_STRIPPING: Final = frozenset({"strip", "rstrip", "lstrip"})
"""Methods that remove slashes or whitespace from the ends of a path."""
_SEPARATORS: Final = (m.Constant("/"), m.Constant("\\"), m.Attribute(m.Name("os"), "sep"))
_CALCULATING: Final = frozenset({"-", "*", "//", "**"})
_JOINING: Final = frozenset(
    {"os.path.join", "posixpath.join", "pathlib.Path", "pathlib.PurePath", "pathlib.PosixPath"}
)


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
        self._loop_ranges = LoopRanges(rank_dependence)

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
        if depth > _DEEPEST:
            return None
        own = self._process_or_node(expr, scope)
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
            case m.Binary(operator=operator, left=left, right=right) if _counts(operator, right):
                sides = (self.pieces(left, scope, depth + 1), self.pieces(right, scope, depth + 1))
                return None if None in sides else (self._derived("number", (operator, *sides), expr, scope),)
            case m.Binary(operator="+", left=left, right=right):
                return self._concatenated((left, right), scope, depth + 1)
            case m.Binary(operator="/", left=left, right=right):
                return self._joined((left, right), scope, depth + 1)
            case m.Binary(operator="%", left=m.Constant(value=str() as template), right=values):
                return self._percent(template, values, scope, depth + 1)
            case m.Call():
                return self._call(expr, scope, depth + 1)
            case m.Walrus(value=value):
                return self.pieces(value, scope, depth + 1)
            case m.Conditional(body=body, orelse=orelse):
                sides = (self.pieces(body, scope, depth + 1), self.pieces(orelse, scope, depth + 1))
                return (self._derived("either", (Identity(expr), scope, *sides), expr, scope),)
            case m.Boolean() if is_given(expr):
                return (
                    PathVariable(
                        ("or", Identity(expr), scope), spell(expr), self.rank_dependence.origins(expr, scope)
                    ),
                )
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

    def _process_or_node(self, expr: m.Expr, scope: Environment) -> PathVariable | None:
        """Return a variable for a rank or for a node-local location, or None."""
        rank = self.rank_tests.rank_scope(expr, scope)
        if rank is not None:
            here = rank == "node"
            return PathVariable(("rank", rank), spell(expr), NO_ORIGINS if here else RANK_ALONE, local=here)
        place = self.node_local.place(expr, scope)
        return None if place is None else PathVariable(("node-local", place), spell(expr), local=True)

    def _opaque(self, expr: m.Expr, scope: Environment) -> PathVariable:
        return PathVariable(
            ("expression", Identity(expr), scope),
            spell(expr),
            self.rank_dependence.origins(expr, scope),
            is_replicated=False,
            is_work_item=self.work_items.is_work_item(expr, scope),
            definition=Expression(expr, scope),
        )

    def _derived(self, kind: str, key: tuple[object, ...], expr: m.Expr, scope: Environment) -> PathVariable:
        """Return a variable whose text is derived from others.

        An attribute or an item of an object is assumed to be a setting, which is equal on all ranks. It is
        not if the object differs between ranks, or is a work item or its number.
        """
        symbols = variables_of(key)
        origins = (
            self.rank_dependence.origins(expr, scope).union(*(each.rank_dependence for each in symbols))
            or NO_ORIGINS
        )
        numbered = self.work_items.is_numbered(expr)
        varies = numbered or any(symbol.is_work_item for symbol in symbols)
        is_setting = kind in {"attribute", "item"} and not varies
        certain = is_setting or (not numbered and all(symbol.is_replicated for symbol in symbols))
        made_of = Expression(expr, scope)
        return PathVariable(
            (kind, *key), spell(expr), origins, certain, is_work_item=varies, definition=made_of
        )

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

    def _call(self, call: m.Call, scope: Environment, depth: int) -> tuple[Piece, ...] | None:
        entity = self.resolver.symbol(call.function, scope)
        name = qualified_name(entity) or ""
        if name in _JOINING:
            return self._joined(call.arguments, scope, depth)
        if name in _SAME_PATH and call.arguments:
            return self.pieces(call.arguments[0], scope, depth)
        if isinstance(call.function, m.Attribute):
            receiver = call.function.value
            if name in _SAME_PATH:
                return self.pieces(receiver, scope, depth)
            if name == "pathlib.Path.joinpath":
                return self._joined((receiver, *call.arguments), scope, depth)
            if call.function.name == "format":
                return self._formatted(call, receiver, scope, depth)
            if _keeps_the_path(call.function.name, call.arguments):
                return self.pieces(receiver, scope, depth)
        if name == "os.path.dirname" and call.arguments:
            return self._parent(call.arguments[0], call, scope, depth)
        own = self.catalog.find("private", name)
        if own is not None and own.scope == "node":
            return (PathVariable(("node", name), spell(call), local=True),)
        if own is not None:
            return self._own(own, call, scope, depth)
        return self._result(call, scope, depth)

    def _own(self, own: Private, call: m.Call, scope: Environment, depth: int) -> tuple[Piece, ...]:
        """Return a name that is private to a process.

        A newly created file or directory is in the directory that the call names.
        """
        folder = library_argument(call, own.folder)
        is_local = own.folder != "" and folder in {None, m.Constant(None)}
        name = PathVariable(("call", Identity(call), scope), spell(call), frozenset({own.by}), local=is_local)
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
        key: tuple[object, ...] = ("call", Identity(call), scope)
        found_there: tuple[object, ...] = ()
        if function is not None:
            certain = self._is_followed(function, call, known, depth)
            if not certain and all(map(all_certain, forms)) and self.results.follow(function):
                certain, found_there = True, key
        if certain and None not in forms:
            names = tuple(keyword.name for keyword in call.keywords)
            made_by = function or self.resolver.qualify(call.function, scope)
            object_ = 1 if function is not None and isinstance(call.function, m.Attribute) else 0
            apart = (found_there, forms[:object_])
            key = (RESULT, made_by, spell(call.function), names, apart, *forms[object_:])
        return (PathVariable(key, spell(call), origins, certain, definition=Expression(call, scope)),)

    def _given(self, call: m.Call, scope: Environment, depth: int) -> tuple[_GivenFragments, ...]:
        """Return the receiver and the arguments of a call, each with its normal form."""
        receiver = (call.function.value,) if isinstance(call.function, m.Attribute) else ()
        values = (*receiver, *call.arguments, *(keyword.value for keyword in call.keywords))
        return tuple((value, self.pieces(value, scope, depth)) for value in values)

    def _is_followed(
        self, function: LinkedFunction, call: m.Call, known: tuple[_GivenFragments, ...], depth: int
    ) -> bool:
        """Return whether all results of a function are certain, and the arguments that determine them."""
        ways = (
            feasible_exits(call, function, self.rank_dependence.interpretation.exit_points(function))
            if depth < _DEEPEST
            else ()
        )
        forms = [
            None if way.value is None else self.pieces(way.value, way.state.scope, depth + 2) for way in ways
        ]
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
        filled = None if call.keywords else filled_by_format(template, call.arguments)
        if filled is None:
            return self._result(call, scope, depth)
        return self._concatenated(filled, scope, depth)

    def _parent(
        self, inner: m.Expr, whole: m.Expr, scope: Environment, depth: int
    ) -> tuple[Piece, ...] | None:
        pieces = self.pieces(inner, scope, depth)
        if pieces is None:
            return None
        path = AbstractPath.of(pieces)
        last = path.components[-1] if path.components else ()
        ends = pieces[-1] if pieces else ""
        open_ended = isinstance(ends, str) and ends.endswith("/")
        if len(path.components) > 1 and not open_ended and any(isinstance(piece, str) for piece in last):
            return tuple(AbstractPath(path.components[:-1]).pieces())
        return (self._derived(PARENT, (pieces,), whole, scope),)

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
                return (PathVariable(("property", spell(expr)), spell(expr), own),)
            owner = self.resolver.symbol(expr.value, scope)
            if expr.name == "parent" and owner in {Instance(ExternalName("pathlib.Path")), None}:
                return self._parent(expr.value, expr, scope, depth)
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
        if type(binding) is not Union:
            return False
        class_ = self.resolver.class_of(self.resolver.symbol(expr.value, scope))
        kept = any(isinstance(option, Unknown) for option in binding.options)
        return kept and class_ is not None and class_.declares(expr.name)

    def _bound(self, binding: Binding, expr: m.Expr, depth: int) -> tuple[Piece, ...] | None:
        name = target_name(expr) or spell(expr)
        match binding:
            case Expression(expr=value, scope=scope) if _is_path_like(value):
                return self.pieces(value, scope, depth + 1)
            case Expression(expr=value, scope=scope):
                key: tuple[object, ...] = ("value", Identity(value), scope)
                origins = self.rank_dependence.origins(value, scope)
                return (PathVariable(key, name, origins, is_replicated=False, definition=binding),)
            case Argument(function=function, parameter=parameter):
                key = ("parameter", function, parameter.name)
                divided = self.work_items.is_data_of(binding)
                return (
                    PathVariable(
                        key, name, is_replicated=not divided, parameter=parameter.name, is_work_item=divided
                    ),
                )
            case Unknown():
                return None
            case (
                ContextResult(source=Expression(expr=m.Call() as call, scope=scope))
                | UnpackedPart(source=Expression(expr=m.Call() as call, scope=scope), index=1)
            ) if self._makes(call, scope):
                return renamed(self.pieces(call, scope, depth + 1), name)
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
        if not isinstance(binding, IterationElement) or depth > _DEEPEST:
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
        return [None if depth > _DEEPEST else self._bound(option, expr, depth + 1) for option in told]

    def parameter_of(self, symbol: PathVariable, function: LinkedFunction) -> m.Parameter | None:
        """Return the parameter of `function` that a variable represents, or None."""
        if not symbol.parameter or symbol.key[1] != function:
            return None
        return function.parameters.get(symbol.parameter)


def _keeps_the_path(method: str, arguments: tuple[m.Expr, ...]) -> bool:
    """Return whether a string method keeps the path: it only changes its ends or its separators."""
    if method in _STRIPPING:
        return arguments in {(), (m.Constant("/"),)}
    return method == "replace" and len(arguments) == 2 and all(each in _SEPARATORS for each in arguments)


def _counts(operator: str, right: m.Expr) -> bool:
    """Return whether an operation is numeric, and not a concatenation of paths."""
    return operator in _CALCULATING or (isinstance(right, m.Constant) and isinstance(right.value, int))


def _is_path_like(expr: m.Expr) -> bool:
    return isinstance(
        expr, (m.Constant, m.Name, m.Attribute, m.Format, m.Binary, m.Boolean, m.Call, m.Walrus, m.Subscript)
    )
