"""The linked project, as rules ask about it."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Final

from fsrace_lint.facts import model as m
from fsrace_lint.facts.spell import spell
from fsrace_lint.project.effects import Effects, given
from fsrace_lint.project.linker import Linker
from fsrace_lint.project.model import Probe, Reach, Site
from fsrace_lint.project.modules import link_module
from fsrace_lint.project.processes import runs
from fsrace_lint.project.propagate import Propagation
from fsrace_lint.project.values import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fsrace_lint.catalog import Catalog, Op
    from fsrace_lint.project.flow import Event, Literal
    from fsrace_lint.project.modules import LinkedFunction, Module
    from fsrace_lint.project.paths import Path
    from fsrace_lint.project.values import Scope

_CALLERS_DEPTH: Final = 4
_ALIASES_DEPTH: Final = 4
_NODE_LOCAL: Final = (("", "tmp"), ("", "dev", "shm"), ("", "var", "tmp"))


class Project:
    """All files of a project, linked; sites are found on demand and only in the files asked for."""

    def __init__(
        self, modules: Sequence[Module], catalog: Catalog, targets: Iterable[str] | None = None
    ) -> None:
        """Link the modules of a project.

        Args:
            modules: The modules, as link_module makes them.
            catalog: What library names mean.
            targets: The relative paths of the files to report on; all where None.
        """
        self.catalog = catalog
        self.linker = Linker(modules, catalog)
        self.propagation = Propagation(self.linker)
        self._effects = Effects(self.linker.resolver, catalog)
        wanted = None if targets is None else frozenset(targets)
        self.targets = tuple(module for module in modules if wanted is None or module.relative in wanted)
        self._sites: dict[Module, tuple[Site, ...]] = {}

    def sites(self, *ops: Op) -> Iterator[Site]:
        """Give the sites of some operations, file by file in the order of the code."""
        for module in self.targets:
            if module not in self._sites:
                self._sites[module] = tuple(self._find_sites(module))
            yield from (site for site in self._sites[module] if site.op in ops)

    def probe_then(self, *ops: Op, absent: bool) -> Iterator[tuple[Probe, Site]]:
        """Give the sites that are reached only after an existence test of their path.

        Args:
            ops: The operations of the sites.
            absent: Whether the test found the path missing (else: there).

        Yields:
            The nearest such test before the site, and the site.
        """
        for site in self.sites(*ops):
            probe = next(
                (p for p in self._probes(site) if p.absent == absent and _related(p.path, site.path)), None
            )
            if probe is not None:
                yield probe, site

    def is_probed(self, site: Site) -> bool:
        """Tell whether any existence test of its path comes before a site."""
        return any(_related(probe.path, site.path) for probe in self._probes(site))

    def about(self, module: Module) -> Project:
        """Give the same project with one file to report on; what was linked is shared."""
        narrowed = copy.copy(self)
        narrowed.targets = (module,)
        return narrowed

    def statistics(self) -> dict[str, int]:
        """Count what was linked and what could not be resolved."""
        return {
            "functions": sum(len(module.functions) for module in self.linker.table.modules),
            **self.linker.counts(),
        }

    def _find_sites(self, module: Module) -> Iterator[Site]:
        interesting = self.catalog.last_names["effect"] | self.catalog.last_names["program"]
        for function in module.functions:
            if interesting.isdisjoint(function.facts.mentions):
                continue
            flow = self.linker.flow(function)
            for event in flow.events if flow is not None else ():
                site = self._site(event)
                if site is not None:
                    yield site

    def _site(self, event: Event) -> Site | None:
        act = self._effects.act(event.call, event.state.scope)
        if act is None:
            return None
        path = self.linker.paths.normalize(act.path, event.state.scope)
        if act.op in {"probe", "list"}:
            return None
        function = event.function
        context = self.propagation.context(function)
        private, certain = self._reach(path, function, 0)
        return Site(
            op=act.op,
            event=event,
            path=path,
            spelled=spell(act.path),
            callee=spell(event.call.function),
            api=act.api,
            tolerant=act.tolerant,
            caught=self.propagation.caught(event) | context.caught,
            locked=self.propagation.locked(event) or context.locked,
            runs=runs(event.state.processes & context.processes),
            reach=Reach.PRIVATE if private else Reach.NODE if _is_node_local(path) else Reach.SHARED,
            certain=certain,
            evidence=self.propagation.evidence(function),
        )

    def _reach(self, path: Path | None, function: LinkedFunction, depth: int) -> tuple[bool, bool]:
        """Tell whether a path is a process's own, and whether that answer is certain."""
        if path is None:
            return False, False
        private, certain = path.private, path.certain
        for symbol in path.symbols():
            parameter = self.linker.paths.parameter_of(symbol, function)
            if parameter is not None and not private:
                inner_private, inner_certain = self._passed(parameter, function, depth)
                private, certain = inner_private, certain and inner_certain
        return private, certain

    def _passed(self, parameter: m.Parameter, function: LinkedFunction, depth: int) -> tuple[bool, bool]:
        """Join over the callers what they pass for a parameter: private only if it is for all."""
        answers = []
        for edge in self.propagation.edges(function):
            if edge.handed or depth > _CALLERS_DEPTH:
                return False, False
            value = passed(edge.event.call, parameter, function)
            if value is None:
                answers.append((False, parameter.default is not None))
                continue
            path = self.linker.paths.normalize(value, edge.event.state.scope)
            answers.append(self._reach(path, edge.event.function, depth + 1))
        if not answers:
            return False, False
        return all(private for private, _ in answers), all(certain for _, certain in answers)

    def _probes(self, site: Site) -> Iterator[Probe]:
        for literal in reversed(site.event.state.literals):
            for call, scope, truth in self._calls_in(
                literal.test, literal.scope, truth=literal.truth, depth=0
            ):
                act = self._effects.act(call, scope)
                path = (
                    None if act is None or act.op != "probe" else self.linker.paths.normalize(act.path, scope)
                )
                if path is not None:
                    yield _probe(call, path, literal, site, absent=not truth)

    def _calls_in(
        self, test: m.Expr, scope: Scope, *, truth: bool, depth: int
    ) -> Iterator[tuple[m.Call, Scope, bool]]:
        """Give the calls a test consists of, and how each came out for the test to come out as it did."""
        match test:
            case m.Call():
                yield test, scope, truth
            case m.Not(value=value):
                yield from self._calls_in(value, scope, truth=not truth, depth=depth)
            case m.Boolean(values=values):
                for value in values:
                    yield from self._calls_in(value, scope, truth=truth, depth=depth)
            case m.Walrus(value=value):
                yield from self._calls_in(value, scope, truth=truth, depth=depth)
            case m.Name() | m.Attribute():
                bound = self.linker.guards.known(test, scope)
                if isinstance(bound, Value) and depth < _ALIASES_DEPTH:
                    yield from self._calls_in(bound.expr, bound.scope, truth=truth, depth=depth + 1)
            case m.Compare(left=left, operators=(operator,), rights=(m.Constant(value=bool() as value),)):
                same = value == (operator in {"==", "is"})
                yield from self._calls_in(left, scope, truth=truth == same, depth=depth)
            case _:
                return


def _probe(call: m.Call, path: Path, literal: Literal, site: Site, *, absent: bool) -> Probe:
    test = literal.test.value if isinstance(literal.test, m.Not) else literal.test
    branch = literal.branch
    alone = False
    if branch is not None and not literal.exit:
        taken, other = (branch.body, branch.orelse) if literal.truth else (branch.orelse, branch.body)
        only = taken[0] if len(taken) == 1 and not other else None
        alone = isinstance(only, m.Evaluate) and only.value is site.event.call
    return Probe(call.span, spell(call), path, absent, literal.exit, test is call, alone)


def passed(call: m.Call, parameter: m.Parameter, function: LinkedFunction) -> m.Expr | None:
    """Find what a call passes for a parameter of the function it calls.

    Args:
        call: The call.
        parameter: The parameter.
        function: The function called; for a method the object is passed unseen.

    Returns:
        The expression, or None where the default is used.
    """
    names = [p.name for p in function.facts.parameters if p.kind == "positional"]
    position = ""
    if parameter.name in names:
        is_bound = function.owner is not None and isinstance(call.function, (m.Attribute, m.Name))
        index = names.index(parameter.name) - (1 if is_bound else 0)
        position = str(index) if index >= 0 else ""
    return given(call, f"{position}:{parameter.name}")


def _related(probed: Path, path: Path | None) -> bool:
    return path is not None and (probed.is_within(path) or path.is_within(probed))


def _is_node_local(path: Path | None) -> bool:
    if path is None:
        return False
    literal = [
        "".join(piece for piece in component if isinstance(piece, str)) for component in path.components
    ]
    return any(tuple(literal[: len(prefix)]) == prefix for prefix in _NODE_LOCAL)


__all__ = ["Project", "link_module"]
