"""Code actions: what can be done about the findings in a range, and the edits that do it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lsprotocol import types

from fsrace_lint.findings.finding import Applicability, Finding
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
    """What an action is to do: make the fixes of findings, which are known by all that they say."""

    uri: str
    version: int | None
    findings: tuple[str, ...]
    unsafe: bool

    @classmethod
    def read(cls, data: Any) -> Wanted | None:  # whatever a client sends back
        """Read what `data` of an action says; None if it is not ours."""
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
        """Write it as `data` of an action."""
        return {**self._asdict(), "findings": list(self.findings)}

    def chosen(self, found: Iterable[Finding]) -> list[Finding] | None:
        """Give those of the findings that are meant; None if one of them is not found any more."""
        known = {_mark(finding): finding for finding in found}
        if not known.keys() >= set(self.findings):
            return None
        return [known[mark] for mark in self.findings]


def _mark(finding: Finding) -> str:
    """Name a finding, so that nothing else has the name: not one with another place, message or fix."""
    return hashlib.sha256(repr(finding).encode("utf-8", "backslashreplace")).hexdigest()


def offered(
    result: SessionResult, where: types.Range, only: Sequence[str] | None
) -> Iterator[tuple[types.CodeAction, Wanted]]:
    """Yield the actions for a range, without their edits.

    Args:
        result: What was found in the document.
        where: The range.
        only: The kinds that are asked for; None is all.

    Yields:
        The action, and what it is to do.
    """
    document = result.document
    if _asks(only, types.CodeActionKind.QuickFix):
        for finding, diagnostic in result.found:
            fix = finding.fix
            if fix is None or fix.applicability is Applicability.SKETCH or not _meet(diagnostic.range, where):
                continue
            unsafe = fix.applicability is Applicability.UNSAFE
            action = types.CodeAction(
                title=f"{finding.code}: {visible(fix.description)}{' (unsafe)' if unsafe else ''}",
                kind=types.CodeActionKind.QuickFix,
                diagnostics=[diagnostic],
                is_preferred=not unsafe,
            )
            yield action, Wanted(document.uri, document.version, (_mark(finding),), unsafe)
    safe = [_mark(finding) for finding, _ in result.found if _is_safe(finding)]
    if safe and _asks(only, FIX_ALL):
        action = types.CodeAction(title="Fix all that can be fixed safely (fsrace-lint)", kind=FIX_ALL)
        yield action, Wanted(document.uri, document.version, tuple(safe), unsafe=False)


def _is_safe(finding: Finding) -> bool:
    return finding.fix is not None and finding.fix.applicability is Applicability.SAFE


def _asks(only: Sequence[str] | None, kind: str) -> bool:
    return only is None or any(kind == asked or kind.startswith(f"{asked}.") for asked in only)


def _meet(one: types.Range, other: types.Range) -> bool:
    return one.start <= other.end and other.start <= one.end


def workspace_edit(
    document: Document, patch: Patch, decode: Callable[[bytes], str], encoding: str, *, versioned: bool
) -> types.WorkspaceEdit:
    """Give what a patch changes in a document.

    Args:
        document: The document.
        patch: The patch, made of the bytes of its text.
        decode: Turns bytes of that file into text.
        encoding: What the client counts columns in.
        versioned: Whether the client takes edits for one version of a document.

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
