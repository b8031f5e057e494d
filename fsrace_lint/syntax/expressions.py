"""Conversion of expressions from `ast` to `syntax.model`."""

from __future__ import annotations

import ast
import re
import sys
from typing import TYPE_CHECKING, Final

import msgspec

from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import denoted, is_super, last_name
from fsrace_lint.syntax.targets import target_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fsrace_lint.files.source import Columns

FSTRING_POSITIONS_ARE_EXACT: Final = sys.version_info >= (3, 12)
MOST_OPERANDS: Final = 100
"""The maximum length of a chain of operators. A longer chain is not a path, and becomes `Opaque`."""

_COMPARE: Final = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}
_ALONE: Final[dict[type[ast.cmpop], tuple[str, ...]]] = {
    kind: (spelled,) for kind, spelled in _COMPARE.items()
}
"""The operator tuples of comparisons with one operator."""
_A_NAME: Final = re.compile(r"[\w./:-]{2,100}")
_DISPLAYS: Final = {ast.Tuple: "tuple", ast.List: "list", ast.Set: "set"}
_BINARY: Final = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.BitOr: "|",
    ast.BitAnd: "&",
}


class Scope(msgspec.Struct):
    """The facts collected about a function while its code is read."""

    index: int
    qualname: str
    owner: int = -1
    referenced_names: set[str] = msgspec.field(default_factory=set)
    bare: set[str] = msgspec.field(default_factory=set)
    of_other: set[str] = msgspec.field(default_factory=set)
    of_own: set[str] = msgspec.field(default_factory=set)
    handed: set[str] = msgspec.field(default_factory=set)
    attributes: set[str] = msgspec.field(default_factory=set)
    outer_names: list[str] = msgspec.field(default_factory=list)
    yields: bool = False
    has_loop: bool = False
    has_context: bool = False
    has_walrus: bool = False
    first: str = ""
    rebinds_first: bool = False
    parameters: frozenset[str] = frozenset()
    runs: dict[str, None] = msgspec.field(default_factory=dict)
    aliases: dict[m.Alias, None] = msgspec.field(default_factory=dict)
    bound: list[str] = msgspec.field(default_factory=list)
    statements: int = 0
    tests: int = 0

    def indexed(self) -> tuple[tuple[str, ...], bytes]:
        """Return the referenced names, called names first, and the uses of the called names."""
        if self.rebinds_first or self.first in self.bound:
            self.of_other |= self.of_own
            self.of_own.clear()
        ways = (
            (self.bare, m.BARE),
            (self.of_other, m.OF_OTHER),
            (self.of_own, m.OF_OWN),
            (self.handed, m.HANDED),
        )
        called = sorted(set().union(*(names for names, _ in ways)))
        uses = bytes([sum(how for names, how in ways if name in names) for name in called])
        return (*called, *sorted(self.referenced_names.difference(called))), uses

    def takes_up(self, inner: m.Function) -> None:
        """Add the names and uses of a lambda to those of its enclosing function."""
        self.referenced_names.update(inner.referenced_names)
        other = m.OF_OTHER | m.OF_OWN
        for name, how in zip(inner.called, inner.uses, strict=True):
            for names, ways in ((self.bare, m.BARE), (self.of_other, other), (self.handed, m.HANDED)):
                if how & ways:
                    names.add(name)

    def bound_since(self, mark: int) -> tuple[str, ...]:
        """Return the names bound after the first `mark` ones, without duplicates."""
        return tuple(dict.fromkeys(self.bound[mark:]))

    def is_local(self, name: str) -> bool:
        """Return whether a name bound here is a local variable of the function."""
        return self.index != 0 and self.owner < 0 and name not in self.outer_names


class Expressions:
    """A converter of expressions, which records the names that they mention in the current scope."""

    def __init__(self, columns: Columns, read_lambda: Callable[[ast.Lambda], m.Lambda]) -> None:
        """Initialize with the code of the module as the current scope.

        Args:
            columns: Converts the positions of nodes to spans.
            read_lambda: Adds a lambda to the functions of the file.
        """
        self.columns = columns
        self.read_lambda = read_lambda
        self.scope = Scope(0, "<module>")
        self.fstring_depth = 0
        self._texts: dict[str, str] = {}
        """One shared object per string, because the parser creates a new one for each occurrence."""

    def bound(self, target: m.Expr | None, value: m.Expr | None) -> None:
        """Record that a target may be an alias of what a value denotes."""
        if target is None or value is None:
            return
        if isinstance(target, m.Sequence):
            if isinstance(value, m.Sequence):
                for one, other in zip(target.items, value.items, strict=False):
                    self.bound(one, other)
        elif isinstance(target, (m.Name, m.Attribute)):
            self._known_as(last_name(target), value, kind=self._kind(target))

    def _kind(self, target: m.Name | m.Attribute) -> str:
        if isinstance(target, m.Name):
            return "local" if self.scope.is_local(target.id) else "name"
        return "own" if self.is_own(target) else "attribute"

    def is_own(self, target: m.Attribute) -> bool:
        """Return whether an attribute belongs to the first parameter, which in a method is its object."""
        return isinstance(target.value, m.Name) and target.value.id == self.scope.first

    def returned(self, value: m.Expr | None) -> None:
        """Record that a call of the current function returns what a value denotes."""
        name = self.scope.qualname.rpartition(".")[2]
        name += str(self.scope.index) if name == m.LAMBDA else ""
        if value is not None:
            self._known_as(name, value, returned=True)

    def _known_as(self, known_as: str, value: m.Expr, *, returned: bool = False, kind: str = "name") -> None:
        for name, called, of in denoted(value):
            self.scope.aliases[m.Alias(name, known_as, called, returned, of, kind)] = None

    def read(self, node: ast.expr) -> m.Expr:
        """Convert an expression."""
        method = _METHODS.get(type(node))
        if method is not None:
            return method(self, node)
        return m.Opaque(
            self.several(child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr))
        )

    def several(self, nodes: Iterable[ast.expr]) -> tuple[m.Expr, ...]:
        """Convert multiple expressions, in order."""
        return tuple(self.read(node) for node in nodes)

    def optional(self, node: ast.expr | None) -> m.Expr | None:
        """Convert an expression that may be absent."""
        return None if node is None else self.read(node)

    def names_in_texts(self) -> tuple[str, ...]:
        """Return the strings read so far that can be names: of files, commands, functions, or modules."""
        return tuple(sorted(filter(_A_NAME.fullmatch, self._texts)))

    def _name(self, node: ast.Name) -> m.Expr:
        self.scope.referenced_names.add(node.id)
        return m.Name(node.id)

    def _attribute(self, node: ast.Attribute) -> m.Expr:
        self.scope.referenced_names.add(node.attr)
        return m.Attribute(self.read(node.value), node.attr)

    def _constant(self, node: ast.Constant) -> m.Expr:
        value = node.value
        if isinstance(value, str):
            return m.Constant(self._texts.setdefault(value, value))
        if value is None or isinstance(value, (bool, float)):
            return m.Constant(value)
        if isinstance(value, int) and abs(value) < 1 << 62:
            return m.Constant(value)
        return m.Opaque()

    def _call(self, node: ast.Call) -> m.Expr:
        if isinstance(node.func, ast.Name) and node.func.id in self.scope.parameters:
            self.scope.runs[node.func.id] = None
        call = m.Call(
            self.read(node.func),
            self.several(node.args),
            tuple(m.Keyword(keyword.arg, self.read(keyword.value)) for keyword in node.keywords),
            self.columns.span(node),
            FSTRING_POSITIONS_ARE_EXACT or not self.fstring_depth,
        )
        self._used(call)
        return call

    def _used(self, call: m.Call) -> None:
        """Record the called name of a call, and the names that it passes as arguments."""
        scope, function = self.scope, call.function
        if isinstance(function, m.Attribute):
            own = self.is_own(function) or is_super(function.value)
            (scope.of_own if own else scope.of_other).add(function.name)
        elif isinstance(function, m.Name):
            scope.bare.add(function.id)
        elif not isinstance(function, m.Lambda):
            scope.bare.update(("", last_name(function)))
        given = call.arguments
        if call.keywords:
            given = (*given, *[keyword.value for keyword in call.keywords])
        for value in given:
            if isinstance(value, m.Name):
                scope.handed.add(value.id)
            elif isinstance(value, m.Attribute):
                scope.handed.add(value.name)

    def _compare(self, node: ast.Compare) -> m.Expr:
        if len(node.ops) == 1:
            operators = _ALONE[type(node.ops[0])]
        else:
            operators = tuple(_COMPARE[type(operator)] for operator in node.ops)
        return m.Compare(self.read(node.left), operators, self.several(node.comparators))

    def _boolean(self, node: ast.BoolOp) -> m.Expr:
        return m.Boolean("and" if isinstance(node.op, ast.And) else "or", self.several(node.values))

    def _unary(self, node: ast.UnaryOp) -> m.Expr:
        if isinstance(node.op, ast.Not):
            return m.Not(self.read(node.operand))
        value = self.read(node.operand)
        if (
            isinstance(node.op, ast.USub)
            and isinstance(value, m.Constant)
            and type(value.value) in {int, float}
        ):
            return m.Constant(-value.value)  # type: ignore[operator]  # the test above leaves numbers only
        return m.Opaque((value,))

    def _binary(self, node: ast.BinOp) -> m.Expr:
        if isinstance(node.left, ast.BinOp):
            operands = _operands(node)
            if len(operands) > MOST_OPERANDS:
                return m.Opaque(self.several(operands))
        return m.Binary(binary_operator(node.op), self.read(node.left), self.read(node.right))

    def _conditional(self, node: ast.IfExp) -> m.Expr:
        return m.Conditional(self.read(node.test), self.read(node.body), self.read(node.orelse))

    def _format(self, node: ast.JoinedStr) -> m.Expr:
        self.fstring_depth += 1
        parts = self.several(value for value in node.values if not _is_empty(value))
        self.fstring_depth -= 1
        return m.Format(parts)

    def _formatted(self, node: ast.FormattedValue) -> m.Expr:
        value = self.read(node.value)
        if node.format_spec is None and node.conversion in {-1, 115}:
            return value
        spec = () if node.format_spec is None else (self.read(node.format_spec),)
        return m.Opaque((value, *spec))

    def _subscript(self, node: ast.Subscript) -> m.Expr:
        return m.Subscript(self.read(node.value), self.read(node.slice))

    def _sequence(self, node: ast.Tuple | ast.List | ast.Set) -> m.Expr:
        return m.Sequence(_DISPLAYS[type(node)], self.several(node.elts))

    def _starred(self, node: ast.Starred) -> m.Expr:
        return m.Starred(self.read(node.value))

    def _lambda(self, node: ast.Lambda) -> m.Expr:
        return self.read_lambda(node)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> m.Expr:
        generators = tuple(
            m.Generator(self.read(g.target), self.read(g.iter), self.several(g.ifs)) for g in node.generators
        )
        if any(self.scope.first in target_names(g.target) for g in node.generators):
            self.scope.rebinds_first = True
        results = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
        return m.Comprehension(self.several(results), generators)

    def _walrus(self, node: ast.NamedExpr) -> m.Expr:
        value = self.read(node.value)
        self.bound(m.Name(node.target.id), value)
        self.scope.bound.append(node.target.id)
        self.scope.has_walrus = True
        return m.Walrus(node.target.id, value)

    def _await(self, node: ast.Await) -> m.Expr:
        return self.read(node.value)

    def _yield(self, node: ast.Yield) -> m.Expr:
        self.scope.yields = True
        return m.Yield(self.optional(node.value))

    def _yield_from(self, node: ast.YieldFrom) -> m.Expr:
        self.scope.yields = True
        return m.Opaque((self.read(node.value),))


def _is_empty(node: ast.expr) -> bool:
    """Return whether a part of an f-string is empty text, which the parser of Python 3.12 can produce."""
    return isinstance(node, ast.Constant) and node.value == ""


def _operands(node: ast.BinOp) -> list[ast.expr]:
    """Return the operands of a left-associative chain of operators, such as `a + b - c`."""
    found: list[ast.expr] = []
    left: ast.expr = node
    while isinstance(left, ast.BinOp):
        found.append(left.right)
        left = left.left
    return [left, *reversed(found)]


def binary_operator(operator: ast.operator) -> str:
    """Return the text of an operator, or `?` if it is irrelevant to paths and ranks."""
    return _BINARY.get(type(operator), "?")


_METHODS: Final[dict[type[ast.AST], Callable[..., m.Expr]]] = {
    ast.Name: Expressions._name,
    ast.Attribute: Expressions._attribute,
    ast.Constant: Expressions._constant,
    ast.Call: Expressions._call,
    ast.Compare: Expressions._compare,
    ast.BoolOp: Expressions._boolean,
    ast.UnaryOp: Expressions._unary,
    ast.BinOp: Expressions._binary,
    ast.IfExp: Expressions._conditional,
    ast.JoinedStr: Expressions._format,
    ast.FormattedValue: Expressions._formatted,
    ast.Subscript: Expressions._subscript,
    ast.Tuple: Expressions._sequence,
    ast.List: Expressions._sequence,
    ast.Set: Expressions._sequence,
    ast.Starred: Expressions._starred,
    ast.Lambda: Expressions._lambda,
    ast.ListComp: Expressions._comprehension,
    ast.SetComp: Expressions._comprehension,
    ast.GeneratorExp: Expressions._comprehension,
    ast.DictComp: Expressions._comprehension,
    ast.NamedExpr: Expressions._walrus,
    ast.Await: Expressions._await,
    ast.Yield: Expressions._yield,
    ast.YieldFrom: Expressions._yield_from,
}
