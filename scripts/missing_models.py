"""Count what looks like a filesystem or coordination API and has no library model.

    python scripts/missing_models.py [--most N] DIRECTORY...

Each directory is one codebase. The first table lists functions of libraries, `*.name` stands for a method of
an unknown object, and the second table lists names that are compared with a number like a rank. Both are
sorted by the number of codebases, then by the number of uses. Functions of the project itself do not count.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from fsrace_lint import catalog
from fsrace_lint.catalog import lexicon
from fsrace_lint.config.settings import Settings
from fsrace_lint.pipeline import discover
from fsrace_lint.pipeline.run import Run
from fsrace_lint.program.symbols import ExternalName, package_of
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax import recursion_limit
from fsrace_lint.syntax.ast_names import last_name
from fsrace_lint.syntax.traversal import all_in, evaluated, within

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.program.modules import Module

Uses: TypeAlias = "dict[str, dict[str, list[str]]]"
"""The places of the uses of a name, by name and codebase."""

ALIKE: Final = re.compile(
    r"acquire|barrier|broadcast|bcast|cache|checkpoint|delete|download|dump|export|extract|fetch|flush|gather"
    r"|(?<![bc])lock|makedir|mkdir|mkdtemp|persist|rank|reduce|remove|rename|replace|retrieve|rmdir|rmtree|save"
    r"|scatter|snapshot|store|symlink|(?<!a)sync|touch|unlink|unpack|untar|unzip|upload|url|write",
    re.IGNORECASE,
)
"""What the names of such functions contain."""
PLAIN: Final = frozenset(
    {"builtins", "copy", "csv", "dataclasses", "functools", "io", "itertools", "json", "logging", "pickle"}
    | {"struct", "yaml"}
)
"""Packages whose functions with such names change values, or write to files that are already open."""


def main() -> None:
    """Count, and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--most", type=int, default=200, help="the length of each table")
    parser.add_argument("directories", nargs="+", type=Path)
    options = parser.parse_args()
    calls: Uses = collections.defaultdict(lambda: collections.defaultdict(list))
    ranks: Uses = collections.defaultdict(lambda: collections.defaultdict(list))
    for directory in options.directories:
        codebase = directory.resolve()
        for uses, found in ((calls, found_calls), (ranks, found_ranks)):
            with contextlib.suppress(RecursionError), recursion_limit.frames(recursion_limit.MEANING):
                for name, place in found(codebase):
                    uses[name][codebase.name].append(place)
    for uses in (calls, ranks):
        print("codebases  uses  name, and a use", *table(uses)[: options.most], "", sep="\n", flush=True)


def linked(codebase: Path) -> tuple[list[Module], Project]:
    """Link the files of a codebase with the default settings."""
    settings = Settings(codebase)
    modules, project = Run(settings, discover.look([codebase], settings), whole=True).link()
    return [module for module in modules.values() if module is not None], project


def table(uses: Uses) -> list[str]:
    """Return the lines of a table, most codebases first."""
    rows = []
    for name, places in uses.items():
        every = [f"{codebase}/{place}" for codebase, found in places.items() for place in found]
        rows.append((-len(places), -len(every), name, every[0]))
    return [f"{-codebases:9} {-count:5}  {name}  {place}" for codebases, count, name, place in sorted(rows)]


def found_calls(codebase: Path) -> Iterator[tuple[str, str]]:
    """Yield the calls without a library model: the name, and the place."""
    modules, project = linked(codebase)
    own = {part for module in modules for part in module.name.split(".")} - catalog.load().libraries
    resolver = project.flows.resolver
    for module in modules:
        for function in module.functions:
            for site in project.flows.call_sites(function):
                symbol, called = resolver.symbol(site.call.function, site.state.scope), site.call.function
                name = None
                if isinstance(symbol, ExternalName):
                    name = None if package_of(symbol.name) in own | PLAIN else symbol.name
                elif symbol is None and isinstance(called, m.Attribute):
                    name = f"*.{called.name}"
                if name is not None and looks_alike(name) and not is_known(name):
                    yield name, f"{module.relative}:{site.call.span.line}"


def looks_alike(name: str) -> bool:
    """Return whether the last component of a name looks like a filesystem or coordination API."""
    return ALIKE.search(name.rpartition(".")[2]) is not None


def is_known(name: str) -> bool:
    """Return whether a library model describes a name."""
    known = catalog.load()
    effect = known.find("effect", name)  # of an object whose class is known, only `*.name` that writes counts
    other = tuple(kind for kind in catalog.KINDS if kind != "effect")
    is_write = effect is not None and effect.op == "write" and effect.path != "self"
    return is_write or known.is_listed(name) or known.is_in_process(name) or known.is_any(other, name)


def found_ranks(codebase: Path) -> Iterator[tuple[str, str]]:
    """Yield the unknown names that are compared with a number like a rank: the name, and the place."""
    for module in linked(codebase)[0]:
        for function in module.functions:
            for statement in all_in(function.facts.body):
                for whole in evaluated(statement):
                    for part in within(whole):
                        if isinstance(part, m.Compare) and is_unknown_rank(part):
                            yield last_name(part.left), f"{module.relative}:{function.facts.span.line}"


def is_unknown_rank(test: m.Compare) -> bool:
    """Return whether a comparison with a number looks like a rank check, and no model names its rank."""
    name, number = last_name(test.left), test.rights[0]
    if not isinstance(number, m.Constant) or not isinstance(number.value, int):
        return False
    words, known = {*lexicon.words(name)}, catalog.load()
    is_number = words & lexicon.meaning("kind of process") and words & lexicon.meaning("number of a process")
    is_named = any(known.find(kind, name) for kind in ("variable", "rank", "guard"))
    return not is_named and ("rank" in words or bool(is_number))


if __name__ == "__main__":
    main()
