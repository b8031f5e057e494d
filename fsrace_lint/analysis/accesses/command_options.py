"""The options and the other arguments of one command."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.accesses.command_words import begin_of, is_unknown_list, text_of
from fsrace_lint.syntax.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fsrace_lint.analysis.accesses.command_words import Word
    from fsrace_lint.catalog.entries import CommandEntry

_ALWAYS: Final = "true"
_NUMBER: Final = re.compile(r"-?\d+")


class Options(Record, frozen=True, eq=False):
    """The arguments of a command.

    Attributes:
        values: The options with a value.
        flags: The options without a value.
        operands: The arguments that are not options.
    """

    values: dict[str, Word]
    flags: set[str]
    operands: list[Word]

    def any_of(self, options: str) -> bool:
        """Return whether a command has one of some options, as the library models write them."""
        given = {_ALWAYS, *self.flags, *self.values}
        return not given.isdisjoint(options.split())

    def at(self, places: str) -> Word | None:
        """Return the first word at some places: the values of options, or the numbers of operands."""
        for place in places.split():
            word = self._operand(int(place)) if _NUMBER.fullmatch(place) else self.values.get(place)
            if word is not None:
                return word
        return None

    def _operand(self, number: int) -> Word | None:
        """Return an operand, or None if it is missing or its number is not known."""
        operands = self.operands[::-1] if number < 0 else self.operands
        before = operands[: -number if number < 0 else number + 1]
        known = len(before) == (-number if number < 0 else number + 1)
        return before[-1] if known and not any(map(is_unknown_list, before)) else None


def valued(entry: CommandEntry) -> frozenset[str]:
    """Return the options of a command that take a value."""
    places = f"{entry.values} {entry.path} {entry.folder}".split()
    return frozenset(place for place in places if not _NUMBER.fullmatch(place))


def options_of(entry: CommandEntry, words: Sequence[Word]) -> Options:
    """Return the options and the other arguments in the words of a command."""
    found, options = Options({}, set(), []), valued(entry)
    waiting = iter(words)
    if entry.dashless and words and text_of(words[0]).isalpha():
        next(waiting)
        _read_letters(text_of(words[0]), (), options, waiting, found, dashless=True)
    for word in waiting:
        begin, text = begin_of(word), text_of(word)
        if text == "--" or (entry.runs == "words" and not begin.startswith("-")):
            found.operands.extend((*(() if text == "--" else (word,)), *waiting))
        elif not begin.startswith("-") or text == "-":
            found.operands.append(word)
        elif text in options:
            _take(text, next(waiting, None), found)
        elif begin.partition("=")[0] in options and "=" in begin:
            name, _, rest = begin.partition("=")
            _take(name, (*((rest,) if rest else ()), *word[1:]), found)
        elif begin.startswith("--") or not entry.letters:
            found.flags.add(begin)
        else:
            found.flags.add(begin)
            _read_letters(begin[1:], word[1:], options, waiting, found)
    return found


def _take(name: str, value: Word | None, found: Options) -> None:
    if value is not None:
        found.values[name] = value


def _read_letters(
    letters: str,
    rest: Word,
    options: frozenset[str],
    waiting: Iterator[Word],
    found: Options,
    *,
    dashless: bool = False,
) -> None:
    """Read one-letter options. The value of the last one follows in the same word, or is the next word."""
    for index, letter in enumerate(letters):
        name = f"-{letter}"
        if name not in options:
            found.flags.add(name)
        elif dashless:
            _take(name, next(waiting, None), found)
        else:
            after = letters[index + 1 :]
            inside: Word | None = (*((after,) if after else ()), *rest)
            _take(name, inside or next(waiting, None), found)
            return
