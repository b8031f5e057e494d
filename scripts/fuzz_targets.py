"""The targets of `fuzz.py`: each runs a part of fsrace-lint on an input, and checks its results."""

from __future__ import annotations

import ast
import functools
import re
import shutil
import sys
import tempfile
import warnings
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import fuzz_inputs
import msgspec

from fsrace_lint import catalog, report, rules
from fsrace_lint.catalog import reading
from fsrace_lint.config import settings
from fsrace_lint.config.settings import Settings
from fsrace_lint.config.validation import SettingsError
from fsrace_lint.files import source
from fsrace_lint.files.source import Source, Unreadable
from fsrace_lint.files.spans import Place, Span
from fsrace_lint.findings import noqa, suppressions
from fsrace_lint.findings.finding import Finding, Severity
from fsrace_lint.pipeline import comments, discover, repair
from fsrace_lint.pipeline.run import Run
from fsrace_lint.report.words import visible
from fsrace_lint.syntax.extract import SyntaxProblem, extract
from fsrace_lint.syntax.model import FileFacts

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from random import Random

    from fsrace_lint.fixes import Patch
    from fsrace_lint.pipeline.run import Checked

FOLDER: Final = Path(tempfile.gettempdir()) / "fsrace-lint-fuzz"
"""The directory of the projects. Most targets do not write their files to it."""
_TOP: Final = Span(1, 1, 1, 2)
"""The location of a finding about a whole file."""


class DefectError(Exception):
    """A result is wrong."""


class Target(NamedTuple):
    """A function that raises an exception if an input reveals a defect, and a generator of its inputs."""

    check: Callable[[bytes], None]
    make: Callable[[Random], bytes]


def demand(is_so: object, *told: object) -> None:
    """Check a condition.

    Args:
        is_so: The condition.
        *told: Parts of the message of the error.

    Raises:
        DefectError: The condition is false.
    """
    if not is_so:
        raise DefectError(" ".join(map(str, told)))


def _decoded(data: bytes, name: str = "main.py") -> Source | None:
    read = source.decode(data, FOLDER / name, FOLDER)
    if isinstance(read, Unreadable):
        demand(read.line >= 1 and read.column >= 1 and read.reason, "no location or no reason:", read)
        return None
    body = read.data[3:] if read.bom else read.data
    demand(body.decode(read.encoding) == read.text, "the text differs from the decoded bytes")
    return read


def _tree(text: str) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError):
            return None


def _spans(text: str, tree: ast.Module) -> set[Span]:
    """Return the locations of all nodes, computed independently of fsrace-lint."""
    lines = re.split("\r\n|\r|\n", text)

    def column(line: int, offset: int) -> int:
        return len(lines[line - 1].encode()[:offset].decode("utf-8", "ignore")) + 1

    nodes: Iterator[Any] = (node for node in ast.walk(tree) if hasattr(node, "lineno"))
    return {
        Span(
            node.lineno,
            column(node.lineno, node.col_offset),
            node.end_lineno,
            column(node.end_lineno, node.end_col_offset),
        )
        for node in nodes
    }


def _placed(value: object) -> Iterator[Span]:
    """Yield all locations in facts."""
    if isinstance(value, Span):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _placed(item)
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from _placed(getattr(value, name))


def check_extract(data: bytes) -> None:
    """Decode a file, extract its facts, and check their locations and serialization."""
    read = _decoded(data)
    if read is None:
        return
    found = extract(read)
    tree = _tree(read.text)
    if isinstance(found, SyntaxProblem):
        demand(tree is None, "valid code is reported as a syntax error:", found.reason)
        demand(found.line >= 1 and found.column >= 1, "no location:", found)
        return
    demand(tree is not None, "invalid code is not reported as a syntax error")
    packed = msgspec.msgpack.encode(found)
    demand(msgspec.msgpack.decode(packed, type=FileFacts) == found, "serialization changes the facts")
    demand(extract(read) == found, "extracting again gives different facts")
    if tree is not None:
        strange = set(_placed(found)) - _spans(read.text, tree) - {Span(1, 1, 1, 1)}
        demand(not strange, "no node at", strange)


def _made_up(read: Source) -> list[Finding]:
    """Return findings on some lines, chosen by a checksum of the file."""
    lines = noqa.lines_of(read.text)
    codes = [code for code in sorted(rules.names()) if code > "FSR1"]
    state = zlib.crc32(read.data)
    rows = [(row, codes[(state >> row % 16) % len(codes)]) for row in range(1, len(lines) + 1)]
    return [
        Finding(
            code, rules.names()[code], "x", Place(read.path, Span(row, 1, row, 2)), "f", Severity.ERROR, "x"
        )
        for row, code in rows
        if (state >> row % 13) & 1
    ]


def check_suppress(data: bytes) -> None:
    """Apply `noqa` comments to findings, then remove unused codes and add others."""
    read = _decoded(data)
    if read is None:
        return
    findings = _made_up(read)
    told = suppressions.apply(read, findings, lambda _code: True, rules.codes())
    demand(
        sorted([*told.kept, *told.suppressed], key=Finding.sort_key) == findings,
        "findings were lost or added",
    )
    demand(len(told.reasons) == len(told.suppressed), "suppressed findings and reasons differ in number")
    lines = noqa.lines_of(read.text)
    for finding in told.unused:
        span = finding.place.span
        item = lines[span.line - 1][span.column - 1 : span.end_column - 1]
        demand(
            span.end_line == span.line and f"`noqa: {item}`" in finding.message, "wrong location:", finding
        )
        _taken_out(read, findings, told.unused, finding)
    codes = sorted({finding.code for finding in findings})[:2]
    for chunk in noqa.chunks(read.text) if codes else ():
        added = noqa.read(noqa.with_codes(chunk.comment, codes, "why", rules.codes()), rules.codes())
        demand(
            any(set(codes) <= {item.code for item in one.items} for one in added), "codes not added:", chunk
        )


def _taken_out(read: Source, findings: list[Finding], unused: tuple[Finding, ...], one: Finding) -> None:
    after = comments.alone(read, one)
    if after is None:
        return
    if _tree(read.text) is not None:
        demand(noqa.same_code(read.text, after.text), "removal changes the code:", one.message)
    if len(noqa.lines_of(read.text)) == len(noqa.lines_of(after.text)):
        again = suppressions.apply(after, findings, lambda _code: True, rules.codes())
        demand(len(again.unused) < len(unused), "not removed:", one.message)


def check_settings(data: bytes) -> None:
    """Load settings, and apply them to paths."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "pyproject.toml").write_bytes(data)
    try:
        chosen = settings.load(FOLDER, rules.names())
    except SettingsError as error:
        demand(
            "\n" not in visible(str(error)) and str(FOLDER) in str(error),
            "the error is not one line that names the directory:",
            str(error),
        )
        return
    finally:
        (FOLDER / "pyproject.toml").unlink()
    demand(hash(chosen) is not None, "not hashable")
    for path in ("main.py", "tests/a.py", "a/" * 12 + "b" * 40 + ".py", "é/日本.py"):
        demand(chosen.selects("FSR101", path) in (True, False), "neither selected nor ignored")
    list(discover.look([FOLDER], chosen))
    if chosen.catalog:
        _entries(msgspec.json.decode(chosen.catalog), chosen.catalog_origin)


def _entries(document: Any, origin: str) -> catalog.Catalog | None:  # TOML can contain any value
    try:
        return catalog.Catalog(tuple(reading.read(document, origin, "a source")))
    except catalog.CatalogError as error:
        demand(
            "\n" not in visible(str(error)) and origin in str(error),
            "the error is not one line that names the file:",
            str(error),
        )
        return None


def check_catalog(data: bytes) -> None:
    """Read the entries of a catalog, and check a file that uses their names."""
    try:
        document = tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        return
    known = _entries(document, "user.toml")
    if known is None:
        return
    names = sorted({name for kind in catalog.KINDS for name in known.names(kind)})
    text = "".join(f"{_import(name)}if {_call(name)}:\n    {_call(name)}\n" for name in names[:12])
    own = "\n".join(part.decode() for part in (data,))
    tables = msgspec.json.encode(tomllib.loads(own), order="deterministic").decode()
    check_together(
        {"main.py": text.encode()},
        Settings(FOLDER, profile="strict", catalog=tables, catalog_origin="user.toml"),
    )
    catalog.extended.cache_clear()


def _import(name: str) -> str:
    module = name.rpartition(".")[0]
    return f"import {module}\n" if re.fullmatch(r"[a-z_][\w.]*", module) else ""


def _call(name: str) -> str:
    dotted = name.replace("*.", "x.")
    return f"{dotted}('out', 'w')" if all(map(str.isidentifier, dotted.split("."))) else "f()"


@functools.cache
def _empty(chosen: Settings) -> Run:
    FOLDER.mkdir(exist_ok=True)
    return Run(chosen, [], whole=True)


_STRICT: Final = Settings(FOLDER, profile="strict")


def check_together(files: Mapping[str, bytes], chosen: Settings = _STRICT) -> tuple[Run, Checked] | None:
    """Link files, run all rules, and check the findings and reports.

    Args:
        files: The content of each file, by name.
        chosen: The settings of the project.

    Returns:
        The run and its results, or None if no file can be read.
    """
    read = [one for name, data in files.items() if (one := _decoded(data, name)) is not None]
    if not read:
        return None
    run = _run(read, chosen)
    checked = run.check(silenced=True, suppressed=True, counted=True)
    outcome = checked.outcome
    demand(not outcome.errors, "a rule failed:", *(problem.message for problem in outcome.errors))
    other = _run(read[::-1], chosen).check(silenced=True, suppressed=True, counted=True)
    demand(_told(other) == _told(checked), "the findings depend on the order of files")
    _check_places(read, checked)
    for form in report.FORMATS:
        shown = report.render(form, outcome, checked.sources, report.Options())
        demand(shown.encode("utf-8") is not None, "cannot be encoded")
    return run, checked


def _run(read: Iterable[Source], chosen: Settings) -> Run:
    # a new run each time, because linked modules belong to one run
    return _empty(chosen).with_sources(*read)


def _told(checked: Checked) -> tuple[object, ...]:
    return (
        checked.outcome.findings,
        checked.outcome.silenced,
        checked.outcome.suppressed,
        checked.outcome.statistics,
    )


def _check_places(read: Iterable[Source], checked: Checked) -> None:
    known = {one.path: _known_spans(one) for one in read}
    for finding in checked.outcome.findings:
        demand(finding.place.path in known, "outside the project:", finding)
        if finding.code in ("FSR001", suppressions.CODE):
            continue
        spans = [(finding.place.path, finding.place.span)]
        spans += [(one.place.path, one.place.span) for one in finding.related]
        if finding.fix is not None:
            fix = finding.fix
            spans += [(finding.place.path, span) for span in (fix.span, fix.check) if span is not None]
        for path, span in spans:
            demand(span in known.get(path, ()), "no node at", path, span, "of", finding.code)


def _known_spans(read: Source) -> set[Span]:
    tree = _tree(read.text)
    return {_TOP, Span(1, 1, 1, 1)} | (set() if tree is None else _spans(read.text, tree))


def check_link(data: bytes) -> None:
    """Check multiple modules together."""
    check_together(fuzz_inputs.split(data))


def check_fixes(data: bytes) -> None:
    """Fix multiple modules, with and without unsafe fixes, write them, and fix them again."""
    files = fuzz_inputs.split(data)
    for unsafe in (False, True):
        done = check_together(files)
        if done is None:
            return
        patches = _patches(*done, unsafe=unsafe)
        if any(patch.before != patch.after for patch in patches):
            _check_written(files, patches)
            _check_again(files, patches, unsafe=unsafe)


def _patches(run: Run, checked: Checked, *, unsafe: bool) -> list[Patch]:
    patches = repair.repair(run, checked, unsafe=unsafe)
    for patch in patches:
        if patch.before == patch.after:
            demand(not patch.applied, "fixes were applied without a change in", patch.path)
            continue
        demand(patch.applied, "no fixes were applied, but the text changed in", patch.path)
        after = _decoded(patch.after, patch.file.relative_to(FOLDER).as_posix())
        demand(after is not None and _tree(after.text) is not None, "no longer parses:", patch.path)
    return patches


def _check_written(files: Mapping[str, bytes], patches: Iterable[Patch]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, data in files.items():
            file = Path(folder, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        expected = dict(files)
        for patch in patches:
            name = patch.file.relative_to(FOLDER).as_posix()
            expected[name] = patch.after
            moved = msgspec.structs.replace(patch, file=Path(folder, name))
            demand(repair.write(moved) is None, "not written:", name)
        found = {file.relative_to(folder).as_posix(): file.read_bytes() for file in Path(folder).rglob("*.*")}
        demand(found == expected, "unexpected files or content:", sorted(found))


def _check_again(files: Mapping[str, bytes], patches: Iterable[Patch], *, unsafe: bool) -> None:
    """Fix the files again. If no fix was refused, nothing may change."""
    fixed = {**files, **{patch.file.relative_to(FOLDER).as_posix(): patch.after for patch in patches}}
    done = check_together(fixed)
    if done is None:
        raise DefectError("can no longer be read")
    again = [patch.path for patch in _patches(*done, unsafe=unsafe) if patch.before != patch.after]
    refused = any(patch.refused for patch in patches)
    demand(not again or refused, "changed by fixing again:", *again)


def clean() -> None:
    """Delete the files that targets wrote."""
    shutil.rmtree(FOLDER, ignore_errors=True)


TARGETS: Final = {
    "extract": Target(check_extract, fuzz_inputs.module),
    "suppress": Target(check_suppress, fuzz_inputs.comments),
    "settings": Target(check_settings, fuzz_inputs.settings),
    "catalog": Target(check_catalog, fuzz_inputs.catalog),
    "link": Target(check_link, fuzz_inputs.project),
    "fixes": Target(check_fixes, fuzz_inputs.project),
}
