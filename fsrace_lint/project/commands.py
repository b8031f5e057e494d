"""Programs run by command line: what `tar` and `unzip` unpack, and where to."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from fsrace_lint.facts import model as m
from fsrace_lint.facts.names import last_name

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE: Final = m.Constant(".")
_QUOTES: Final = "'\""
_TAR: Final = frozenset({"tar", "gtar", "bsdtar"})
_LISTING: Final = frozenset({"-l", "-t", "-p", "-Z"})


def unpacked_into(command: m.Expr, folder: m.Expr | None) -> m.Expr | None:
    """Find the folder into which a command unpacks an archive.

    Args:
        command: The command: a list of words, or a text with blanks.
        folder: Where it is run; None for the current folder.

    Returns:
        The folder as the command names it, or None where nothing is unpacked.
    """
    words = _words(command)
    program = _text(words[0]).rpartition("/")[2] if words else ""
    options = [_text(word) for word in words[1:]]
    if program in _TAR and _extracts(options):
        return _option(words, "-C", "--directory") or folder or HERE
    if program == "unzip" and _LISTING.isdisjoint(options):
        return _option(words, "-d") or folder or HERE
    return None


def _words(command: m.Expr) -> list[m.Expr]:
    if isinstance(command, m.Sequence):
        return list(command.items)
    if isinstance(command, m.Call) and last_name(command.function) == "split":
        text = command.arguments[0] if command.arguments else None
        if text is None and isinstance(command.function, m.Attribute):
            text = command.function.value
        return [] if text is None else _words(text)
    if isinstance(command, m.Constant) and isinstance(command.value, str):
        return [m.Constant(word) for word in _shell_words(command.value)]
    return _split(tuple(_fragments(command)))


def _fragments(command: m.Expr) -> Iterator[m.Expr]:
    """Give the pieces of an f-string or of a sum of texts in their order."""
    if isinstance(command, m.Format):
        yield from command.parts
    elif isinstance(command, m.Binary) and command.operator == "+":
        yield from _fragments(command.left)
        yield from _fragments(command.right)
    else:
        yield command


def _shell_words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _split(fragments: tuple[m.Expr, ...]) -> list[m.Expr]:
    """Split pieces at the blanks of those that are literal."""
    words: list[list[m.Expr]] = [[]]
    for part in fragments:
        if not (isinstance(part, m.Constant) and isinstance(part.value, str)):
            words[-1].append(part)
            continue
        first, *rest = part.value.split(" ")
        for index, text in enumerate((first, *rest)):
            if index:
                words.append([])
            if text.strip(_QUOTES):
                words[-1].append(m.Constant(text.strip(_QUOTES)))
    return [word[0] if len(word) == 1 else m.Format(tuple(word)) for word in words if word]


def _text(word: m.Expr) -> str:
    return word.value if isinstance(word, m.Constant) and isinstance(word.value, str) else ""


def _extracts(options: list[str]) -> bool:
    """Tell whether the options of `tar` ask it to extract to disk; the first may stand without its dash."""
    bundles = [option[1:] for option in options if option.startswith("-") and not option.startswith("--")]
    if options and not options[0].startswith("-"):
        bundles.append(options[0])
    if "--to-stdout" in options or any("O" in bundle for bundle in bundles):
        return False
    return "--extract" in options or any(
        "x" in bundle and not set("ctru") & set(bundle) for bundle in bundles
    )


def _option(words: list[m.Expr], *names: str) -> m.Expr | None:
    """Find the value of an option, in the next word or after its `=`."""
    for index, word in enumerate(words):
        if _text(word) in names:
            return words[index + 1] if index + 1 < len(words) else None
        parts = word.parts if isinstance(word, m.Format) else (word,)
        name, equals, rest = _text(parts[0]).partition("=")
        if equals and name in names:
            value = (*((m.Constant(rest),) if rest else ()), *parts[1:])
            return value[0] if len(value) == 1 else m.Format(value)
    return None
