"""Commands in YAML: CI files, Compose, Kubernetes, and configurations of job schedulers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from fsrace_lint.launches.launchers import program_of
from fsrace_lint.launches.shell import filled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.launches.shell import Shell

_PROSE: Final = frozenset(
    {"description", "name", "help", "title", "label", "summary", "comment", "displayname", "image"}
)
_FOLDERS: Final = frozenset(
    {"working-directory", "working_directory", "working_dir", "workingdir", "workdir", "cwd"}
)
_VARIABLES: Final = frozenset({"env", "envs", "environment", "variables", "env_variables"})
_COMMANDS: Final = ("entrypoint", "command", "args", "cmd")
_COMMAND: Final = re.compile(r"\S\s+\S|=|^\.")
"""What most values of a configuration do not contain, but commands of multiple words and assignments do."""
_DEEPEST: Final = 40


def read_yaml(text: str, shell: Shell) -> None:
    """Read all strings in a YAML file that are commands.

    Args:
        text: The file. Malformed YAML contains no launch.
        shell: The shell that reads the commands.
    """
    import yaml  # noqa: PLC0415  # few projects contain a launch

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        documents = list(yaml.compose_all(text, Loader=loader))
    except (yaml.YAMLError, RecursionError):
        return
    for document in documents:
        if document is not None:
            _Reader(shell).read(document, 0)


class _Reader:
    """Visits the nodes of one YAML document."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._seen: set[Any] = set()  # nodes of PyYAML, which are equal only to themselves

    def read(self, node: Any, depth: int) -> None:  # a node of PyYAML
        """Read a node. An alias is read once."""
        if depth > _DEEPEST or node in self._seen:
            return
        self._seen.add(node)
        if node.id == "mapping":
            self._mapping(node, depth)
        elif node.id == "sequence":
            with self._shell.here():
                for item in node.value:
                    self.read(item, depth + 1)
        else:
            self._scalar(node)

    def _scalar(self, node: Any) -> None:  # a node of PyYAML
        if not _COMMAND.search(node.value) and not self._is_program(node.value):
            return
        first = node.start_mark.line + (2 if node.style in {"|", ">"} else 1)
        self._shell.read(node.value, first)

    def _is_program(self, word: str) -> bool:
        return bool(word) and (word in self._shell.commands or program_of([word]) is not None)

    def _mapping(self, node: Any, depth: int) -> None:  # a node of PyYAML
        entries = {key.value: value for key, value in node.value if key.id == "scalar"}
        before = self._shell.variables.values
        self._shell.variables.values = {**before}
        with self._shell.here():
            for key, value in entries.items():
                if key.lower() in _FOLDERS and value.id == "scalar":
                    self._shell.change(filled(value.value).replace("$_/", ""))
                elif key.lower() in _VARIABLES:
                    for name, text in _pairs(value):
                        self._shell.variables.set(name, self._shell.variables.text(filled(text)))
            argv = self._argv(entries)
            for key, value in entries.items():
                if key.lower() in _PROSE or key in argv:
                    continue
                with self._shell.here():
                    self.read(value, depth + 1)
        self._shell.variables.values = before

    def _argv(self, entries: dict[str, Any]) -> list[str]:
        """Read a command that is given as lists of words, and return the keys that contain it."""
        keys: list[str] = [key for key in _COMMANDS if key in entries and _is_argv(entries[key])]
        if not keys:
            return []
        words = [str(item.value) for key in keys for item in entries[key].value]
        self._shell.words([filled(word) for word in words], entries[keys[0]].start_mark.line + 1)
        return keys


def _is_argv(node: Any) -> bool:  # a node of PyYAML
    """Return whether a node is a list of words, and not a list of command lines."""
    if node.id != "sequence" or not node.value or any(item.id != "scalar" for item in node.value):
        return False
    return not re.search(r"\s", node.value[0].value.strip())


def _pairs(node: Any) -> Iterator[tuple[str, str]]:  # a node of PyYAML
    """Yield the names and values of environment variables, in the notations of Compose and Kubernetes."""
    if node.id == "mapping":
        yield from ((key.value, value.value) for key, value in node.value if key.id == value.id == "scalar")
    elif node.id == "sequence":
        for item in node.value:
            if item.id == "scalar":
                name, equals, value = item.value.partition("=")
                if equals:
                    yield name, value
            elif item.id == "mapping":
                found = {
                    key.value: value.value for key, value in item.value if key.id == value.id == "scalar"
                }
                if "name" in found and "value" in found:
                    yield found["name"], found["value"]


def processes_of(text: str) -> int | None:
    """Return the number of processes in a configuration file of Accelerate, or None."""
    import yaml  # noqa: PLC0415  # few projects contain a launch

    try:
        values = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError):
        return None
    count = values.get("num_processes") if isinstance(values, dict) else None
    return count if isinstance(count, int) and not isinstance(count, bool) and count > 0 else None
