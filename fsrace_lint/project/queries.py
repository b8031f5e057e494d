"""The linked project, as rules ask about it."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Final

from fsrace_lint.facts import model as m
from fsrace_lint.facts.spell import spell
from fsrace_lint.project.linker import Linker
from fsrace_lint.project.model import Probe, Site
from fsrace_lint.project.modules import link_module
from fsrace_lint.project.propagate import Propagation
from fsrace_lint.project.sites import Sites
from fsrace_lint.project.values import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fsrace_lint.catalog import Catalog, Op
    from fsrace_lint.project.modules import Module
    from fsrace_lint.project.paths import Path
    from fsrace_lint.project.states import Literal
    from fsrace_lint.project.values import Scope

_ALIASES_DEPTH: Final = 4


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
        self._found = Sites(self.linker, self.propagation)
        wanted = None if targets is None else frozenset(targets)
        self.targets = tuple(module for module in modules if wanted is None or module.relative in wanted)

    def sites(self, *ops: Op) -> Iterator[Site]:
        """Give the sites of some operations where they stand, file by file in the order of the code."""
        for module in self.targets:
            for function in module.functions:
                yield from (site for site in self._found.direct(function) if site.act.op in ops)

    def exposed(self, *ops: Op) -> Iterator[Site]:
        """Give the sites of some operations where their path is decided.

        A function that writes the path it is given is no site of its own where
        its callers are known: each call of it is one.
        """
        for module in self.targets:
            for function in module.functions:
                yield from (site for site in self._found.exposed(function) if site.act.op in ops)

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

    def _probes(self, site: Site) -> Iterator[Probe]:
        for literal in reversed(site.event.state.literals):
            for call, scope, truth in self._calls_in(
                literal.test, literal.scope, truth=literal.truth, depth=0
            ):
                act = self._found.effects.act(call, scope)
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


def _related(probed: Path, path: Path | None) -> bool:
    return path is not None and (probed.is_within(path) or path.is_within(probed))


__all__ = ["Project", "link_module"]
