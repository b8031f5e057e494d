"""Commands in pages: fsrace-lint commands are parsed and run, and other commands are looked up.

Only fsrace-lint and flake8 are run, in the scratch directory of the page. For other programs, the tests check
only that they exist and have these options.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click
import jsonschema

from fsrace_lint.cli import main
from support import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Iterator


def every() -> dict[str, click.Command]:
    """Return all commands of fsrace-lint by name, including commands that are loaded on demand."""
    context = click.Context(main.main)
    found = {name: main.main.get_command(context, name) for name in main.main.list_commands(context)}
    return {name: command for name, command in found.items() if command is not None}


RUN: Final = ("fsrace-lint", "flake8")
"""Programs that are run; they may report findings, but must not fail."""

PLAIN: Final = ("cat", "echo", "git", "grep", "head", "printf", "sed", "tail", "test")
"""Programs that may appear with them in a line that is run."""

FOREIGN: Final = ("git", "pre-commit", "ruff", "mypy", "mkdocs", "twine", "uv", "uvx", "pipx")
MODULES: Final = ("build", "coverage", "mkdocs", "pip", "pytest", "twine", "venv")
NESTED: Final = ("uvx", "pipx")
"""Programs that start another program, which follows their own options."""

UNWANTED: Final = (
    *("PYTEST_", "COV", "GIT_", "PRE_COMMIT", "FSRACE_"),
    *("FORCE_COLOR", "NO_COLOR", "COLUMNS", "TERM"),
)
"""Prefixes of environment variables that would change the output."""

OURS: Final = re.compile(
    r"^(\S+:\d+:\d+: (FSR\d{3}|not reported)|\w+\[FSR\d{3}\]: "
    r"|Found \d+ (error|finding|note|warning)|Fixed \d+ finding)",
    re.MULTILINE,
)
SCHEMAS: Final = {
    "json": json.loads((ROOT / "docs" / "findings.schema.json").read_text("utf-8")),
    "sarif": json.loads(
        (ROOT / "tests" / "fixtures" / "sarif" / "sarif-2.1.0-rtm.4.json").read_text("utf-8")
    ),
}


class Shell(NamedTuple):
    """The output and exit code of a command."""

    output: str
    code: int
    errors: str


def environment(directory: Path) -> dict[str, str]:
    """Return an environment like that of a new user, with the programs of these tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(UNWANTED)}
    programs = [os.fspath(Path(sys.executable).parent), kept.get("PATH", "")]
    return {
        **kept,
        "PATH": os.pathsep.join(programs),
        "HOME": os.fspath(directory),
        "PWD": os.fspath(directory),
    }


def bash(commands: list[str], directory: Path) -> list[Shell]:
    """Run commands in one shell; `$?` is the exit code of the previous command.

    Args:
        commands: The commands.
        directory: The directory to run them in.

    Returns:
        The output and exit code of each command.
    """
    # the exit code is restored after the separator, so that `echo $?` prints it
    after = 'code=$?; printf "\\0%s\\0" $code; printf "\\0" >&2; (exit $code)'
    done = subprocess.run(
        ["bash", "-c", "\n".join(f"{command}\n{after}" for command in commands)],
        cwd=directory,
        env=environment(directory),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    output = done.stdout.replace(os.fspath(directory), "/project").split("\0")
    errors = done.stderr.replace(os.fspath(directory), "/project").split("\0")
    return [Shell(*parts) for parts in zip(output[::2], map(int, output[1::2]), errors, strict=False)]


def lines_of(text: str) -> Iterator[str]:
    """Yield the commands of a block, without comments and with continued lines joined."""
    for line in text.replace("\\\n", " ").splitlines():
        command = re.sub(r"(^|\s{2,})#.*$", "", line).strip()
        if command:
            yield command


def split(command: str) -> list[list[str]]:
    """Return the simple commands of a line, as words and without redirections."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    found: list[list[str]] = [[]]
    skip = False
    for word in lexer:
        if skip:
            skip = False
        elif set(word) <= set("&|;()") and word:
            found.append([])
        elif set(word) <= set("<>"):
            skip = True
        else:
            found[-1].append(word)
    return [words for words in found if words]


def parse(words: list[str]) -> None:
    """Parse the arguments after `fsrace-lint` with the real command line."""
    command: click.Command = main.main
    arguments = words[1:]
    # a command keeps the help option of its first context
    context = click.Context(command, info_name="fsrace-lint", **main.main.context_settings)
    while isinstance(command, click.Group) and arguments and not arguments[0].startswith("-"):
        name, *arguments = arguments
        known = command.get_command(context, name)
        assert known is not None, f"there is no command `{name}`"
        command = known
        context = click.Context(command, info_name=name, parent=context)
    try:
        command.make_parser(context).parse_args(list(arguments))
    except click.UsageError as error:
        raise AssertionError(error.format_message()) from error


@functools.cache
def _help(*words: str) -> str:
    command = [*words, "-h" if words[0] == "git" else "--help"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment(ROOT), cwd=ROOT, timeout=600
    )
    assert done.stdout or done.stderr, f"{shlex.join(command)} says nothing"
    return done.stdout + done.stderr


def has_option(program: list[str], option: str) -> bool:
    """Return whether the help of a program lists an option."""
    spelled = re.escape(option).replace("\\-\\-", r"--(\[no-\])?", 1)  # as recent versions of git print it
    return bool(re.search(rf"(?<![\w-]){spelled}(?![\w-])", _help(*program)))


def _program(words: list[str]) -> tuple[list[str], list[str]]:
    """Split a foreign command into its program with subcommand, and its arguments."""
    program, *rest = words
    if program == "python":
        assert rest[1] in MODULES, f"nothing is known of `{shlex.join(words)}`"
        start, rest = [sys.executable, *rest[:2]], rest[2:]
        program = start[-1]
    else:
        assert program in FOREIGN, f"nothing is known of the program `{program}`"
        start = [program]
    if program in ("git", "pip", "pre-commit", "ruff", "mkdocs", "twine", "uv", "pipx", "coverage") and rest:
        start.append(rest.pop(0))
    return start, rest


def foreign(words: list[str]) -> None:
    """Check a foreign command: its help lists its options, and a nested fsrace-lint command is valid."""
    if words[0].startswith("."):
        assert os.access(ROOT / words[0], os.X_OK), f"{words[0]} cannot be run"
        return
    if words[0] == "python" and words[1] != "-m":
        script = ROOT / words[1]
        assert script.is_file(), f"there is no {words[1]}"
        start, rest = [sys.executable, os.fspath(script)], words[2:]
    else:
        start, rest = _program(words)
    if "fsrace-lint" in rest and words[0] in NESTED:
        inner = rest.index("fsrace-lint")
        if rest[inner - 1 : inner] != ["--spec"]:
            parse(rest[inner:])
            rest = rest[:inner]
    if "pip" in start:
        _extras(rest)
        if importlib.util.find_spec("pip") is None:
            # environments created by uv have no pip, so its options cannot be looked up
            return
    for option in (word.partition("=")[0] for word in rest if re.match(r"--?[a-zA-Z]", word)):
        assert has_option(start, option), f"{shlex.join(start)} has no {option}"


def _extras(words: list[str]) -> None:
    with (ROOT / "pyproject.toml").open("rb") as stream:
        known = tomllib.load(stream)["project"]["optional-dependencies"]
    for word in words:
        if found := re.match(r"(?:fsrace-lint|\.|git\+\S+|dist/\S+)\[([\w,-]+)\]", word):
            assert set(found[1].split(",")) <= set(known), f"there is no extra {found[1]}"


def _is_run(words: list[str]) -> bool:
    return words[0] in RUN or words[:3] == ["python", "-m", "libcst.tool"]


def _without_xargs(words: list[str]) -> list[str]:
    """Return the command that `xargs` starts, or the words unchanged."""
    if words[0] != "xargs":
        return words
    return words[next(place for place, word in enumerate(words) if place and not word.startswith("-")) :]


def check_commands(text: str, directory: Path) -> None:
    """Check the commands of a block: run fsrace-lint and flake8, and look up options of other programs."""
    for command in lines_of(text):
        parts = [_without_xargs(words) for words in split(command)]
        for words in parts:
            if words[0] == "fsrace-lint":
                parse(words)
        if any(map(_is_run, parts)) and all(_is_run(words) or words[0] in PLAIN for words in parts):
            _run(command, directory)
            continue
        for words in parts:
            if words[0] not in RUN:
                foreign(words)


def _run(command: str, directory: Path) -> None:
    """Run a command, which may report findings but must not fail."""
    (done,) = bash([command], directory)
    message = f"{command}: ended with {done.code}\n{done.errors}"
    if "xargs" in command:
        # xargs exits with 123 if any command that it starts fails
        assert done.code in (0, 123), message
        assert OURS.search(done.output), message
    else:
        assert done.code in (0, 1), message
    assert "Traceback" not in done.errors, done.errors
    _check_reports(command, directory)


def _check_reports(command: str, directory: Path) -> None:
    """Check that a command wrote its reports in their formats."""
    for kind, name in re.findall(r"--report[ =](\w+)=(\S+)", command):
        _check_report(kind, directory / name)
    if name := re.search(r"--output-file[ =](\S+)", command):
        kind = re.search(r"--format[ =](\w+)", command)
        _check_report(kind[1] if kind else "text", directory / name[1])


def _check_report(kind: str, file: Path) -> None:
    text = file.read_text("utf-8")
    assert text.strip(), f"{file.name} is empty"
    if kind in SCHEMAS:
        jsonschema.validate(json.loads(text), SCHEMAS[kind])
    elif kind == "junit":
        assert ET.fromstring(text).tag in ("testsuite", "testsuites")
    elif kind == "gitlab":
        rows = json.loads(text)
        assert rows, "the scratch project has findings"
        assert all(row["fingerprint"] and row["location"]["lines"]["begin"] for row in rows)
