"""Edit `noqa` comments: add them to reported lines, and remove codes that suppress nothing."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import msgspec

from fsrace_lint import rules
from fsrace_lint.files.source import Source, decode
from fsrace_lint.findings import noqa, suppressions
from fsrace_lint.findings.baseline import ABOUT_THE_TOOL

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fsrace_lint.findings.finding import Finding
    from fsrace_lint.fixes import Patch, Refusal
    from fsrace_lint.pipeline.judging import JudgedFindings
    from fsrace_lint.pipeline.run import Checked, Run

_BOM: Final = b"\xef\xbb\xbf"


def tidy(run: Run, checked: Checked, patches: Sequence[Patch], now: Run) -> list[Patch]:
    """Remove unused codes from comments, including codes that the patches make unused.

    Args:
        run: The run that was checked.
        checked: The result of the run.
        patches: The fixed files. Nothing is written yet.
        now: The run with the fixed files.

    Returns:
        The patches with these changes on top, and patches for further files, sorted by file.
    """
    told = [finding for finding in checked.outcome.findings if finding.code == suppressions.CODE]
    by_path = {patch.path: patch for patch in patches}
    if not told and not any(map(_changes, patches)):
        return list(patches)
    before: dict[str, JudgedFindings] = {}
    edited: dict[str, Source] = {}
    for relative in run.targets:
        source = now.files[relative].source
        lowered = source.data.lower()
        if b"noqa" not in lowered:
            continue
        before[relative] = now.known_or_checked(relative)
        if before[relative].unused:
            tidied = _rewritten(source, without_comments(source, before[relative].unused))
            edited[relative] = source if tidied is None else tidied
    after = now.with_sources(*edited.values()) if edited else now
    for relative, source in edited.items():
        fixed = [finding for finding in told if finding.place.path == source.path]
        is_good = _is_tidied(before[relative], after.check_file(relative, []))
        is_good = is_good and noqa.same_code(now.files[relative].source.text, source.text)
        known = by_path.get(source.path)
        by_path[source.path] = _on_top(run.files[relative].source, known, source, fixed, is_good=is_good)
    return [by_path[path] for path in sorted(by_path)]


def alone(source: Source, finding: Finding) -> Source | None:
    """Remove the code that one finding is about from its comment.

    Args:
        source: The file.
        finding: A finding about a code that suppresses nothing.

    Returns:
        The file without the code. None if that text cannot be encoded, would change the program, or would
        make the rest of the comment suppress other codes.
    """
    without = _rewritten(source, without_comments(source, [finding]))
    if without is None or not noqa.same_code(source.text, without.text):
        return None
    return without if _meant(without) < _meant(source) else None


def _meant(source: Source) -> Counter[str]:
    """Count the codes in the comments of a file."""
    known = rules.codes()
    said: list[noqa.Noqa] = []
    for chunk in noqa.chunks(source.text):
        whole = noqa.read_for_file(chunk.comment, known)
        said += [*([] if whole is None else [whole]), *noqa.read(chunk.comment, known)]
    return Counter(item.code for one in said for item in one.items)


def _changes(patch: Patch) -> bool:
    return patch.before != patch.after


def _repaired(source: Source, data: bytes) -> Source | None:
    """Return a source with other bytes, or None if they cannot be decoded."""
    read = decode(data, source.file, source.file.parent)
    if not isinstance(read, Source):
        return None
    return msgspec.structs.replace(read, path=source.path, relative=source.relative)


def with_data(source: Source, data: bytes) -> Source:
    """Return a source with other bytes, which can be decoded."""
    return _repaired(source, data) or source


def _rewritten(source: Source, text: str) -> Source | None:
    """Return a source with another text, or None if its encoding cannot represent the text."""
    try:
        read = _repaired(source, (_BOM if source.bom else b"") + text.encode(source.encoding))
    except UnicodeError:
        return None
    return read if read is not None and read.text == text else None


def without_comments(source: Source, unused: Iterable[Finding]) -> str:
    """Return the text of a file without the `noqa` codes that suppress nothing."""
    places: dict[int, list[int]] = {}
    for finding in unused:
        places.setdefault(finding.place.span.line, []).append(finding.place.span.column - 1)
    comments = {}
    for chunk in noqa.chunks(source.text):
        if chunk.last in places:
            starts = [column - chunk.column for column in places[chunk.last]]
            comments[chunk.last] = (chunk.column, noqa.without(chunk.comment, starts, rules.codes()))
    return noqa.changed(source.text, comments)


def _is_tidied(before: JudgedFindings, after: JudgedFindings) -> bool:
    def known(findings: Iterable[Finding]) -> Counter[tuple[str, str]]:
        return Counter((finding.code, finding.function) for finding in findings)

    same = known(before.kept) == known(after.kept) and known(before.suppressed) == known(after.suppressed)
    return same and not after.unused


def _on_top(
    original: Source, known: Patch | None, source: Source, fixed: Sequence[Finding], *, is_good: bool
) -> Patch:
    from fsrace_lint.fixes import Patch, Refusal  # noqa: PLC0415  # libcst is loaded only if there is something to fix

    patch = known or Patch(original.file, original.path, original.data, original.data, (), ())
    if is_good:
        return msgspec.structs.replace(patch, after=source.data, applied=(*patch.applied, *fixed))
    reason = "removing the comment would change the code or its findings"
    refused = [Refusal(finding, reason) for finding in fixed]
    return msgspec.structs.replace(patch, refused=(*patch.refused, *refused))


def add_noqa(run: Run, checked: Checked, reason: str) -> tuple[list[Patch], list[Refusal]]:
    """Add a `noqa` comment to every reported line, without writing any file.

    All changed files are checked again. A file is left unchanged unless the new comments suppress exactly the
    intended findings.

    Args:
        run: The run that was checked.
        checked: The result of the run.
        reason: The reason to write in all comments. May be empty.

    Returns:
        A patch for each file that can take comments, and a refusal for each finding that no comment can
        suppress.
    """
    from fsrace_lint.fixes import Patch, Refusal  # noqa: PLC0415  # libcst is loaded only if there is something to change

    patches: list[Patch] = []
    refused: list[Refusal] = []
    drafts: dict[str, tuple[Source, list[Finding]]] = {}
    for relative in run.targets:
        source = run.files[relative].source
        findings = [finding for finding in checked.outcome.findings if finding.place.path == source.path]
        taken, left = _placed(source, findings)
        refused += [Refusal(finding, why) for finding, why in left]
        changed = _rewritten(source, _with(source, taken, reason)) if taken else None
        if changed is not None:
            drafts[relative] = changed, [finding for finding, _ in taken]
        else:
            why = f"the encoding of the file, {source.encoding}, cannot represent the comment"
            refused += [Refusal(finding, why) for finding, _ in taken]
    after = run.with_sources(*(source for source, _ in drafts.values())) if drafts else run
    for relative, (source, findings) in drafts.items():
        old = run.files[relative].source
        obstacle = _obstacle(run.check_file(relative, []), after.check_file(relative, []), findings)
        if obstacle is None and not noqa.same_code(old.text, source.text):
            obstacle = "adding the comments would change the code"
        if obstacle is None:
            patches.append(Patch(old.file, old.path, old.data, source.data, tuple(findings), ()))
        refused += [Refusal(finding, obstacle) for finding in findings if obstacle is not None]
    listed = {finding.place.path for finding in checked.outcome.findings}
    listed -= {run.files[relative].source.path for relative in run.targets}
    others = [finding for finding in checked.outcome.findings if finding.place.path in listed]
    refused += [Refusal(finding, _ABOUT) for finding in others]
    return patches, refused


_ABOUT: Final = "a finding about fsrace-lint itself cannot be suppressed by a comment"


def _placed(
    source: Source, findings: Iterable[Finding]
) -> tuple[list[tuple[Finding, noqa.Chunk]], list[tuple[Finding, str]]]:
    """Return the comment position for each finding, and the findings that have none, with the reason."""
    chunks = {
        line: chunk for chunk in noqa.chunks(source.text) for line in range(chunk.first, chunk.last + 1)
    }
    taken: list[tuple[Finding, noqa.Chunk]] = []
    left: list[tuple[Finding, str]] = []
    for finding in findings:
        chunk = chunks.get(finding.place.span.line)
        if finding.code in ABOUT_THE_TOOL:
            left.append((finding, _ABOUT))
        elif chunk is None or chunk.in_string:
            left.append((finding, "the line ends inside a string, so a comment cannot be added"))
        else:
            taken.append((finding, chunk))
    return taken, left


def _with(source: Source, taken: Iterable[tuple[Finding, noqa.Chunk]], reason: str) -> str:
    wanted: dict[noqa.Chunk, list[str]] = {}
    for finding, chunk in taken:
        wanted.setdefault(chunk, []).append(finding.code)
    comments = {}
    for chunk, codes in wanted.items():
        text = noqa.with_codes(chunk.comment, sorted(set(codes)), reason, rules.codes())
        comments[chunk.last] = (chunk.column if chunk.comment else -1, text)
    return noqa.changed(source.text, comments)


def _obstacle(before: JudgedFindings, after: JudgedFindings, findings: Iterable[Finding]) -> str | None:
    """Return why the new comments of a file are unacceptable, or None."""

    def known(items: Iterable[Finding]) -> Counter[tuple[str, int, int]]:
        return Counter((item.code, item.place.span.line, item.place.span.column) for item in items)

    if known(findings) - (known(after.suppressed) - known(before.suppressed)):
        return "the comment would not suppress this finding"
    if known(after.kept) - known(before.kept) or len(after.unused) > len(before.unused):
        return "the comments would cause new findings"
    return None
