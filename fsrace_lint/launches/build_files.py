"""Commands in Makefiles, justfiles, Dockerfiles, and the tables of task runners."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import sys
import textwrap
from typing import TYPE_CHECKING, Any, Final

from fsrace_lint.launches.documents import Lines

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.launches.shell import Shell

_ASSIGNED: Final = re.compile(
    r"(?:export\s+|override\s+)*([A-Za-z_][\w-]*)\s*(\?=|\+=|:{0,3}=)\s*(.*)", re.DOTALL
)
_REFERENCE: Final = re.compile(r"\$\$|\$[({](\w+)[)}]|\$\((?:[^()]|\([^()]*\))*\)|\$[@<^*?+%|]")
_INSTRUCTION: Final = re.compile(r"\s*([A-Za-z]+)\s+(.*)", re.DOTALL)
_RUN_OPTIONS: Final = re.compile(r"\A(?:--\w+(?:=\S+)?\s+)+")
_DOCKER_VARIABLE: Final = re.compile(r"(\w+)=(\"[^\"]*\"|'[^']*'|\S*)")
_TOX_KEY: Final = re.compile(r"([\w-]+)\s*=\s*(.*)")
_TOX_VALUE: Final = re.compile(
    r"\{(?:posargs|args)(?::((?:[^{}]|\{[^{}]*\})*))?\}|\{(env(?:ironment)?python)\}|\{[^{} ]*\}"
)
_TASK_TABLES: Final = ("hatch", "pixi", "pdm", "taskipy", "poe", "rye")
_SESSION_RUN: Final = re.compile(r"\bsession\.run(?:_always|_install)?\(")
_LITERALS: Final = re.compile(
    r"""\s*(?:#[^\n]*\n\s*)*(?:[rf]*"([^"\\\n]*)"|[rf]*'([^'\\\n]*)'|([^,()"']+))\s*(,|\))"""
)
_MOST_LITERALS: Final = 64


def logical_lines(text: str, comment: str = "") -> Iterator[tuple[int, str]]:
    """Yield the lines of a text with their numbers. A line that ends in a backslash contains the next ones.

    Args:
        text: The text.
        comment: The beginning of comment lines, which can be between continued lines.

    Yields:
        Pairs of the number of the first line, and the lines with their line ends.
    """
    begin, parts = 0, list[str]()
    for number, line in enumerate(text.split("\n"), 1):
        if parts and comment and line.lstrip().startswith(comment):
            parts.append("\\")
            continue
        begin = begin if parts else number
        parts.append(line.rstrip())
        if not line.rstrip().endswith("\\"):
            yield begin, "\n".join(parts)
            parts = []
    if parts:
        yield begin, "\n".join(parts)


def read_makefile(text: str, shell: Shell) -> None:
    """Read the recipes of a Makefile. Each line of a recipe starts in the directory of the Makefile."""
    for number, line in logical_lines(text):
        if line.startswith("\t"):
            with shell.here():
                shell.read(_from_make(line.lstrip("\t @-+")), number)
            continue
        assigned = _ASSIGNED.fullmatch(line.strip())
        if assigned is None:
            continue
        name, operator, value = assigned.groups()
        value = shell.variables.text(_from_make(value.partition(" #")[0].replace("\\\n", " ").strip()))
        if operator == "+=":
            value = " ".join([*shell.variables.get(name), value])
        shell.variables.set(name, value)


def _from_make(text: str) -> str:
    """Return the shell command that `make` runs."""

    def replaced(found: re.Match[str]) -> str:
        return "$" if found[0] == "$$" else f"${{{found[1]}}}" if found[1] else "$_"

    return _REFERENCE.sub(replaced, text)


def read_justfile(text: str, shell: Shell) -> None:
    """Read the recipes of a justfile."""
    body: list[str] = []
    begin = 1
    for number, line in enumerate([*text.split("\n"), "end"], 1):
        if line[:1].isspace() or not line:
            body.append(line)
            continue
        _just_recipe(body, begin, shell)
        body, begin = [], number + 1
        assigned = re.fullmatch(r"(?:export\s+)?([A-Za-z_][\w-]*)\s*:=\s*(.*)", line)
        if assigned is not None:
            shell.variables.set(assigned[1], shell.variables.text(assigned[2].strip()))


def _just_recipe(body: list[str], begin: int, shell: Shell) -> None:
    text = re.sub(r"\{\{\s*([A-Za-z_]\w*)\s*\}\}", r"${\1}", textwrap.dedent("\n".join(body)))
    if text.lstrip().startswith("#!"):
        with shell.here():
            shell.read(text, begin)
        return
    for number, line in logical_lines(text):
        if line.strip():
            with shell.here():
                shell.read(line.lstrip("@- "), begin + number - 1)


def read_dockerfile(text: str, shell: Shell) -> None:
    """Read the instructions of a Dockerfile. The directories in an image are not those of the repository."""
    entry: list[str] = []
    for number, line in logical_lines(text, "#"):
        found = _INSTRUCTION.fullmatch(line)
        if found is None or line.lstrip().startswith("#"):
            continue
        name, rest = found[1].upper(), _RUN_OPTIONS.sub("", found[2], count=1)
        if name == "HEALTHCHECK":
            continue
        words = _exec_form(rest) if name in {"RUN", "CMD", "ENTRYPOINT"} else None
        if name == "FROM":
            entry = []
        elif name in {"ENV", "ARG"}:
            pairs = _DOCKER_VARIABLE.findall(rest) or [tuple(rest.split(maxsplit=1))]
            for pair in pairs:
                if len(pair) == len(("name", "value")):
                    shell.variables.set(pair[0], shell.variables.text(pair[1]))
        elif words is not None:
            shell.words([*entry, *words] if name == "CMD" else words, number)
            entry = words if name == "ENTRYPOINT" else entry
        elif name in {"RUN", "CMD", "ENTRYPOINT"}:
            with shell.here():
                shell.read(rest, number)


def _exec_form(text: str) -> list[str] | None:
    if not text.lstrip().startswith("["):
        return None
    try:
        words = json.loads(text.replace("\\\n", " "))
    except (ValueError, RecursionError):
        return None
    return words if isinstance(words, list) and all(isinstance(word, str) for word in words) else None


def read_tox(text: str, shell: Shell) -> None:
    """Read the commands of the environments in a `tox.ini`, and the options of pytest."""
    read_ini(text, shell)
    key, folder, is_environment = "", shell.folder, False
    for number, line in logical_lines(text):
        if line.startswith("["):
            is_environment, key = line.startswith("[testenv"), ""
            shell.folder = folder
            continue
        found = _TOX_KEY.match(line)
        value = line
        if found is not None and not line[0].isspace():
            key, value = found[1], found[2]
        if not is_environment:
            continue
        if key.replace("_", "") == "changedir" and value.strip():
            shell.change(value.strip().replace("{toxinidir}/", ""))
        elif key.startswith("commands") and value.strip():
            with shell.here():
                shell.read(task(value.strip().removeprefix("- ")), number)


def task(text: str) -> str:
    """Return the shell command in a task of tox, Hatch, and others, whose templates have braces."""

    def replaced(found: re.Match[str]) -> str:
        return "python" if found[2] else found[1] if found[1] is not None else "$_"

    return _TOX_VALUE.sub(replaced, text)


def read_tasks(text: str, shell: Shell) -> None:
    """Read the tables of task runners in a TOML file: Hatch, pixi, PDM, taskipy, Poe, and Rye."""
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return
    tables = document.get("tool", {})
    lines = Lines(text)
    chosen = [tables[name] for name in _TASK_TABLES if isinstance(tables, dict) and name in tables]
    for table in (*chosen, document.get("tasks"), document.get("envs")):
        _read_table(table, lines, shell, 0)
    match tables:
        case {"pytest": {"ini_options": {"addopts": str(options)}}}:
            _read_test_options(options, text, shell)
        case {"pytest": {"ini_options": {"addopts": [*words]}}}:
            _read_test_options(shlex.join(map(str, words)), text, shell)


def read_ini(text: str, shell: Shell) -> None:
    """Read the default options of pytest in a `pytest.ini` or a `setup.cfg`."""
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return
    for section in ("pytest", "tool:pytest"):
        _read_test_options(parser.get(section, "addopts", fallback=""), text, shell)


def _read_test_options(options: str, text: str, shell: Shell) -> None:
    """Read options of pytest as a command that runs all tests.

    Args:
        options: The options.
        text: The file.
        shell: The shell of the file.
    """
    if options.strip():
        lines = enumerate(text.split("\n"), 1)
        line = next((number for number, each in lines if "addopts" in each.lower()), 1)
        with shell.here():
            shell.read(f"pytest {' '.join(options.split())}", line)


def _read_table(value: Any, lines: Lines, shell: Shell, depth: int) -> None:  # a TOML value of any type
    if isinstance(value, str):
        with shell.here():
            shell.read(task(value), lines.of(value.partition("\n")[0]))
    elif isinstance(value, list):
        with shell.here():
            for each in value:
                _read_table(each, lines, shell, depth + 1)
    elif isinstance(value, dict):
        with shell.here():
            folder = value.get("cwd", value.get("working_dir"))
            if isinstance(folder, str):
                shell.change(folder)
            for each in value.values():
                _read_table(each, lines, shell, depth + 1)


def read_noxfile(text: str, shell: Shell) -> None:
    """Read the literal arguments of `session.run()` in a `noxfile.py`."""
    line, counted = 1, 0
    for found in _SESSION_RUN.finditer(text):
        line, counted = line + text.count("\n", counted, found.start()), found.start()
        words: list[str] = []
        position = found.end()
        for _ in range(_MOST_LITERALS):
            argument = _LITERALS.match(text, position)
            if argument is None:
                break
            position = argument.end()
            literal = argument[1] if argument[1] is not None else argument[2]
            if literal is not None:
                words.append(literal)
            elif "=" not in argument[3] and argument[3].strip():
                words.append("$_")
            if argument[4] == ")":
                break
        if words:
            shell.words(words, line)
