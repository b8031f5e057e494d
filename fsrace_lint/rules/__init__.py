"""The rules, one per file."""

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
from fsrace_lint.config.settings import RENAMED
from fsrace_lint.findings.finding import Finding
from fsrace_lint.rules.base import Rule

if TYPE_CHECKING:
    from types import ModuleType


class LoadedRule(msgspec.Struct, frozen=True):
    """A rule, its page, and its check function.

    Rules about the run itself, such as an unreadable file, have no check function.
    """

    rule: Rule
    page: str
    check: Callable[[Project], Iterator[Finding]] | None

    @property
    def title(self) -> str:
        """The title: the first line of the page."""
        return self.page.partition("\n")[0]


@functools.cache
def load() -> tuple[LoadedRule, ...]:
    """Return all rules, sorted by code.

    Every module of this package that defines `RULE` is a rule. Its docstring is the page of the rule.
    """
    found = []
    for info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{info.name}")
        rule = getattr(module, "RULE", None)
        if isinstance(rule, Rule):
            found.append(LoadedRule(rule, _page(module, rule), getattr(module, "check", None)))
    return tuple(sorted(found, key=lambda loaded: loaded.rule.code))


def _page(module: ModuleType, rule: Rule) -> str:
    """Return the docstring of a rule, its title without a period, with a `Fix:` section if it has none."""
    title, _, rest = inspect.cleandoc(module.__doc__ or "").partition("\n")
    text = f"{title.removesuffix('.')}\n{rest}"
    if not rule.remedies or "\nFix: " in text:
        return text
    fill = functools.partial(textwrap.fill, width=100, break_on_hyphens=False)
    if len(rule.remedies) == 1:
        fix = fill(f"Fix: {rule.remedies[0].told}.")
    else:
        items = [fill(f"* {remedy.told};", subsequent_indent="  ") for remedy in rule.remedies]
        fix = "\n".join(["Fix:", *items]).removesuffix(";") + "."
    return text.replace("\nNot reported when:", f"\n{fix}\n\nNot reported when:", 1)


def names() -> dict[str, str]:
    """Return the names of all rules, by code."""
    return {loaded.rule.code: loaded.rule.name for loaded in load()}


@functools.cache
def codes() -> Mapping[str, str]:
    """Return the codes of all rules, by current and former name."""
    found = {name: code for code, name in names().items()}
    return MappingProxyType(found | {old: found[new] for old, new in RENAMED.items()})


def find(text: str) -> LoadedRule | None:
    """Return the rule with a code (in upper or lower case) or a name, or None."""
    wanted = text.strip().lower()
    name = RENAMED.get(wanted, wanted)
    return next((r for r in load() if name in {r.rule.code.lower(), r.rule.name}), None)
