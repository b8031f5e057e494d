"""Shell commands: the archives that `tar` and `unzip` extract, and the downloads of `wget` and others."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name

if TYPE_CHECKING:
    from collections.abc import Iterator

Fetched: TypeAlias = "tuple[Literal['extract', 'download'], m.Expr]"
"""The operation of a command, and its path."""

HERE: Final = m.Constant(".")
_QUOTES: Final = "'\""
_TAR: Final = frozenset({"tar", "gtar", "bsdtar"})
_LISTING: Final = frozenset({"-l", "-t", "-p", "-Z"})
_SEPARATORS: Final = frozenset({"&&", "||", ";", "|"})
_COPYING: Final = (
    ("gsutil", "cp"),
    ("gsutil", "rsync"),
    ("aws", "s3", "cp"),
    ("aws", "s3", "mv"),
    ("aws", "s3", "sync"),
    ("gcloud", "storage", "cp"),
    ("gcloud", "storage", "rsync"),
    ("hdfs", "dfs", "-get"),
    ("hadoop", "fs", "-get"),
    ("hdfs", "dfs", "-copyToLocal"),
    ("hadoop", "fs", "-copyToLocal"),
)
"""Commands that copy from their second-to-last argument to their last."""
_SHORTEST_COPY: Final = 4
_CLONING: Final = frozenset(
    {"-b", "--branch", "--depth", "-o", "--origin", "-c", "--config", "--filter", "-j"}
)
"""Options of `git clone` that take a value."""
_ADDRESS_AND_FOLDER: Final = 2
_REMOTE: Final = ("s3://", "gs://", "hdfs://")


def fetched_to(command: m.Expr, folder: m.Expr | None) -> Fetched | None:
    """Return where a command extracts an archive, or else where it downloads to.

    Args:
        command: The command: a list of words, or a string.
        folder: The working directory; None for the current one.

    Returns:
        The operation and the path as spelled in the command, or None if the command does neither.
    """
    downloaded: Fetched | None = None
    for words in _programs(_words(command)):
        if _name(words) == "cd" and len(words) > 1:
            folder = words[1]
        unpacked = _unpacked_into(words, folder)
        if unpacked is not None:
            return "extract", unpacked
        path = _downloaded_to(words, folder)
        if path is not None and downloaded is None:
            downloaded = "download", path
    return downloaded


def _programs(words: list[m.Expr]) -> Iterator[list[m.Expr]]:
    """Split the words of a shell command at `&&`, `||`, `;`, and `|`."""
    for separates, group in itertools.groupby(words, key=lambda word: _text(word) in _SEPARATORS):
        if not separates:
            yield list(group)


def _name(words: list[m.Expr]) -> str:
    return _text(words[0]).rpartition("/")[2] if words else ""


def _unpacked_into(words: list[m.Expr], folder: m.Expr | None) -> m.Expr | None:
    program, options = _name(words), [_text(word) for word in words[1:]]
    if program in _TAR and _extracts(options):
        return _option(words, "-C", "--directory") or folder or HERE
    if program == "unzip" and _LISTING.isdisjoint(options):
        return _option(words, "-d") or folder or HERE
    return None


def _downloaded_to(words: list[m.Expr], folder: m.Expr | None) -> m.Expr | None:
    match _name(words):
        case "wget":
            path = _option(words, "--output-document") or _bundled(words, "O")
            folder = _option(words, "-P", "--directory-prefix") or folder
            return _file(path) if path is not None else folder or HERE
        case "curl":
            path = _option(words, "--output") or _bundled(words, "o")
            if path is not None:
                return _file(path)
            named = any(
                _text(word) == "--remote-name" or (_is_bundle(word) and "O" in _text(word))
                for word in words[1:]
            )
            return (_option(words, "--output-dir") or folder or HERE) if named else None
        case "git":
            return _cloned_to(words, folder)
        case _:
            return _copied_to(words)


def _cloned_to(words: list[m.Expr], folder: m.Expr | None) -> m.Expr | None:
    """Return the directory of a clone: the argument after the URL, or else the parent directory."""
    texts = [_text(word) for word in words]
    if "clone" not in texts:
        return None
    begin = texts.index("clone")
    around = _option(words[:begin], "-C") or folder
    given = [
        word
        for word, before in zip(words[begin + 1 :], texts[begin:], strict=False)
        if not _text(word).startswith("-") and before not in _CLONING
    ]
    if len(given) != _ADDRESS_AND_FOLDER:
        return around or HERE
    absolute = _begins(given[1], "/")
    return given[1] if around is None or absolute else m.Format((around, m.Constant("/"), given[1]))


def _file(path: m.Expr) -> m.Expr | None:
    """Return the path, or None if it is standard output or the null device."""
    return None if _text(path) in {"-", "/dev/null", "/dev/stdout"} else path


def _copied_to(words: list[m.Expr]) -> m.Expr | None:
    """Return the local destination of a copy from an object store."""
    program = [_name(words), *(word for word in map(_text, words[1:]) if word and word not in {"-m", "-q"})]
    if len(words) < _SHORTEST_COPY or not any(tuple(program[: len(names)]) == names for names in _COPYING):
        return None
    source, target = words[-2:]
    if any(_begins(target, prefix) for prefix in _REMOTE):
        return None
    from_afar = any(_begins(source, prefix) for prefix in _REMOTE) or program[0] in {"hdfs", "hadoop"}
    return target if from_afar else None


def _begins(word: m.Expr, prefix: str) -> bool:
    first = word.parts[0] if isinstance(word, m.Format) and word.parts else word
    return _text(first).startswith(prefix)


def _is_bundle(word: m.Expr) -> bool:
    """Return whether a word contains one-letter options, such as `-sSL`."""
    return _text(word).startswith("-") and not _text(word).startswith("--")


def _bundled(words: list[m.Expr], letter: str) -> m.Expr | None:
    """Return the value of a one-letter option: the rest of the word, or the next word.

    The option can be the last one in a word with multiple options.
    """
    for index, word in enumerate(words[1:], 1):
        first, *rest = word.parts if isinstance(word, m.Format) else (word,)
        if not _is_bundle(first):
            continue
        if _text(first).endswith(letter):
            return _joined(rest) if rest else next(iter(words[index + 1 :]), None)
        if _text(first).startswith(f"-{letter}"):
            return _joined([m.Constant(_text(first)[2:]), *rest])
    return None


def _joined(pieces: list[m.Expr]) -> m.Expr:
    return pieces[0] if len(pieces) == 1 else m.Format(tuple(pieces))


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
    """Yield the parts of an f-string or of a string concatenation, in order."""
    if isinstance(command, m.Format):
        yield from command.parts
    elif isinstance(command, m.Binary) and command.operator == "+":
        yield from _fragments(command.left)
        yield from _fragments(command.right)
    else:
        yield from _filled_in(command) or (command,)


def _filled_in(command: m.Expr) -> list[m.Expr]:
    """Return the parts of `"…{}…".format(value)` or `"…%s…" % value`, or nothing for any other expression."""
    match command:
        case m.Call(function=m.Attribute(value=m.Constant(value=str() as text), name="format"), keywords=()):
            texts, values = text.split("{}"), command.arguments
        case m.Binary(operator="%", left=m.Constant(value=str() as text), right=right):
            texts, values = text.split("%s"), right.items if isinstance(right, m.Sequence) else (right,)
        case _:
            return []
    if len(texts) != len(values) + 1:
        return []
    pairs = itertools.zip_longest(map(m.Constant, texts), values)
    return [piece for pair in pairs for piece in pair if piece is not None]


def _shell_words(text: str) -> list[str]:
    try:
        import shlex  # noqa: PLC0415  # few commands are one string

        return shlex.split(text.replace(";", " ; "))
    except ValueError:
        return text.split()


def _split(fragments: tuple[m.Expr, ...]) -> list[m.Expr]:
    """Split the parts of a command into words, at the spaces in literal parts."""
    words: list[list[m.Expr]] = [[]]
    for part in fragments:
        if not (isinstance(part, m.Constant) and isinstance(part.value, str)):
            words[-1].append(part)
            continue
        first, *rest = part.value.replace(";", " ; ").split(" ")
        for index, text in enumerate((first, *rest)):
            if index:
                words.append([])
            if text.strip(_QUOTES):
                words[-1].append(m.Constant(text.strip(_QUOTES)))
    return [_joined(word) for word in words if word]


def _text(word: m.Expr) -> str:
    return word.value if isinstance(word, m.Constant) and isinstance(word.value, str) else ""


def _extracts(options: list[str]) -> bool:
    """Return whether the options of `tar` extract to disk. The first group may omit its dash."""
    bundles = [option[1:] for option in options if option.startswith("-") and not option.startswith("--")]
    if options and not options[0].startswith("-"):
        bundles.append(options[0])
    if "--to-stdout" in options or any("O" in bundle for bundle in bundles):
        return False
    return "--extract" in options or any(
        "x" in bundle and not set("ctru") & set(bundle) for bundle in bundles
    )


def _option(words: list[m.Expr], *names: str) -> m.Expr | None:
    """Return the value of an option: the next word, or the text after `=`."""
    for index, word in enumerate(words):
        if _text(word) in names:
            return words[index + 1] if index + 1 < len(words) else None
        parts = word.parts if isinstance(word, m.Format) else (word,)
        name, equals, rest = _text(parts[0]).partition("=")
        if equals and name in names:
            return _joined([*((m.Constant(rest),) if rest else ()), *parts[1:]])
    return None
