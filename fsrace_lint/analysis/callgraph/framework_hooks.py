"""The methods that frameworks call, and the functions of configuration files that servers call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.engine.query import lazy, query
from fsrace_lint.syntax.ast_names import last_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.callgraph.function_flows import FunctionFlows
    from fsrace_lint.catalog.entries import Hook
    from fsrace_lint.program.modules import LinkedClass, LinkedFunction


class FrameworkHooks:
    """Finds the methods of the project that override a hook of a framework."""

    def __init__(self, flows: FunctionFlows) -> None:
        """Initialize for a project."""
        self.flows = flows

    @lazy
    def _classes(self) -> dict[str, list[str]]:
        """The names of the framework classes, by their hooks."""
        found: dict[str, list[str]] = {}
        for name in self.flows.catalog.names("hook"):
            owner, _, method = name.rpartition(".")
            found.setdefault(method, []).append(owner)
        return found

    def of(self, function: LinkedFunction) -> Hook | None:
        """Return the catalog entry of the hook that a method overrides, or None.

        The code and the functions of a configuration file are hooks by their names.
        """
        name = function.facts.name if function.index else "__code__"
        if name not in self._classes:
            return None
        if function.owner is None:
            file = function.module.relative.rpartition("/")[2].removesuffix(".py").replace("-", "_")
            is_top = function.facts.parent <= 0
            known: Hook | None = self.flows.catalog.exact("hook", f"{file}.{name}") if is_top else None
            return known
        return self._find(function, function.owner)

    @query
    def _find(self, function: LinkedFunction, owner: LinkedClass) -> Hook | None:
        method = function.facts.name
        bases = set(self._bases(owner))
        for class_ in self._classes[method]:
            if any(class_ == "*" or _is_same(base, class_) for base in bases):
                hook: Hook = self.flows.catalog.exact("hook", f"{class_}.{method}")
                return hook
        return None

    def _bases(self, owner: LinkedClass) -> Iterator[str]:
        """Yield the names of the framework classes that a class, or a subclass of it, derives from.

        Classes of the project count under their own names, because the project may be the framework.
        """
        related = (relative for heir in owner.descendants() for relative in heir.ancestors())
        for class_ in dict.fromkeys(related):
            if class_ is not owner:
                yield class_.qualified
            outer = self.flows.final_environment(class_.module.functions[class_.facts.parent])
            known = {base.facts.name for base in class_.bases}
            for base in class_.facts.bases:
                if last_name(base) not in known and outer is not None:
                    yield self.flows.resolver.qualify(base, outer) or last_name(base)


def _is_same(base: str, class_: str) -> bool:
    """Return whether two names refer to the same class, which frameworks export under multiple names."""
    same_last = base.rpartition(".")[2] == class_.rpartition(".")[2]
    return same_last and ("." not in base or base.partition(".")[0] == class_.partition(".")[0])
