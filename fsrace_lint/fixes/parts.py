"""Split a file into parts that are parsed, changed, and checked separately.

A change in one function needs only one part.
"""

from __future__ import annotations

import ast
import io
from bisect import bisect_right
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import libcst as cst
import msgspec

from fsrace_lint.fixes.names import ImportedNames
from fsrace_lint.fixes.reading import is_endless, parsed
from fsrace_lint.fixes.tree import Places, Tree, Whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fsrace_lint.files.source import Source
    from fsrace_lint.findings.finding import Fix

_STRETCH: Final = 16_384
"""Minimum number of characters to search for names at a time."""
_MARK: Final = 2
"""Number of lines in a marker statement."""


class Replaced(msgspec.Struct, frozen=True):
    """Lines of a file, counted from 0, and the text that replaces them."""

    first: int
    last: int
    text: str


class FilePart(NamedTuple):
    """Lines of a file as a file of their own, with the marker statements around them."""

    source: Source
    tree: Tree
    first: int
    last: int
    above: str
    below: str

    def replaced(self, text: str) -> Replaced | None:
        """Map a changed text of the part to the file; return None if it changes more than the lines."""
        if not (text.startswith(self.above) and text.endswith(self.below)):
            return None
        return Replaced(self.first, self.last, text[len(self.above) :].removesuffix(self.below))


class _Piece(NamedTuple):
    """Statements of one block that share lines; `begin` and `end` are counted from 0."""

    begin: int
    end: int
    statements: tuple[ast.stmt, ...]

    def is_import(self) -> bool:
        return len(self.statements) == 1 and isinstance(self.statements[0], ast.Import | ast.ImportFrom)


class _Stretch(NamedTuple):
    """Lines of a file, and the enclosing class: its first line, first line of the body, and indentation."""

    first: int
    last: int
    owner: tuple[int, int, str] | None = None


class Parts:
    """A file that can be split between the statements of the module, and of its classes.

    A part is parsed to the same nodes as in the whole file, because each statement starts and ends with
    its lines. Each part has what the whole file decides: the names of the file, and its indentation and
    line ending. libcst takes the last two from the first lines, so a marker statement precedes the part.
    Another one follows it, so that text that is added there is found.
    """

    def __init__(self, source: Source, module: ast.Module) -> None:
        """Find the parts of a file.

        Raises:
            ValueError: The file cannot be split.
        """
        text = source.text
        self.source = source
        self._lines = io.StringIO(text, newline="\n").readlines()
        self._newline = "\r\n" if self._lines and self._lines[0].endswith("\r\n") else "\n"
        pieces = _pieces(module.body)
        top = next((number for number, piece in enumerate(pieces) if number and not piece.is_import()), 0)
        if not top:
            raise ValueError("no statement follows the imports at the top")
        cuts = [0, pieces[top].begin, *self._cuts(pieces[top:], ""), len(self._lines)]
        self._outer = [_Stretch(*lines) for lines in pairwise(cuts)]
        self._stretches = [self._outer[0]]
        for stretch, piece in zip(self._outer[1:], pieces[top:], strict=True):
            self._stretches += self._divided(stretch, piece)
        self._name = _strange(text)
        self._indent = self._indentation(module)
        self._whole = Whole(text, ImportedNames.joined(self._names()))
        self.imported: dict[frozenset[str], Replaced | None] = {}
        """The top of the file with these imports added."""
        self._made: tuple[_Stretch, FilePart] | None = None

    @classmethod
    def of(cls, source: Source) -> Parts | None:
        """Split a file; return None if a part might be parsed differently than in the whole file."""
        text = source.text
        if source.encoding != "utf-8" or "\f" in text or "\r" in text.replace("\r\n", "\n"):
            return None
        try:
            module = parsed(text)
            return None if is_endless(module) else cls(source, module)
        except (RecursionError, SyntaxError, ValueError, cst.ParserSyntaxError):
            return None

    def part(self, fix: Fix) -> FilePart | None:
        """Return the part that a fix changes, or None if it concerns more than one function."""
        number = bisect_right(self._stretches, fix.span.line - 1, key=lambda stretch: stretch.first) - 1
        stretch = self._stretches[number]
        places = (fix.span,) if fix.check is None else (fix.span, fix.check)
        if not number or any(at.line <= stretch.first or at.end_line > stretch.last for at in places):
            return None
        known, part = self._made or (None, None)
        if part is None or known != stretch:
            part = self._part(stretch)
            self._made = stretch, part
        call = part.tree.calls.get(fix.span)
        around = () if call is None else part.tree.ancestors(call)
        return part if any(isinstance(node, cst.FunctionDef) for node in around) else None

    @cached_property
    def top(self) -> FilePart:
        """The part before the first statement that is not an import; imports are added there."""
        return self._part(self._outer[0])

    def _part(self, stretch: _Stretch) -> FilePart:
        first, last, owner = stretch
        above, below = self._marks(first, last)
        shifts = [(1, first - _MARK if first else 0)]
        if owner is not None:
            begin, body, indent = owner
            below = self._mark(indent)
            above = "".join((above, *self._lines[begin:body], below))
            under = _MARK + body - begin + _MARK
            shifts = [(1, begin - _MARK), (under + 1, first - under)]
        text = "".join((above, *self._lines[first:last], below))
        tree = Tree(text, self.source.newline, shifts, self._whole)
        source = msgspec.structs.replace(self.source, data=text.encode(), bom=False)
        return FilePart(source, tree, first, last, above, below)

    def _marks(self, first: int, last: int) -> tuple[str, str]:
        mark = self._mark("")
        return mark if first else "", mark if last < len(self._lines) else ""

    def _mark(self, indent: str) -> str:
        return f"{indent}if {self._name}:{self._newline}{indent}{self._indent}pass{self._newline}"

    def _names(self) -> Iterator[ImportedNames]:
        """Collect the names of the file in chunks, because a tree of the whole file is large."""
        first = size = 0
        for begin, last, _ in self._outer:
            size += sum(map(len, self._lines[begin:last]))
            if first > 0 and size < _STRETCH and last < len(self._lines):
                continue
            above, below = self._marks(first, last)
            text = "".join((above, *self._lines[first:last], below))
            module = cst.parse_module(text)
            if module.code != text:
                raise ValueError("libcst does not reproduce the text")
            shifts = [(1, first - _MARK if first else 0)]
            yield ImportedNames.of(module, Places(module, shifts).standing)
            first, size = last, 0

    def _divided(self, stretch: _Stretch, piece: _Piece) -> list[_Stretch]:
        """Split the lines of a class between its statements; anything else is one stretch."""
        match piece.statements:
            case [ast.ClassDef(body=[statement, *_] as body)]:
                indent = self._lines[statement.lineno - 1][: statement.col_offset]
                if not (indent.isspace() and self._lines[stretch.last - 1].endswith("\n")):
                    return [stretch]
                inner = _pieces(body)
                begin = inner[0].begin
                owner = (piece.begin, begin, indent)
                cuts = [begin, *self._cuts(inner, indent), stretch.last]
                return [
                    _Stretch(stretch.first, begin),
                    *(_Stretch(first, last, owner) for first, last in pairwise(cuts)),
                ]
        return [stretch]

    def _cuts(self, pieces: Sequence[_Piece], indent: str) -> Iterator[int]:
        """Yield the lines between pieces; a comment with more indentation belongs to the piece above."""
        for above, below in pairwise(pieces):
            rows = range(above.end, below.begin)
            yield max((row + 1 for row in rows if self._is_comment(row, indent)), default=above.end)

    def _is_comment(self, row: int, indent: str) -> bool:
        line = self._lines[row]
        bare = line.lstrip()
        return bare.startswith("#") and len(line) - len(bare) > len(indent)

    def _indentation(self, module: ast.Module) -> str:
        """Return the indentation of the first block."""
        statements = (node for node in ast.walk(module) if isinstance(node, ast.stmt))
        spaces = ((node.lineno, self._lines[node.lineno - 1][: node.col_offset]) for node in statements)
        return min((pair for pair in spaces if pair[1].isspace()), default=(0, "    "))[1]


def _pieces(statements: Sequence[ast.stmt]) -> list[_Piece]:
    pieces: list[_Piece] = []
    for statement in statements:
        decorators: Sequence[ast.expr] = getattr(statement, "decorator_list", ())
        begin = min([statement.lineno, *(node.lineno for node in decorators)]) - 1
        end = statement.end_lineno or statement.lineno
        if pieces and begin < pieces[-1].end:
            last = pieces.pop()
            pieces.append(_Piece(last.begin, end, (*last.statements, statement)))
        else:
            pieces.append(_Piece(begin, end, (statement,)))
    return pieces


def _strange(text: str) -> str:
    """Return a name that does not occur in a text."""
    name = "_part"
    while name in text:
        name += "_"
    return name
