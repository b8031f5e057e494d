"""Make small changes of a file, each of which should make a test fail."""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any, Final

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

ROOT: Final = Path(__file__).parent.parent
PACKAGE: Final = "fsrace_lint"
ROOMS: Final = ("analysis", "engine", "program", "rules", "syntax")
COMPREHENSIONS: Final = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})
NO_CHANGE: Final = (cst.Annotation, cst.Decorator, cst.Import, cst.ImportFrom)


def turned(node: cst.If | cst.CompIf) -> Iterator[cst.CSTNode]:
    """Turn a test round."""
    test = node.test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    yield node.with_changes(test=cst.UnaryOperation(cst.Not(), test))


def nothing_returned(node: cst.Return) -> Iterator[cst.CSTNode]:
    """Return None."""
    if node.value is not None and not node.value.deep_equals(cst.Name("None")):
        yield node.with_changes(value=cst.Name("None"))


def left_out(node: cst.Expr) -> Iterator[cst.CSTNode]:
    """Leave a statement out that is a call, or yields something."""
    if isinstance(node.value, (cst.Call, cst.Yield)):
        yield cst.Pass()


def operators() -> list[tuple[type, Any]]:
    """Give what makes changes, each with the kind of node that it changes."""
    try:
        library = importlib.import_module("mutmut.mutation.mutators")
    except ModuleNotFoundError as error:
        raise SystemExit(f"{error.name} is missing: pip install mutmut") from None
    ours = [(cst.If, turned), (cst.CompIf, turned), (cst.Return, nothing_returned), (cst.Expr, left_out)]
    return [*library.mutation_operators, *ours]


@dataclass(frozen=True)
class Mutant:
    """One change of one file; `name` tells it from all others."""

    name: str
    path: Path
    line: int
    operator: str
    module: cst.Module
    node: cst.CSTNode
    instead: cst.CSTNode

    def text(self) -> str:
        """Give the file with the change."""
        return cst.ensure_type(self.module.deep_replace(self.node, self.instead), cst.Module).code

    def diff(self) -> str:
        """Give the lines that the change touches."""
        pair = self.module.code.splitlines(), self.text().splitlines()
        return "\n".join(list(difflib.unified_diff(*pair, n=0, lineterm=""))[2:])


class Changes(cst.CSTVisitor):
    """Collects all changes of a file."""

    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self, path: Path, module: cst.Module, known: list[tuple[type, Any]]) -> None:
        """Prepare for a file."""
        super().__init__()
        self.path, self.module, self.operators, self.found = path, module, known, list[Mutant]()
        self.line, self.place = 1, ""

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Make the changes of one node, and tell whether those inside of it are wanted."""
        if isinstance(node, NO_CHANGE) or _is_text(node) or _is_for_types(node):
            return False
        place = self.get_metadata(PositionProvider, node, None)
        if isinstance(place, CodeRange):
            self.line = place.start.line
            self.place = f"{self.line}:{place.start.column}-{place.end.line}:{place.end.column}"
        for kind, operator in self.operators:
            if isinstance(node, kind):
                name = operator.__name__.removeprefix("operator_")
                for number, instead in enumerate(operator(node)):
                    if name == "string" and number:
                        break
                    where = f"{self.path.relative_to(ROOT).as_posix()}:{self.place}"
                    made = (f"{where} {name} {number}", self.path, self.line, name)
                    self.found.append(Mutant(*made, self.module, node, instead))
        return True


def _is_text(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Expr) and isinstance(node.value, (cst.SimpleString, cst.ConcatenatedString))


def _is_for_types(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.If) and node.test.deep_equals(cst.Name("TYPE_CHECKING"))


def mutants(room: str) -> list[Mutant]:
    """Give all changes of a room, in the order of its files."""
    found, known = [], operators()
    for path in sorted((ROOT / PACKAGE / room).rglob("*.py")):
        wrapper = MetadataWrapper(cst.parse_module(path.read_text("utf-8")))
        changes = Changes(path, wrapper.module, known)
        wrapper.visit(changes)
        found += changes.found
    return found


def drawn(found: list[Mutant], random: Random) -> list[Mutant]:
    """Bring changes into a random order: one of each line first, and one of each operator on it."""
    random.shuffle(found)
    same: Counter[tuple[Path, int, str]] = Counter()
    seen: Counter[tuple[Path, int]] = Counter()
    turns = []
    for mutant in found:
        turns.append((same[mutant.path, mutant.line, mutant.operator], mutant))
        same[mutant.path, mutant.line, mutant.operator] += 1
    rounds = []
    for _, mutant in sorted(turns, key=lambda turn: (turn[0], random.random())):
        rounds.append((seen[mutant.path, mutant.line], mutant))
        seen[mutant.path, mutant.line] += 1
    return [mutant for _, mutant in sorted(rounds, key=lambda turn: turn[0])]


def pairs(
    old: CodeType, new: CodeType, *, in_function: bool = False
) -> Iterator[tuple[CodeType, CodeType, bool]]:
    """Give each code of a file with the one that takes its place, and whether it is of a function."""
    in_function |= bool(old.co_flags & inspect.CO_OPTIMIZED) and old.co_name not in COMPREHENSIONS
    yield old, new, in_function
    inner = [[each for each in code.co_consts if isinstance(each, CodeType)] for code in (old, new)]
    if [each.co_name for each in inner[0]] == [each.co_name for each in inner[1]]:
        for pair in zip(*inner, strict=True):
            yield from pairs(*pair, in_function=in_function)


def _own(code: CodeType) -> str:
    consts = [each for each in code.co_consts if not isinstance(each, CodeType)]
    return repr((code.co_code, code.co_names, consts, code.co_freevars, code.co_cellvars))


def swaps(mutant: Mutant, text: str) -> dict[CodeType, CodeType] | None:
    """Find the functions that a change is in.

    Returns:
        What takes the place of their code: nothing where the change makes no difference, None where it is not
        in a function.

    Raises:
        SyntaxError: The change is no Python.
    """
    old, new = (compile(each, mutant.path, "exec", dont_inherit=True) for each in (mutant.module.code, text))
    both = list(pairs(old, new))
    changed = [in_function for one, other, in_function in both if _own(one) != _own(other)]
    if not changed:
        return {}
    return {one: other for one, other, _ in both} if all(changed) else None
