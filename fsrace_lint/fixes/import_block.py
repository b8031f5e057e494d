"""Add import lines to the imports at the top of a file, sorted as the file sorts them."""

from __future__ import annotations

import ast
import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from fsrace_lint.fixes.reading import parsed
from fsrace_lint.fixes.sorting import sections, sorted_by

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fsrace_lint.fixes.layout import Layout

_FILE_COMMENT: Final = re.compile(r"#!|#.*coding[:=]|#\s*[\w-]+:|#\s*-\*-|#.*(?i:copyright|licen[cs]e)")
_LINE: Final = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")
_FUTURE: Final = "__future__"


class _Import(NamedTuple):
    """An import statement that has its lines for itself; `last` is the line after it."""

    first: int
    last: int
    module: str
    names: tuple[str, ...]
    is_from: bool


class Lines:
    """The lines of a text, with their endings."""

    def __init__(self, text: str) -> None:
        """Split a text."""
        self._pairs = [match.groups() for match in _LINE.finditer(text)]
        self.contents = [content for content, _ in self._pairs]

    def replaced(self, new: Sequence[str], newline: str) -> str:
        """Return the text with other lines, and keep every byte of those that stay."""
        old = self.contents
        same = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), len(old))
        rest = min(len(old), len(new)) - same
        tail = next((n for n in range(rest) if old[-1 - n] != new[-1 - n]), rest)
        added = [content + newline for content in new[same : len(new) - tail]]
        kept = [content + end for content, end in self._pairs]
        if same and not self._pairs[same - 1][1]:
            kept[same - 1] += newline
        return "".join((*kept[:same], *added, *kept[len(old) - tail :]))


def add_imports(text: str, wanted: Iterable[str], newline: str, layout: Layout) -> str:
    """Add each import line once, and keep every other byte.

    Args:
        text: The file.
        wanted: Lines like `import x` and `from x import y`.
        newline: The line ending for new lines.
        layout: The layout of the file.
    """
    for line in sorted(set(wanted)):
        lines = Lines(text)
        text = lines.replaced(_with_line(lines.contents, line, layout), newline)
    return text


def _with_line(lines: Sequence[str], line: str, layout: Layout) -> list[str]:
    """Add a line where a person would; where the file was sorted, the way that keeps it so."""
    block = _Block(lines, layout)
    plain, end = block.added(line)
    return _sorted(lines[: block.end], plain, end, layout) if block.imports else plain


def sorted_again(lines: Sequence[str], changed: Sequence[str], layout: Layout) -> Sequence[str]:
    """Sort the changed lines of a file whose imports were sorted, and are fewer now."""
    old, new = _Block(lines, layout), _Block(changed, layout)
    return _sorted(lines[: old.end], changed, new.end, layout) if new.imports else changed


def _sorted(old: Sequence[str], changed: Sequence[str], end: int, layout: Layout) -> list[str]:
    """Sort the lines up to an end as the old ones are sorted, if they are."""
    if "\f" in "".join(old):
        return [*changed]
    before = "\n".join((*old, ""))
    after = "\n".join((*changed[:end], ""))
    clean = [config for config in layout.sortings if sorted_by(config, before) == before]
    made = [after, *(text for config in clean if (text := sorted_by(config, after)) is not None)]

    def kept(text: str) -> tuple[bool, int]:
        stay = [sorted_by(config, text) == text for config in clean]
        return all(stay[:1]), sum(stay)

    best = max(made, key=kept)
    return [*best.split("\n")[:-1], *changed[end:]]


class _Block:
    """The first imports of a file that follow each other."""

    def __init__(self, lines: Sequence[str], layout: Layout) -> None:
        self._lines = lines
        self._layout = layout
        module = parsed("\n".join(lines))
        self._start = _after_docstring(module, lines)
        self.imports = _first_run(module)
        first = self.imports[0].first if self.imports else 0
        above = (statement for statement in module.body if statement.lineno <= first)
        nodes = (node for statement in above for node in ast.walk(statement))
        self._used_above = {node.id for node in nodes if isinstance(node, ast.Name)}
        self.end = self.imports[-1].last if self.imports else self._start

    def added(self, line: str) -> tuple[list[str], int]:
        """Return the lines with another one, and the line after the imports."""
        new = _parsed(line)
        local = new.names[0].partition(".")[0]
        if not self.imports or local in self._used_above:
            return self._alone(line)
        for old in self.imports:
            if new.is_from and old.is_from and old.module == new.module and not self._is_one_per_line(old):
                merged = self._merged(old, new.names[0])
                if merged is not None:
                    return self._put(old.first, old.last, merged)
        return self._put_by_section(new, line)

    def _put(self, first: int, last: int, lines: Sequence[str]) -> tuple[list[str], int]:
        end = self.end + len(lines) - (last - first)
        return [*self._lines[:first], *lines, *self._lines[last:]], end

    def _alone(self, line: str) -> tuple[list[str], int]:
        """Add a first block of imports: after the docstring or the comments about the file."""
        at, lines = self._start, self._lines
        rest = next((n for n in range(at, len(lines)) if lines[n].strip()), len(lines))
        is_apart = not at or not lines[at - 1].strip() or lines[at - 1].startswith("#!")
        above = [] if is_apart else [""]
        below = [""] * self._layout.gap(lines[rest:]) if rest < len(lines) else lines[-1:]
        return self._put(at, rest, [*above, line, *below])

    def _is_one_per_line(self, old: _Import) -> bool:
        """Check whether the file imports each name of a module in a line of its own."""
        same = [each for each in self.imports if each.is_from]
        several = [a for a, b in pairwise(same) if a.module == b.module]
        return len(old.names) == 1 and bool(several) and all(len(each.names) == 1 for each in same)

    def _merged(self, old: _Import, name: str) -> list[str] | None:
        """Add a name to a statement; return None if it has comments or an unusual form."""
        lines = self._lines[old.first : old.last]
        if old.names == ("*",) or old.module.startswith("."):
            return None
        at = _rank([each.partition(" ")[0] for each in old.names], name)
        names = [*old.names[:at], name, *old.names[at:]]
        head = f"from {old.module} import "
        if len(lines) == 1:
            code, mark, comment = lines[0].partition("#")
            bracketed = code.rstrip().endswith(")")
            listed = ", ".join(names)
            flat = f"{head}({listed})" if bracketed else head + listed
            flat += code[len(code.rstrip()) :] + mark + comment if mark else ""
            if len(flat) <= self._layout.limit or mark:
                return [flat]
            return [f"{head}(", *(f"{self._layout.unit}{each}," for each in names), ")"]
        bare = [line.strip() for line in lines]
        if (bare[0], bare[-1]) != (f"{head}(", ")") or any("#" in line for line in lines):
            return None
        if [line.rstrip(",") for line in bare[1:-1]] != list(old.names):
            return None
        indent = lines[1][: len(lines[1]) - len(bare[1])]
        comma = "," if bare[-2].endswith(",") else ""
        inner = [f"{indent}{each}," for each in names]
        return [lines[0], *inner[:-1], inner[-1].rstrip(",") + comma, lines[-1]]

    def _put_by_section(self, new: _Import, line: str) -> tuple[list[str], int]:
        found = sections([new.module, *(old.module for old in self.imports)], self._layout)
        own, places = found[0], found[1:]
        same = [old for old, place in zip(self.imports, places, strict=True) if place == own]
        if same:
            at = self._among(same, new)
            return self._put(at, at, [line])
        is_spaced = not any(self._touch(a, b) for a, b in self._changes(places))
        blank = [""] if is_spaced else []
        lower = [old for old, place in zip(self.imports, places, strict=True) if place < own]
        if lower:
            at = lower[-1].last
            is_last = lower[-1] is self.imports[-1]
            follows = [""] if is_spaced and not is_last and self._lines[at].strip() else []
            return self._put(at, at, [*blank, line, *follows])
        at = self.imports[0].first
        return self._put(at, at, [line, *blank])

    def _changes(self, places: Sequence[int]) -> list[tuple[_Import, _Import]]:
        """List neighbors of different sections."""
        pairs = zip(pairwise(self.imports), pairwise(places), strict=True)
        return [neighbors for neighbors, (a, b) in pairs if a != b]

    def _touch(self, above: _Import, below: _Import) -> bool:
        return all(line.strip() for line in self._lines[above.last : below.first])

    def _among(self, same: Sequence[_Import], new: _Import) -> int:
        """Return the line for a new import among those of its section."""
        kinds = [old.is_from for old in same]
        is_mixed = any(a and not b for a, b in pairwise(kinds))

        def key(one: _Import) -> tuple[object, ...]:
            name = one.module.lower(), one.is_from, one.names
            return name if is_mixed else (one.is_from, *name)

        wrong = [
            sum(key(old) > key(new) for old in same[:n]) + sum(key(old) < key(new) for old in same[n:])
            for n in range(len(same) + 1)
        ]
        at = wrong.index(min(wrong))
        return same[at].first if at < len(same) and (not at or wrong[at] < 0) else same[at - 1].last


def _rank(names: Sequence[str], name: str) -> int:
    """Return where a name belongs among sorted names, and the end if they are not sorted."""
    for order in (_by_kind, _by_letter):
        keys = [order(each) for each in names]
        if keys == sorted(keys):
            return sum(each < order(name) for each in keys)
    return len(names)


def _by_kind(name: str) -> tuple[int, str]:
    """Sort constants first, and then classes."""
    return (0 if name.isupper() else 1 if name[:1].isupper() else 2), name.lower()


def _by_letter(name: str) -> tuple[int, str]:
    return 0, name.lower()


def _parsed(line: str) -> _Import:
    return _imports(parsed(line).body[0], 0, 1)


def _imports(statement: ast.stmt, first: int, last: int) -> _Import:
    if isinstance(statement, ast.ImportFrom):
        names = tuple(f"{a.name} as {a.asname}" if a.asname else a.name for a in statement.names)
        return _Import(first, last, "." * statement.level + (statement.module or ""), names, is_from=True)
    names = tuple(alias.name for alias in statement.names) if isinstance(statement, ast.Import) else ()
    return _Import(first, last, names[0], names, is_from=False)


def _first_run(module: ast.Module) -> list[_Import]:
    """Return the first imports that follow each other; those of the future alone if there are no others."""
    run: list[_Import] = []
    future: list[_Import] = []
    for number, statement in enumerate(module.body):
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            break
        if isinstance(statement, ast.Import | ast.ImportFrom):
            run.append(_own(module, number))
        elif any(each.module != _FUTURE for each in run):
            break
        else:
            future, run = run or future, []
    return run or future


def _own(module: ast.Module, number: int) -> _Import:
    """Return an import statement with its lines; one that shares them takes no other names."""
    statement = module.body[number]
    first, last = statement.lineno - 1, statement.end_lineno or statement.lineno
    is_shared = number > 0 and first < (module.body[number - 1].end_lineno or 0)
    for other in module.body[number + 1 :]:
        if other.lineno > last:
            break
        last, is_shared = max(last, other.end_lineno or last), True
    found = _imports(statement, first, last)
    return found._replace(names=("*",)) if is_shared else found


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _after_docstring(module: ast.Module, lines: Sequence[str]) -> int:
    """Return the line after the docstring, or else after the comments about the file."""
    if module.body and _is_docstring(module.body[0]):
        return module.body[0].end_lineno or 0
    top = module.body[0].lineno - 1 if module.body else len(lines)
    at = 0
    for number, line in enumerate(lines[:top]):
        if not line.strip() or _FILE_COMMENT.match(line):
            at = number + 1
    return at
