"""Runs examples of the rules, and what fixes make of them, in every order of their calls."""

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

FOLDER: Final = FIXTURES / "explore"
TEMPORARY: Final = "/tmp/"
"""As examples spell the folder that each node has for itself."""
NAME: Final = "/example.py"
"""What timelines call an example: where lines of it are looked for, nobody stops."""


class Proof(NamedTuple):
    """How an example is run, and what must hold of it.

    Attributes:
        call: Runs the example in one process: it is given its module, the root and the rank.
        fails: How the bad example fails: "exception: FileExistsError", "check: Torn", "deadlock".
        setup: Makes what is there before.
        check: Raises where the tree is not as it must be in the end, and with crashes at any time.
        agree: Whether all processes must give the same result.
        expected: Exceptions that are no failure.
        filesystem: "posix" or "nfs".
        crash: "none", "kill" or "power".
        distributed: Whether `torch.distributed` is there.
        nodes: Whether each process is on a node of its own: its local rank is 0, and `/tmp` is its own.
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
        bad: Its text.
        proof: How it is run, before and after.
        profile: In which the rule speaks.
    """

    bad: str
    proof: Proof
    profile: str = "default"


def text(rule: str, label: str) -> str:
    """Give an example of a rule as its page shows it."""
    (loaded,) = (loaded for loaded in LOADED if loaded.rule.name == rule)
    return example(loaded, label)


def of_rule(rule: str) -> Case:
    """Give the bad example of a rule as a case of the recipe that the rule offers."""
    (loaded,) = (loaded for loaded in LOADED if loaded.rule.name == rule)
    profile = "strict" if loaded.rule.default_from is None else "default"
    return Case(text(rule, "Bad"), fixture("rules", rule).PROOF, profile)


def fixture(folder: str, name: str) -> Any:
    """Load the file that tells how the examples of a rule or a recipe are run."""
    return importlib.import_module(f"fixtures.explore.{folder}.{name.replace('-', '_')}")


def names(folder: str) -> set[str]:
    """Give the names of all such files."""
    return {path.stem.replace("_", "-") for path in (FOLDER / folder).glob("*.py")} - {"--init--"}


def fixed(case: Case, recipe: str, folder: Path) -> str:
    """Let `fix --unsafe` change a case, by this recipe and no other."""
    found, checked = run(project(folder, case.bad, case.profile))
    (patch,) = repair.repair(found, checked, unsafe=True)
    assert patch.refused == ()
    fixes = [finding.fix for finding in patch.applied if finding.fix is not None]
    assert fixes
    assert all(recipe in (fix.recipe, fix.otherwise) for fix in fixes)
    return patch.after.decode()


@functools.cache
def explored(program: str, proof: Proof, most: int = 10_000) -> Result:
    """Run a program in two processes, in every order of their calls that can make a difference, once.

    Args:
        program: Its text.
        proof: How it is run.
        most: How many orders at most.

    Returns:
        What was found.
    """
    _load_imports(program)

    def function(root: Path, rank: int) -> object:
        # examples are read as they stand; Python 3.12 wants a filter of them
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
    """Say how a program fails that is to fail; "" if it does not."""
    failure = explored(program, proof).failure
    if failure is None:
        return ""
    first = failure.text.partition(":")[0].partition(" in process ")[0]
    error = first.rpartition(".")[2]
    return f"{failure.kind}: {error}" if failure.kind in {"exception", "check", "crash"} else failure.kind


def _load_imports(program: str) -> None:
    """Load what a program imports: calls stop only in modules that are there when the exploration begins."""
    for node in ast.walk(ast.parse(program)):
        imported = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        imported += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for name in imported:
            if name not in sys.modules and name.partition(".")[0] not in standins.LIBRARIES:
                importlib.import_module(name)
