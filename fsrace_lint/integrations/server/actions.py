"""Code actions for the findings in a range, and their edits."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lsprotocol import types

from fsrace_lint.findings.finding import BY_HAND, Applicability, Finding
from fsrace_lint.integrations.server.positions import BOM, Text
from fsrace_lint.report.edits import between
from fsrace_lint.report.words import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from fsrace_lint.fixes import Patch
    from fsrace_lint.integrations.server.answers import Document
    from fsrace_lint.integrations.server.sessions import SessionResult

FIX_ALL: Final = "source.fixAll.fsrace"
KINDS: Final = (types.CodeActionKind.QuickFix, FIX_ALL)


class Wanted(NamedTuple):
    """The task of an action: apply the fixes of some findings, which are identified by digests."""

    uri: str
    version: int | None
    findings: tuple[str, ...]
    unsafe: bool

    @classmethod
    def read(cls, data: Any) -> Wanted | None:  # a client can send anything
        """Parse the `data` of an action; return None if it has another format."""
        match data:
            case {
                "uri": str(uri),
                "version": int() | None as version,
                "findings": [*found],
                "unsafe": bool(bad),
            }:
                if all(isinstance(mark, str) for mark in found):
                    return cls(uri, version, tuple(found), bad)
        return None

    def write(self) -> dict[str, Any]:
        """Return the task as the `data` of an action."""
        return {**self._asdict(), "findings": list(self.findings)}

    def chosen(self, found: Iterable[Finding]) -> list[Finding] | None:
        """Return the findings of this task; None if one of them no longer exists."""
        known = {_mark(finding): finding for finding in found}
        if not known.keys() >= set(self.findings):
            return None
        return [known[mark] for mark in self.findings]


def _mark(finding: Finding) -> str:
    """Return a digest of a finding, which differs if its location, message, or fix differs."""
    return hashlib.sha256(repr(finding).encode("utf-8", "backslashreplace")).hexdigest()


def offered(
    result: SessionResult, where: types.Range, only: Sequence[str] | None
) -> Iterator[tuple[types.CodeAction, Wanted]]:
    """Yield the actions for a range, without their edits.

    Args:
        result: The findings of the document.
        where: The range.
        only: The requested kinds; None for all.

    Yields:
        The action and its task.
    """
    document = result.document
    if _asks(only, types.CodeActionKind.QuickFix):
        for finding, diagnostic in result.found:
            fix = finding.fix
            if fix is None or fix.applicability is Applicability.SKETCH or not _meet(diagnostic.range, where):
                continue
            unsafe = fix.applicability is Applicability.UNSAFE
            action = types.CodeAction(
                title=f"{finding.code}: {visible(fix.description)}{f' ({fix.kind})' if unsafe else ''}",
                kind=types.CodeActionKind.QuickFix,
                diagnostics=[diagnostic],
                is_preferred=not unsafe,
            )
            yield action, Wanted(document.uri, document.version, (_mark(finding),), unsafe)
    safe = [_mark(finding) for finding, _ in result.found if _is_safe(finding)]
    if safe and _asks(only, FIX_ALL):
        action = types.CodeAction(title="fsrace-lint: Apply all safe fixes", kind=FIX_ALL)
        yield action, Wanted(document.uri, document.version, tuple(safe), unsafe=False)


def disabled(
    result: SessionResult, where: types.Range, only: Sequence[str] | None
) -> Iterator[types.CodeAction]:
    """Yield an action that cannot be chosen for each fix in a range that is manual for a known reason.

    Args:
        result: The findings of the document.
        where: The range.
        only: The requested kinds; None for all.
    """
    for finding, diagnostic in result.found if _asks(only, types.CodeActionKind.QuickFix) else ():
        fix = finding.fix
        if fix is not None and fix.reason and _meet(diagnostic.range, where):
            yield types.CodeAction(
                title=f"{finding.code}: {visible(fix.description.partition(BY_HAND)[0])}",
                kind=types.CodeActionKind.QuickFix,
                diagnostics=[diagnostic],
                disabled=types.CodeActionDisabled(visible(fix.reason)),
            )


def _is_safe(finding: Finding) -> bool:
    return finding.fix is not None and finding.fix.applicability is Applicability.SAFE


def _asks(only: Sequence[str] | None, kind: str) -> bool:
    return only is None or any(kind == asked or kind.startswith(f"{asked}.") for asked in only)


def _meet(one: types.Range, other: types.Range) -> bool:
    return one.start <= other.end and other.start <= one.end


def workspace_edit(
    document: Document, patch: Patch, decode: Callable[[bytes], str], encoding: str, *, versioned: bool
) -> types.WorkspaceEdit:
    """Return the changes of a patch in a document.

    Args:
        document: The document.
        patch: The patch, made from the bytes of the document's text.
        decode: Decodes bytes of the file.
        encoding: The encoding whose units the client counts as columns.
        versioned: Whether the client supports edits for one version of a document.

    Returns:
        The edit.
    """
    before = document.text.removeprefix(BOM)
    lines = Text(document.text, encoding)
    changes = [
        types.TextEdit(lines.range(edit.span), edit.text) for edit in between(before, decode(patch.after))
    ]
    if not versioned:
        return types.WorkspaceEdit(changes={document.uri: changes})
    name = types.OptionalVersionedTextDocumentIdentifier(uri=document.uri, version=document.version)
    return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(name, list(changes))])
