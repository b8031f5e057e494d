"""What must hold of the reports on a tree, whatever the code is: every place is one of its file.

* A finding is in a file of the tree, and so is every place that belongs to it.
* The place of a finding of a rule is exactly that of a call, and the text there is one.
* What is silent says how its call is spelled; the function called there is spelled so.
* Every other place is exactly that of an expression, a statement or an `except` clause.
* All formats tell of the same places, and what a fix takes out lies in its file.

Findings about the tool or the file itself (`FSR0..`) have some place in the file.
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
    """A stretch of a file: lines and columns from 1, in characters, with the end excluded."""

    line: int
    column: int
    end_line: int
    end_column: int


class Told(NamedTuple):
    """How a format tells of a finding; what it leaves out is 0."""

    path: str
    line: int
    column: int
    code: str


class Text:
    """One file, and the places of its syntax, found without the program."""

    def __init__(self, file: Path) -> None:
        """Read a file; what does not parse has no nodes."""
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
            # inside an f-string an old Python may name a line that is not there
            there = self.lines[line - 1] if line <= len(self.lines) else ""
            return len(there.encode()[:offset].decode("utf-8", "replace")) + 1

        end = node.end_lineno, column(node.end_lineno, node.end_col_offset)
        return Span(node.lineno, column(node.lineno, node.col_offset), *end)

    def holds(self, span: Span) -> bool:
        """Tell whether a place is in the file."""
        ends = (span[:2], span[2:])
        return ends[0] <= ends[1] and all(
            1 <= line <= len(self.lines) and 1 <= column <= len(self.lines[line - 1]) + 1
            for line, column in ends
        )

    def at(self, span: Span) -> str:
        """Give the text of a place."""
        rows = self.lines[span.line - 1 : span.end_line]
        rows[-1] = rows[-1][: span.end_column - 1]
        rows[0] = rows[0][span.column - 1 :]
        return "\n".join(rows)

    def is_call(self, span: Span) -> bool:
        """Tell whether a place is exactly that of a call."""
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
    """A tree of files, each read once."""

    def __init__(self, root: Path) -> None:
        """Take the folder in which the program ran."""
        self._root = root
        self._texts: dict[str, Text | None] = {}

    def text(self, path: str) -> Text | None:
        """Give a file as a report names it, or None where there is no such file below the folder."""
        if path not in self._texts:
            file = self._root / path
            inside = not Path(path).is_absolute() and ".." not in Path(path).parts and file.is_file()
            self._texts[path] = Text(file) if inside else None
        return self._texts[path]


def broken(root: Path, reports: Mapping[str, str]) -> list[str]:
    """Tell what does not hold of the reports on a tree.

    Args:
        root: The folder in which the program ran.
        reports: What it reported, by the format; `json` must be there.

    Returns:
        One line for each thing that does not hold.
    """
    document = json.loads(reports["json"])
    tree = Tree(root)
    found = [f"error: {error['path']}: {error['message']}" for error in document["errors"]]
    for finding in document["findings"]:
        found += _of_finding(tree, finding)
    for silent in document.get("silenced", ()):
        found += _of_silent(tree, silent)
    said = [Told(f["path"], f["line"], f["column"], f["code"]) for f in document["findings"]]
    for name, told in FORMATS.items():
        if name in reports:
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
    # of what is no plain name the spelling is shortened
    if names and all(map(_NAME.fullmatch, names)) and not any(_spells(called, name) for name in names):
        yield f"{_position(silent)}: {what}: the call there is that of {', '.join(sorted(names))}"


def _spells(call: str, name: str) -> bool:
    """Tell whether a call may be one of a function; what is long is cut off."""
    return call.startswith(f"{name}(") or (call.endswith("…") and name.startswith(call[:-1]))


def _of_place(tree: Tree, place: Json, what: str, kind: str) -> Iterator[str]:
    text, span = tree.text(place["path"]), _span(place)
    if text is None:
        yield f"{_position(place)}: {what}: no such file here"
    elif not text.holds(span):
        yield f"{_position(place)}: {what}: no such place in the file"
    elif kind == "call" and not text.is_call(span):
        yield f"{_position(place)}: {what}: no call, but {text.at(span)!r}"
    elif kind == "node" and span not in text.nodes:
        yield f"{_position(place)}: {what}: no expression or statement, but {text.at(span)!r}"


def _differences(name: str, said: list[Told], told: list[Told]) -> Iterator[str]:
    """Compare what a format tells with what the first one does, as far as it tells it."""
    if len(said) != len(told):
        yield f"{name}: {len(told)} findings, and {len(said)} in json"
        return
    for one, other in zip(said, told, strict=True):
        if other != one._replace(column=one.column if other.column else 0):
            yield f"{name}: {other}, and in json {one}"


def _of_sarif(tree: Tree, log: Json) -> Iterator[str]:
    """Look at the places that only SARIF has: those of the steps, and what fixes take out."""
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
    for case in ET.fromstring(report).iter("testcase"):  # noqa: S314  # the program has just written it
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
"""How each format tells of the findings, in their order."""
