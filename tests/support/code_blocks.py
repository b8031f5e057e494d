"""Checks of the code blocks in pages: the program that normally reads a kind of block reads it here.

`CHECKS` has a check for every kind, which raises an `AssertionError` if the page is wrong.
"""

from __future__ import annotations

import configparser
import difflib
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import jsonschema
import yaml
from pre_commit import clientlib  # type: ignore[import-untyped]

from fsrace_lint import catalog, rules
from fsrace_lint.config import settings
from fsrace_lint.config.tables import OWN_FILES
from fsrace_lint.config.validation import SettingsError
from support import ROOT
from support.commands import (
    FOREIGN,
    OURS,
    RUN,
    SCHEMAS,
    bash,
    check_commands,
    environment,
    has_option,
    parse,
    split,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.pages import Block


class OutdatedError(AssertionError):
    """The output of a command differs from the page.

    Attributes:
        text: The correct text of the block.
    """

    def __init__(self, old: str, text: str) -> None:
        """Compare the text of the page with the output."""
        lines = difflib.unified_diff(old.splitlines(), text.splitlines(), "the page", "printed", lineterm="")
        super().__init__("\n".join(lines))
        self.text = text


def check_console(block: Block, directory: Path) -> None:
    """Run the commands after `$`, and compare their output; a line `...` matches any lines.

    The output is standard output, or standard error if standard output is empty.
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
    printed = bash([command for command, _ in shown], directory)
    actual = ""
    same = True
    for (command, expected), done in zip(shown, printed, strict=True):
        output = done.output or done.errors
        pattern = "".join(".*\n" if line == "..." else re.escape(f"{line}\n") for line in expected)
        matches = re.fullmatch(pattern, output, re.DOTALL)
        same = same and bool(matches)
        actual += f"$ {command}\n" + ("".join(f"{line}\n" for line in expected) if matches else output)
    if not same:
        raise OutdatedError(block.text, actual)


def check_python(block: Block, directory: Path) -> None:
    """Compile the code; run it with pytest if it is a test file, and with Python if it is not a file."""
    compile(block.text, block.file or "<block>", "exec")
    if block.file is None:
        command = [sys.executable, "-W", "error", "-c", block.text]
    elif Path(block.file).name.startswith("test_"):
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", block.file]
    else:
        return
    done = subprocess.run(
        command,
        cwd=directory,
        env=environment(directory),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def check_toml(block: Block, directory: Path) -> None:
    """Load settings or library models."""
    document = tomllib.loads(block.text)
    if not (document.keys() - catalog.KINDS.keys()):
        assert list(catalog.parse(block.text, "the page"))
        return
    is_own = block.file in OWN_FILES
    assert is_own or document.keys() <= {"tool", "project", "build-system"}, sorted(document)
    file = directory / (block.file if is_own and block.file else "pyproject.toml")
    before = "" if is_own else file.read_text("utf-8")
    file.write_text(block.text, "utf-8")
    try:
        loaded = settings.load(directory, rules.names())
        if loaded.catalog:
            catalog.extended(loaded.catalogs)
    except (SettingsError, catalog.CatalogError) as error:
        raise AssertionError(str(error)) from error
    finally:
        if is_own:
            file.unlink()
        elif block.file != "pyproject.toml":
            file.write_text(before, "utf-8")


def check_yaml(block: Block, directory: Path) -> None:
    """Validate a configuration with the schema of its kind, and check its commands."""
    document = yaml.safe_load(block.text)
    if isinstance(document, list) or "repos" in document:
        _check_hooks(document, directory)
        return
    # YAML reads the key `on` of a workflow as a boolean
    kind = "github-workflows" if "jobs" in document else "gitlab-ci"
    file = directory / f"{kind}.yml"
    file.write_text(block.text, "utf-8")
    schema = f"--builtin-schema=vendor.{kind}"
    command = [sys.executable, "-m", "check_jsonschema", schema, os.fspath(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    file.unlink()
    assert done.returncode == 0, done.stdout + done.stderr
    for text in _values(document, ("run", "script", "before_script")):
        check_commands(text, directory)
    for name in _values(document, ("sarif_file", "codequality", "junit")):
        assert (directory / name).is_file(), f"no command has written {name}"


def _check_hooks(document: Any, directory: Path) -> None:
    """Load a pre-commit configuration, or a part of one, with pre-commit."""
    if isinstance(document, list) and "repo" not in document[0]:
        document = [{"repo": "https://example.com/hooks", "rev": "v1", "hooks": document}]
    if isinstance(document, list):
        document = {"repos": document}
    file = directory / ".pre-commit-config.yaml"
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
    """Yield the strings under these keys at any depth, including the items of lists."""
    if isinstance(document, dict):
        for key, value in document.items():
            if key in keys and not isinstance(value, dict):
                yield from [value] if isinstance(value, str) else value
            else:
                yield from _values(value, keys)
    elif isinstance(document, list):
        for value in document:
            yield from _values(value, keys)


def check_groovy(block: Block, directory: Path) -> None:
    """Check the commands of a Jenkinsfile, and that they write the files that its steps read."""
    steps = re.findall(r"\bsh '([^']+)'", block.text)
    assert steps
    for step in steps:
        check_commands(step, directory)
    for name in re.findall(r"(?:junit|pattern:) '([^']+)'", block.text):
        assert (directory / name).is_file(), f"no command has written {name}"


def check_json(block: Block, directory: Path) -> None:
    """Parse the JSON, and validate findings with their schema."""
    document = json.loads(block.text)
    if "findings" in document:
        jsonschema.validate(document, SCHEMAS["json"])


def check_ini(block: Block, directory: Path) -> None:
    """Run flake8 with the configuration; look up its options, because flake8 ignores unknown options."""
    parser = configparser.ConfigParser()
    parser.read_string(block.text)
    assert parser.sections() == ["flake8"]
    for option in parser["flake8"]:
        assert has_option(["flake8"], f"--{option}"), f"flake8 has no option {option}"
    (directory / "shown.ini").write_text(block.text, "utf-8")
    (done,) = bash(["flake8 --config shown.ini --select FSR train.py"], directory)
    assert done.code in (0, 1), done.errors


def check_text(block: Block, directory: Path) -> None:
    """Reject output, which belongs in a `console` block after its command."""
    assert not OURS.search(block.text), "this is our output: show the command too, in a `console` block"


def check_indented(block: Block, directory: Path) -> None:
    """Check commands as commands, and other blocks as text."""
    first = block.text.split(maxsplit=1)[0]
    if first in (*RUN, *FOREIGN, "python", "torchrun"):
        check_commands(block.text, directory)
    else:
        check_text(block, directory)


CHECKS: Final[dict[str, Callable[[Block, Path], None]]] = {
    "": check_indented,
    "console": check_console,
    "groovy": check_groovy,
    "ini": check_ini,
    "json": check_json,
    "python": check_python,
    "sh": lambda block, directory: check_commands(block.text, directory),
    "text": check_text,
    "toml": check_toml,
    "yaml": check_yaml,
}


def check(block: Block, directory: Path) -> None:
    """Check a block of a page in the scratch directory of the page, after the previous blocks.

    Args:
        block: The block.
        directory: A small project; named blocks are added to it as files.

    Raises:
        AssertionError: The page is wrong, or the kind of block is unknown.
    """
    assert block.kind in CHECKS, f"nothing checks blocks of `{block.kind}`"
    if block.file is not None:
        path = directory / block.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, "utf-8")
    CHECKS[block.kind](block, directory)
