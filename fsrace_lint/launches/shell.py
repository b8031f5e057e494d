"""Shell scripts: the commands in them, with their variables, directories, loops, and functions resolved."""

from __future__ import annotations

import contextlib
import functools
import posixpath
import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from fsrace_lint.launches.commands import ROOT, Invocation, invocations
from fsrace_lint.launches.expansion import MARK, VARIED, Either, Value, Variables
from fsrace_lint.launches.launchers import UNKNOWN, integer, launcher, options_of, program_of
from fsrace_lint.launches.model import Launch, Origin, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tree_sitter import Node, Parser

BACKGROUND: Final = "&"
"""The launcher of a command that a loop starts in the background."""
_DEEPEST: Final = 120
"""The maximum depth of the syntax tree. Deeper commands are not read."""
_DEEPEST_CALL: Final = 6
_MOST_STEPS: Final = 100_000
_MOST_WORDS: Final = 2_000
_MOST_NODES: Final = 64
_HEAD: Final = re.compile(r"(?:[ \t]*(?:#.*)?\n)*(?:#.*)?")
"""The comments at the beginning of a script. Slurm ignores its options after the first command."""
_DIRECTIVE: Final = re.compile(r"^[ \t]*#SBATCH[ \t]+(.*)$", re.MULTILINE)
_BRACES: Final = re.compile(r"\{([0-9]{1,9})\.\.([0-9]{1,9})\}")
_COUNTED: Final = re.compile(r"=\s*([0-9]{1,9})\s*;\s*\w+\s*(<=?)\s*([\w${}]+)")
_COUNTER: Final = re.compile(
    r"\bfor\s*\(\(\s*(\w+)\s*=|\(\(\s*(\w+)\s*(?:\+\+|--|[-+]=)|\blet\s+[\"']?(\w+)|\bread\s+(?:-\w+\s+)*(\w+)"
    r"|\b(\w+)=[$(`\[\s]*(?:expr\s+)?\$?\{?\5\b\}?\s+?[-+]"
)
"""The variables that a loop counts or reads, such as `i` in `i=$((i + 1))`."""
_PLACEHOLDER: Final = re.compile(
    r"\$?\{\{[^{}\n]*\}\}|(?<![<\w&\d])<[A-Za-z_](?:[\w ./:|()-]*[\w./)])?>|(?<= )\.\.\.(?= )"
    r"|\[[A-Z][A-Z_]{2,}\](?=/)"
)
"""Templates such as `${{ matrix.x }}`, placeholders such as `<path>`, and omissions."""
_AFTER_BACKSLASH: Final = re.compile(r"\\(?:[ \t]+(?:#.*)?)$", re.MULTILINE)
_UNSET: Final = re.compile(r"(?<!\S)-z\s")
_ESCAPED: Final = re.compile(r"\\(\n|.)", re.DOTALL)
_ESCAPED_IN_QUOTES: Final = re.compile(r"\\([\"$`\\\n])")
_SLURM: Final = {
    "total": ("SLURM_NTASKS", "SLURM_NPROCS"),
    "each": ("SLURM_NTASKS_PER_NODE",),
    "nodes": ("SLURM_NNODES", "SLURM_JOB_NUM_NODES"),
}
"""The variables that Slurm sets from the options of a job."""
_RUNS_HEREDOC: Final = frozenset({"sbatch", "bash", "sh", "ssh", "qsub", "cat", "tee", "srun"})
_SKIPPED: Final = frozenset(
    {"comment", "test_command", "heredoc_redirect", "file_redirect", "herestring_redirect"}
)


class Script(msgspec.Struct, frozen=True):
    """The file that contains commands.

    Attributes:
        root: The root of the repository.
        path: The file, relative to the root.
        origin: The kind of the file.
        commands: The console scripts of the repository.
        configured: Returns the number of processes in a configuration file of Accelerate, from its path in a
            command and the directory of the command.
    """

    root: Path
    path: str
    origin: Origin
    commands: Collection[str]
    configured: Callable[[str, str], int | None]

    @property
    def folder(self) -> str:
        """The directory of the file."""
        return posixpath.dirname(self.path)


def filled(text: str) -> str:
    """Return commands in which templates and placeholders such as `<path>` are unknown variables.

    A comment or a space after a backslash is removed, which ends the command by mistake.
    """
    return _AFTER_BACKSLASH.sub(r"\\", _PLACEHOLDER.sub("$_", text))


@functools.cache
def _parser() -> Parser:
    import tree_sitter  # noqa: PLC0415  # few projects contain a launch
    import tree_sitter_bash  # noqa: PLC0415

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def parsed(text: str) -> Node:
    """Return the syntax tree of commands."""
    return _parser().parse(text.encode("utf-8", "replace")).root_node


class Shell:
    """A shell that reads commands and runs none.

    Attributes:
        script: The file that contains the commands.
        folder: The current directory, relative to the root; empty for the root, or if it is not known.
        variables: The variables.
        scheduled: The options in `#SBATCH` lines.
        launches: The launches that were found.
    """

    def __init__(self, script: Script, folder: str = "") -> None:
        """Start in a directory, without variables."""
        self.script = script
        self.folder = folder
        self.variables = Variables(script.folder if script.origin is Origin.SCRIPT else None)
        self.scheduled: dict[str, str] = {}
        self.launches: list[Launch] = []
        self._functions: dict[str, tuple[Node, int]] = {}
        self._called: set[str] = set()
        self._line = 1
        self._place: tuple[int, str] | None = None
        self._collected: list[Invocation] | None = None
        self._steps = 0
        self._calls = 0
        self._rounds: int | None = 1
        self._in_loop = self._background = False
        self._folders: list[str] = []
        self._clones: set[str] = set()

    @property
    def commands(self) -> Collection[str]:
        """The console scripts of the repository."""
        return self.script.commands

    def read(self, text: str, line: int = 1) -> None:
        """Read a script, or the next part of it.

        Args:
            text: The commands.
            line: The line of the file at which they begin.
        """
        text = filled(text)
        self._directives(text)
        self._line = line
        self._run(text)

    def finish(self) -> list[Launch]:
        """Read the functions that no command calls, and return all launches."""
        for name, (body, line) in [*self._functions.items()]:
            if name not in self._called:
                self._line = line
                with self._scope():
                    self._visit(body, 0)
        return self.launches

    def words(self, words: Sequence[str], line: int) -> None:
        """Read a command that is a list of words.

        Args:
            words: The words. A shell does not expand them.
            line: The line of the file.
        """
        self._place = (line, " ".join(words))
        self._report(invocations(words, self), line, " ".join(words))
        self._place = None

    def run(self, text: str) -> list[Invocation]:
        """Read a command line that another command gets as a string, and return what it starts."""
        before, self._collected = self._collected, []
        self._calls += 1
        if self._calls <= _DEEPEST_CALL:
            with self._scope():
                self._run(text)
        self._calls -= 1
        found, self._collected = self._collected, before
        return found

    def configured(self, path: str) -> int | None:
        """Return the number of processes in a configuration file of Accelerate, or None."""
        return self.script.configured(path, self.folder)

    def change(self, word: str) -> None:
        """Change the current directory, as `cd` does.

        A directory that does not exist is not followed, and neither are those of a container.
        """
        self._folders.append(self.folder)
        if self.script.origin is Origin.CONTAINER:
            return
        if word.startswith(ROOT):
            self.folder = self._existing(word[len(ROOT) :].lstrip("/")) or ""
        elif UNKNOWN in word or word.startswith(("/", "~")) or word.rstrip("/") in self._clones:
            self.folder = ""
        elif word == "-":
            self.folder = self._folders[-2] if len(self._folders) > 1 else ""
        else:
            for base in (self.folder, "" if word.startswith("..") else self.script.folder):
                found = self._existing(posixpath.join(base, word))
                if found is not None:
                    self.folder = found
                    break

    def _existing(self, path: str) -> str | None:
        path = posixpath.normpath(path or ".")
        if path.startswith("..") or "\0" in path or not (self.script.root / path).is_dir():
            return None
        return "" if path == "." else path

    def _directives(self, text: str) -> None:
        if "#SBATCH" not in text:
            return
        srun = launcher("srun")
        head = _HEAD.match(text)
        for found in _DIRECTIVE.finditer(head[0] if head is not None else ""):
            words = [UNKNOWN if "$" in word else word for word in found[1].partition(" #")[0].split()]
            self.scheduled |= options_of(srun, words, lambda _: True).values
        for kind, names in _SLURM.items():
            options = getattr(srun, kind)
            value = next((self.scheduled[option] for option in options if option in self.scheduled), None)
            for name in names if value is not None else ():
                self.variables.set(name, value or UNKNOWN)

    def _run(self, text: str) -> None:
        self._visit(parsed(text), 0)

    @contextlib.contextmanager
    def here(self) -> Iterator[None]:
        """Return to the present directory afterwards."""
        folder = self.folder
        yield
        self.folder = folder

    @contextlib.contextmanager
    def _scope(self) -> Iterator[None]:
        """Restore the directory and the variables afterwards."""
        folder, values = self.folder, self.variables.values
        loop = self._rounds, self._in_loop, self._background
        self.variables.values = {**values}
        yield
        self.folder, self.variables.values = folder, values
        self._rounds, self._in_loop, self._background = loop

    # statements

    def _visit(self, node: Node, depth: int) -> None:
        self._steps += 1
        if depth > _DEEPEST or self._steps > _MOST_STEPS or node.type in _SKIPPED:
            return
        handle = _STATEMENTS.get(node.type)
        if handle is not None:
            handle(self, node, depth)
        else:
            self._block(node.children, depth)

    def _block(self, nodes: Sequence[Node], depth: int) -> None:
        for index, node in enumerate(nodes):
            if not node.is_named:
                continue
            after = nodes[index + 1].type if index + 1 < len(nodes) else ""
            before = self._background
            self._background = before or after == "&"
            self._visit(node, depth + 1)
            self._background = before

    def _subshell(self, node: Node, depth: int) -> None:
        with self._scope():
            self._block(node.children, depth)

    def _redirected(self, node: Node, depth: int) -> None:
        body = node.child_by_field_name("body")
        if body is not None:
            self._visit(body, depth + 1)
        texts = [child for child in node.children if child.type == "heredoc_redirect"]
        name = _text(body).split() if body is not None else []
        if name[:1] == ["read"]:
            parts = [_text(part) for text in texts for part in text.children if part.type == "heredoc_body"]
            self.variables.set(name[-1], self.variables.text("".join(parts)))
            return
        for text in texts if name and posixpath.basename(name[0]) in _RUNS_HEREDOC else ():
            for part in text.children:
                if part.type == "heredoc_body":
                    self._heredoc(part, is_file=name[0] in {"cat", "tee"})
                elif part.is_named and part.type not in {"heredoc_start", "heredoc_end"}:
                    self._visit(part, depth + 1)

    def _heredoc(self, node: Node, *, is_file: bool) -> None:
        """Read a here document as a script, at its own lines."""
        line, calls = self._line, self._calls
        if self._calls >= _DEEPEST_CALL:
            return
        self._calls += 1
        with self._scope():
            text = _text(node)
            if is_file and not re.search(r"^#!|^#SBATCH", text, re.MULTILINE):
                text = ""
            self._line = line + node.start_point[0]
            before, scheduled = self.scheduled, {**self.scheduled}
            self.scheduled = scheduled
            self._directives(text)
            self._run(_ESCAPED_IN_QUOTES.sub(lambda found: found[1] if found[1] == "$" else found[0], text))
            self.scheduled = before
        self._line, self._calls = line, calls

    def _branches(self, node: Node, depth: int) -> None:
        """Read all branches of an `if`, and continue with what all of them leave."""
        groups: list[list[Node]] = [[]]
        complete = False
        for child in node.children:
            if child.type in {"elif_clause", "else_clause"}:
                groups.append(child.children)
                complete = complete or child.type == "else_clause"
            else:
                groups[0].append(child)
        condition = node.child_by_field_name("condition")
        if len(groups) == 1 and condition is not None and _UNSET.search(_text(condition)):
            self._default(groups[0], depth)
        else:
            self._merge(groups, depth, complete=complete)

    def _default(self, nodes: Sequence[Node], depth: int) -> None:
        """Read a branch that sets variables that the caller has not set."""
        before = self.variables.values
        self.variables.values = {**before}
        self._block(nodes, depth)
        self.variables.values |= before

    def _cases(self, node: Node, depth: int) -> None:
        items = [child for child in node.children if child.type == "case_item"]
        groups = [
            [part for part in item.children if part not in item.children_by_field_name("value")]
            for item in items
        ]
        complete = any(
            _text(value) == "*" for item in items for value in item.children_by_field_name("value")
        )
        self._merge(groups, depth, complete=complete)

    def _merge(self, groups: Sequence[Sequence[Node]], depth: int, *, complete: bool) -> None:
        start, folder = self.variables.values, self.folder
        results: list[dict[str, Value]] = [] if complete else [{**start}]
        folders = set[str]() if complete else {folder}
        for group in groups:
            self.variables.values, self.folder = {**start}, folder
            self._block(group, depth)
            results.append(self.variables.values)
            folders.add(self.folder)
        self.variables.merge(results)
        self.folder = folders.pop() if len(folders) == 1 else folder

    def _loop(self, node: Node, depth: int) -> None:
        rounds = self._count(node)
        in_turn = _waits(node)
        name = node.child_by_field_name("variable")
        counters = {counter for found in _COUNTER.findall(_text(node)) for counter in found}
        for each in counters if name is None else {_text(name), *counters}:
            self.variables.set(each, UNKNOWN if in_turn else VARIED)
        before = self._rounds, self._in_loop, self._background
        if in_turn:
            self._in_loop = self._in_loop and self._background
        else:
            self._rounds = rounds if not self._in_loop else rounds and self._rounds and rounds * self._rounds
            self._in_loop = True
        self._background = False
        for child in node.children:
            if child.type in {"do_group", "compound_statement"} or node.type == "while_statement":
                self._visit(child, depth + 1)
        self._rounds, self._in_loop, self._background = before

    def _count(self, node: Node) -> int | None:
        """Return how often a loop runs, if its words or numbers are literal."""
        if node.type == "c_style_for_statement":
            found = _COUNTED.search(_text(node))
            if found is None:
                return None
            end = integer(self.variables.arithmetic(found[3]))
            return None if end is None else end - int(found[1]) + (found[2] == "<=")
        count = 0
        values = node.children_by_field_name("value")
        for value in values:
            text = _text(value)
            braces = _BRACES.fullmatch(text)
            sequence = re.fullmatch(r"(?:\$\(|`)\s*seq\s+(.*?)(?:\)|`)", text)
            if braces is not None:
                count += abs(int(braces[2]) - int(braces[1])) + 1
            elif sequence is not None:
                numbers = [integer(self.variables.text(word)) for word in sequence[1].split()]
                match numbers:
                    case [int(last)]:
                        count += last
                    case [int(first), int(last)]:
                        count += last - first + 1
                    case _:
                        return None
            elif text.startswith("{") and ".." not in text:
                count += text.count(",") + 1
            else:
                words = self._fields(value)
                if any(UNKNOWN in word or "*" in word or "{" in word for word in words):
                    return None
                count += len(words)
        return count if count > 0 else None

    def _function(self, node: Node, _depth: int) -> None:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is not None and body is not None:
            self._functions[_text(name)] = (body, self._line)

    def _assignment(self, node: Node, depth: int) -> None:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None:
            return
        append = any(child.type == "+=" for child in node.children)
        if name.type != "variable_name":
            self.variables.set(_text(name).partition("[")[0], UNKNOWN)
        elif value is None:
            self.variables.set(_text(name), "")
        elif value.type == "array":
            words = [word for child in value.children if child.is_named for word in self._fields(child)]
            self.variables.set(_text(name), tuple(words[:_MOST_WORDS]), append=append)
        else:
            found = {self._string(value) for _ in self._alternatives(value)}
            self.variables.set(
                _text(name), found.pop() if len(found) == 1 else Either(tuple(sorted(found))), append=append
            )
            self._substitutions(value, depth)

    def _alternatives(self, first: Node, *others: Node) -> Iterator[None]:
        """Yield once for each value of a variable that has alternatives.

        Args:
            first: A node in which the variable can be.
            *others: Nodes in which it must have a value that contains a command.
        """
        names = [name for name in _names(first) if self.variables.alternatives(name)]
        names += [
            name
            for node in others
            for name in _names(node)
            if any(_is_command(value) for value in self.variables.alternatives(name))
        ]
        if not names:
            yield
            return
        name = names[0]
        before = self.variables.values[name]
        for value in self.variables.alternatives(name):
            self.variables.values[name] = value
            yield
        self.variables.values[name] = before

    def _substitutions(self, node: Node, depth: int) -> None:
        for each in _descendants(node):
            if each.type in {"command_substitution", "process_substitution"}:
                self._subshell(each, depth)

    def _command(self, node: Node, depth: int) -> None:
        name = node.child_by_field_name("name")
        if name is None:
            self._block(node.children, depth)
            return
        arguments = node.children_by_field_name("argument")
        for argument in arguments:
            self._substitutions(argument, depth)
        for _ in self._alternatives(name, *arguments):
            words = [*self._fields(name), *self._words(arguments)]
            self._start(words[:_MOST_WORDS], node, depth)

    def _words(self, nodes: Sequence[Node]) -> list[str]:
        """Return the words of arguments. The parser splits some words before a variable: `a_$NAME.log`."""
        words: list[str] = []
        end = -1
        for node in nodes:
            if node.start_byte == end and words and words[-1].endswith("$"):
                words[-1] = words[-1][:-1] + self.variables.text(f"${_text(node)}")
            else:
                words += self._fields(node)
            end = node.end_byte
        return words

    def _start(self, words: list[str], node: Node, depth: int) -> None:
        if not words:
            return
        first, rest = words[0], words[1:]
        if first in {"cd", "pushd"}:
            operands = [word for word in rest if word == "-" or not word.startswith("-")]
            self.change(operands[0] if operands else "~")
        elif first == "popd":
            self.folder = self._folders.pop() if self._folders else ""
        elif words[:2] == ["git", "clone"]:
            self._clones.add(posixpath.basename(rest[-1].rstrip("/")).removesuffix(".git"))
        elif first == "shift":
            count = (integer(rest[0]) if rest else None) or 1
            self.variables.positional = self.variables.positional and self.variables.positional[count:]
        elif first == "eval":
            self._report(self.run(" ".join(rest)), self._line + node.start_point[0], _text(node))
        elif first in self._functions:
            self._call(first, tuple(rest), depth)
        else:
            self._report(self._invoked(words), self._line + node.start_point[0], _text(node))

    def _invoked(self, words: Sequence[str]) -> list[Invocation]:
        """Return what a command starts, and whether its arguments differ between the rounds of a loop."""
        found = invocations([word.replace(MARK, "") for word in words], self)
        is_nested = any(MARK in word and " " in word for word in words)
        return [
            msgspec.structs.replace(
                each,
                varies=each.varies
                or is_nested
                or any(MARK in word for word in words[len(words) - len(each.arguments) :]),
            )
            for each in found
        ]

    def _call(self, name: str, arguments: tuple[str, ...], depth: int) -> None:
        if self._calls >= _DEEPEST_CALL:
            return
        self._called.add(name)
        body, line = self._functions[name]
        before = self._line, self.variables.positional
        self._line, self.variables.positional = line, arguments
        self._calls += 1
        self._visit(body, depth + 1)
        self._calls -= 1
        self._line, self.variables.positional = before

    def _report(self, found: Sequence[Invocation], line: int, text: str) -> None:
        """Add what a command starts to the launches, or to what a nested command line starts."""
        for each in found:
            if each.folder is None:
                each = msgspec.structs.replace(each, folder=self.folder)  # noqa: PLW2901
            if self._in_loop and self._background and not each.several and self._collected is None:
                each = msgspec.structs.replace(  # noqa: PLW2901
                    each, launcher=BACKGROUND, processes=self._rounds, role="worker"
                )
            if self._collected is not None:
                self._collected.append(each)
            else:
                self.launches.append(self._launch(each, line, text))

    def _launch(self, found: Invocation, line: int, text: str) -> Launch:
        return Launch(
            path=self.script.path,
            line=line,
            origin=self.script.origin,
            command=shortened(text.replace(UNKNOWN, "$_").replace(ROOT, ".")),
            folder=found.folder or "",
            launcher=found.launcher,
            target=found.target,
            processes=found.processes,
            several=found.several,
            role=found.role,
            arguments=found.arguments,
            varies=found.varies and found.several and found.role == "worker",
            on_one_node=found.on_one_node,
        )

    # words

    def _fields(self, node: Node) -> list[str]:
        """Return the words that an argument becomes."""
        match node.type:
            case "simple_expansion" | "expansion":
                return [word for value in self._expanded(node) for word in value.split()]
            case "command_name" if node.children:
                return self._fields(node.children[0])
            case "concatenation" | "string":
                return self._joined(node)
            case "word" if node.children:
                return self._joined(node)
            case _:
                return [self._string(node)]

    def _joined(self, node: Node) -> list[str]:
        """Return the words of a string or of adjacent parts. `"${ARGS[@]}"` can be many, or none."""
        quoted = node.type == "string"
        words = [""]
        empty = True
        position = node.start_byte
        whole = node.text or b""
        for child in node.children:
            gap = whole[position - node.start_byte : child.start_byte - node.start_byte].decode(
                "utf-8", "replace"
            )
            position = child.end_byte
            # a variable in a string can begin with the space before it
            words[-1] += gap + (_space(child) if quoted and "expansion" in child.type else "")
            if not child.is_named:
                words[-1] += "" if child.type == '"' else child.type
                continue
            parts = self._expanded(child) if quoted and "expansion" in child.type else self._fields(child)
            if quoted and child.type == "string_content":
                parts = [_ESCAPED_IN_QUOTES.sub(lambda found: found[1].strip("\n"), _text(child))]
            empty = empty and not parts
            words[-1] += parts[0] if parts else ""
            words += parts[1:]
        vanishes = empty and words == [""] and len(node.children) > (2 if quoted else 0)
        return [] if vanishes else words

    def _string(self, node: Node) -> str:
        """Return the text of a word that is not split."""
        match node.type:
            case "raw_string":
                return _text(node)[1:-1]
            case "ansi_c_string":
                return _text(node)[2:-1].replace("\\n", "\n").replace("\\t", "\t").replace("\\'", "'")
            case "string" | "concatenation" | "translated_string":
                return " ".join(self._joined(node))
            case "simple_expansion" | "expansion":
                return " ".join(self._expanded(node))
            case "command_substitution":
                return self.variables.substituted(_text(node).strip("$()`"))
            case "arithmetic_expansion":
                return self.variables.arithmetic(_text(node)[3:-2])
            case "process_substitution":
                return UNKNOWN
            case _:
                return _ESCAPED.sub(lambda found: found[1].strip("\n"), _text(node))

    def _expanded(self, node: Node) -> list[str]:
        if node.type == "arithmetic_expansion":
            return [self._string(node)]
        text = _text(node).lstrip()
        return self.variables.expand(text if text.startswith("${") else f"${{{text[1:]}}}")


_STATEMENTS: Final[dict[str, Callable[[Shell, Node, int], None]]] = {
    "command": Shell._command,
    "variable_assignment": Shell._assignment,
    "function_definition": Shell._function,
    "subshell": Shell._subshell,
    "command_substitution": Shell._subshell,
    "redirected_statement": Shell._redirected,
    "if_statement": Shell._branches,
    "case_statement": Shell._cases,
    "for_statement": Shell._loop,
    "c_style_for_statement": Shell._loop,
    "while_statement": Shell._loop,
}


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _names(node: Node) -> Iterator[str]:
    """Yield the names of the variables in a node."""
    return (_text(each).strip(" ${}") for each in _descendants(node) if each.type.endswith("expansion"))


def _waits(loop: Node) -> bool:
    """Return whether each round of a loop waits for the commands that it has started."""
    body = next((child for child in loop.children if child.type == "do_group"), None)
    return any(
        child.type == "command" and re.fullmatch(r"wait(?:\s+\"?\$[\w!]+\"?)?", _text(child)) is not None
        for child in (() if body is None else body.children)
    )


def _is_command(text: str) -> bool:
    return any(word.endswith(".py") or program_of([word]) is not None for word in text.split())


def _space(node: Node) -> str:
    text = _text(node)
    return text[: len(text) - len(text.lstrip())]


def _descendants(node: Node) -> Iterator[Node]:
    """Yield a node and the first of those in it."""
    waiting, count = [node], 0
    while waiting and count < _MOST_NODES:
        each = waiting.pop()
        count += 1
        yield each
        waiting += reversed(each.children)
