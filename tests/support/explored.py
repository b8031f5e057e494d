"""Explores the interleavings of rule examples and of their fixed code."""

from __future__ import annotations

import ast
import functools
import importlib
import os
import sys
import types
import warnings
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fsrace_lint.explore import explore
from fsrace_lint.pipeline import repair
from support import FIXTURES, standins
from support.mdtest import run
from support.rule_pages import LOADED, example, project

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fsrace_lint.explore import Result

EXPLORED: Final = FIXTURES / "explore"
TEMPORARY: Final = "/tmp/"
"""The node-local directory in examples."""
NAME: Final = "/example.py"
"""The file name of an example in traces; reading lines of this file does not stop a process."""


class Proof(NamedTuple):
    """How an example is run, and its expected result.

    Attributes:
        call: Runs the example in one process, with its module, the root, and the rank.
        fails: How the bad example fails: "exception: FileExistsError", "check: Torn", "deadlock".
        setup: Creates the initial files.
        check: Raises if the tree is wrong at the end or, with crashes, at any time.
        agree: Whether all processes must return the same result.
        expected: Exceptions that are not failures.
        filesystem: "posix" or levels of NFS.
        crash: "none", "kill", "power", or "power-unordered".
        distributed: Whether `torch.distributed` is available.
        nodes: Whether each process is on a separate node, with local rank 0 and a private `/tmp`.
    """

    call: Callable[[Any, Path, int], object]
    fails: str
    setup: Callable[[Path], object] | None = None
    check: Callable[[Path], object] | None = None
    agree: bool = False
    expected: tuple[type[BaseException], ...] = ()
    filesystem: str = "posix"
    crash: str = "none"
    distributed: bool = False
    nodes: bool = False


class Case(NamedTuple):
    """A program that a recipe fixes.

    Attributes:
        bad: Its source.
        proof: How it is run, before and after the fix.
        profile: The profile that reports the rule.
        helped: Whether the settings name a module with the helpers, which the fixed program then uses.
    """

    bad: str
    proof: Proof
    profile: str = "default"
    helped: bool = False


def text(rule: str, label: str) -> str:
    """Return an example of a rule from its page."""
    (loaded,) = (loaded for loaded in LOADED if loaded.rule.name == rule)
    return example(loaded, label)


def of_rule(rule: str) -> Case:
    """Return the bad example of a rule as a case of the recipe that the rule suggests."""
    (loaded,) = (loaded for loaded in LOADED if loaded.rule.name == rule)
    profile = "strict" if loaded.rule.default_from is None else "default"
    return Case(text(rule, "Bad"), fixture("rules", rule).PROOF, profile)


def fixture(directory: str, name: str) -> Any:
    """Load the module that defines how the examples of a rule or recipe are run."""
    return importlib.import_module(f"fixtures.explore.{directory}.{name.replace('-', '_')}")


def names(directory: str) -> set[str]:
    """Return the names of all such modules."""
    return {path.stem.replace("_", "-") for path in (EXPLORED / directory).glob("*.py")} - {"--init--"}


def fixed(case: Case, recipe: str, directory: Path) -> str:
    """Return a case after `fix --unsafe-fixes`, which must use only this recipe."""
    more = 'helper-module = "fsrace_lint.safe"\n' if case.helped else ""
    found, checked = run(project(directory, case.bad, case.profile, more))
    (patch,) = repair.repair(found, checked, unsafe=True, certain=False)
    assert patch.refused == ()
    fixes = [finding.fix for finding in patch.applied if finding.fix is not None]
    assert fixes
    assert all(recipe in (fix.recipe, fix.otherwise) for fix in fixes)
    return patch.after.decode()


@functools.cache
def explored(program: str, proof: Proof, most: int = 10_000) -> Result:
    """Run a program in two processes, once in every distinct interleaving of their calls.

    Args:
        program: Its source.
        proof: How it is run.
        most: The maximum number of interleavings.

    Returns:
        The result of the exploration.
    """
    _load_imports(program)

    def function(root: Path, rank: int) -> object:
        # examples may call `extractall()` without a filter, which is deprecated since Python 3.12
        warnings.simplefilter("ignore", DeprecationWarning)
        standins.install()
        page = types.ModuleType("page")
        local = root.parent / "tmp"
        if proof.nodes:
            os.environ["LOCAL_RANK"] = "0"
            local /= f"node-{rank}"
        exec(compile(program.replace(TEMPORARY, f"{local}/"), NAME, "exec"), vars(page))
        return proof.call(page, root, rank)

    def setup(root: Path) -> None:
        for rank in range(2):
            (root.parent / "tmp" / f"node-{rank}").mkdir()
        if proof.setup is not None:
            proof.setup(root)

    return explore(
        function,
        setup=setup,
        check=proof.check,
        agree=proof.agree,
        expected=proof.expected,
        filesystem=proof.filesystem,
        crash=proof.crash,
        distributed=proof.distributed,
        max_schedules=most,
        shrink=False,
    )


def failing(program: str, proof: Proof) -> str:
    """Return how a program fails, or an empty string if it does not fail."""
    failure = explored(program, proof).failure
    if failure is None:
        return ""
    first = failure.text.partition(":")[0].partition(" in process ")[0]
    error = first.rpartition(".")[2]
    return f"{failure.kind}: {error}" if failure.kind in {"exception", "check", "crash"} else failure.kind


def _load_imports(program: str) -> None:
    """Import the modules of a program: calls stop only in modules that are loaded before the exploration."""
    for node in ast.walk(ast.parse(program)):
        imported = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        imported += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for name in imported:
            if name not in sys.modules and name.partition(".")[0] not in standins.LIBRARIES:
                importlib.import_module(name)
