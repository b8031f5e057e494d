"""Invariants of the reports on a tree that hold for any code.

* All locations of a finding are in files of the tree.
* The location of a finding is exactly the location of a call.
* The location of a skipped call is exactly that of a call to the named function.
* Every related location is exactly that of an expression, a statement, or an `except` clause.
* All formats report the same locations, and text that a fix replaces is in its file.

Findings about the tool or the file itself (`FSR0..`) can be anywhere in the file.
"""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Json = dict[str, Any]

ABOUT_THE_FILE: Final = "FSR0"
RULE_FAILURE: Final = "FSR002"
_LINE_END: Final = re.compile("\r\n|\r|\n")
_NAME: Final = re.compile(r"[\w.]+")
_COMMAND: Final = re.compile(r"::\w+ file=(.*?),line=(\d+),(?:col=(\d+),)?endLine=\d+,.*?title=(FSR\d+) ")


class Span(NamedTuple):
    """A range in a file: 1-based lines and columns in characters; the end is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


class Told(NamedTuple):
    """A finding as a format reports it; `column` is 0 if the format omits it."""

    path: str
    line: int
    column: int
    code: str


class Text:
    """A file and the locations of its syntax nodes, computed independently of fsrace-lint."""

    def __init__(self, file: Path) -> None:
        """Read a file. A file that does not parse has no nodes."""
        data = file.read_bytes()
        try:
            text = data.decode(tokenize.detect_encoding(io.BytesIO(data).readline)[0])
        except (SyntaxError, ValueError, LookupError):
            text = data.decode("latin-1")
        self.lines = _LINE_END.split(text)
        self.calls: dict[Span, set[str]] = {}
        self.nodes: set[Span] = set()
        for node in _nodes(text):
            span = self._span(node)
            self.nodes.add(span)
            if isinstance(node, ast.Call):
                self.calls.setdefault(span, set()).add(_plain(ast.unparse(node.func)))

    def _span(self, node: Any) -> Span:
        def column(line: int, offset: int) -> int:
            # for a node in an f-string, old versions of Python can report a line that does not exist
            there = self.lines[line - 1] if line <= len(self.lines) else ""
            return len(there.encode()[:offset].decode("utf-8", "replace")) + 1

        end = node.end_lineno, column(node.end_lineno, node.end_col_offset)
        return Span(node.lineno, column(node.lineno, node.col_offset), *end)

    def holds(self, span: Span) -> bool:
        """Return whether a range is in the file."""
        ends = (span[:2], span[2:])
        return ends[0] <= ends[1] and all(
            1 <= line <= len(self.lines) and 1 <= column <= len(self.lines[line - 1]) + 1
            for line, column in ends
        )

    def at(self, span: Span) -> str:
        """Return the text of a range."""
        rows = self.lines[span.line - 1 : span.end_line]
        rows[-1] = rows[-1][: span.end_column - 1]
        rows[0] = rows[0][span.column - 1 :]
        return "\n".join(rows)

    def is_call(self, span: Span) -> bool:
        """Return whether a range is exactly that of a call."""
        if span not in self.calls:
            return False
        try:
            return isinstance(ast.parse(f"({self.at(span)}\n)", mode="eval").body, ast.Call)
        except SyntaxError:
            return False


def _nodes(text: str) -> Iterator[ast.AST]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return
    kinds = (ast.expr, ast.stmt, ast.excepthandler)
    yield from (node for node in ast.walk(tree) if isinstance(node, kinds))


def _plain(code: str) -> str:
    return "".join(code.split()).replace('"', "'")


class Tree:
    """A tree of files that are read once."""

    def __init__(self, root: Path) -> None:
        """Initialize with the directory in which fsrace-lint ran."""
        self._root = root
        self._texts: dict[str, Text | None] = {}

    def text(self, path: str) -> Text | None:
        """Return a file by its path in a report, or None if the directory does not contain it."""
        if path not in self._texts:
            file = self._root / path
            inside = not Path(path).is_absolute() and ".." not in Path(path).parts and file.is_file()
            self._texts[path] = Text(file) if inside else None
        return self._texts[path]


def broken(root: Path, reports: Mapping[str, str]) -> list[str]:
    """Return the violated invariants of the reports on a tree.

    Args:
        root: The directory in which fsrace-lint ran.
        reports: The reports by format; `json` is required.

    Returns:
        One line for each violation.
    """
    document = json.loads(reports["json"])
    tree = Tree(root)
    found = [f"error: {error['path']}: {error['message']}" for error in document["errors"]]
    for finding in document["findings"]:
        found += _of_finding(tree, finding)
    for silent in document.get("silenced", ()):
        found += _of_silent(tree, silent)
    for name, told in FORMATS.items():
        if name in reports:
            rows = document["findings"]
            if name in _MOST_CERTAIN_FIRST:
                rows = sorted(rows, key=_certainty)
            said = [Told(row["path"], row["line"], row["column"], row["code"]) for row in rows]
            found += _differences(name, said, told(reports[name]))
    if "sarif" in reports:
        found += _of_sarif(tree, json.loads(reports["sarif"]))
    return found


def _span(place: Json) -> Span:
    return Span(*(place[key] for key in Span._fields))


def _position(place: Json) -> str:
    span = _span(place)
    return f"{place['path']}:{span.line}:{span.column}-{span.end_line}:{span.end_column}"


def _of_finding(tree: Tree, finding: Json) -> Iterator[str]:
    code = finding["code"]
    if code == RULE_FAILURE:
        yield f"{_position(finding)}: {finding['message']}"
    yield from _of_place(tree, finding, code, "any" if code.startswith(ABOUT_THE_FILE) else "call")
    for related in finding["related"]:
        yield from _of_place(tree, related, f"{code}, {related['message']}", "node")


def _of_silent(tree: Tree, silent: Json) -> Iterator[str]:
    what = f"{silent['reason']}, {silent['call']}"
    yield from _of_place(tree, silent, what, "call")
    if silent["cause"] is not None:
        yield from _of_place(tree, silent["cause"], f"the cause of {what}", "node")
    text = tree.text(silent["path"])
    names = set() if text is None else text.calls.get(_span(silent), set())
    called = _plain(silent["call"])
    # an expression that is not a dotted name is shortened
    if names and all(map(_NAME.fullmatch, names)) and not any(_spells(called, name) for name in names):
        yield f"{_position(silent)}: {what}: the call at this location is to {', '.join(sorted(names))}"


def _spells(call: str, name: str) -> bool:
    """Return whether the text of a call, which can be truncated, can be a call to a function."""
    return call.startswith(f"{name}(") or (call.endswith("…") and name.startswith(call[:-1]))


def _of_place(tree: Tree, place: Json, what: str, kind: str) -> Iterator[str]:
    text, span = tree.text(place["path"]), _span(place)
    if text is None:
        yield f"{_position(place)}: {what}: no such file in the tree"
    elif not text.holds(span):
        yield f"{_position(place)}: {what}: no such location in the file"
    elif kind == "call" and not text.is_call(span):
        yield f"{_position(place)}: {what}: not a call: {text.at(span)!r}"
    elif kind == "node" and span not in text.nodes:
        yield f"{_position(place)}: {what}: not an expression or statement: {text.at(span)!r}"


def _certainty(finding: Json) -> tuple[int, int]:
    severities, confidences = ("error", "warning", "note"), ("high", "medium", "low")
    return severities.index(finding["severity"]), confidences.index(finding["confidence"])


def _differences(name: str, said: list[Told], told: list[Told]) -> Iterator[str]:
    """Compare the findings of a format with those of the JSON report."""
    if len(said) != len(told):
        yield f"{name}: {len(told)} findings, but {len(said)} in json"
        return
    for one, other in zip(said, told, strict=True):
        if other != one._replace(column=one.column if other.column else 0):
            yield f"{name}: {other}, but {one} in json"


def _of_sarif(tree: Tree, log: Json) -> Iterator[str]:
    """Check the locations that only SARIF has: the steps of code flows, and the text that fixes replace."""
    for result in log["runs"][0]["results"]:
        for change in (c for fix in result.get("fixes", ()) for c in fix["artifactChanges"]):
            path = unquote(change["artifactLocation"]["uri"])
            for replaced in change["replacements"]:
                yield from _of_place(tree, _region(path, replaced["deletedRegion"]), "sarif: a fix", "any")
        flows = (thread for flow in result.get("codeFlows", ()) for thread in flow["threadFlows"])
        for step in (step["location"] for flow in flows for step in flow["locations"]):
            place = step["physicalLocation"]
            path = unquote(place["artifactLocation"]["uri"])
            yield from _of_place(tree, _region(path, place["region"]), "sarif: a step", "node")


def _region(path: str, region: Json) -> Json:
    keys = ("startLine", "startColumn", "endLine", "endColumn")
    return {"path": path, **dict(zip(Span._fields, (region[key] for key in keys), strict=True))}


def _sarif(report: str) -> list[Told]:
    found = []
    for result in json.loads(report)["runs"][0]["results"]:
        place = result["locations"][0]["physicalLocation"]
        path = unquote(place["artifactLocation"]["uri"])
        found.append(
            Told(path, place["region"]["startLine"], place["region"]["startColumn"], result["ruleId"])
        )
    return found


def _github(report: str) -> list[Told]:
    rows = [_COMMAND.match(line) for line in report.splitlines()]
    return [Told(unquote(row[1]), int(row[2]), int(row[3] or 0), row[4]) for row in rows if row is not None]


def _gitlab(report: str) -> list[Told]:
    issues = [(issue["location"], issue["check_name"]) for issue in json.loads(report)]
    return [Told(place["path"], place["lines"]["begin"], 0, code) for place, code in issues]


def _junit(report: str) -> list[Told]:
    found = []
    for case in ET.fromstring(report).iter("testcase"):  # noqa: S314  # written by fsrace-lint
        if case.find("failure") is not None:
            code, position = case.attrib["name"].split()[:2]
            line, column = map(int, position.split(":"))
            found.append(Told(case.attrib["file"], line, column, code))
    return found


def _concise(report: str) -> list[Told]:
    rows = re.findall(r"^(\S.*?):(\d+):(\d+): (FSR\d+) ", report, re.MULTILINE)
    return [Told(path, int(line), int(column), code) for path, line, column, code in rows]


def _trace(report: str) -> list[Told]:
    rows = re.findall(r"^\w+\[(FSR\d+)\]: .*\n *--> (.*):(\d+):(\d+)$", report, re.MULTILINE)
    return [Told(path, int(line), int(column), code) for code, path, line, column in rows]


FORMATS: Final[Mapping[str, Callable[[str], list[Told]]]] = {
    "sarif": _sarif,
    "github": _github,
    "gitlab": _gitlab,
    "junit": _junit,
    "concise": _concise,
    "trace": _trace,
}
"""Functions that parse the findings of each format, in the order of the report."""
_MOST_CERTAIN_FIRST: Final = frozenset({"concise", "trace"})
"""Formats for people, which list the most severe and certain findings first, not by place."""
