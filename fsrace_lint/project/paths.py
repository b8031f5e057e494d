"""Normal forms of path expressions, and whether a path is a process's own."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Final

from fsrace_lint.facts import model as m
from fsrace_lint.facts.names import parts as parts_of
from fsrace_lint.facts.spell import spell
from fsrace_lint.project.bindings import target_name
from fsrace_lint.project.entities import Instance, Library, qualified_name
from fsrace_lint.project.forms import Path, Symbol, all_certain
from fsrace_lint.project.values import Argument, Either, Element, Selected, Unknown, Unpacked, Value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fsrace_lint.catalog import Catalog
    from fsrace_lint.project.forms import Piece
    from fsrace_lint.project.guards import Guards
    from fsrace_lint.project.modules import LinkedFunction
    from fsrace_lint.project.privacy import Privacy
    from fsrace_lint.project.resolve import Resolver
    from fsrace_lint.project.values import Binding, Scope

_DEEPEST: Final = 12
_PERCENT: Final = re.compile(r"%[sdi]")
_SAME_PATH: Final = frozenset(
    {
        "str", "os.fspath", "os.fsdecode", "os.path.abspath", "os.path.normpath", "os.path.realpath",
        "pathlib.Path.absolute", "pathlib.Path.resolve", "pathlib.Path.as_posix",
    }
)  # fmt: skip
_PURE: Final = frozenset(
    {"os.path.basename", "os.path.splitext", "os.path.expanduser", "os.path.relpath", "os.path.commonpath",
     "len"}
)  # fmt: skip
_PURE_METHODS: Final = frozenset(
    {"replace", "strip", "rstrip", "lstrip", "lower", "upper", "removesuffix", "removeprefix", "with_suffix"}
)
_JOINING: Final = frozenset(
    {"os.path.join", "posixpath.join", "pathlib.Path", "pathlib.PurePath", "pathlib.PosixPath"}
)


class Paths:
    """Normalizes path expressions in the scopes of a project."""

    def __init__(self, resolver: Resolver, guards: Guards, catalog: Catalog, privacy: Privacy) -> None:
        """Prepare for a project."""
        self.resolver = resolver
        self.guards = guards
        self.catalog = catalog
        self.privacy = privacy
        self._node_folders = [
            name.rstrip("/").split("/") for name in catalog.names("node-local") if name.startswith("/")
        ]

    def normalize(self, expr: m.Expr, scope: Scope) -> Path | None:
        """Give the normal form of a path.

        Args:
            expr: The expression.
            scope: The names as they stand where it is evaluated.

        Returns:
            The normal form, or None where nothing is known of it. Equal forms
            mean equal paths; two unknown paths are never the same.
        """
        pieces = self._pieces(expr, scope, 0)
        return None if pieces is None else Path.of(pieces)

    def _pieces(self, expr: m.Expr, scope: Scope, depth: int) -> tuple[Piece, ...] | None:  # noqa: C901  # one case a kind
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
            case m.Binary(operator="+", left=left, right=right):
                return self._concatenated((left, right), scope, depth + 1)
            case m.Binary(operator="/", left=left, right=right):
                return self._joined((left, right), scope, depth + 1)
            case m.Binary(operator="%", left=m.Constant(value=str() as template), right=values):
                return self._percent(template, values, scope, depth + 1)
            case m.Call():
                return self._call(expr, scope, depth + 1)
            case m.Walrus(value=value):
                return self._pieces(value, scope, depth + 1)
            case m.Conditional(body=body, orelse=orelse):
                sides = (self._pieces(body, scope, depth + 1), self._pieces(orelse, scope, depth + 1))
                return (self._derived("either", (id(expr), id(scope), *sides), expr, scope),)
            case m.Subscript(value=value, index=m.Constant(value=key)):
                base = self._pieces(value, scope, depth + 1)
                if base is None:
                    return None
                return (self._derived("item", (base, repr(key)), expr, scope),)
            case m.Opaque(parts=parts) if parts:
                pieces = self._concatenated(parts, scope, depth + 1)
                if pieces is None:
                    return None
                return (self._derived("opaque", (id(expr), pieces), expr, scope),)
            case _:
                return (self._opaque(expr, scope),)

    def _process_or_node(self, expr: m.Expr, scope: Scope) -> Symbol | None:
        """Read what is a process's own, its number, or a node's own, its number or its disk."""
        rank = self.guards.rank_scope(expr, scope)
        if rank is not None:
            here = rank == "node"
            return Symbol(("rank", rank), spell(expr), private=not here, local=here)
        place = self._node_local(expr, scope)
        return None if place is None else Symbol(("node-local", place), spell(expr), local=True)

    def _opaque(self, expr: m.Expr, scope: Scope) -> Symbol:
        return Symbol(
            ("expression", id(expr), id(scope)),
            spell(expr),
            self.privacy.is_private(expr, scope),
            certain=False,
            varies=self._is_dealt_out(expr, scope),
        )

    def _is_dealt_out(self, expr: m.Expr, scope: Scope) -> bool:
        """Tell whether something is looked up by what each process has another of."""
        if isinstance(expr, m.Name):
            bound = self.guards.known(expr, scope)
            return isinstance(bound, Argument) and self._is_data_of(bound)
        return any(self._is_dealt_out(part, scope) for part in parts_of(expr))

    def _derived(self, kind: str, key: tuple[object, ...], expr: m.Expr, scope: Scope) -> Symbol:
        """A symbol whose text follows from that of others.

        An attribute or an item of an object is taken for a setting, which is equal
        everywhere unless the object itself is private, or one of many.
        """
        symbols = [
            piece for part in key if isinstance(part, tuple) for piece in part if isinstance(piece, Symbol)
        ]
        private = any(symbol.private for symbol in symbols) or self.privacy.is_private(expr, scope)
        varies = any(symbol.varies for symbol in symbols)
        is_setting = kind in {"attribute", "item"} and not varies
        certain = is_setting or all(symbol.certain for symbol in symbols)
        return Symbol((kind, *key), spell(expr), private, certain, varies=varies)

    def _concatenated(self, parts: Iterable[m.Expr], scope: Scope, depth: int) -> tuple[Piece, ...] | None:
        pieces: list[Piece] = []
        for part in parts:
            found = self._pieces(part, scope, depth)
            if found is None:
                return None
            pieces.extend(found)
        return tuple(pieces)

    def _joined(self, parts: Iterable[m.Expr], scope: Scope, depth: int) -> tuple[Piece, ...] | None:
        joined: list[Piece] = []
        for part in parts:
            found = self._pieces(part, scope, depth)
            if found is None:
                return None
            written = [piece for piece in found if piece != ""]
            if not joined or (written and isinstance(written[0], str) and written[0].startswith("/")):
                joined = written
            else:
                joined += ["/", *written]
        return tuple(joined)

    def _call(self, call: m.Call, scope: Scope, depth: int) -> tuple[Piece, ...] | None:
        entity = self.resolver.entity(call.function, scope)
        name = qualified_name(entity) or ""
        if name in _JOINING:
            return self._joined(call.arguments, scope, depth)
        if name in _SAME_PATH and call.arguments:
            return self._pieces(call.arguments[0], scope, depth)
        if isinstance(call.function, m.Attribute):
            receiver = call.function.value
            if name in _SAME_PATH:
                return self._pieces(receiver, scope, depth)
            if name == "pathlib.Path.joinpath":
                return self._joined((receiver, *call.arguments), scope, depth)
            if call.function.name == "format":
                return self._formatted(call, receiver, scope, depth)
        if name == "os.path.dirname" and call.arguments:
            return self._parent(call.arguments[0], call, scope, depth)
        own = self.catalog.find("private", name)
        if own is not None and own.scope == "node":
            return (Symbol(("node", name), spell(call), local=True),)
        if own is not None:
            return (Symbol(("call", id(call), id(scope)), spell(call), private=True),)
        return self._result(call, scope, depth)

    def _result(self, call: m.Call, scope: Scope, depth: int) -> tuple[Piece, ...] | None:
        private = self.privacy.is_private(call, scope)
        function = self.resolver.callee(call, scope)
        certain = (
            self._is_pure(call, scope, depth) if function is None else self._is_followed(function, depth)
        )
        key: tuple[object, ...] = ("call", id(call), id(scope))
        forms = self._given(call, scope, depth) if certain else None
        if forms is not None:
            key = (
                "result",
                function or self.resolver.qualify(call.function, scope),
                spell(call.function),
                *forms,
            )
        return (Symbol(key, spell(call), private, certain),)

    def _given(self, call: m.Call, scope: Scope, depth: int) -> tuple[object, ...] | None:
        """Give what a call is given, in normal form: its result follows from that, and from nothing else."""
        receiver = (call.function.value,) if isinstance(call.function, m.Attribute) else ()
        forms = [self._pieces(value, scope, depth) for value in (*receiver, *call.arguments)]
        named = [(keyword.name, self._pieces(keyword.value, scope, depth)) for keyword in call.keywords]
        if None in forms or any(form is None for _, form in named):
            return None
        return (*forms, *named)

    def _is_pure(self, call: m.Call, scope: Scope, depth: int) -> bool:
        """Tell whether the result follows from arguments that are known here."""
        name = self.resolver.qualify(call.function, scope)
        if name in _PURE:
            values: tuple[m.Expr, ...] = call.arguments
        elif isinstance(call.function, m.Attribute) and call.function.name in _PURE_METHODS:
            values = (call.function.value, *call.arguments)
        else:
            return False
        forms = [self._pieces(value, scope, depth) for value in values]
        return all(
            pieces is not None and all_certain(pieces) and not _is_handed_in(pieces) for pieces in forms
        )

    def _is_followed(self, function: LinkedFunction, depth: int) -> bool:
        """Tell whether all that a function returns is known, but for what it is given."""
        ways = self.privacy.exits(function) if depth < _DEEPEST else ()
        forms = [
            None if way.value is None else self._pieces(way.value, way.state.scope, depth + 2) for way in ways
        ]
        return bool(forms) and all(pieces is not None and all_certain(pieces) for pieces in forms)

    def _percent(self, template: str, values: m.Expr, scope: Scope, depth: int) -> tuple[Piece, ...] | None:
        """`"…%s…" % values`, where each value has its place in the text."""
        items = values.items if isinstance(values, m.Sequence) else (values,)
        texts = _PERCENT.split(template)
        if len(texts) != len(items) + 1 or "%" in "".join(texts):
            return (
                self._derived("percent", (template, self._concatenated(items, scope, depth)), values, scope),
            )
        return self._concatenated(_interleaved(texts, items), scope, depth)

    def _formatted(
        self, call: m.Call, template: m.Expr, scope: Scope, depth: int
    ) -> tuple[Piece, ...] | None:
        if not (isinstance(template, m.Constant) and isinstance(template.value, str)) or call.keywords:
            return self._result(call, scope, depth)
        texts = template.value.split("{}")
        if len(texts) != len(call.arguments) + 1 or any("{" in text or "}" in text for text in texts):
            return self._result(call, scope, depth)
        return self._concatenated(_interleaved(texts, call.arguments), scope, depth)

    def _parent(self, inner: m.Expr, whole: m.Expr, scope: Scope, depth: int) -> tuple[Piece, ...] | None:
        pieces = self._pieces(inner, scope, depth)
        if pieces is None:
            return None
        path = Path.of(pieces)
        last = path.components[-1] if path.components else ()
        ends = pieces[-1] if pieces else ""
        open_ended = isinstance(ends, str) and ends.endswith("/")
        if len(path.components) > 1 and not open_ended and any(isinstance(piece, str) for piece in last):
            return tuple(Path(path.components[:-1]).pieces())
        return (self._derived("parent", (pieces,), whole, scope),)

    def _variable(self, expr: m.Name | m.Attribute, scope: Scope, depth: int) -> tuple[Piece, ...] | None:
        binding = self.guards.known(expr, scope)
        if binding is not None:
            return self._bound(binding, expr, depth)
        if isinstance(expr, m.Attribute):
            if self.privacy.is_property(expr, scope):
                return (Symbol(("property", spell(expr)), spell(expr), private=True),)
            owner = self.resolver.entity(expr.value, scope)
            if expr.name == "parent" and owner in {Instance(Library("pathlib.Path")), None}:
                return self._parent(expr.value, expr, scope, depth)
            base = self._pieces(expr.value, scope, depth)
            if base is None:
                return None
            return (self._derived("attribute", (base, expr.name), expr, scope),)
        name = qualified_name(self.resolver.entity(expr, scope)) or expr.id
        divided = self._is_data(expr.id)
        return (Symbol(("name", name), expr.id, certain=not divided, varies=divided),)

    def _is_data_of(self, argument: Argument) -> bool:
        """Tell whether each process is passed another value: a sample, or the index of one."""
        return argument.function.facts.name == "__getitem__" or self._is_data(argument.parameter.name)

    def _is_data(self, name: str) -> bool:
        """Tell whether a name is a usual one for what each process has another of: a batch, a sample."""
        variable = self.catalog.exact("variable", name)
        return variable is not None and variable.means == "data"

    def _bound(self, binding: Binding, expr: m.Expr, depth: int) -> tuple[Piece, ...] | None:
        name = target_name(expr) or spell(expr)
        match binding:
            case Value(expr=value, scope=scope) if _is_path_like(value):
                return self._pieces(value, scope, depth + 1)
            case Value(expr=value, scope=scope):
                return (
                    Symbol(
                        ("value", id(value), id(scope)),
                        name,
                        self.privacy.is_private(value, scope),
                        certain=False,
                    ),
                )
            case Argument(function=function, parameter=parameter):
                key = ("parameter", id(function), parameter.name)
                divided = self._is_data_of(binding)
                return (Symbol(key, name, certain=not divided, parameter=parameter.name, varies=divided),)
            case Unknown():
                return None
            case _:
                private = self.privacy.is_private_binding(binding)
                if isinstance(binding, Unpacked) and not (private or isinstance(binding.whole.expr, m.Call)):
                    return None
                certain = self._is_certain(binding, expr, depth + 1)
                varies = isinstance(binding, Element) and not certain
                return (Symbol(("bound", id(binding), name), name, private, certain, varies=varies),)

    def _is_certain(self, binding: Binding, expr: m.Expr, depth: int) -> bool:
        """Tell whether what a name is bound to was followed far enough to be sure that it is not private."""
        match binding:
            case Element(iterable=iterable, index=None) if self._is_written_out(iterable):
                return True
            case Element(iterable=Value(expr=m.Call(function=function), scope=scope), index=index):
                counting = "range" if index is None else "enumerate" if index == 0 else None
                return self.resolver.qualify(function, scope) == counting
            case Selected(then=then, otherwise=otherwise):
                options: tuple[Binding, ...] = (then, otherwise)
            case Either():
                options = binding.options
            case _:
                return False
        forms = [None if depth > _DEEPEST else self._bound(option, expr, depth + 1) for option in options]
        return all(pieces is not None and all_certain(pieces) for pieces in forms)

    def _is_written_out(self, iterable: Value) -> bool:
        """Tell whether a list stands in the source with all its elements, the same for each process."""
        known = self.guards.known(iterable.expr, iterable.scope)
        expr = known.expr if isinstance(known, Value) else iterable.expr
        return isinstance(expr, m.Sequence) and all(isinstance(item, m.Constant) for item in expr.items)

    def _node_local(self, expr: m.Expr, scope: Scope) -> str | None:
        """Name the place on the node's own disk that an environment variable or a call gives."""
        variable = self.guards.environment_variable(expr, scope)
        name = f"${variable}" if variable is not None else None
        if name is None and isinstance(expr, m.Call):
            name = self.resolver.qualify(expr.function, scope)
        return name if name is not None and self.catalog.exact("node-local", name) is not None else None

    def is_node_local(self, path: Path | None) -> bool:
        """Tell whether each node has a path of its own under this name."""
        if path is None:
            return False
        if any(symbol.local for symbol in path.symbols()):
            return True
        literal = [
            "".join(piece for piece in component if isinstance(piece, str)) for component in path.components
        ]
        return any(literal[: len(folder)] == folder for folder in self._node_folders)

    def parameter_of(self, symbol: Symbol, function: LinkedFunction) -> m.Parameter | None:
        """Find the parameter of `function` that a symbol stands for."""
        parameter = function.parameters.get(symbol.parameter)
        return parameter if parameter is not None and symbol.key[1] == id(function) else None


def _is_handed_in(pieces: Iterable[Piece]) -> bool:
    """Tell whether a part of a path stands for a parameter."""
    return any(isinstance(piece, Symbol) and bool(piece.parameter) for piece in pieces)


def _is_path_like(expr: m.Expr) -> bool:
    return isinstance(
        expr, (m.Constant, m.Name, m.Attribute, m.Format, m.Binary, m.Call, m.Walrus, m.Subscript)
    )


def _interleaved(texts: Iterable[str], values: Iterable[m.Expr]) -> Iterable[m.Expr]:
    for text, value in itertools.zip_longest(texts, values):
        yield m.Constant(text)
        if value is not None:
            yield value
