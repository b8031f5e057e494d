"""What protects a call in its own function: handlers, locks, contexts that let one process go first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.facts import model as m
from fsrace_lint.facts.names import last_name
from fsrace_lint.project.modules import LinkedFunction
from fsrace_lint.project.resolve import qualified_name

if TYPE_CHECKING:
    from fsrace_lint.project.linker import Linker
    from fsrace_lint.project.states import Event
    from fsrace_lint.project.summarize import Summaries
    from fsrace_lint.project.values import Value


class Protection:
    """Reads what stands around calls."""

    def __init__(self, linker: Linker, summaries: Summaries) -> None:
        """Prepare for a project."""
        self.linker = linker
        self.catalog = linker.catalog
        self.summaries = summaries

    def caught(self, event: Event) -> frozenset[str]:
        """Name the exceptions that are handled around a call, in its own function."""
        names: set[str] = set()
        for net in event.nets:
            for handler in net.handlers:
                if handler.caught is None:
                    types: tuple[m.Expr, ...] = (m.Name("BaseException"),)
                else:
                    types = (
                        handler.caught.items if isinstance(handler.caught, m.Sequence) else (handler.caught,)
                    )
                spelled = {_last(self.linker.resolver.qualify(type_, net.scope)) for type_ in types}
                if gives_up(handler):
                    spelled &= {"FileExistsError"}
                names |= spelled
            names |= {_last(self.linker.resolver.qualify(type_, net.scope)) for type_ in net.suppressed}
        return frozenset(names)

    def locked(self, event: Event) -> bool:
        """Tell whether a lock between processes is held around a call, in its own function."""
        return bool(event.state.locks) or any(self._is_lock(context) for context in event.contexts)

    def first(self, event: Event) -> str | None:
        """Give the scope whose first process runs a call before the others, where a context does that."""
        resolver = self.linker.resolver
        for context in event.contexts:
            if isinstance(context.expr, m.Call):
                entity = resolver.entity(context.expr.function, context.scope)
                name = qualified_name(entity) or "*." + last_name(context.expr.function)
                entry = self.catalog.find("first", name)
                if entry is not None:
                    return str(entry.scope)
                own = self.summaries.first_scope(entity) if isinstance(entity, LinkedFunction) else None
                if own is not None:
                    return own
        return None

    def _is_lock(self, context: Value) -> bool:
        resolver = self.linker.resolver
        expr, scope = context.expr, context.scope
        entity = resolver.entity(expr.function if isinstance(expr, m.Call) else expr, scope)
        name = resolver.type_name(entity)
        if name is not None and (name.startswith(("threading.", "asyncio."))):
            return False
        entry = self.catalog.find("lock", name)
        if entry is not None:
            return bool(entry.kind == "context")
        spelled = last_name(expr)
        return "lock" in spelled.lower() and "block" not in spelled.lower()


def gives_up(handler: m.Handler) -> bool:
    """Tell whether a handler always raises again."""
    return any(isinstance(statement, m.Raise) for statement in handler.body)


def _last(name: str | None) -> str:
    return "" if name is None else name.rpartition(".")[2]
