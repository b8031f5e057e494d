"""Query: the hazards, one a file."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import textwrap
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from fsrace_lint.analysis.queries.project import Project
from fsrace_lint.findings.finding import Finding
from fsrace_lint.rules.base import Rule

if TYPE_CHECKING:
    from types import ModuleType


class LoadedRule(msgspec.Struct, frozen=True):
    """A rule, its page, and its query; the rules about the tool itself have no query."""

    rule: Rule
    page: str
    check: Callable[[Project], Iterator[Finding]] | None

    @property
    def title(self) -> str:
        """The first line of the page."""
        return self.page.partition("\n")[0]


@functools.cache
def load() -> tuple[LoadedRule, ...]:
    """Give all rules, by code.

    Returns:
        Every module of this package that defines `RULE`; its docstring begins the rule's page.
    """
    found = []
    for info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{info.name}")
        rule = getattr(module, "RULE", None)
        if isinstance(rule, Rule):
            found.append(LoadedRule(rule, _page(module, rule), getattr(module, "check", None)))
    return tuple(sorted(found, key=lambda loaded: loaded.rule.code))


def _page(module: ModuleType, rule: Rule) -> str:
    """Give the docstring of a rule, with what can be done about its findings where it does not say that."""
    text = inspect.cleandoc(module.__doc__ or "")
    if not rule.remedies or "\nFix: " in text:
        return text
    said = "; or ".join(remedy.told for remedy in rule.remedies)
    fix = textwrap.fill(f"Fix: {said}.", 100, break_on_hyphens=False)
    return text.replace("\nSilent when:", f"\n{fix}\n\nSilent when:", 1)


def names() -> dict[str, str]:
    """Give the name of every rule by its code."""
    return {loaded.rule.code: loaded.rule.name for loaded in load()}


@functools.cache
def codes() -> Mapping[str, str]:
    """Give the code of every rule by its name."""
    return MappingProxyType({name: code for code, name in names().items()})


def find(text: str) -> LoadedRule | None:
    """Find a rule by its code, in either case, or by its name."""
    wanted = text.strip().lower()
    return next((r for r in load() if wanted in {r.rule.code.lower(), r.rule.name}), None)
