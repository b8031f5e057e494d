"""The layout of a file: how isort and black write it, by its settings or by the file itself."""

from __future__ import annotations

import ast
import difflib
import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fsrace_lint.fixes import layout_settings, python_versions
from fsrace_lint.fixes.reading import parsed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import black
    import isort

    from fsrace_lint.files.source import Source
    from fsrace_lint.fixes.python_versions import Version

_COMMON: Final = (88, 100, 110, 120)
"""Line lengths that a file without settings may have been formatted with."""
_GUESSES: Final[Sequence[Mapping[str, Any]]] = (
    {"profile": "black"},
    {},
    {"profile": "black", "force_sort_within_sections": True},
    {"profile": "black", "force_single_line": True},
    {"profile": "google"},
)
_DECLARATIONS: Final = ("def ", "async def ", "@", "class ", "cdef ", "cpdef ")
_CLASS: Final = "class _:\n"


class Layout:
    """How one file is laid out."""

    def __init__(self, source: Source) -> None:
        """Store a file as it is before it is fixed."""
        self._folder = source.file.parent
        self._root = str(source.file).removesuffix(source.relative) or "."
        self._text = source.text
        self._lines = source.text.splitlines()

    @cached_property
    def _settings(self) -> layout_settings.LayoutSettings:
        return layout_settings.find(self._folder)

    @cached_property
    def limit(self) -> int:
        """The longest line that a fix writes: by the settings, or as long as the longest of the code."""
        if self._settings.limit:
            return self._settings.limit
        code = (len(line) for line in self._lines if not line.lstrip().startswith("#"))
        return max(_COMMON[0], max(code, default=0))

    @cached_property
    def oldest(self) -> Version | None:
        """The oldest Python version that the file must run on, or None if nothing shows it."""
        return python_versions.oldest(self._folder, self._text)

    @cached_property
    def sortings(self) -> Sequence[isort.Config]:
        """How imports may be sorted: by the settings if there are any, and as is common."""
        import isort  # noqa: PLC0415  # loaded only if a fix adds an import

        length = self._settings.limit or next((n for n in _COMMON if n >= self.limit), _COMMON[0])
        known = layout_settings.of_isort(self._folder), self._settings.sorting(length)
        common = {"directory": self._root, "line_length": length}
        guesses = [isort.Config(**{**common, **guess}) for guess in _GUESSES]
        guesses.append(isort.Config(directory=self._root))
        return [*(config for config in known if config is not None), *guesses]

    def gap(self, code: Sequence[str]) -> int:
        """Count the empty lines between imports and the code that follows them."""
        chosen: int = self.sortings[0].lines_after_imports
        if chosen >= 0:
            return chosen
        lines = zip(code, [*code[1:], ""], strict=True)
        line = next((line for line, below in lines if not (line.startswith("#") and below.strip())), "")
        return 2 if line.startswith(_DECLARATIONS) else 1

    @cached_property
    def _modes(self) -> Sequence[black.Mode]:
        from black.mode import Mode, TargetVersion  # noqa: PLC0415  # loaded only if there is a fix

        settings = self._settings
        lengths = [settings.limit] if settings.limit else []
        lengths += [n for n in _COMMON if n >= self.limit][:1]
        lengths += [n for n in _COMMON[:1] if n not in lengths]
        normal = settings.normalizes_strings
        versions = {version for version in TargetVersion if version.value in settings.targets}
        return [
            Mode(
                target_versions=versions,
                line_length=length,
                string_normalization=normalizes,
                magic_trailing_comma=settings.has_magic_comma,
            )
            for normalizes in ([True, False] if normal is None else [normal])
            for length in dict.fromkeys(lengths)
        ]

    def applied(self, before: str, after: str) -> str:
        """Lay out what changed: as black does where it was laid out so, else only lines that are too long."""
        if before == after or "\r" in after.replace("\r\n", "\n") or "\f" in after:
            return after
        if "\r\n" not in after:
            return self._applied(before, after)
        if "\n" in after.replace("\r\n", ""):
            return after
        return self._applied(before.replace("\r\n", "\n"), after.replace("\r\n", "\n")).replace("\n", "\r\n")

    def _applied(self, before: str, after: str) -> str:
        try:
            old, new = _units(before), _units(after)
        except (SyntaxError, ValueError, RecursionError):
            return after
        lines = after.split("\n")
        known = before.split("\n")
        texts = [unit.text for unit in old], [unit.text for unit in new]
        matcher = difflib.SequenceMatcher(None, *texts, autojunk=False)
        for _, first, last, begin, end in reversed(
            [op for op in matcher.get_opcodes() if op[0] == "replace"]
        ):
            was, now = _Region.of(old[first:last], known), _Region.of(new[begin:end], lines)
            formatted = self._formatted(was, now) or self._wrapped(known, now)
            lines[now.first : now.last] = formatted
        return "\n".join(lines)

    def _formatted(self, was: _Region, now: _Region) -> list[str] | None:
        """Format a region as black does, if it was before."""
        if not (was.is_uniform and now.is_uniform):
            return None
        old, new = was.module(), now.module()
        for mode in self._modes:
            if _black(old, mode) == old:
                made = _black(new, mode)
                if made is not None:
                    return made.removeprefix(_CLASS if now.is_inner else "").split("\n")[:-1]
        return None

    def _wrapped(self, known: Sequence[str], now: _Region) -> list[str]:
        """Wrap the statements with lines that are too long, but were not before."""
        lines = now.lines
        had = {line.strip() for line in known if len(line) > self.limit} | set(known)
        long = [n for n, line in enumerate(lines) if len(line) > self.limit]
        long = [n for n in long if lines[n].strip() not in had and lines[n] not in had]
        if not long:
            return lines
        shift = 1 if now.is_inner else 0
        spans = _spans(parsed(now.module()))
        wanted = {max((s for s in spans if s[0] - shift <= n < s[1] - shift), default=None) for n in long}
        for span in sorted((s for s in wanted if s is not None), reverse=True):
            first, last = span[0] - shift, span[1] - shift
            lines[first:last] = self._broken(lines[first:last], is_header=span[2])
        return lines

    def _broken(self, lines: list[str], *, is_header: bool) -> list[str]:
        """Break a statement, or the first line of a block, as black does."""
        import black  # noqa: PLC0415  # loaded only if there is a line to break

        indent = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
        if any(line.strip() and not line.startswith(indent) for line in lines):
            return lines
        bare = "\n".join(line.removeprefix(indent) for line in lines) + "\n"
        if "'''" in bare or '"""' in bare:
            return lines
        text = bare + "    pass\n" if is_header else bare
        made = _black(text, black.Mode(line_length=self.limit - len(indent), string_normalization=False))
        if made is None:
            return lines
        broken = made.split("\n")[: -2 if is_header else -1]
        return [indent + _reindented(line, self.unit) if line else line for line in broken]

    @cached_property
    def unit(self) -> str:
        """One step of indentation, as the first block is written."""
        inner = (re.match(r"[ \t]+(?=\S)", line) for line in self._lines)
        found = {match.group() for match in inner if match is not None}
        if any(each.startswith("\t") for each in found):
            return "\t"
        return min((each for each in found if len(each) in {2, 4, 8}), default="    ")


class _Unit(NamedTuple):
    """Lines that one statement of the file, or of a class, has for itself."""

    first: int
    last: int
    text: str
    is_inner: bool
    is_part: bool = False


class _Region(NamedTuple):
    first: int
    last: int
    lines: list[str]
    is_inner: bool
    is_uniform: bool

    @classmethod
    def of(cls, units: Sequence[_Unit], lines: Sequence[str]) -> _Region:
        """Take the lines from the first to the last unit."""
        first, last = units[0].first, units[-1].last
        is_uniform = len({unit.is_inner for unit in units}) == 1 and not any(unit.is_part for unit in units)
        return cls(first, last, [*lines[first:last]], units[0].is_inner, is_uniform)

    def module(self) -> str:
        """Return the lines as a file."""
        return (_CLASS if self.is_inner else "") + "\n".join(self.lines) + "\n"


def _units(text: str) -> list[_Unit]:
    lines = text.split("\n")
    return [*_of_block(parsed(text).body, lines, is_inner=False)]


def _of_block(statements: Sequence[ast.stmt], lines: Sequence[str], *, is_inner: bool) -> Iterator[_Unit]:
    end = 0
    for statement in statements:
        first, last = _begin(statement), statement.end_lineno or statement.lineno
        if first < end:
            raise ValueError("statements share a line")
        end = last
        inner = _begin(statement.body[0]) if isinstance(statement, ast.ClassDef) and not is_inner else 0
        if isinstance(statement, ast.ClassDef) and inner >= statement.lineno:
            yield _Unit(first, inner, "\n".join(lines[first:inner]), is_inner=False, is_part=True)
            yield from _of_block(statement.body, lines, is_inner=True)
        else:
            yield _Unit(first, last, "\n".join(lines[first:last]), is_inner)


def _begin(statement: ast.stmt) -> int:
    decorators: Sequence[ast.expr] = getattr(statement, "decorator_list", ())
    return min([statement.lineno, *(node.lineno for node in decorators)]) - 1


def _spans(module: ast.Module) -> list[tuple[int, int, bool]]:
    """List the lines of simple statements, and of what comes before the body of the others."""
    spans = []
    for node in ast.walk(module):
        if isinstance(node, ast.stmt) and not isinstance(node, ast.FunctionDef | ast.ClassDef):
            body: Sequence[ast.stmt] = getattr(node, "body", ())
            last = _begin(body[0]) if body else node.end_lineno or node.lineno
            spans.append((node.lineno - 1, last, bool(body)))
    return spans


def _reindented(line: str, unit: str) -> str:
    bare = line.lstrip(" ")
    return unit * ((len(line) - len(bare)) // 4) + bare


def _black(text: str, mode: black.Mode) -> str | None:
    """Format a text; return None if black cannot, or would change what it means."""
    import black  # noqa: PLC0415  # loaded only if there is a fix
    from black.parsing import InvalidInput  # noqa: PLC0415

    try:
        made = black.format_str(text, mode=mode)
        is_same = made == text or ast.dump(parsed(made)) == ast.dump(parsed(text))
    except (InvalidInput, SyntaxError, ValueError, RecursionError):
        return None
    return made if is_same else None
