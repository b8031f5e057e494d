"""Functions of a project that do nothing but create a directory, or that replace a file in one step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name
from fsrace_lint.syntax.traversal import all_in, evaluated, within

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fsrace_lint.analysis.accesses.effects import Effects
    from fsrace_lint.analysis.accesses.model import Operation
    from fsrace_lint.analysis.callgraph.function_flows import FunctionFlows
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.program.modules import LinkedFunction


class ProjectWriters:
    """Recognizes helpers by what they do."""

    def __init__(self, flows: FunctionFlows, effects: Effects) -> None:
        """Initialize for a project."""
        self.flows = flows
        self.effects = effects

    def is_ensure_dir(self, function: LinkedFunction) -> bool:
        """Return whether a function creates a directory and its parents, and does nothing else."""
        match function.facts:
            case m.Function(
                parameters=(m.Parameter(name=name, kind="positional", default=None),),
                decorators=(),
                body=(m.Evaluate(m.Call() as call), *rest),
                owner=-1,
                is_async=False,
            ):
                returned = [each.value for each in rest if isinstance(each, m.Return)]
                is_all = returned in ([], [m.Name(name)]) and len(returned) == len(rest)
                return is_all and self._makes(call, name, function)
        return False

    def _makes(self, call: m.Call, name: str, function: LinkedFunction) -> bool:
        """Return whether a call creates the directory of a parameter, and its parents."""
        sites = list(self.flows.call_sites(function))
        own = next((site for site in sites if site.call == call), None)
        done = None if own is None else self._operation(own)
        if done is None or done.op != "mkdir" or not done.tolerant or not _is_path(done.path, name):
            return False
        given = {keyword.name: keyword.value for keyword in call.keywords}
        only = given.keys() <= {"exist_ok", "parents"} and len(call.arguments) == (
            done.path in call.arguments
        )
        all_parents = last_name(call.function) == "makedirs" or given.get("parents") == m.Constant(True)  # noqa: FBT003  # a value in the code
        return only and all_parents and all(site.call in {call, done.path} for site in sites)

    def is_atomic_write(self, function: LinkedFunction) -> bool:
        """Return whether `with function(path, mode) as file` writes another file, and then renames it."""
        facts = function.facts
        first, rest = facts.parameters[:2], facts.parameters[2:]
        needed = [each for each in rest if each.default is None and each.kind in {"positional", "keyword"}]
        managers = [last_name(each) for each in facts.decorators]
        is_manager = facts.is_generator and not facts.is_async and managers == ["contextmanager"]
        is_fit = not needed and [each.kind for each in first] == ["positional"] * 2
        if not is_manager or not is_fit or facts.owner >= 0:
            return False
        path, mode = (each.name for each in first)
        withs = [each for each in all_in(facts.body) if isinstance(each, m.With) and _yields(each, mode)]
        yields = [each for each in all_in(facts.body) if isinstance(each, m.Evaluate) and _is_yield(each)]
        renamed = [site for site in self._renames(function) if _is_path(self._new(site), path)]
        return (
            len(withs) == len(yields) == len(renamed) == 1
            and withs[0].span < renamed[0].call.span
            and not any(_holds(each, renamed[0].call) for each in _only_on_failure(facts.body))
            and not any(_is_converted(each, path) for each in _expressions(facts.body))
            and self._is_unique(function)
        )

    def _operation(self, site: CallSite) -> Operation | None:
        return self.effects.operation(site.call, site.state.scope)

    def _new(self, site: CallSite) -> m.Expr | None:
        done = self._operation(site)
        return None if done is None else done.target

    def _renames(self, function: LinkedFunction) -> Iterator[CallSite]:
        for site in self.flows.call_sites(function):
            done = self._operation(site)
            if done is not None and done.op == "rename":
                yield site

    def _is_unique(self, function: LinkedFunction) -> bool:
        """Return whether a function calls something whose result differs between processes."""
        names = (
            self.flows.resolver.qualify(site.call.function, site.state.scope)
            for site in self.flows.call_sites(function)
        )
        return any(self.flows.catalog.is_any(("private",), name) for name in names)


def _is_path(expr: m.Expr | None, name: str) -> bool:
    """Return whether an expression is a variable, or `Path(variable)`."""
    inner = expr.arguments[0] if isinstance(expr, m.Call) and len(expr.arguments) == 1 else expr
    return inner == m.Name(name)


def _expressions(statements: Iterable[m.Statement]) -> Iterator[m.Expr]:
    """Yield all expressions in some statements."""
    for statement in all_in(statements):
        for expr in evaluated(statement):
            yield from within(expr)


def _is_converted(expr: m.Expr, name: str) -> bool:
    """Return whether an expression works only for a path as a string, or only for a path object."""
    match expr:
        case m.Attribute(value=value):
            return value == m.Name(name)
        case m.Binary(left=left, right=right):
            return m.Name(name) in {left, right}
    return False


def _is_yield(statement: m.Evaluate) -> bool:
    return isinstance(statement.value, m.Yield)


def _yields(block: m.With, mode: str) -> bool:
    """Return whether a block opens a file with a mode, and yields it."""
    for item in block.items:
        opening = item.context
        values = (
            (*opening.arguments, *(each.value for each in opening.keywords))
            if isinstance(opening, m.Call)
            else ()
        )
        if m.Name(mode) in values and any(each == m.Evaluate(m.Yield(item.target)) for each in block.body):
            return True
    return False


def _only_on_failure(statements: Iterable[m.Statement]) -> Iterator[m.Statement]:
    """Yield the statements of handlers and of `finally`."""
    for statement in all_in(statements):
        if isinstance(statement, m.Try):
            yield from (each for handler in statement.handlers for each in handler.body)
            yield from statement.final


def _holds(statement: m.Statement, call: m.Call) -> bool:
    return any(isinstance(each, m.Evaluate) and each.value == call for each in all_in((statement,)))
