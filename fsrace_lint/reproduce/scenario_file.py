"""The text of a scenario for a finding."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final, NamedTuple

from fsrace_lint.reproduce.target import CannotReproduce, functions, target_of
from fsrace_lint.reproduce.usage import Use, parameters, uses
from fsrace_lint.reproduce.values import Maker

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from fsrace_lint.findings.finding import Finding
    from fsrace_lint.reproduce.target import Target

_HEAD: Final = '''\
"""Runs `{name}` of {path} in multiple processes, for {code} at line {line}.

`fsrace-lint prove --finding` wrote this file. Correct the arguments where the code expects others, and run
`fsrace-lint prove {{file}}::run`.
"""

import contextlib
import importlib
import os
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

from fsrace_lint.reproduce.stand_ins import StandIn

PROJECT = Path({project!r})
PROCESSES = 2
sys.path[:0] = [{folders}]
sys.argv = [{argv!r}]
{imports}

'''


_IMPORT_EACH: Final = """
for name in {names!r}:
    with contextlib.suppress(Exception):
        importlib.import_module(name)
"""
_CHECK: Final = '''\
def check(root):
    """Reject a file that is there but empty, as a process that reads it now would see it."""
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            assert path.stat().st_size, f"{path.relative_to(root)} is empty"
'''


class ScenarioFile(NamedTuple):
    """A scenario for a finding.

    Attributes:
        text: The Python file, which defines `run(root, rank)` and may define `setup(root)` and `check(root)`.
        target: The function that it calls.
        guessed: The arguments whose type nothing shows.
        is_distributed: Whether the file uses a process group.
    """

    text: str
    target: Target
    guessed: tuple[str, ...]
    is_distributed: bool


def scenario_of(finding: Finding, project: Path) -> ScenarioFile:
    """Write a scenario for a finding.

    Args:
        finding: The finding.
        project: The root of its project.

    Returns:
        The scenario.

    Raises:
        CannotReproduce: The function cannot be called.
    """
    target, project = target_of(finding), project.resolve()
    _refuse(target)
    known = {each.name: each for each, owner in functions(target.tree) if owner is None}
    classes = {each.name: each for each in ast.walk(target.tree) if isinstance(each, ast.ClassDef)}
    maker = Maker(known, classes)
    lines = _call(target, maker)
    head = _HEAD.format(
        name=target.name,
        path=target.file.relative_to(project) if target.file.is_relative_to(project) else target.file,
        code=finding.code,
        line=finding.place.span.line,
        project=str(project),
        folders=", ".join(dict.fromkeys([_folder(target, project), "str(PROJECT)", *_sources(project)])),
        argv=target.file.name,
        imports=_imports(target, maker.names),
    )
    text = head.replace("{file}", f"prove_{target.file.stem}_{finding.place.span.line}.py")
    text += _setup(maker.files) + _body(lines) + _CHECK
    used = ast.unparse(target.tree)
    return ScenarioFile(text, target, tuple(maker.guessed), "distributed" in used)


def _folder(target: Target, project: Path) -> str:
    folder = target.folder
    if folder == project:
        return "str(PROJECT)"
    if folder.is_relative_to(project):
        return f"str(PROJECT / {str(folder.relative_to(project))!r})"
    return repr(str(folder))


def _sources(project: Path) -> list[str]:
    """Return the other directories of packages: `src`, and `src` of each part of the project."""
    found = [path for pattern in ("src", "*/src") for path in sorted(project.glob(pattern)) if path.is_dir()]
    return [f"str(PROJECT / {str(path.relative_to(project))!r})" for path in found]


def _refuse(target: Target) -> None:
    function = target.function
    if function is None:
        return
    if isinstance(function, ast.AsyncFunctionDef):
        raise CannotReproduce(f"`{target.name}` is an `async` function")
    if not target.module.replace(".", "").isidentifier():
        raise CannotReproduce(f"`{target.module}` cannot be imported by name")


def _imports(target: Target, needed: Iterable[str]) -> str:
    owner = target.owner
    if target.function is None:
        names = sorted({each for node in target.tree.body for each in _imported(node)})
        return _IMPORT_EACH.format(names=names)
    name = owner.name if owner is not None else target.function.name
    return f"\nfrom {target.module} import {', '.join(dict.fromkeys([name, *needed]))}\n"


def _call(target: Target, maker: Maker) -> list[str]:
    """Return the lines that make the arguments and call the function."""
    function, owner = target.function, target.owner
    if function is None:
        return [f'runpy.run_path({str(target.file)!r}, run_name="__main__")']
    decorators = {ast.unparse(each).rpartition(".")[2] for each in function.decorator_list}
    is_generator = any(isinstance(node, ast.Yield | ast.YieldFrom) for node in _own_nodes(function))
    lines: list[str] = []
    if owner is None:
        call = f"{function.name}({maker.arguments(function, {}, skip_first=False)})"
    else:
        methods = {each.name: each for each, of in functions(target.tree) if of is owner}
        is_static = "staticmethod" in decorators
        arguments = maker.arguments(function, methods, skip_first=not is_static)
        if is_static or "classmethod" in decorators:
            call = f"{owner.name}.{function.name}({arguments})"
        elif function.name == "__init__":
            call = f"{owner.name}({arguments})"
        else:
            first = parameters(function)[0].arg if parameters(function) else "self"
            used = uses(function, maker.functions, methods).get(first, Use())
            lines += maker.instance(owner, used, methods)
            is_property = "property" in decorators or "cached_property" in decorators
            call = f"owner.{function.name}" + ("" if is_property else f"({arguments})")
    if "contextmanager" in decorators:
        return [*lines, f"with {call}:", "    pass"]
    return [*lines, f"list({call})" if is_generator else call]


def _imported(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.Import):
        return [each.name for each in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []


def _own_nodes(function: ast.AST) -> list[ast.AST]:
    """Return the nodes of a function without those of inner functions."""
    found: list[ast.AST] = []
    waiting = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        found.append(node)
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)
    return found


def _setup(files: dict[str, None]) -> str:
    if not files:
        return ""
    lines = []
    for path in files:
        if path.endswith("/"):
            lines.append(f'    (root / "{path[:-1]}").mkdir()')
        else:
            lines.append(f'    (root / "{path}").write_text("{{}}")')
    return "def setup(root):\n" + "\n".join(lines) + "\n\n\n"


def _body(lines: list[str]) -> str:
    return "def run(root, rank):\n" + "\n".join(f"    {line}" for line in lines) + "\n\n\n"
