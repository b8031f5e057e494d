"""Repair: turn the fixes of findings into new source text, or say why not."""

from __future__ import annotations

import ast
import collections
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import libcst as cst
import msgspec

from fsrace_lint.findings import Applicability, Finding, Fix
from fsrace_lint.fixes.imports import add_imports
from fsrace_lint.fixes.recipe import Change, Edit, RefusalError, Surroundings, Target
from fsrace_lint.fixes.recipes import load
from fsrace_lint.fixes.tree import Tree, comments, plant
from fsrace_lint.source import Source, Unreadable, decode

if TYPE_CHECKING:
    from fsrace_lint.spans import Span

__all__ = ["Patch", "Refusal", "Surroundings", "Verify", "alone", "repair"]

_BOM: Final = b"\xef\xbb\xbf"
_LONGEST: Final = 500
"""How many parts a chain may have that the parser of Python takes for one node, or facts hold flat."""
_TOO_DEEP: Final = "the code is nested too deeply"
_STRINGS: Final = (cst.FormattedString, cst.TemplatedString)

# Given the source as repaired and the findings that should now be gone, says why that will not do.
Verify: TypeAlias = Callable[[Source, tuple[Finding, ...]], str | None]


class Refusal(msgspec.Struct, frozen=True):
    """A finding whose fix was not made, and why."""

    finding: Finding
    reason: str


class Patch(msgspec.Struct, frozen=True):
    """What came of the fixes of one file: the same bytes where all were refused."""

    file: Path
    path: str
    before: bytes
    after: bytes
    applied: tuple[Finding, ...]
    refused: tuple[Refusal, ...]


class _Plan(msgspec.Struct, frozen=True):
    """The change that answers one or more findings at once, and the fix that it is made by."""

    findings: tuple[Finding, ...]
    change: Change
    fix: Fix


def repair(source: Source, findings: Sequence[Finding], verify: Verify, surroundings: Surroundings) -> Patch:
    """Make the fixes of findings in one file.

    All are made together if that passes; else one after another, each on top of
    those that passed, and the others are refused.

    Args:
        source: The file.
        findings: Its findings whose fixes are wanted.
        verify: Says why a repaired source will not do, or None.
        surroundings: What the project says to fixes in the file.

    Returns:
        The old and the new bytes, what was fixed, and what was not and why.
    """
    ordered = sorted(findings, key=Finding.sort_key)
    try:
        tree = _read(source)
    except RefusalError as error:
        refused = [Refusal(finding, str(error)) for finding in ordered]
        return _patch(source, source.data, (), refused)
    return _Repair(source, tree, verify, surroundings).make(ordered)


def alone(source: Source, findings: Sequence[Finding], surroundings: Surroundings) -> list[Patch]:
    """Make each fix by itself, on the file as it is; nobody judges what comes of it.

    Args:
        source: The file.
        findings: Its findings whose fixes are wanted.
        surroundings: What the project says to fixes in the file.

    Returns:
        A patch for each finding, in the same order.
    """
    try:
        tree = _read(source)
    except RefusalError as error:
        return [_patch(source, source.data, (), [Refusal(finding, str(error))]) for finding in findings]
    single = _Repair(source, tree, lambda _repaired, _fixed: None, surroundings)
    return [single.make([finding]) for finding in findings]


def _patch(source: Source, after: bytes, plans: Iterable[_Plan], refused: Iterable[Refusal]) -> Patch:
    applied = sorted((finding for plan in plans for finding in plan.findings), key=Finding.sort_key)
    refused = sorted(refused, key=lambda refusal: refusal.finding.sort_key())
    return Patch(source.file, source.path, source.data, after, tuple(applied), tuple(refused))


def _is_endless(text: str) -> bool:
    """Tell whether libcst, for which each part is a level, may run out of stack and end the process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nodes = ast.walk(ast.parse(text))
    return any(
        (isinstance(node, ast.BoolOp) and len(node.values) > _LONGEST)
        or (isinstance(node, ast.BinOp) and _is_long(node))
        or (isinstance(node, ast.alias) and node.name.count(".") > _LONGEST)
        or (isinstance(node, ast.ImportFrom) and (node.module or "").count(".") > _LONGEST)
        for node in nodes
    )


def _is_long(node: ast.expr) -> bool:
    """Tell whether a sum, or what else has its operators in a row, has too many parts."""
    for _ in range(_LONGEST):
        if not isinstance(node, ast.BinOp):
            return False
        node = node.left
    return True


def _read(source: Source) -> Tree:
    try:
        if _is_endless(source.text):
            raise RefusalError(_TOO_DEEP)
        tree = plant(source.text, source.newline)
    except RecursionError:
        raise RefusalError(_TOO_DEEP) from None
    except (SyntaxError, ValueError, cst.ParserSyntaxError):
        raise RefusalError("libcst cannot parse the file") from None
    if "\f" in tree.module.default_indent:
        raise RefusalError("a form feed stands in the indentation")
    if _encode(source, tree.module.code) != source.data:
        raise RefusalError("the file would not keep its bytes, so nothing in it is changed")
    return tree


def _encode(source: Source, text: str) -> bytes:
    try:
        return (_BOM if source.bom else b"") + text.encode(source.encoding)
    except UnicodeError:
        raise RefusalError(f"the file cannot be written as {source.encoding.upper()}") from None


class _Repair(msgspec.Struct, frozen=True):
    """The repair of one file."""

    source: Source
    tree: Tree
    verify: Verify
    surroundings: Surroundings

    def make(self, findings: Iterable[Finding]) -> Patch:
        """Make what can be made, together or one after another."""
        plans, refused = self._plans(findings)
        after = self._attempt(plans)
        if isinstance(after, bytes):
            return _patch(self.source, after, plans, refused)
        after, passed = self.source.data, list[_Plan]()
        for plan in sorted(plans, key=lambda plan: not any(edit.whole for edit in plan.change.edits)):
            last, result = self._settle(passed, plan)
            if isinstance(result, str):
                refused += [Refusal(finding, result) for finding in plan.findings]
            else:
                after, passed = result, [*passed, last]
        return _patch(self.source, after, passed, refused)

    def _plans(self, findings: Iterable[Finding]) -> tuple[list[_Plan], list[Refusal]]:
        """Plan the changes; findings that ask for the same one share a plan."""
        groups: dict[tuple[str, Span], list[tuple[Finding, Fix]]] = {}
        refused = []
        for finding in findings:
            fix = finding.fix
            if fix is None:
                refused.append(Refusal(finding, "there is no fix for it"))
            elif fix.applicability is Applicability.SKETCH:
                refused.append(Refusal(finding, "the fix is a sketch, which is shown but never made"))
            else:
                groups.setdefault((fix.recipe, fix.span), []).append((finding, fix))
        plans = []
        for group in groups.values():
            members = tuple(finding for finding, _ in group)
            fix = next((fix for _, fix in group if fix.check is not None), group[0][1])
            try:
                plans.append(self._planned(members, fix))
            except RefusalError as error:
                refused += [Refusal(finding, str(error)) for finding in members]
            except RecursionError:
                refused += [Refusal(finding, _TOO_DEEP) for finding in members]
        return plans, refused

    def _planned(self, findings: tuple[Finding, ...], fix: Fix) -> _Plan:
        """Plan a fix by its recipe, or by the other one where that refuses."""
        try:
            return _Plan(findings, load(fix.recipe).recipe(self._target(fix)), fix)
        except RefusalError:
            if not fix.otherwise:
                raise
            return self._planned(findings, _otherwise(fix))

    def _target(self, fix: Fix) -> Target:
        call = self.tree.calls.get(fix.span)
        if call is None:
            raise RefusalError("no call stands at this place")
        if any(isinstance(node, _STRINGS) for node in self.tree.ancestors(call)):
            raise RefusalError("positions inside f-strings are unreliable before Python 3.12")
        return Target(self.tree, call, fix, self.surroundings)

    def _settle(self, passed: Sequence[_Plan], plan: _Plan) -> tuple[_Plan, bytes | str]:
        """Make one plan on top of those that passed, or the one to try otherwise: new bytes, or why not."""
        result = self._attempt([*passed, plan])
        if not isinstance(result, str) or not plan.fix.otherwise:
            return plan, result
        try:
            other = self._planned(plan.findings, _otherwise(plan.fix))
        except RefusalError:
            return plan, result
        again = self._attempt([*passed, other])
        return (plan, result) if isinstance(again, str) else (other, again)

    def _attempt(self, plans: Sequence[_Plan]) -> bytes | str:
        """Make some plans together: the new bytes, or why they will not do."""
        source = self.source
        if not plans:
            return source.data
        try:
            after = _encode(source, _rewrite(self.tree, [plan.change for plan in plans]).code)
            repaired = decode(after, source.file, source.file.parent)
            if isinstance(repaired, Unreadable):
                return f"the repaired file {repaired.reason}"
            repaired = msgspec.structs.replace(repaired, path=source.path, relative=source.relative)
            _check(self.tree.module, repaired)
        except RefusalError as error:
            return str(error)
        except RecursionError:
            return _TOO_DEEP
        reason = self.verify(repaired, tuple(finding for plan in plans for finding in plan.findings))
        return after if reason is None else reason


def _otherwise(fix: Fix) -> Fix:
    """Give the fix to try where one will not do."""
    return msgspec.structs.replace(fix, recipe=fix.otherwise, otherwise="")


def _check(before: cst.Module, repaired: Source) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(repaired.text)
        after = cst.parse_module(repaired.text)
    except (SyntaxError, ValueError, RecursionError, cst.ParserSyntaxError):
        raise RefusalError("the repaired file would not parse") from None
    if _comments(before) != _comments(after):
        raise RefusalError("a comment would be lost")


@lru_cache(maxsize=2)
def _comments(module: cst.Module) -> collections.Counter[str]:
    return collections.Counter(line.value for line in comments(module))


class _Rewriter(cst.CSTTransformer):
    """Makes edits, and leaves alone what lies on no way to one: a copy of a long file takes its time."""

    def __init__(self, tree: Tree, edits: dict[cst.CSTNode, list[Edit]]) -> None:
        super().__init__()
        self._edits = edits
        self._ways = {around for node in edits for around in tree.ancestors(node)}

    def on_visit(self, node: cst.CSTNode) -> bool:
        return node in self._ways

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> Any:  # a node, or several
        edits = self._edits.get(original_node, ())
        return reduce(lambda node, edit: edit.rewrite(node), edits, updated_node)


def _refuse_lost(tree: Tree, changes: Sequence[Change]) -> None:
    """Refuse changes of which one would undo what another makes of a part of the same node."""
    taken = {edit.node: change for change in changes for edit in change.edits if edit.whole}
    for change in changes if taken else ():
        for edit in change.edits:
            if any(taken.get(node, change) is not change for node in tree.ancestors(edit.node)):
                raise RefusalError("another fix changes the same lines")


def _rewrite(tree: Tree, changes: Sequence[Change]) -> cst.Module:
    _refuse_lost(tree, changes)
    edits = collections.defaultdict[cst.CSTNode, list[Edit]](list)
    for edit in (edit for change in changes for edit in change.edits):
        if not edit.additive and any(not other.additive for other in edits[edit.node]):
            raise RefusalError("another fix changes the same lines")
        edits[edit.node].append(edit)
    for group in edits.values():
        group.sort(key=lambda edit: edit.additive)
    try:
        module = tree.module.visit(_Rewriter(tree, dict(edits)))
    except cst.CSTValidationError:
        raise RefusalError("the repaired file would not parse") from None
    lines = [line for change in changes for line in change.imports]
    return add_imports(module, lines, tree.newline)
