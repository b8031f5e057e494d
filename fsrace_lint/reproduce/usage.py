"""How code uses a name, read from its syntax: as a path, a number, a list, or an object with attributes."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fsrace_lint.reproduce.target import Function

DEPTH: Final = 3
"""How many calls of functions of the same file are followed."""
_PATH_MODULES: Final = ("os.", "shutil.", "glob.", "tarfile.", "zipfile.", "pathlib.")
_NO_PATHS: Final = frozenset(["os.environ.get", "os.getenv", "os.kill", "os.system", "os.environ.setdefault"])
_READS: Final = frozenset(
    ["remove", "unlink", "rename", "replace", "move", "copy", "copy2", "copyfile", "getsize", "stat"]
)
_LISTS: Final = frozenset(["rmtree", "listdir", "scandir", "walk", "copytree", "rmdir", "iterdir"])
_CREATES: Final = frozenset(["makedirs", "mkdir"])
_OF_SEQUENCES: Final = frozenset(
    ["len", "enumerate", "sorted", "sum", "zip", "set", "list", "tuple", "max", "min"]
)
_METHODS: Final[Mapping[str, str]] = {
    "Path": "exists is_dir is_file mkdir joinpath with_suffix with_name parent parents stem suffix iterdir"
    " glob rglob write_text write_bytes read_text read_bytes unlink touch resolve absolute as_posix",
    "text": "split rsplit strip lstrip rstrip startswith endswith format lower upper encode rfind find join"
    " splitlines removeprefix removesuffix partition rpartition",
    "dict": "items keys values get update setdefault",
    "list": "append extend sort insert reverse",
}
"""The methods that only one type has, by type."""
_TYPE_OF: Final = {name: kind for kind, names in _METHODS.items() for name in names.split()}


class Use:
    """How a name, or an attribute of it, is used.

    Attributes:
        kinds: What the uses show: "path", "Path", "read", "listed", "created", "text", "number", "list",
            "dict", "call", and "truth".
        attributes: The attributes that are used.
        keys: The constant keys of subscripts.
    """

    def __init__(self) -> None:
        """Create the use of a name that nothing uses yet."""
        self.kinds: set[str] = set()
        self.attributes: dict[str, Use] = {}
        self.keys: dict[str, Use] = {}

    def at(self, name: str) -> Use:
        """Return the use of an attribute."""
        return self.attributes.setdefault(name, Use())

    def merge(self, other: Use) -> None:
        """Add the uses of another name for the same object."""
        self.kinds |= other.kinds
        for name, use in other.attributes.items():
            self.at(name).merge(use)
        for key, use in other.keys.items():
            self.keys.setdefault(key, Use()).merge(use)


def uses(
    function: Function, functions: Mapping[str, Function], methods: Mapping[str, Function], depth: int = DEPTH
) -> dict[str, Use]:
    """Return how a function uses each name.

    Args:
        function: The function.
        functions: The functions of its module, by name.
        methods: The methods of its class, by name.
        depth: How many calls to follow.

    Returns:
        The uses, by name.
    """
    reader = _Reader(functions, methods, depth)
    for statement in function.body:
        reader.visit(statement)
    for alias, original in reader.aliases.items():
        if alias in reader.found and alias != original:
            reader.found.setdefault(original, Use()).merge(reader.found[alias])
    return reader.found


def parameters(function: Function) -> list[ast.arg]:
    """Return the parameters that a call can pass by name, and positional ones."""
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


class _Reader(ast.NodeVisitor):
    def __init__(
        self, functions: Mapping[str, Function], methods: Mapping[str, Function], depth: int
    ) -> None:
        self.found: dict[str, Use] = {}
        self.aliases: dict[str, str] = {}
        self._functions, self._methods, self._depth = functions, methods, depth
        self._seen: list[Function] = []

    def _use(self, node: ast.AST) -> Use | None:
        """Return the use of a name, an attribute, or a subscript with a constant key."""
        if isinstance(node, ast.Name):
            return self.found.setdefault(node.id, Use())
        if isinstance(node, ast.Attribute):
            owner = self._use(node.value)
            return None if owner is None else owner.at(node.attr)
        if isinstance(node, ast.Subscript):
            owner = self._use(node.value)
            key = node.slice
            if owner is None:
                return None
            is_key = isinstance(key, ast.Constant) and isinstance(key.value, str)
            owner.kinds.add("dict" if is_key else "list")
            return owner.keys.setdefault(key.value, Use()) if is_key else Use()  # type: ignore[attr-defined]
        return None

    def _note(self, node: ast.AST | None, kind: str) -> None:
        use = None if node is None else self._use(node)
        if use is not None:
            use.kinds.add(kind)

    def visit_Call(self, node: ast.Call) -> None:
        """Read the arguments, and the type that a method shows."""
        name = ast.unparse(node.func)
        last = name.rpartition(".")[2]
        if isinstance(node.func, ast.Attribute):
            self._method(node.func, last)
        elif isinstance(node.func, ast.Name) and node.func.id not in self._functions:
            self._note(node.func, "call")
        self._arguments(node, name, last)
        self._follow(node, name)
        self.generic_visit(node)

    def _method(self, node: ast.Attribute, last: str) -> None:
        use = self._use(node.value)
        if use is None:
            return
        if last in _TYPE_OF:
            use.kinds.add(_TYPE_OF[last])
        if last in _CREATES:
            use.kinds.add("created")
        elif last in ("unlink", "read_text", "read_bytes"):
            use.kinds.add("read")
        use.at(last).kinds.add("call")

    def _arguments(self, node: ast.Call, name: str, last: str) -> None:
        given = [*node.args, *(each.value for each in node.keywords)]
        is_of_paths = name.startswith(_PATH_MODULES) and name not in _NO_PATHS
        for position, value in enumerate(given):
            if is_of_paths or (name in ("open", "Path") and position == 0):
                self._note(value, "path")
                self._note_access(node, value, last, position)
            elif name in ("range", "int", "float"):
                self._note(value, "number")
            elif name in _OF_SEQUENCES:
                self._note(value, "list")

    def _note_access(self, node: ast.Call, value: ast.expr, last: str, position: int) -> None:
        if last in _CREATES:
            self._note(value, "created")
        elif last == "join" and position == 0:
            self._note(value, "joined")
        elif last in _LISTS and position == 0:
            self._note(value, "listed")
        elif (last in _READS and position == 0) or (last == "open" and not _creates(node)):
            self._note(value, "read")

    def _follow(self, node: ast.Call, name: str) -> None:
        """Add what a called function of the same file does with the arguments."""
        is_own = name.startswith(("self.", "cls."))
        callee = self._methods.get(name.partition(".")[2]) if is_own else self._functions.get(name)
        if callee is None or not self._depth:
            return
        inner = uses(callee, self._functions, self._methods, self._depth - 1)
        names = [each.arg for each in parameters(callee)]
        if is_own and names:
            names.pop(0)
        pairs = [*zip(names, node.args, strict=False), *((each.arg, each.value) for each in node.keywords)]
        for parameter, value in pairs:
            use = self._use(value)
            if use is not None and parameter in inner:
                use.merge(inner[parameter])

    def visit_Assign(self, node: ast.Assign) -> None:
        """Remember other names of the same object."""
        if (
            isinstance(node.value, ast.Name)
            and len(node.targets) == 1
            and isinstance(node.targets[0], ast.Name)
        ):
            self.aliases[node.targets[0].id] = node.value.id
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Record that an attribute is used."""
        use = self._use(node)
        if use is not None and isinstance(node.ctx, ast.Store):
            use.kinds.add("stored")
        if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
            self._add_method(node.value.id, self._methods.get(node.attr))
        self.generic_visit(node)

    def _add_method(self, name: str, method: Function | None) -> None:
        """Add what a method or property uses of the same object."""
        if method is None or not self._depth or method in self._seen:
            return
        self._seen.append(method)
        inner = uses(method, self._functions, self._methods, self._depth - 1)
        owner = next((each.arg for each in parameters(method)), "")
        if owner in inner:
            self.found.setdefault(name, Use()).merge(inner[owner])

    def visit_Subscript(self, node: ast.Subscript) -> None:
        """Record that an item is used."""
        self._use(node)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Read the types from the operator and the other side."""
        for one, other in ((node.left, node.right), (node.right, node.left)):
            if isinstance(node.op, ast.Div) and (_is_text(other) or isinstance(other, ast.JoinedStr)):
                self._note(one, "Path")
                self._note(one, "joined")
            elif isinstance(node.op, ast.Add) and (_is_text(other) or isinstance(other, ast.JoinedStr)):
                self._note(one, "text")
            elif _is_number(other) or isinstance(node.op, ast.FloorDiv | ast.Sub | ast.Pow):
                self._note(one, "number")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        """Read the types from what a value is compared with."""
        sides = [node.left, *node.comparators]
        for operator, one, other in zip(node.ops, sides, sides[1:], strict=False):
            if isinstance(operator, ast.In | ast.NotIn):
                self._note(other, "list")
            for side, facing in ((one, other), (other, one)):
                if _is_text(facing):
                    self._note(side, "text")
                elif _is_number(facing):
                    self._note(side, "number")
        self.generic_visit(node)

    def visit_For(self, node: ast.For) -> None:
        """Record what is iterated over."""
        self._note(node.iter, "list")
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        """Record what is iterated over."""
        self._note(node.iter, "list")
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        """Record what is only tested."""
        inner = node.test.operand if isinstance(node.test, ast.UnaryOp) else node.test
        self._note(inner, "truth")
        self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Record a directory at the start of a path."""
        first, *rest = node.values
        after = rest[0].value if rest and isinstance(rest[0], ast.Constant) else ""
        if isinstance(first, ast.FormattedValue) and str(after).startswith("/"):
            self._note(first.value, "joined")
        self.generic_visit(node)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> None:
        """Record a format that only numbers have."""
        spec = node.format_spec
        text = ast.unparse(spec) if spec is not None else ""
        self._note(node.value, "number" if text.rstrip("'\"")[-1:] in tuple("dfeg") and text else "text")
        self.generic_visit(node)


def _creates(node: ast.Call) -> bool:
    """Return whether an argument of a call of `open()` is a mode in which it creates the file."""
    modes = [*node.args[1:], *(each.value for each in node.keywords if each.arg == "mode")]
    return any(isinstance(each, ast.Constant) and str(each.value)[:1] in ("w", "a", "x") for each in modes)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float) and node.value is not True
