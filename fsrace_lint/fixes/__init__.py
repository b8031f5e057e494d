"""Apply the fixes of findings to source text, or give the reason why a fix is refused."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import libcst as cst
import msgspec

from fsrace_lint.files.source import LARGEST, Source, Unreadable, decode, split_lines
from fsrace_lint.findings.finding import Applicability, Finding, Fix, Tier
from fsrace_lint.fixes.import_block import add_imports
from fsrace_lint.fixes.joining import joined
from fsrace_lint.fixes.layout import Layout
from fsrace_lint.fixes.nodes import within
from fsrace_lint.fixes.parts import Parts, Replaced
from fsrace_lint.fixes.reading import BOM, TOO_DEEP, encoded, parsed, read
from fsrace_lint.fixes.recipe import Change, RefusalError, Surroundings, Target, TreeEdit
from fsrace_lint.fixes.recipes import load
from fsrace_lint.fixes.tree import Tree
from fsrace_lint.fixes.unused_imports import names_lost, unused, without_imports

if TYPE_CHECKING:
    from fsrace_lint.files.spans import Span

__all__ = ["Alone", "Patch", "Refusal", "Replaced", "Surroundings", "Verify", "alone", "repair"]

_STRINGS: Final = (cst.FormattedString, cst.TemplatedString)

# Takes the fixed source and the findings that should be gone; returns the reason for rejecting it, or None.
Verify: TypeAlias = Callable[[Source, tuple[Finding, ...]], str | None]


class Refusal(msgspec.Struct, frozen=True):
    """A finding whose fix was refused, and the reason."""

    finding: Finding
    reason: str


class Patch(msgspec.Struct, frozen=True):
    """The result of fixing one file. `before` and `after` are equal if every fix was refused."""

    file: Path
    path: str
    before: bytes
    after: bytes
    applied: tuple[Finding, ...]
    refused: tuple[Refusal, ...]


class Alone(msgspec.Struct, frozen=True):
    """The lines that one fix on its own replaces, or why it is refused; `size` is the bytes processed."""

    replaced: tuple[Replaced, ...]
    refusal: str
    size: int


class _Plan(msgspec.Struct, frozen=True):
    """A change that fixes one or more findings, and the fix that produced it.

    `reason` says why the preferred fix was refused, if this is its alternative.
    """

    findings: tuple[Finding, ...]
    change: Change
    fix: Fix
    reason: str = ""


def repair(source: Source, findings: Sequence[Finding], verify: Verify, surroundings: Surroundings) -> Patch:
    """Apply the fixes of findings in one file.

    All fixes are applied together if the result passes `verify`. Otherwise, they are applied
    one at a time on top of those that passed, and the others are refused.

    Args:
        source: The file.
        findings: The findings of the file to fix.
        verify: Returns the reason why a fixed source is rejected, or None.
        surroundings: What fixes need to know about the project.

    Returns:
        The old and new bytes, the fixed findings, and the refused fixes with their reasons.
    """
    ordered = sorted(findings, key=Finding.sort_key)
    try:
        tree = read(source)
    except RefusalError as error:
        refused = [Refusal(finding, str(error)) for finding in ordered]
        return _patch(source, source.data, (), refused)
    return _Repair(source, tree, verify, surroundings, Layout(source)).make(ordered)


def alone(source: Source, findings: Iterable[Finding], surroundings: Surroundings) -> Iterator[Alone]:
    """Apply each fix on its own to the unchanged file, without verifying the result.

    A fix within one function is applied to that function only: nothing else is parsed, changed, or checked.

    Args:
        source: The file.
        findings: The findings of the file to fix.
        surroundings: What fixes need to know about the project.

    Yields:
        The result for each finding, in the same order, computed lazily.
    """
    parts = Parts.of(source)
    layout = Layout(source)
    whole: _Repair | None = None
    for finding in findings:
        made = None if parts is None else _in_part(parts, finding, surroundings, layout)
        if made is not None:
            yield made
            continue
        try:
            whole = whole or _Repair(source, read(source), _unjudged, surroundings, layout)
        except RefusalError as error:
            yield Alone((), str(error), 0)
        else:
            yield _in_whole(whole, finding)


def _in_part(parts: Parts, finding: Finding, surroundings: Surroundings, layout: Layout) -> Alone | None:
    """Apply a fix to a part of the file; return None if it needs the whole file."""
    part = None if finding.fix is None else parts.part(finding.fix)
    if part is None:
        return None
    made = _Repair(part.source, part.tree, _unjudged, surroundings, layout, is_part=True).made([finding])
    size = len(part.source.data)
    if made.refused:
        return Alone((), made.refused[0].reason, size)
    if names_lost(part.source.text, made.after.decode()).intersection(part.tree.names.imported):
        return None  # the import may be unused now
    lines = frozenset(line for plan in made.plans for line in plan.change.imports)
    changed = [part.replaced(made.after.decode()), *([_imported(parts, lines, layout)] if lines else [])]
    replaced = tuple(sorted((one for one in changed if one is not None), key=lambda one: one.first))
    longest = len(parts.source.data) + sum(len(one.text.encode()) for one in replaced)
    return Alone(replaced, "", size) if len(replaced) == len(changed) and longest <= LARGEST else None


def _imported(parts: Parts, lines: frozenset[str], layout: Layout) -> Replaced | None:
    """Return the top of the file with imports added, or None if that fails on its own."""
    if lines not in parts.imported:
        top = parts.top
        try:
            code = add_imports(top.source.text, lines, parts.source.newline, layout)
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
    """New bytes, the plans that produced them, and the refused fixes."""

    after: bytes
    plans: Sequence[_Plan]
    refused: Sequence[Refusal]


class _Repair(msgspec.Struct, frozen=True):
    """The repair of one file."""

    source: Source
    tree: Tree
    verify: Verify
    surroundings: Surroundings
    layout: Layout
    is_part: bool = False
    """Whether the source lacks the top of the file, where imports are added."""

    def make(self, findings: Iterable[Finding]) -> Patch:
        """Apply as many fixes as possible, and return the patch."""
        made = self.made(findings)
        return _patch(self.source, made.after, made.plans, made.refused)

    def made(self, findings: Iterable[Finding]) -> _Made:
        """Apply as many fixes as possible, and return the plans that were used."""
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
        """Plan the changes. Findings that need the same change share a plan."""
        groups: dict[tuple[str, Span], list[tuple[Finding, Fix]]] = {}
        refused = []
        for finding in findings:
            fix = finding.fix
            if fix is None:
                refused.append(Refusal(finding, "there is no automatic fix for this finding"))
            elif fix.applicability is Applicability.SKETCH:
                reason = fix.reason or "the fix is manual, and is never applied automatically"
                refused.append(Refusal(finding, reason))
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
        """Plan a fix with its recipe, or with its alternative if the recipe refuses."""
        try:
            return _Plan(findings, load(fix.recipe).recipe(self._target(fix)), fix)
        except RefusalError as refusal:
            if not fix.otherwise:
                raise
            try:
                other = self._planned(findings, _otherwise(fix))
            except RefusalError:
                raise refusal from None
            return msgspec.structs.replace(other, reason=str(refusal))

    def _target(self, fix: Fix) -> Target:
        call = self.tree.calls.get(fix.span)
        if call is None:
            raise RefusalError("the position does not contain a call")
        if any(isinstance(node, _STRINGS) for node in self.tree.ancestors(call)):
            raise RefusalError(
                "the call is inside an f-string, where positions are unreliable before Python 3.12"
            )
        return Target(self.tree, call, fix, self.surroundings, lambda: self.layout.oldest)

    def _settle(self, passed: Sequence[_Plan], plan: _Plan) -> tuple[_Plan, bytes | str]:
        """Apply a plan, or its alternative, on top of those that passed: new bytes, or the reason why not."""
        result = self._attempt([*passed, plan])
        if isinstance(result, str) and plan.reason:
            return plan, plan.reason
        if not isinstance(result, str) or not plan.fix.otherwise:
            return plan, result
        try:
            other = self._planned(plan.findings, _otherwise(plan.fix))
        except RefusalError:
            return plan, result
        again = self._attempt([*passed, other])
        return (plan, result) if isinstance(again, str) else (other, again)

    def _attempt(self, plans: Sequence[_Plan]) -> bytes | str:
        """Apply plans together: the new bytes, or the reason why they are rejected."""
        if not plans:
            return self.source.data
        try:
            changed = _changed(self.tree, [plan.change for plan in plans])
            text = self.layout.applied(self.source.text, changed.code)
            if not self.is_part:
                lines = [line for plan in plans for line in plan.change.imports]
                text = add_imports(text, lines, self.source.newline, self.layout)
                text = self._without_unused(text)
            repaired = _repaired(self.source, self.tree, text)
        except RefusalError as error:
            return str(error)
        except RecursionError:
            return TOO_DEEP
        reason = self.verify(repaired, tuple(finding for plan in plans for finding in plan.findings))
        return repaired.data if reason is None else reason

    def _without_unused(self, text: str) -> str:
        """Remove the imports that the fixes no longer need."""
        if self.source.relative.endswith("__init__.py"):
            return text
        names = unused(self.source.text, text, self.surroundings.is_needed)
        return without_imports(text, names, self.source.newline, self.layout)


def _otherwise(fix: Fix) -> Fix:
    """Return the alternative of a fix."""
    return msgspec.structs.replace(fix, recipe=fix.otherwise, otherwise="", tier=Tier.COORDINATION)


def _repaired(source: Source, tree: Tree, text: str) -> Source:
    """Return the source with a new text.

    Raises:
        RefusalError: The text cannot be encoded, decoded, or parsed, or a comment of the tree is missing.
    """
    repaired = decode(encoded(source, text), source.file, source.file.parent)
    if isinstance(repaired, Unreadable):
        raise RefusalError(f"the fixed file could not be read again: {repaired.reason}")
    try:
        parsed(repaired.text)
        after = cst.parse_module(repaired.text)
    except (SyntaxError, ValueError, RecursionError, cst.ParserSyntaxError):
        raise RefusalError("the fixed file would not parse") from None
    if _comments(tree.module) != _comments(after):
        raise RefusalError("a comment would be lost")
    return msgspec.structs.replace(repaired, path=source.path, relative=source.relative)


@lru_cache(maxsize=2)
def _comments(module: cst.Module) -> collections.Counter[str]:
    return collections.Counter(node.value for node in within(module) if isinstance(node, cst.Comment))


def _rewritten(node: Any, edit: TreeEdit) -> Any:  # a node, or several
    if isinstance(node, cst.FlattenSentinel):
        raise RefusalError("another fix adds code next to the same statement")
    return edit.rewrite(node)


class _Rewriter(cst.CSTTransformer):
    """Applies edits, and skips subtrees without one, because copying a long file is slow."""

    def __init__(self, tree: Tree, edits: dict[cst.CSTNode, list[TreeEdit]]) -> None:
        super().__init__()
        self._edits = edits
        self._added: set[cst.CSTNode] = set()
        self._ways = {around for node in edits for around in tree.ancestors(node)}

    def on_visit(self, node: cst.CSTNode) -> bool:
        return node in self._ways

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> Any:  # a node, or several
        edits = self._edits.get(original_node, ())
        made: Any = reduce(_rewritten, edits, updated_node)
        if any(edit.joins for edit in edits):
            self._added |= {made} if isinstance(made, cst.CSTNode) else set(made) - {updated_node}
        if self._added and isinstance(made, cst.IndentedBlock | cst.Module):
            return made.with_changes(body=joined(made.body, self._added))
        return made


def _refuse_lost(tree: Tree, changes: Sequence[Change]) -> None:
    """Refuse changes if one would overwrite what another changes inside the same node."""
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
        if not edit.adds or all(edit.adds != other.adds for other in edits[edit.node]):
            edits[edit.node].append(edit)
    for group in edits.values():
        group.sort(key=lambda edit: edit.additive)
    try:
        return tree.module.visit(_Rewriter(tree, dict(edits)))
    except cst.CSTValidationError:
        raise RefusalError("the fixed file would not parse") from None
