"""Checks of what pages show: commands are parsed and run, files are read by whatever reads them.

Every kind of block has its check in `CHECKS`; it raises an `AssertionError` where the page is wrong. Commands of
fsrace-lint and flake8 are run in the scratch folder of the page. Of other programs it is checked that they
exist and have the options: what they do is not ours to test.
"""

from __future__ import annotations

import configparser
import difflib
import functools
import json
import os
import re
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click
import jsonschema
import yaml
from pages import ROOT, Block
from pre_commit import clientlib

from fsrace_lint import catalog, cli, rules, settings

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RUN: Final = ("fsrace-lint", "flake8")
"""What is run for real; either may find something, and must not fail."""

PLAIN: Final = ("cat", "echo", "git", "grep", "head", "printf", "sed", "tail", "test")
"""What may stand beside them in a line that is run."""

FOREIGN: Final = ("pre-commit", "ruff", "mypy", "mkdocs", "twine", "uv", "uvx", "pipx")
MODULES: Final = ("build", "coverage", "mkdocs", "pip", "pytest", "twine", "venv")
NESTED: Final = ("uvx", "pipx")
"""What starts another program, which stands behind its own options."""

OURS: Final = re.compile(r"^(\S+:\d+:\d+: (FSR\d{3}|silent)|Found \d+ problem|Fixed \d+ problem)", re.MULTILINE)
SCHEMAS: Final = {
    "json": json.loads((ROOT / "docs" / "findings.schema.json").read_text("utf-8")),
    "sarif": json.loads(
        (ROOT / "tests" / "fixtures" / "sarif" / "sarif-2.1.0-rtm.4.json").read_text("utf-8")
    ),
}


class Shell(NamedTuple):
    """What a command printed and how it ended."""

    output: str
    code: int
    errors: str


class Outdated(AssertionError):
    """A command prints something else than the page shows.

    Attributes:
        text: What the block should be.
    """

    def __init__(self, old: str, text: str) -> None:
        """Take what the page shows and what is printed."""
        lines = difflib.unified_diff(old.splitlines(), text.splitlines(), "the page", "printed", lineterm="")
        super().__init__("\n".join(lines))
        self.text = text


def environment(folder: Path) -> dict[str, str]:
    """Give an environment like that of a new user, whose programs are those of these tests."""
    unwanted = ("PYTEST_", "COV", "GIT_", "PRE_COMMIT", "FSRACE_", "FORCE_COLOR", "COLUMNS", "TERM", "NO_COLOR")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    programs = [os.fspath(Path(sys.executable).parent), kept.get("PATH", "")]
    return {**kept, "PATH": os.pathsep.join(programs), "HOME": os.fspath(folder), "PWD": os.fspath(folder)}


def bash(commands: list[str], folder: Path) -> list[Shell]:
    """Run commands in one shell; `$?` is what the one before left.

    Args:
        commands: The commands.
        folder: Where.

    Returns:
        What each printed and its status.
    """
    # the status is set again behind the separator, so that `echo $?` tells it
    after = 'code=$?; printf "\\0%s\\0" $code; printf "\\0" >&2; (exit $code)'
    done = subprocess.run(
        ["bash", "-c", "\n".join(f"{command}\n{after}" for command in commands)],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    output = done.stdout.replace(os.fspath(folder), "/project").split("\0")
    errors = done.stderr.replace(os.fspath(folder), "/project").split("\0")
    return [Shell(*parts) for parts in zip(output[::2], map(int, output[1::2]), errors, strict=False)]


def lines_of(text: str) -> Iterator[str]:
    """Give the commands of a block: without comments, and continued lines as one."""
    for line in text.replace("\\\n", " ").splitlines():
        command = re.sub(r"(^|\s{2,})#.*$", "", line).strip()
        if command:
            yield command


def split(command: str) -> list[list[str]]:
    """Give the simple commands of a line, as words; redirections are left out."""
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
    """Have the command line parse what follows `fsrace-lint`."""
    command: click.Command = cli.main
    arguments = words[1:]
    context = click.Context(command, info_name="fsrace-lint")
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
    command = [*words, "--help"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment(ROOT), cwd=ROOT, timeout=60
    )
    assert done.stdout or done.stderr, f"{shlex.join(command)} says nothing"
    return done.stdout + done.stderr


def _program(words: list[str]) -> tuple[list[str], list[str]]:
    """Split a foreign command into what names it, with a command of its own, and its arguments."""
    program, *rest = words
    if program == "python":
        assert rest[:1] == ["-m"] and rest[1] in MODULES, f"nothing is known of `{shlex.join(words)}`"
        start, rest = [sys.executable, *rest[:2]], rest[2:]
        program = start[-1]
    else:
        assert program in FOREIGN, f"nothing is known of the program `{program}`"
        start = [program]
    if program in ("pip", "pre-commit", "ruff", "mkdocs", "twine", "uv", "pipx") and rest:
        start.append(rest.pop(0))
    return start, rest


def foreign(words: list[str]) -> None:
    """Check a command of others: its options are in its help, and a command of ours within is right."""
    if words[:1] == ["python"] and words[1:2] != ["-m"]:
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
    text = _help(*start)
    for option in (word.partition("=")[0] for word in rest if re.match(r"--?[a-zA-Z]", word)):
        assert re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", text), f"{shlex.join(start)} has no {option}"
    if "pip" in start:
        _extras(rest)


def _extras(words: list[str]) -> None:
    with (ROOT / "pyproject.toml").open("rb") as stream:
        known = tomllib.load(stream)["project"]["optional-dependencies"]
    for word in words:
        if found := re.match(r"(?:fsrace-lint|\.|git\+\S+|dist/\S+)\[([\w,-]+)\]", word):
            assert set(found[1].split(",")) <= set(known), f"there is no extra {found[1]}"


def _is_run(words: list[str]) -> bool:
    return words[0] in RUN or words[:3] == ["python", "-m", "libcst.tool"]


def _without_xargs(words: list[str]) -> list[str]:
    """Give the command that `xargs` starts, or the words as they are."""
    if words[0] != "xargs":
        return words
    return words[next(place for place, word in enumerate(words) if place and not word.startswith("-")) :]


def check_commands(text: str, folder: Path) -> None:
    """Check the commands of a block: run those that are ours, look up the options of others."""
    for command in lines_of(text):
        parts = [_without_xargs(words) for words in split(command)]
        for words in parts:
            if words[0] == "fsrace-lint":
                parse(words)
        if any(map(_is_run, parts)) and all(_is_run(words) or words[0] in PLAIN for words in parts):
            _run(command, folder)
            continue
        for words in parts:
            if words[0] not in RUN:
                foreign(words)


def _run(command: str, folder: Path) -> None:
    """Run a command; it may find something, and must not fail."""
    (done,) = bash([command], folder)
    told = f"{command}: ended with {done.code}\n{done.errors}"
    if "xargs" in command:
        # 123 is any failure of what it starts
        assert done.code in (0, 123), told
        assert OURS.search(done.output), told
    else:
        assert done.code in (0, 1), told
    assert "Traceback" not in done.errors, done.errors
    _check_reports(command, folder)


def _check_reports(command: str, folder: Path) -> None:
    """See that the reports a command was told to write are there, and are what they should be."""
    for kind, name in re.findall(r"--report[ =](\w+)=(\S+)", command):
        _check_report(kind, folder / name)
    if name := re.search(r"--output-file[ =](\S+)", command):
        kind = re.search(r"--format[ =](\w+)", command)
        _check_report(kind[1] if kind else "text", folder / name[1])


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


def check_console(block: Block, folder: Path) -> None:
    """Run the commands behind `$`, and compare what they print; `...` on a line stands for any lines.

    That is the standard output, or the other where there is none.
    """
    shown: list[tuple[str, list[str]]] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            shown.append((line[2:], []))
        else:
            assert shown, "the block begins with a command behind `$ `"
            shown[-1][1].append(line)
    for words in (words for command, _ in shown for words in split(command)):
        if words[0] == "fsrace-lint":
            parse(words)
    printed = bash([command for command, _ in shown], folder)
    actual = ""
    same = True
    for (command, expected), done in zip(shown, printed, strict=True):
        output = done.output or done.errors
        pattern = "".join(".*\n" if line == "..." else re.escape(f"{line}\n") for line in expected)
        matches = re.fullmatch(pattern, output, re.DOTALL)
        same = same and bool(matches)
        actual += f"$ {command}\n" + ("".join(f"{line}\n" for line in expected) if matches else output)
    if not same:
        raise Outdated(block.text, actual)


def check_python(block: Block, folder: Path) -> None:
    """Compile it; a file that tests is tested, and what is no file is run."""
    compile(block.text, block.file or "<block>", "exec")
    if block.file is None:
        command = [sys.executable, "-W", "error", "-c", block.text]
    elif Path(block.file).name.startswith("test_"):
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", block.file]
    else:
        return
    done = subprocess.run(
        command, cwd=folder, env=environment(folder), capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr


def check_toml(block: Block, folder: Path) -> None:
    """Load settings as settings, and a part of the catalog as such."""
    document = tomllib.loads(block.text)
    if not (document.keys() - catalog.KINDS.keys()):
        assert list(catalog.parse(block.text, "the page"))
        return
    assert document.keys() <= {"tool", "project", "build-system"}, sorted(document)
    file = folder / "pyproject.toml"
    before = file.read_text("utf-8")
    file.write_text(block.text, "utf-8")
    try:
        loaded = settings.load(folder, rules.names())
        if loaded.catalog:
            catalog.extended(loaded.catalog, loaded.catalog_origin)
    except (settings.SettingsError, catalog.CatalogError) as error:
        raise AssertionError(str(error)) from error
    finally:
        if block.file != "pyproject.toml":
            file.write_text(before, "utf-8")


def check_yaml(block: Block, folder: Path) -> None:
    """Validate a configuration as what it is, and check the commands in it."""
    document = yaml.safe_load(block.text)
    if isinstance(document, list) or "repos" in document:
        _check_hooks(document, folder)
        return
    # to YAML, the key `on` of a workflow is a boolean
    kind = "github-workflows" if "jobs" in document else "gitlab-ci"
    file = folder / f"{kind}.yml"
    file.write_text(block.text, "utf-8")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{kind}", os.fspath(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    file.unlink()
    assert done.returncode == 0, done.stdout + done.stderr
    for text in _values(document, ("run", "script", "before_script")):
        check_commands(text, folder)
    for name in _values(document, ("sarif_file", "codequality", "junit")):
        assert (folder / name).is_file(), f"no command has written {name}"


def _check_hooks(document: Any, folder: Path) -> None:
    """Have pre-commit read a configuration, or the part of one."""
    if isinstance(document, list) and "repo" not in document[0]:
        document = [{"repo": "https://example.com/hooks", "rev": "v1", "hooks": document}]
    if isinstance(document, list):
        document = {"repos": document}
    file = folder / ".pre-commit-config.yaml"
    file.write_text(yaml.safe_dump(document), "utf-8")
    try:
        clientlib.load_config(file)
    except clientlib.InvalidConfigError as error:
        raise AssertionError(str(error)) from error
    manifest = clientlib.load_manifest(ROOT / ".pre-commit-hooks.yaml")
    known = {hook["id"]: shlex.split(hook["entry"]) for hook in manifest}
    for repository in document["repos"]:
        for hook in repository["hooks"]:
            entry = shlex.split(hook["entry"]) if "entry" in hook else known[hook["id"]]
            parse([*entry, *hook.get("args", ())])


def _values(document: Any, keys: tuple[str, ...]) -> Iterator[str]:
    """Give the texts below these keys, wherever they stand; a list of texts is given one by one."""
    if isinstance(document, dict):
        for key, value in document.items():
            if key in keys and not isinstance(value, dict):
                yield from [value] if isinstance(value, str) else value
            else:
                yield from _values(value, keys)
    elif isinstance(document, list):
        for value in document:
            yield from _values(value, keys)


def check_groovy(block: Block, folder: Path) -> None:
    """Check the commands of a Jenkinsfile, and that they write what its steps read."""
    steps = re.findall(r"\bsh '([^']+)'", block.text)
    assert steps
    for step in steps:
        check_commands(step, folder)
    for name in re.findall(r"(?:junit|pattern:) '([^']+)'", block.text):
        assert (folder / name).is_file(), f"no command has written {name}"


def check_json(block: Block, folder: Path) -> None:
    """Read it, and hold findings against their schema."""
    document = json.loads(block.text)
    if "findings" in document:
        jsonschema.validate(document, SCHEMAS["json"])


def check_ini(block: Block, folder: Path) -> None:
    """Have flake8 run with it; it skips options that it does not know, so they are looked up."""
    parser = configparser.ConfigParser()
    parser.read_string(block.text)
    assert parser.sections() == ["flake8"]
    for option in parser["flake8"]:
        assert re.search(rf"--{option}\b", _help("flake8")), f"flake8 has no option {option}"
    (folder / "shown.ini").write_text(block.text, "utf-8")
    (done,) = bash(["flake8 --config shown.ini --select FSR train.py"], folder)
    assert done.code in (0, 1), done.errors


def check_text(block: Block, folder: Path) -> None:
    """What is printed belongs into a `console` block, below its command."""
    assert not OURS.search(block.text), "this looks like our output: show the command too, in a `console` block"


def check_indented(block: Block, folder: Path) -> None:
    """Check commands as commands, and anything else as text."""
    first = block.text.split(maxsplit=1)[0]
    if first in (*RUN, *FOREIGN, "python", "torchrun"):
        check_commands(block.text, folder)
    else:
        check_text(block, folder)


CHECKS: Final[dict[str, Callable[[Block, Path], None]]] = {
    "": check_indented,
    "console": check_console,
    "groovy": check_groovy,
    "ini": check_ini,
    "json": check_json,
    "python": check_python,
    "sh": lambda block, folder: check_commands(block.text, folder),
    "text": check_text,
    "toml": check_toml,
    "yaml": check_yaml,
}


def check(block: Block, folder: Path) -> None:
    """Check a block of a page in the page's scratch folder, after those above it.

    Args:
        block: The block.
        folder: A small project, to which named blocks are added.

    Raises:
        AssertionError: The page is wrong, or the kind of block is unknown.
    """
    assert block.kind in CHECKS, f"nothing checks blocks of `{block.kind}`"
    if block.file is not None:
        path = folder / block.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, "utf-8")
    CHECKS[block.kind](block, folder)
