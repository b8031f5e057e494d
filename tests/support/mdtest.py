"""Cases written in Markdown: small projects, and the expected output of fsrace-lint.

A document is prose. Each heading that has code directly below it is one case:

* ` ```py ` blocks are the files of the project. A line before the block that
  contains only a path in backticks names the file; the default is `main.py`.
* `# error: FSR101 FSR105` at the end of a line lists exactly the findings on it.
  `# known miss: FSR105` marks a false negative, and `# known false alarm: FSR201`
  marks a false positive: when the behavior changes, the case fails, and the mark
  must be removed. Marks are removed before the file is written.
* A ` ```toml ` block is the `pyproject.toml`.
* ` ```diff ` is the change made by `fix`, and ` ```diff unsafe ` the change with
  unsafe fixes; ` ```text ` and ` ```text unsafe ` are the refused fixes. Without
  these blocks, `fix` must not change or refuse anything with safe fixes.

A fixed project has no more fixed findings, and fixing it again changes nothing.
"""

from __future__ import annotations

import difflib
import os
import re
import secrets
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, NamedTuple

from fsrace_lint import rules
from fsrace_lint.config import settings
from fsrace_lint.config.roots import find_root
from fsrace_lint.pipeline import check, repair
from fsrace_lint.report import diff
from support import CASE_DOCUMENTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fsrace_lint.findings.finding import Finding
    from fsrace_lint.pipeline.run import Checked, Run

OUTPUTS: Final = ("diff", "text", "diff unsafe", "text unsafe")
ERROR, MISS, FALSE_ALARM = "error", "known miss", "known false alarm"
_FENCE: Final = re.compile(r"\s*```+(.*)")
_HEADING: Final = re.compile(r"(#{1,6}) (.+)")
_PATH: Final = re.compile(r"`([^`]+)`")
_MARK: Final = re.compile(rf"\s*# ({ERROR}|{MISS}|{FALSE_ALARM}): (\w+(?: \w+)*)$")
_MARK_LIKE: Final = re.compile(rf"# ?({ERROR}|known)\b", re.IGNORECASE)


class CaseError(Exception):
    """A document is malformed; the message begins with the location."""


class Mark(NamedTuple):
    """A mark on a line of a file."""

    kind: str
    code: str
    line: int


class Block(NamedTuple):
    """A fenced block: its info string, the line of the document that its text starts on, and the text."""

    info: str
    line: int
    text: str


@dataclass(frozen=True)
class File:
    """One file of a case; `line` is the line of the document that its text starts on."""

    path: str
    line: int
    text: str
    marks: tuple[Mark, ...]


@dataclass
class Case:
    """One small project; `line` to `end` are its lines in the document."""

    document: Path
    title: str
    line: int
    end: int
    files: dict[str, File] = field(default_factory=dict)
    toml: str | None = None
    outputs: dict[str, Block] = field(default_factory=dict)

    def place(self, line: int) -> str:
        """Return a line of the document in the form `path:line`."""
        return f"{os.path.relpath(self.document)}:{line}"

    @property
    def sources(self) -> dict[str, str]:
        """The texts of the Python files, by path."""
        return {path: file.text for path, file in self.files.items() if path.endswith(".py")}

    def write(self, root: Path, newline: str = "\n") -> Path:
        """Write the project to `root` with these newlines."""
        texts = {file.path: file.text for file in self.files.values()}
        for path, text in ({"pyproject.toml": self.toml or ""} | texts).items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(text.replace("\n", newline).encode())
        return root


def collect(directory: Path) -> list[Case]:
    """Read the cases of all documents in a directory, in a stable order."""
    return [case for file in sorted(directory.rglob("*.md")) for case in parse(file)]


def parse(document: Path) -> list[Case]:
    """Read the cases of one document."""
    lines = document.read_text("utf-8").split("\n")
    cases: dict[str, Case] = {}
    headings: list[str] = []
    case = Case(document, "", 0, 0)
    index, path, path_line = 0, "", 0
    while index < len(lines):
        line = lines[index]
        index += 1
        if fence := _FENCE.match(line):
            stop = next((n for n in range(index, len(lines)) if lines[n].strip() == "```"), None)
            if stop is None:
                raise CaseError(f"{case.place(index)}: the block is not closed")
            text = "".join(f"{each}\n" for each in lines[index:stop])
            _add(case, Block(fence[1].strip(), index + 1, text), path)
            cases[case.title] = case
            index, path, case.end = stop + 1, "", stop + 1
        elif line.strip() and path:
            break
        elif heading := _HEADING.fullmatch(line):
            headings[len(heading[1]) - 1 :] = [heading[2]]
            case = Case(document, " / ".join(headings[1:] or headings), index, index)
            if case.title in cases:
                raise CaseError(f"{case.place(index)}: a second case with this title")
        elif named := _PATH.fullmatch(line.strip()):
            path, path_line = named[1], index
    if path:
        raise CaseError(f"{case.place(path_line)}: `{path}` is not followed by a block")
    for bare in (case for case in cases.values() if not case.files):
        raise CaseError(f"{bare.place(bare.line)}: there is no `py` block in this case")
    return list(cases.values())


def _add(case: Case, block: Block, path: str) -> None:
    """Add a block to its case."""
    where = case.place(block.line - 1)
    if not case.title:
        raise CaseError(f"{where}: the block stands before any heading")
    is_script = block.info == "sh" and path
    if path and block.info != "py" and not is_script:
        raise CaseError(f"{where}: only a `py` or `sh` block can have a path")
    if block.info == "py" or is_script:
        file = _file(case, block, path or "main.py")
        if file.path in case.files:
            raise CaseError(f"{where}: a second `{file.path}` in this case")
        case.files[file.path] = file
    elif block.info == "toml" and case.toml is None:
        case.toml = block.text
    elif block.info in OUTPUTS and block.info not in case.outputs:
        case.outputs[block.info] = block
    elif block.info in {"toml", *OUTPUTS}:
        raise CaseError(f"{where}: a second `{block.info}` block in this case")
    else:
        kinds = ", ".join(("py", "toml", *OUTPUTS))
        raise CaseError(f"{where}: unknown kind of block `{block.info}`; there are {kinds}")


def _file(case: Case, block: Block, path: str) -> File:
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts:
        raise CaseError(f"{case.place(block.line - 1)}: `{path}` leads out of the project")
    known = rules.names()
    marks: list[Mark] = []
    lines = block.text.split("\n")
    for index, line in enumerate(lines):
        where, rest = case.place(block.line + index), line
        while mark := _MARK.search(rest):
            rest = rest[: mark.start()]
            marks += [Mark(mark[1], code, index + 1) for code in mark[2].split()]
        if unknown := [mark.code for mark in marks if mark.code not in known]:
            raise CaseError(f"{where}: there is no rule {unknown[0]}")
        if _MARK_LIKE.search(rest):
            raise CaseError(f"{where}: this looks like a mark but is none: {line.strip()}")
        lines[index] = rest
    return File(str(pure), block.line, "\n".join(lines), tuple(marks))


def run(root: Path) -> tuple[Run, Checked]:
    """Check the project in a directory, as the command line does with `--min-severity note`."""
    (result,) = check.check([root], _settings_of)
    return result


def _settings_of(path: Path) -> settings.Settings:
    """Return the settings of a case, which report notes unless the case says otherwise."""
    chosen = settings.load(find_root(path), rules.names())
    return settings.with_overrides(chosen, min_severity=chosen.min_severity or "note")


def relative(path: str, root: Path) -> str:
    """Return a reported path in the form that the case uses."""
    return Path(os.path.relpath(path, root)).as_posix()


def failures(case: Case, directory: Path, *, update: bool = False) -> tuple[list[str], Checked]:
    """Compare a case with its document, or update the outputs in the document.

    Returns:
        The differences, one line each, and the result of checking the case.
    """
    root = case.write(directory / "checked")
    found, checked = run(root)
    problems = [*_compare(case, checked, root)]
    outputs = _fix(case, root, found, checked, problems, unsafe=False)
    if any(name.endswith(" unsafe") for name in case.outputs):
        again = case.write(directory / "unsafe")
        unsafe = _fix(case, again, *run(again), problems, unsafe=True)
        outputs |= {f"{name} unsafe": text for name, text in unsafe.items()}
    if update:
        _update(case, outputs)
    else:
        problems += (problem for name, text in outputs.items() for problem in _differs(case, name, text))
    return problems, checked


def _compare(case: Case, checked: Checked, root: Path) -> Iterator[str]:
    """Compare the findings with the marks."""
    marks = [
        ((file.path, mark.line, mark.code), mark.kind) for file in case.files.values() for mark in file.marks
    ]
    kinds = dict(marks)
    expected = Counter(key for key, kind in marks if kind != MISS)
    findings = [
        ((relative(finding.place.path, root), finding.place.span.line, finding.code), finding.message)
        for finding in checked.outcome.findings
    ]
    messages, found = dict(findings), Counter(key for key, _ in findings)
    for key in sorted({*expected, *found}):
        path, line, code = key
        where, kind = case.place(case.files[path].line + line - 1), kinds.get(key)
        if found[key] > expected[key]:
            known = f"; it was a {MISS}, write `# {ERROR}: {code}`" if kind == MISS else ""
            yield f"{where}: expected nothing, found {code} ({messages[key]}){known}"
        elif found[key] < expected[key]:
            known = f"; it was a {FALSE_ALARM}, remove the mark" if kind == FALSE_ALARM else ""
            yield f"{where}: expected {code}, found nothing{known}"
    for problem in checked.outcome.errors:
        yield f"{case.place(case.line)}: {problem.path}: {problem.message}"


def _fix(
    case: Case, root: Path, found: Run, checked: Checked, problems: list[str], *, unsafe: bool
) -> dict[str, str]:
    """Fix a checked case, write it, check it again, and fix it again; return both outputs."""
    patches = repair.repair(found, checked, unsafe=unsafe, certain=False)
    where, shown, refused = case.place(case.line), "", ""
    expected = _places(checked.outcome.findings, root)
    for patch in patches:
        path = relative(patch.path, root)
        shown += diff.unified(path, patch.before, patch.after, "utf-8")
        for refusal in patch.refused:
            finding = refusal.finding
            refused += f"{path}:{finding.place.span.line}: {finding.code}: {refusal.reason}\n"
        expected -= _places(patch.applied, root)
        reason = repair.write(patch)
        if reason is not None:
            problems.append(f"{where}: {path} was not written: {reason}")
    if unsafe:
        refused += _left_by_hand(checked.outcome.findings, root)
    if not any(patch.applied for patch in patches):
        return {"diff": shown, "text": refused}
    found, checked = run(root)
    left = _places(checked.outcome.findings, root)
    for change, more in (("leaves or brings", left - expected), ("also hides", expected - left)):
        problems += [f"{where}: the fix {change} {code} in {path}" for path, code, _ in sorted(more)]
    if any(
        patch.before != patch.after for patch in repair.repair(found, checked, unsafe=unsafe, certain=False)
    ):
        problems.append(f"{where}: fixing it again changes it again")
    return {"diff": shown, "text": refused}


def _left_by_hand(findings: Iterable[Finding], root: Path) -> str:
    """Return a line for each fix that is manual here, although its recipe usually applies it."""
    return "".join(
        f"{relative(f.place.path, root)}:{f.place.span.line}: {f.code}: by hand: {f.fix.reason}\n"
        for f in findings
        if f.fix is not None and f.fix.reason
    )


def _places(findings: Iterable[Finding], root: Path) -> Counter[tuple[str, str, str]]:
    return Counter((relative(f.place.path, root), f.code, f.function) for f in findings)


def _differs(case: Case, name: str, text: str) -> Iterator[str]:
    block = case.outputs.get(name)
    wanted, given = _trimmed("" if block is None else block.text), _trimmed(text)
    if wanted == given:
        return
    where = case.place(case.line if block is None else block.line - 1)
    what = f"there is no `{name}` block for this" if block is None else f"the `{name}` block differs"
    delta = "".join(difflib.unified_diff(wanted, given, "expected", "found", n=99))
    yield f"{where}: {what} (FSRACE_UPDATE_CASES=1 writes it)\n{delta}"


def _trimmed(text: str) -> list[str]:
    """Return lines without spaces in blank lines, because editors remove the space of empty context lines."""
    return [f"{line}\n" if line.strip() else "\n" for line in text.split("\n")[:-1]]


def _update(case: Case, answers: dict[str, str]) -> None:
    """Write the outputs to the document, which may have changed since the case was read."""
    now = next(other for other in parse(case.document) if other.title == case.title)
    lines = [f"{line}\n" for line in case.document.read_text("utf-8").split("\n")[:-1]]
    changes: list[tuple[int, int, list[str]]] = []
    for name, text in answers.items():
        body = [f"```{name}\n", *_trimmed(text), "```\n"] if text else []
        block = now.outputs.get(name)
        if block is not None:
            stop = block.line + block.text.count("\n")
            changes.append((block.line - 2 if body else block.line - 3, stop, body))
        elif body:
            changes.append((now.end, now.end, ["\n", *body]))
    for start, stop, body in sorted(changes, key=lambda change: change[:2], reverse=True):
        lines[start:stop] = body
    temporary = case.document.with_name(f".{case.document.name}.{secrets.token_hex(4)}")
    temporary.write_text("".join(lines), encoding="utf-8", newline="\n")
    temporary.replace(case.document)


def name(case: Case) -> str:
    return f"{case.document.relative_to(CASE_DOCUMENTS).with_suffix('').as_posix()}: {case.title}"
