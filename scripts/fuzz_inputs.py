"""The inputs of `fuzz.py`: modules generated from the words that rules look for, and mutated test cases."""

from __future__ import annotations

import functools
import re
import textwrap
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from random import Random

ROOT: Final = Path(__file__).resolve().parent.parent
_HEADER: Final = re.compile(rb"^#= ([a-z_/]+\.py)\n", re.MULTILINE)
_BLOCK: Final = re.compile(r"^(?:`([^`\n]+)`\n\n)?```(py|toml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TOKEN: Final = re.compile(r"\w+|\s+|.", re.DOTALL)
NAMES: Final = ("main.py", "helpers.py", "pkg/__init__.py", "pkg/io.py")


@functools.cache
def words(section: str) -> tuple[str, ...]:
    """Return the entries of a section of `fuzz_words.txt`."""
    text = Path(__file__).with_name("fuzz_words.txt").read_text("utf-8")
    lines = text.partition(f"\n## {section}\n")[2].partition("\n\n")[0].split("\n")
    return tuple(_unescaped(line.replace("(nothing)", "").replace("(space)", " ")) for line in lines if line)


_ESCAPE: Final = re.compile(r"\\(u[0-9a-f]{4}|x[0-9a-f]{2}|.)")
_ESCAPED: Final = MappingProxyType({"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "0": "\0"})


def _unescaped(line: str) -> str:
    return _ESCAPE.sub(lambda match: _ESCAPED.get(match[1]) or _character(match[1]), line)


def _character(escape: str) -> str:
    return chr(int(escape[1:], 16)) if len(escape) > 1 else escape


class Maker:
    """A generator of Python code from the templates in `fuzz_words.txt`."""

    _SECTIONS: Final = MappingProxyType(
        {
            "p": "paths",
            "g": "guards",
            "a": "acts",
            "e": "expressions",
            "i": "items",
            "s": "signatures",
            "b": "bases",
        }
    )
    _HOLE: Final = re.compile(r"\{\{|\}\}|\{([pgaeisbfn])\}")
    _SHORT: Final = {"p": "path", "g": "rank == 0", "a": "f0()", "e": "x", "i": "lock", "s": "", "b": ""}

    def __init__(self, random: Random) -> None:
        """Initialize with the source of all random choices."""
        self.random = random

    def fill(self, text: str, depth: int = 0) -> str:
        """Replace the placeholders of a template with random entries, up to a maximum depth."""

        def filled(match: re.Match[str]) -> str:
            hole = match[1]
            if hole is None:
                return match[0][0]
            if hole == "f":
                return f"f{self.random.randrange(4)}"
            if hole == "n":
                return str(self.random.randrange(3))
            if depth > 3:
                return self._SHORT[hole]
            return self.fill(self.random.choice(words(self._SECTIONS[hole])), depth + 1)

        return self._HOLE.sub(filled, text)

    def module(self, lines: int) -> str:
        """Return a module with up to seven imports and about `lines` statements."""
        imports = self.random.sample(words("imports"), self.random.randrange(8))
        return "".join(f"{line}\n" for line in (*imports, *self.block(lines, 0)))

    def block(self, size: int, depth: int) -> list[str]:
        """Return the lines of a suite of about `size` statements."""
        lines: list[str] = []
        while size > 0:
            if depth < 5 and size > 1 and self.random.random() < 0.45:
                inner = self.random.randint(1, min(size, 8))
                lines += self.compound(self.block(inner, depth + 1))
                size -= inner + 1
            else:
                lines += self.fill(self.random.choice(words("simple"))).split("\n")
                size -= 1
        return lines or ["pass"]

    def compound(self, body: list[str]) -> list[str]:
        """Return the lines of a random compound statement around a suite."""
        head = self.fill(self.random.choice(words("frames")))
        indent = self.random.choice(("    ", "    ", "    ", "\t", " "))
        inner = [indent + line for line in body]
        if head.startswith("match "):
            patterns = self.random.sample(words("patterns"), 2)
            rows = [f"{indent}case {self.fill(pattern)}:" for pattern in patterns]
            return [head, *(line for row in rows for line in (row, *(indent + one for one in inner)))]
        lines = [head, *inner]
        if head.startswith(("def", "async def", "class")) and self.random.random() < 0.3:
            lines.insert(0, self.fill(self.random.choice(words("decorators"))))
        elif head == "try:":
            lines += self._handlers(indent)
        elif head.startswith(("if", "for", "while")) and self.random.random() < 0.3:
            lines += ["else:", *(indent + line for line in self.block(1, 9))]
        return lines

    def _handlers(self, indent: str) -> list[str]:
        lines = []
        if self.random.random() < 0.8:
            lines += [f"except{self.fill(self.random.choice(words('caught')))}:"]
            lines += [indent + line for line in self.block(1, 9)]
        if not lines or self.random.random() < 0.3:
            lines += ["finally:", *(indent + line for line in self.block(1, 9))]
        return lines


def mutated(text: str, random: Random, others: Sequence[str], kind: str = "tokens") -> str:
    """Apply one random mutation to a text.

    Args:
        text: The text.
        random: The source of random choices.
        others: Texts from which lines can be inserted.
        kind: The section of `fuzz_words.txt` with replacements for tokens.

    Returns:
        The mutated text, which can equal the original.
    """
    if random.random() < 0.5:
        tokens = _TOKEN.findall(text) or [""]
        _change(tokens, random, words(kind))
        return "".join(tokens)
    lines = text.splitlines(keepends=True) or [""]
    first = random.randrange(len(lines))
    last = min(len(lines), first + random.choice((1, 1, 1, 2, 3, 5, 9)))
    random.choice(_LINE_CHANGES)(lines, first, last, random, others)
    return "".join(lines)


def _change(tokens: list[str], random: Random, known: Sequence[str]) -> None:
    one, two = random.randrange(len(tokens)), random.randrange(len(tokens))
    how = random.randrange(5)
    if how == 0:
        tokens[one], tokens[two] = tokens[two], tokens[one]
    elif how == 1:
        tokens[one] = tokens[two]
    elif how == 2:
        del tokens[one]
    elif how == 3:
        tokens[one] = random.choice(known)
    else:
        tokens.insert(one, random.choice(known))


def _delete(lines: list[str], first: int, last: int, _random: Random, _others: Sequence[str]) -> None:
    del lines[first:last]


def _double(lines: list[str], first: int, last: int, random: Random, _others: Sequence[str]) -> None:
    at = random.randrange(len(lines) + 1)
    lines[at:at] = lines[first:last]


def _indent(lines: list[str], first: int, last: int, random: Random, _others: Sequence[str]) -> None:
    if random.random() < 0.5:
        lines[first:last] = ["    " + line for line in lines[first:last]]
    else:
        lines[first:last] = [line.removeprefix("    ") for line in lines[first:last]]


def _enclose(lines: list[str], first: int, last: int, random: Random, _others: Sequence[str]) -> None:
    """Wrap lines in a compound statement."""
    maker = Maker(random)
    margin = min((len(line) - len(line.lstrip()) for line in lines[first:last] if line.strip()), default=0)
    body = textwrap.dedent("".join(lines[first:last])).rstrip("\n").split("\n")
    lines[first:last] = [f"{' ' * margin}{line}\n" for line in maker.compound(body)]


def _borrow(lines: list[str], first: int, _last: int, random: Random, others: Sequence[str]) -> None:
    """Insert lines of another text."""
    given = random.choice(others).splitlines(keepends=True) or [""]
    start = random.randrange(len(given))
    lines[first:first] = given[start : start + random.randint(1, 6)]


def _make(lines: list[str], first: int, last: int, random: Random, _others: Sequence[str]) -> None:
    """Replace lines with generated statements."""
    margin = re.match(r"[ \t]*", lines[first])
    made = Maker(random).block(random.randint(1, 3), 2)
    lines[first:last] = [f"{margin[0] if margin else ''}{line}\n" for line in made]


def _renew(lines: list[str], _first: int, _last: int, random: Random, _others: Sequence[str]) -> None:
    """Change or remove the line endings of all lines."""
    newline = random.choice(("\r\n", "\r", "\n", ""))
    lines[:] = [line.rstrip("\r\n") + newline for line in lines]


_LINE_CHANGES: Final[tuple[Callable[..., None], ...]] = (
    *(_delete, _double, _indent, _enclose, _borrow, _make, _renew),
    *(_delete, _double, _indent, _enclose, _borrow, _make),
)


def flipped(data: bytes, random: Random) -> bytes:
    """Return the data with up to eight random bytes replaced."""
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 8))):
        if changed:
            changed[random.randrange(len(changed))] = random.randrange(256)
    return bytes(changed)


def split(data: bytes) -> dict[str, bytes]:
    """Split an input into files by name.

    A line `#= NAME.py` begins a file. Text before the first such line is `main.py`.
    """
    pieces = _HEADER.split(data)
    names = ["main.py", *(name.decode("ascii") for name in pieces[1::2])]
    return {name: text for name, text in zip(names, pieces[::2], strict=True) if text or name != "main.py"}


def joined(files: Iterable[tuple[str, str]]) -> str:
    """Join files into one text that `split` accepts."""
    return "".join(f"#= {name}\n{text if text.endswith(chr(10)) else text + chr(10)}" for name, text in files)


@functools.cache
def cases(kind: str) -> tuple[str, ...]:
    """Return the code blocks of a kind, `py` or `toml`, in all case files.

    The named Python files of one case are joined into one text.
    """
    found: list[str] = []
    for file in sorted((ROOT / "tests" / "cases").rglob("*.md")):
        for section in re.split(r"^#+ ", file.read_text("utf-8"), flags=re.MULTILINE):
            blocks = [match.groups() for match in _BLOCK.finditer(section)]
            texts = [(name or "", text) for name, of, text in blocks if of == kind]
            named = [(name, text) for name, text in texts if re.fullmatch(r"[a-z_/]+\.py", name)]
            if kind == "py" and len(named) > 1:
                found.append(joined(named))
            else:
                found += [text for _, text in texts]
    return tuple(found)


def project(random: Random) -> bytes:
    """Generate multiple modules that can import each other, or mutate a case."""
    if random.random() < 0.5:
        names = random.sample(NAMES, random.randint(1, len(NAMES)))
        text = joined((name, Maker(random).module(random.randint(1, 14))) for name in names)
        changes = random.choice((0, 0, 0, 1, 2))
    else:
        text, changes = random.choice(cases("py")), random.choice((1, 1, 1, 2, 3, 5))
    for _ in range(changes):
        text = mutated(text, random, cases("py"))
    return text.encode("utf-8", "surrogatepass")


def module(random: Random) -> bytes:
    """Generate a short module, or mutate a case; sometimes with a BOM, another encoding, or random bytes."""
    if random.random() < 0.5:
        text, changes = Maker(random).module(random.randint(1, 8)), random.choice((0, 0, 1, 2))
    else:
        text, changes = random.choice(cases("py")), random.choice((1, 1, 1, 2, 3, 5))
    for _ in range(changes):
        text = mutated(text, random, cases("py"))
    return _encoded(text, random)


def _encoded(text: str, random: Random) -> bytes:
    odds = random.random()
    if odds < 0.02:
        return b"\xef\xbb\xbf" + text.encode("utf-8", "surrogatepass")
    if odds < 0.06:
        cookie = random.choice(
            ("latin-1", "cp1252", "ascii", "utf-8", "shift_jis", "utf-16", "utf-7", "klingon")
        )
        return f"# -*- coding: {cookie} -*-\n{text}".encode(random.choice(("latin-1", "utf-8")), "replace")
    data = text.encode("utf-8", "surrogatepass")
    return flipped(data, random) if odds < 0.12 else data


@functools.cache
def tables() -> tuple[str, ...]:
    """Return each table of the built-in catalog as TOML."""
    folder = ROOT / "fsrace_lint" / "catalog"
    texts = [file.read_text("utf-8") for file in sorted(folder.glob("*.toml"))]
    return tuple(part for text in texts for part in re.split(r"^(?=\[\[)", text, flags=re.MULTILINE)[1:])


def settings(random: Random) -> bytes:
    """Generate a `pyproject.toml`, or mutate the `pyproject.toml` of a case."""
    if random.random() < 0.6:
        keys = random.sample(words("keys"), random.randint(0, 6))
        own = [random.choice(tables()).replace("[[", "[[tool.fsrace-lint.catalog.")]
        text = "\n".join(("[tool.fsrace-lint]", *keys, *(own if random.random() < 0.2 else ()), ""))
        changes = random.choice((0, 0, 1, 1, 2, 4))
    else:
        text, changes = random.choice(cases("toml")), random.choice((1, 1, 2, 4))
    for _ in range(changes):
        text = mutated(text, random, cases("toml"), "toml")
    data = text.encode("utf-8", "surrogatepass")
    return flipped(data, random) if random.random() < 0.05 else data


def catalog(random: Random) -> bytes:
    """Return one to three random tables of the built-in catalog, usually mutated."""
    text = "".join(random.choice(tables()) for _ in range(random.randint(1, 3)))
    for _ in range(random.choice((0, 1, 1, 2, 3))):
        text = mutated(text, random, tables(), "toml")
    return text.encode("utf-8", "surrogatepass")


def comments(random: Random) -> bytes:
    """Generate a module with comments that suppress findings, or resemble such comments."""
    rows = []
    for _ in range(random.randint(1, 8)):
        code = Maker(random).fill(random.choice(words("simple"))) if random.random() < 0.7 else ""
        said = [random.choice(words("remarks")) for _ in range(random.choice((0, 1, 1, 2, 3, 5)))]
        rows.append(code + random.choice(("  ", " ", "", "\t")) + "".join(said))
    text = random.choice(("\n", "\n", "\n", "\r\n", "\r")).join(rows) + random.choice(("\n", ""))
    for _ in range(random.choice((0, 0, 1, 2))):
        text = mutated(text, random, cases("py"), "remarks")
    return _encoded(text, random)
