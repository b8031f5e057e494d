"""Repair: turn the fixes of findings into new source text, or say why not."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import libcst as cst
import msgspec

from fsrace_lint.files.source import LARGEST, Source, Unreadable, decode, split_lines
from fsrace_lint.findings.finding import Applicability, Finding, Fix
from fsrace_lint.fixes.imports import add_imports
from fsrace_lint.fixes.nodes import within
from fsrace_lint.fixes.parts import Parts, Replaced
from fsrace_lint.fixes.reading import BOM, TOO_DEEP, encoded, parsed, read
from fsrace_lint.fixes.recipe import Change, RefusalError, Surroundings, Target, TreeEdit
from fsrace_lint.fixes.recipes import load
from fsrace_lint.fixes.tree import Tree

if TYPE_CHECKING:
    from fsrace_lint.files.spans import Span

__all__ = ["Alone", "Patch", "Refusal", "Replaced", "Surroundings", "Verify", "alone", "repair"]

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


class Alone(msgspec.Struct, frozen=True):
    """What one fix by itself replaces in its file, or why it is not made; `size` bytes were made for that."""

    replaced: tuple[Replaced, ...]
    refusal: str
    size: int


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
        tree = read(source)
    except RefusalError as error:
        refused = [Refusal(finding, str(error)) for finding in ordered]
        return _patch(source, source.data, (), refused)
    return _Repair(source, tree, verify, surroundings).make(ordered)


def alone(source: Source, findings: Iterable[Finding], surroundings: Surroundings) -> Iterator[Alone]:
    """Make each fix by itself, on the file as it is; nobody judges what comes of it.

    What concerns one function is made in it alone: only that is parsed, changed and checked.

    Args:
        source: The file.
        findings: Its findings whose fixes are wanted.
        surroundings: What the project says to fixes in the file.

    Yields:
        What came of each, in the same order; it is made when it is asked for.
    """
    parts = Parts.of(source)
    whole: _Repair | None = None
    for finding in findings:
        made = None if parts is None else _in_part(parts, finding, surroundings)
        if made is not None:
            yield made
            continue
        try:
            whole = whole or _Repair(source, read(source), _unjudged, surroundings)
        except RefusalError as error:
            yield Alone((), str(error), 0)
        else:
            yield _in_whole(whole, finding)


def _in_part(parts: Parts, finding: Finding, surroundings: Surroundings) -> Alone | None:
    """Make a fix in a part of the file; None where it has to be made in all of it."""
    part = None if finding.fix is None else parts.part(finding.fix)
    if part is None:
        return None
    made = _Repair(part.source, part.tree, _unjudged, surroundings, is_part=True).made([finding])
    size = len(part.source.data)
    if made.refused:
        return Alone((), made.refused[0].reason, size)
    lines = frozenset(line for plan in made.plans for line in plan.change.imports)
    changed = [part.replaced(made.after.decode()), *([_imported(parts, lines)] if lines else [])]
    replaced = tuple(sorted((one for one in changed if one is not None), key=lambda one: one.first))
    longest = len(parts.source.data) + sum(len(one.text.encode()) for one in replaced)
    return Alone(replaced, "", size) if len(replaced) == len(changed) and longest <= LARGEST else None


def _imported(parts: Parts, lines: frozenset[str]) -> Replaced | None:
    """Give the top of a file with some imports added; None where that will not do by itself."""
    if lines not in parts.imported:
        top = parts.top
        try:
            code = add_imports(top.tree.module, lines, top.tree.newline).code
            parts.imported[lines] = top.replaced(_repaired(top.source, top.tree, code).text)
        except RefusalError:
            parts.imported[lines] = None
    return parts.imported[lines]


def _in_whole(repair: _Repair, finding: Finding) -> Alone:
    patch = repair.make([finding])
    if patch.refused:
        return Alone((), patch.refused[0].reason, len(patch.before))
    source = repair.source
    text = (patch.after.removeprefix(BOM) if source.bom else patch.after).decode(source.encoding)
    return Alone((Replaced(0, len(split_lines(source.text)), text),), "", len(patch.before))


def _unjudged(_repaired: Source, _fixed: tuple[Finding, ...]) -> str | None:
    return None


def _patch(source: Source, after: bytes, plans: Iterable[_Plan], refused: Iterable[Refusal]) -> Patch:
    applied = sorted((finding for plan in plans for finding in plan.findings), key=Finding.sort_key)
    refused = sorted(refused, key=lambda refusal: refusal.finding.sort_key())
    return Patch(source.file, source.path, source.data, after, tuple(applied), tuple(refused))


class _Made(msgspec.Struct, frozen=True):
    """New bytes, the plans that they were made by, and what was refused."""

    after: bytes
    plans: Sequence[_Plan]
    refused: Sequence[Refusal]


class _Repair(msgspec.Struct, frozen=True):
    """The repair of one file."""

    source: Source
    tree: Tree
    verify: Verify
    surroundings: Surroundings
    is_part: bool = False
    """Whether the top of the file, where imports are added, is not there."""

    def make(self, findings: Iterable[Finding]) -> Patch:
        """Make what can be made, together or one after another."""
        made = self.made(findings)
        return _patch(self.source, made.after, made.plans, made.refused)

    def made(self, findings: Iterable[Finding]) -> _Made:
        """Make what can be made, and tell by which plans."""
        plans, refused = self._plans(findings)
        after = self._attempt(plans)
        if isinstance(after, bytes):
            return _Made(after, plans, refused)
        after, passed = self.source.data, list[_Plan]()
        for plan in sorted(plans, key=lambda plan: not any(edit.whole for edit in plan.change.edits)):
            last, result = self._settle(passed, plan)
            if isinstance(result, str):
                refused += [Refusal(finding, result) for finding in plan.findings]
            else:
                after, passed = result, [*passed, last]
        return _Made(after, passed, refused)

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
                refused += [Refusal(finding, TOO_DEEP) for finding in members]
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
        if not plans:
            return self.source.data
        try:
            module = _changed(self.tree, [plan.change for plan in plans])
            if not self.is_part:
                lines = [line for plan in plans for line in plan.change.imports]
                module = add_imports(module, lines, self.tree.newline)
            repaired = _repaired(self.source, self.tree, module.code)
        except RefusalError as error:
            return str(error)
        except RecursionError:
            return TOO_DEEP
        reason = self.verify(repaired, tuple(finding for plan in plans for finding in plan.findings))
        return repaired.data if reason is None else reason


def _otherwise(fix: Fix) -> Fix:
    """Give the fix to try where one will not do."""
    return msgspec.structs.replace(fix, recipe=fix.otherwise, otherwise="")


def _repaired(source: Source, tree: Tree, text: str) -> Source:
    """Give a source with another text.

    Raises:
        RefusalError: It cannot be written, read or parsed, or has lost a comment of the tree.
    """
    repaired = decode(encoded(source, text), source.file, source.file.parent)
    if isinstance(repaired, Unreadable):
        raise RefusalError(f"the repaired file {repaired.reason}")
    try:
        parsed(repaired.text)
        after = cst.parse_module(repaired.text)
    except (SyntaxError, ValueError, RecursionError, cst.ParserSyntaxError):
        raise RefusalError("the repaired file would not parse") from None
    if _comments(tree.module) != _comments(after):
        raise RefusalError("a comment would be lost")
    return msgspec.structs.replace(repaired, path=source.path, relative=source.relative)


@lru_cache(maxsize=2)
def _comments(module: cst.Module) -> collections.Counter[str]:
    return collections.Counter(node.value for node in within(module) if isinstance(node, cst.Comment))


def _rewritten(node: Any, edit: TreeEdit) -> Any:  # a node, or several
    if isinstance(node, cst.FlattenSentinel):
        raise RefusalError("another fix puts something beside the same statement")
    return edit.rewrite(node)


class _Rewriter(cst.CSTTransformer):
    """Makes edits, and leaves alone what lies on no way to one: a copy of a long file takes its time."""

    def __init__(self, tree: Tree, edits: dict[cst.CSTNode, list[TreeEdit]]) -> None:
        super().__init__()
        self._edits = edits
        self._ways = {around for node in edits for around in tree.ancestors(node)}

    def on_visit(self, node: cst.CSTNode) -> bool:
        return node in self._ways

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> Any:  # a node, or several
        return reduce(_rewritten, self._edits.get(original_node, ()), updated_node)


def _refuse_lost(tree: Tree, changes: Sequence[Change]) -> None:
    """Refuse changes of which one would undo what another makes of a part of the same node."""
    taken = {edit.node: change for change in changes for edit in change.edits if edit.whole}
    for change in changes if taken else ():
        for edit in change.edits:
            if any(taken.get(node, change) is not change for node in tree.ancestors(edit.node)):
                raise RefusalError("another fix changes the same lines")


def _changed(tree: Tree, changes: Sequence[Change]) -> cst.Module:
    _refuse_lost(tree, changes)
    edits = collections.defaultdict[cst.CSTNode, list[TreeEdit]](list)
    for edit in (edit for change in changes for edit in change.edits):
        if not edit.additive and any(not other.additive for other in edits[edit.node]):
            raise RefusalError("another fix changes the same lines")
        edits[edit.node].append(edit)
    for group in edits.values():
        group.sort(key=lambda edit: edit.additive)
    try:
        return tree.module.visit(_Rewriter(tree, dict(edits)))
    except cst.CSTValidationError:
        raise RefusalError("the repaired file would not parse") from None
