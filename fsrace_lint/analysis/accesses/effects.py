"""The effects of calls on the filesystem, according to the catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from fsrace_lint.analysis.accesses.command_words import CommandWords
from fsrace_lint.analysis.accesses.model import LOOKING, WRITING, Operation, appends
from fsrace_lint.analysis.accesses.shell_commands import HERE, ShellCommands, expression_of
from fsrace_lint.analysis.values.abstract_values import Argument as Passed
from fsrace_lint.analysis.values.abstract_values import Expression
from fsrace_lint.analysis.values.call_arguments import holds, library_argument, words
from fsrace_lint.catalog import argument
from fsrace_lint.engine.query import query
from fsrace_lint.program.modules import LinkedClass
from fsrace_lint.program.symbols import ExternalName, Instance, qualified_name
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name
from fsrace_lint.syntax.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fsrace_lint.analysis.accesses.command_words import Calls, Command
    from fsrace_lint.analysis.accesses.shell_commands import Touched
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.values.abstract_values import Environment
    from fsrace_lint.analysis.values.resolve import Resolver
    from fsrace_lint.catalog import Catalog, Effect
    from fsrace_lint.program.relevance import Relevance

_OPENING_TO_WRITE: Final = frozenset({"O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND"})
_NONE: Final = m.Constant(None)
_PARENT: Final = m.Name("os.path.dirname")
"""The function, by its qualified name: the code of a call of a library need not import it."""
_OPENING: Final = frozenset({"open", "io.open", "pathlib.Path.open"})
_OF_TEXT: Final = frozenset({"encoding", "errors", "newline"})
_PATHLIB_KEYWORDS: Final = frozenset(
    {
        "mode",
        "parents",
        "exist_ok",
        "missing_ok",
        "follow_symlinks",
        "encoding",
        "errors",
        "newline",
        "path",
        "members",
        "filter",
        "pwd",
        "numeric_owner",
    }
)
_FAILING: Final = frozenset({"mkdir", "delete", "link", "rename"})
"""The operations of commands that do no harm if they fail."""
_PATHLIB_POSITIONS: Final = {"write_text": 1, "write_bytes": 1, "extractall": 2, "mkdir": 1}


class Started(Record, frozen=True):
    """A call that runs a program.

    Attributes:
        name: The name of the called function in the catalog.
        command: The expression for the command.
        folder: The expression for the working directory; None for the current one.
        checked: Whether the call raises an exception if the program fails.
    """

    name: str
    command: m.Expr
    folder: m.Expr | None
    checked: bool


class Effects:
    """Finds the filesystem operations of calls."""

    def __init__(self, resolver: Resolver, catalog: Catalog, relevance: Relevance) -> None:
        """Initialize for a project."""
        self.resolver = resolver
        self.catalog = catalog
        known = catalog.last_names["effect"] | catalog.last_names["program"]
        self.names = relevance.library_names(known)
        """The names that calls with an effect can have in the project."""
        self.words, self.shell = CommandWords(resolver), ShellCommands(catalog)

    def looks(self, call_site: CallSite) -> bool:
        """Return whether a call checks for the existence of paths."""
        operation = self.operation(call_site.call, call_site.state.scope)
        return operation is not None and operation.op in LOOKING

    def operation(self, call: m.Call, scope: Environment) -> Operation | None:
        """Return the operation of a call, or None if the call has no known effect."""
        if last_name(call.function) not in self.names:
            return None
        return self._read(call, scope)

    @query
    def _read(self, call: m.Call, scope: Environment) -> Operation | None:
        entity = self.resolver.symbol(call.function, scope)
        name = qualified_name(entity)
        if name is None:
            return self._unresolved(call, scope)
        effect = self.catalog.exact("effect", name)
        if effect is not None:
            return self._effected(effect, call, name, scope)
        if isinstance(entity, ExternalName) and isinstance(call.function, m.Attribute):
            effect = self.catalog.find("effect", name)
            if effect is not None and effect.path != "self" and effect.op == "write":
                return self._effected(effect, call, f"*.{call.function.name}", scope)
        return self._program(call, scope)

    def _unresolved(self, call: m.Call, scope: Environment) -> Operation | None:
        """Return the operation of a method of an unknown object, according to the name of the method."""
        if not isinstance(call.function, m.Attribute):
            return None
        method, receiver = call.function.name, call.function.value
        effect = self.catalog.exact("effect", f"*.{method}")
        if effect is None or not _could_be(effect, method, call):
            return None
        owner = self.resolver.symbol(receiver, scope)
        if isinstance(owner, LinkedClass) or (
            isinstance(owner, Instance) and isinstance(owner.of, LinkedClass)
        ):
            return None
        if any(self.catalog.exact("object-store", part) is not None for part in _parts(receiver)):
            return None
        usual = self.catalog.exact("variable", last_name(receiver))
        if usual is not None and usual.means == "trainer":
            return None
        return self._effected(effect, call, f"*.{method}", scope)

    def _effected(self, effect: Effect, call: m.Call, name: str, scope: Environment) -> Operation | None:
        mode = library_argument(call, effect.mode)
        bound = self.resolver.binding(mode.id, scope) if isinstance(mode, m.Name) else None
        if isinstance(bound, Passed):
            operation = _act(effect, call, name, bound.parameter.default or mode)
            return None if operation is None else replace(operation, mode=mode)
        return _act(effect, call, name, bound.expr if isinstance(bound, Expression) else mode)

    def program(self, call: m.Call, scope: Environment) -> Started | None:
        """Return the program call that a call is, or None for other calls."""
        if last_name(call.function) not in self.names:
            return None
        name = self.resolver.qualify(call.function, scope)
        entry = None if name is None else self.catalog.exact("program", name)
        if name is None or entry is None:
            return None
        command = m.Sequence("tuple", call.arguments) if entry.spread else library_argument(call, "0:args")
        folder = library_argument(call, ":cwd")
        return None if command is None else Started(name, command, folder, holds(entry.checked, call))

    def commands(self, started: Started, scope: Environment, calls: Calls = ()) -> tuple[Command, ...]:
        """Return the commands that a program call runs; the parameters are as in `touched`."""
        return self.words.commands(started.command, scope, calls)

    def touched(self, started: Started, scope: Environment, calls: Calls = ()) -> Touched | None:
        """Return what a program does to a path.

        Args:
            started: The program call.
            scope: The environment of the call.
            calls: The calls that lead to its function, and decide what its parameters are.
        """
        commands = self.commands(started, scope, calls)
        folder = () if started.folder is None else self.words.word(started.folder, scope, calls)
        return self.shell.touched(commands, folder)

    def _program(self, call: m.Call, scope: Environment) -> Operation | None:
        started = self.program(call, scope)
        done = None if started is None else self.touched(started, scope)
        if started is None or done is None:
            return None
        target = None if done.target is None else expression_of(done.target)
        return operation_of(started, done, expression_of(done.path), target)


def operation_of(started: Started, done: Touched, path: m.Expr, target: m.Expr | None = None) -> Operation:
    """Return the operation of a program.

    Args:
        started: The program call.
        done: What the program does.
        path: The expression for the path.
        target: The new path of a rename.
    """
    return Operation(
        op=done.op,
        path=path,
        api=started.name,
        tolerant=done.tolerant or (done.op in _FAILING and not started.checked),
        appends=done.appends,
        truncates=done.op == "write" and not done.appends,
        exclusive=done.exclusive,
        atomic=done.atomic,
        synchronized=done.atomic and done.op == "copy",
        target=target,
        tree=done.tree,
    )


def _could_be(effect: Effect, method: str, call: m.Call) -> bool:
    """Return whether a call of a method fits its entry: it has pathlib arguments, or passes a path."""
    if effect.path != "self" and method not in _PATHLIB_POSITIONS:
        return library_argument(call, effect.path) is not None
    few = len(call.arguments) <= _PATHLIB_POSITIONS.get(method, 0)
    return few and all(keyword.name in _PATHLIB_KEYWORDS for keyword in call.keywords)


def _act(effect: Effect, call: m.Call, name: str, given_mode: m.Expr | None) -> Operation | None:
    mode = _mode(effect.mode, given_mode) if effect.mode else "w"
    flags = set(words(library_argument(call, effect.flags))) if effect.flags else {"O_WRONLY"}
    op = effect.op
    if "b" in mode and name in _OPENING and any(map(_is_of_text, call.keywords)):
        return None  # `open()` raises `ValueError`
    if WRITING.isdisjoint(mode) or flags.isdisjoint(_OPENING_TO_WRITE):
        if "r" not in mode or effect.flags:
            return None
        op = "read"
    path, condition = _path(effect, call), library_argument(call, effect.condition)
    if effect.otherwise is not None and (condition is None or condition == m.Constant(value=False)):
        op, condition = effect.otherwise, None
    elif not _is_asked_for(effect, call):
        return None
    if path is None and op not in {"extract", "list", "name"}:
        return None
    tolerant = holds(effect.tolerant, call)
    if op == "mkdir" and effect.tree and tolerant:
        # copying a tree into an existing directory replaces its files one by one
        op, tolerant = "copy", False
    return Operation(
        op=op,
        path=HERE if path is None else path,
        api=name,
        tolerant=tolerant,
        appends=appends(mode) or "O_APPEND" in flags,
        truncates="O_TRUNC" in flags if effect.flags else "w" in mode,
        exclusive=holds(effect.exclusive, call) or "x" in mode or "O_EXCL" in flags,
        atomic=holds(effect.atomic, call),
        synchronized=holds(effect.synchronized, call),
        skips=holds(effect.skips, call),
        only="global" if holds(effect.globally, call) else effect.guard,
        condition=condition,
        target=library_argument(call, effect.target),
        tree=effect.tree,
        saves_model=effect.saves_model,
    )


def _path(effect: Effect, call: m.Call) -> m.Expr | None:
    """Return the path of an operation, or None if it is the current directory or unknown.

    None as an argument means the same as an omitted argument.
    """
    given = (library_argument(call, which) for which in (effect.path, effect.fallback))
    path = next((each for each in given if each not in {None, _NONE}), None)
    source = library_argument(call, effect.beside)
    default = argument(effect.path).default
    if path is None and source is not None:
        return m.Call(_PARENT, (source,), (), call.span)
    if path is None:
        return m.Constant(default) if default else None
    if not effect.within:
        return path
    if isinstance(path, m.Constant):
        return m.Constant(f"{effect.within}/{path.value}")
    parts = path.parts if isinstance(path, m.Format) else (path,)
    return m.Format((m.Constant(f"{effect.within}/"), *parts))


def _is_of_text(keyword: m.Keyword) -> bool:
    """Return whether an argument of `open()` is only for text."""
    return keyword.name in _OF_TEXT and keyword.value != _NONE


def _is_asked_for(effect: Effect, call: m.Call) -> bool:
    """Return whether a call runs the operation at all: an optional operation must be requested."""
    which = effect.condition
    return not which or argument(which).default == "true" or library_argument(call, which) is not None


def _mode(text: str, mode: m.Expr | None) -> str:
    if mode is None:
        return argument(text).default
    return mode.value if isinstance(mode, m.Constant) and isinstance(mode.value, str) else ""


def _parts(expr: m.Expr) -> Iterable[str]:
    while isinstance(expr, (m.Attribute, m.Call, m.Subscript)):
        if isinstance(expr, m.Attribute):
            yield expr.name
        expr = expr.function if isinstance(expr, m.Call) else expr.value
    if isinstance(expr, m.Name):
        yield expr.id
