"""The values of shell variables, as far as a script itself contains them."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import msgspec

from fsrace_lint.launches.commands import ROOT
from fsrace_lint.launches.launchers import UNKNOWN, integer

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MARK: Final = "\ue002"
"""The mark of a text that differs between the rounds of a loop. This private character is in no file."""
VARIED: Final = UNKNOWN + MARK
"""The value of a variable that differs between the rounds of a loop."""
_Words = TypeVar("_Words", str, tuple[str, ...])
_LONGEST: Final = 20_000
"""The maximum length of a value. A longer one counts as not known."""
_LONGEST_COMMAND: Final = 4_000
_MOST_VALUES: Final = 4
_DEEPEST: Final = 6
_EXPANSION: Final = re.compile(
    r"\$\{(?P<prefix>[!#]?)(?P<name>\w+|[@*?$!-])(?:\[(?P<index>[^\]]*)\])?(?P<operator>:?[-=+?]|%%?|##?|//?|:|\^\^?|,,?|@)?"
    r"(?P<word>.*)\}",
    re.DOTALL,
)
_SIMPLE: Final = re.compile(r"\$(\w+)|\$(\{(?:[^{}]|\{[^{}]*\})*\})")
_INTERPRETER: Final = re.compile(
    r"(?:\w+_)?PY(?:THON)?[23]?(?:_?(?:BIN|EXE|EXEC|CMD|INTERPRETER|EXECUTABLE))?"
)
_OWN_FOLDER: Final = re.compile(
    r"dirname\b.*(?:\$0|\$\{0\}|BASH_SOURCE)[^)]*?[)\"'`]*((?:/[\w.-]+)*)", re.DOTALL
)
_CAT: Final = re.compile(r"\s*cat\s*<<-?\s*['\"]?(\w+)['\"]?[ \t]*\n(.*)\n[ \t]*\1\s*", re.DOTALL)
_WHICH: Final = re.compile(r"\s*(?:which|command\s+-v|type\s+-[pP])\s+([\w./-]+)\s*")
_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_POSITIONAL: Final = re.compile(r"\$\{?([1-9@*])")
_PRODUCT: Final = re.compile(r"\s*\$?\{?(\w+)\}?\s*(?:([*/+-])\s*\$?\{?(\w+)\}?\s*)?")


class Either(msgspec.Struct, frozen=True):
    """The values that a variable has after different branches."""

    values: tuple[str, ...]


Value: TypeAlias = "str | tuple[str, ...] | Either"
"""A value: a text, the elements of an array, or alternatives."""


class Variables:
    """The variables of a script at one point.

    Attributes:
        values: The values by name.
        positional: The arguments of the function that is called; None outside a function.
        folder: The directory of the script, relative to the root; None if the commands are in no script.
    """

    def __init__(self, folder: str | None) -> None:
        """Start without variables."""
        self.values: dict[str, Value] = {}
        self.positional: tuple[str, ...] | None = None
        self.folder = folder

    def set(self, name: str, value: Value, *, append: bool = False) -> None:
        """Assign a value, or append to the present one."""
        before = self.values.get(name)
        if append and isinstance(value, tuple):
            value = (*(before if isinstance(before, tuple) else ()), *value)
        elif append and isinstance(value, str):
            value = before + value if isinstance(before, str) else UNKNOWN + value
        size = (
            len(value) if isinstance(value, str) else sum(map(len, value)) if isinstance(value, tuple) else 0
        )
        self.values[name] = value if size <= _LONGEST else UNKNOWN

    def merge(self, branches: Iterable[dict[str, Value]]) -> None:
        """Continue with the values of all branches."""
        found = list(branches)
        merged: dict[str, Value] = {}
        for name in sorted({name for values in found for name in values}):
            each = [values.get(name, UNKNOWN) for values in found]
            texts = {text for value in each for text in _texts(value)}
            if all(value == each[0] for value in each):
                merged[name] = each[0]
            elif any(isinstance(value, tuple) for value in each):
                arrays = [value if isinstance(value, tuple) else () for value in each]
                merged[name] = (*_common(arrays), UNKNOWN)
            else:
                merged[name] = Either(tuple(sorted(texts))) if len(texts) <= _MOST_VALUES else UNKNOWN
        self.values = merged

    def alternatives(self, name: str) -> tuple[str, ...]:
        """Return the values of a variable after different branches, or nothing if it has only one."""
        value = self.values.get(name)
        return value.values if isinstance(value, Either) else ()

    def get(self, name: str) -> list[str]:
        """Return the words of a variable: one, or the elements of an array."""
        position = integer(name)
        if position:
            given = self.positional
            if given is None:
                return [UNKNOWN]
            return [given[position - 1]] if position <= len(given) else [""]
        if name in {"@", "*"}:
            return [UNKNOWN] if self.positional is None else [*self.positional]
        value = self.values.get(name)
        if value is None and name == "PWD":
            return ["."]
        if value is None and name == "0" and self.folder is not None:
            return [posixpath.join(ROOT, self.folder, UNKNOWN)]
        if value in (None, UNKNOWN, VARIED) and _INTERPRETER.fullmatch(name):
            return ["python"]
        if isinstance(value, Either):
            # the words with which all alternatives begin
            begin = _common(tuple(f"{each} " for each in value.values))
            return [begin[: begin.rfind(" ") + 1] + (VARIED if _is_varied(value.values) else UNKNOWN)]
        if value is None:
            return [UNKNOWN]
        return list(value) if isinstance(value, tuple) else [value]

    def expand(self, text: str, depth: int = 0) -> list[str]:
        """Return the words of an expansion such as `${NAME:-8}` or `${ARGS[@]}`."""
        words = self._expand(text, depth)
        return words if _is_varied(words) else [self._marked(word, text) for word in words]

    def _marked(self, value: str, text: str) -> str:
        """Return the value of a text, or that it differs between rounds of a loop, as its variables do."""
        texts = [each for name in _NAME.findall(text) for each in _texts(self.values.get(name, ""))]
        texts += [word for name in _POSITIONAL.findall(text) for word in self.get(name)]
        return VARIED if _is_varied(texts) else value

    def _expand(self, text: str, depth: int) -> list[str]:
        found = _EXPANSION.fullmatch(text)
        if found is None or found["prefix"] or depth > _DEEPEST:
            return [UNKNOWN]
        name, operator = found["name"], found["operator"] or ""
        values = self.get(name)
        if found["index"] and found["index"] not in {"@", "*"}:
            index = integer(found["index"])
            values = [values[index]] if index is not None and index < len(values) else [UNKNOWN]
        elif found["index"] is None and isinstance(self.values.get(name), tuple):
            values = values[:1]
        empty = values in ([], [""])
        match operator[-1:]:
            case "":
                return [UNKNOWN] if found["word"] else values
            case "-" | "=" if empty or values == [UNKNOWN]:
                default = self.text(found["word"], depth + 1)
                if operator[-1] == "=":
                    self.set(name, default)
                return [default]
            case "-" | "=" | "?":
                return values
            case "+":
                is_set = name in self.values or values != [UNKNOWN]
                return [self.text(found["word"], depth + 1)] if is_set and not empty else []
            case _:
                return [UNKNOWN]

    def text(self, text: str, depth: int = 0) -> str:
        """Return a text with its variables replaced, without quotes around it."""
        if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
            text = text[1:-1]

        def value(found: re.Match[str]) -> str:
            words = self.get(found[1]) if found[1] else self.expand(found[0], depth)
            return " ".join(words)

        if "$(" in text or "`" in text:
            return self._marked(UNKNOWN, text)
        return _SIMPLE.sub(value, text)

    def substituted(self, command: str) -> str:
        """Return the output of a command in `$(...)`: a directory, a program, or a here document."""
        return self._marked(self._output(command), command)

    def _output(self, command: str) -> str:
        if len(command) > _LONGEST_COMMAND:
            return UNKNOWN
        document = _CAT.fullmatch(command)
        if document is not None:
            return self.text(document[2])
        if "pwd" in command and "dirname" not in command and "cd" not in command:
            return "."
        if "rev-parse" in command and "--show-toplevel" in command:
            return ROOT
        own = _OWN_FOLDER.search(command)
        if own is not None and self.folder is not None:
            up = [".."] * (command.count("dirname") - 1)
            path = posixpath.normpath(posixpath.join(self.folder or ".", *up, own[1].lstrip("/")))
            return ROOT if path == "." else UNKNOWN if path.startswith("..") else f"{ROOT}/{path}"
        which = _WHICH.fullmatch(command)
        return which[1] if which is not None else UNKNOWN

    def arithmetic(self, text: str) -> str:
        """Return the value of `A * B`, `A + B`, `A - B`, or a single number."""
        return self._marked(self._computed(text), text)

    def _computed(self, text: str) -> str:
        found = _PRODUCT.fullmatch(text)
        if found is None:
            return UNKNOWN
        left, right = (self._number(each) for each in (found[1], found[3] or "1"))
        if left is None or right is None or (found[2] == "/" and not right):
            return UNKNOWN
        results = {"*": left * right, "+": left + right, "-": left - right, "/": left // (right or 1)}
        return str(results[found[2]] if found[2] else left)

    def _number(self, word: str) -> int | None:
        return integer(word if word.isdecimal() else (self.get(word) or [""])[0])


def _is_varied(texts: Iterable[str]) -> bool:
    return any(MARK in each for each in texts)


def _common(values: Sequence[_Words]) -> _Words:
    """Return what all values begin with."""
    first, last = min(values), max(values)
    same = (index for index, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1])
    return first[: next(same, len(first))]


def _texts(value: Value) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value.values if isinstance(value, Either) else value
