"""Layers: a table of allowed imports between packages, checked against the actual imports."""

from __future__ import annotations

import ast
import graphlib
import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Final

import pytest
from support import TESTS
from support.imports import MODULES, NAME, PACKAGE, imported, our_module

from fsrace_lint.report import FORMATS, SHOWING_FIXES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


LAYERS: Final[Mapping[str, str]] = {
    "files": "",
    "config": "files",
    "catalog": "config",
    "syntax": "files",
    "engine": "config files syntax",
    "launches": "config files",
    "program": "engine launches syntax",
    "analysis.values": "catalog engine program syntax",
    "analysis.dataflow": "analysis.values engine files program syntax",
    "analysis.interpretation": "analysis.dataflow analysis.values program syntax",
    "analysis.ranks": "analysis.dataflow analysis.values catalog engine program syntax",
    "analysis.paths": "analysis.dataflow analysis.ranks analysis.values catalog engine launches program"
    " syntax",
    "analysis.callgraph": "analysis.dataflow analysis.paths analysis.ranks analysis.values catalog engine"
    " files program syntax",
    "analysis.accesses": "analysis.callgraph analysis.dataflow analysis.paths analysis.values catalog"
    " engine files launches program syntax",
    "analysis.synchronization": "analysis.accesses analysis.callgraph analysis.dataflow analysis.paths"
    " analysis.ranks analysis.values catalog engine files launches program syntax",
    "analysis.queries": "analysis.accesses analysis.callgraph analysis.dataflow analysis.paths"
    " analysis.synchronization catalog engine files launches program syntax",
    "findings": "config files",
    "rules": "analysis config files findings syntax",
    "fixes": "catalog files findings syntax",
    "report": "files findings",
    "pipeline": "analysis catalog config engine files findings fixes launches program report rules syntax",
    "instrument": "",
    "explore": "instrument",
    "reproduce": "files findings",
    "integrations": "catalog config engine files findings fixes pipeline report rules syntax",
    "cli": "analysis catalog config engine explore files findings fixes integrations pipeline report"
    " reproduce rules",
    "safe": "",
    "flake8_plugin": "cli config engine files findings pipeline report",
    "codemod": "config fixes pipeline rules",
    "__init__": "",
    "__main__": "cli",
}
"""The lower layers that each package may import, in addition to itself. Names are without `fsrace_lint.`.

Every module may import `__init__`, which contains the version.
"""
LIBRARIES: Final[Mapping[str, str]] = {
    "ast": "fixes flake8_plugin integrations.excerpt reproduce syntax",
    "black": "fixes",
    "click": "cli",
    "flake8": "flake8_plugin",
    "isort": "fixes",
    "libcst": "fixes codemod",
    "lsprotocol": "integrations.server",
    "markdown_it": "launches.documents",
    "marshal": "engine.parallel.workers",
    "msgspec": "analysis catalog cli config engine explore files findings fixes integrations launches"
    " pipeline program report rules syntax",
    "pathspec": "files.gitignore",
    # arguments of collectives are pickled, as in torch.distributed, and so are the results of processes
    # a saved search is a graph of plain data
    "pickle": "explore.process.collectives explore.process.worker explore.search.saved_search safe",
    "pygls": "integrations.server",
    "rich": "report.cells cli.commands.progress_bar",
    "tokenize": "files.source findings.noqa",
    "tomli": "catalog.lexicon catalog.reading config.tables fixes launches",
    "tomllib": "catalog.lexicon catalog.reading config.tables fixes launches",
    "tree_sitter": "launches.command_lines launches.shell",
    "tree_sitter_bash": "launches.shell",
    "yaml": "launches.yaml_files",
}
"""The packages that may import third-party libraries and special standard modules."""
RULES_SHARE: Final = ("rules.base", "rules.remedies", "rules.references")
"""The modules of their own package that rules may import: never each other."""
SPECIAL = frozenset({"ast", "tokenize", "tomllib", "symtable", "pickle", "shelve", "marshal", "dbm"})
"""Modules of the standard library that a package may import only if `LIBRARIES` lists it."""


def is_in(module: str, packages: str) -> bool:
    """Return whether a module is one of these packages, or is in one of them."""
    return any(f"{module}.".startswith(f"{package}.") for package in packages.split())


RECURSION: Final = "analysis.interpretation"
"""The Protocol by which the layers of `analysis` recurse into each other."""


def layer_of(module: str) -> str | None:
    """Return the layer of a module."""
    return next((layer for layer in LAYERS if is_in(module, layer)), None)


def is_forbidden(module: str, target: str) -> bool:
    """Return whether a module of the package must not import another one."""
    layer = layer_of(module)
    if target in {"__init__", RECURSION}:
        return False
    if module.startswith("rules.") and module not in RULES_SHARE:
        return not is_in(target, f"{LAYERS['rules']} {' '.join(RULES_SHARE)}")
    return layer is None or not is_in(target, f"{layer} {LAYERS[layer]}")


def violations(module: str, text: str) -> list[str]:
    """Return the imports that a module with this text must not have."""
    found = set()
    for name in imported(ast.parse(text)):
        top = name.partition(".")[0]
        if top == NAME:
            target = our_module(name)
            if target != module and is_forbidden(module, target):
                found.add(target)
        elif (top in SPECIAL or top not in sys.stdlib_module_names) and not is_in(
            module, LIBRARIES.get(top, "")
        ):
            found.add(top)
    return sorted(found)


def test_every_module_has_a_layer() -> None:
    assert [module for module in MODULES if layer_of(module) is None] == ["analysis"]
    assert MODULES["analysis"].name == "__init__.py"


def test_modules_import_only_lower_layers() -> None:
    found = {module: violations(module, path.read_text("utf-8")) for module, path in MODULES.items()}
    assert {module: wrong for module, wrong in found.items() if wrong} == {}


def test_recursion_module_imports_only_types() -> None:
    """Lower layers call higher ones through a Protocol, which needs no other import."""
    tree = ast.parse(MODULES[RECURSION].read_text("utf-8"))
    modules = {node.module for node in tree.body if isinstance(node, ast.ImportFrom)}
    assert modules == {"__future__", "typing"}


def test_layers_are_in_order() -> None:
    """A layer imports only the layers before it, so packages have no import cycle."""
    order = [*LAYERS]
    for layer, below in LAYERS.items():
        for each in below.split():
            inner = [position for position, other in enumerate(order) if is_in(other, each)]
            assert inner, f"{layer} names {each}, which is no layer"
            assert max(inner) < order.index(layer)


def cycles(imports: Mapping[str, set[str]]) -> list[list[str]]:
    """Return groups of modules that import each other, directly or indirectly."""
    sorter = graphlib.TopologicalSorter(imports)
    try:
        sorter.prepare()
    except graphlib.CycleError as error:
        return [error.args[1]]
    return []


def test_modules_have_no_import_cycles() -> None:
    """This includes imports for type checkers only."""
    imports: dict[str, set[str]] = {}
    for module, path in MODULES.items():
        names = imported(ast.parse(path.read_text("utf-8")))
        imports[module] = {our_module(name) for name in names if name.partition(".")[0] == NAME} - {module}
    assert cycles(imports) == []


def test_cycle_is_detected() -> None:
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) != []
    assert cycles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_top_level_modules() -> None:
    found = [module for module, path in MODULES.items() if path.parent == PACKAGE and path.stem == module]
    assert sorted(found) == ["__init__", "__main__", "codemod", "flake8_plugin", "safe"]


def test_packages_have_short_docstrings() -> None:
    """A package has a docstring of at most three lines."""
    packages = {module: path for module, path in MODULES.items() if path.name == "__init__.py"}
    docstrings = {
        module: ast.get_docstring(ast.parse(path.read_text("utf-8"))) for module, path in packages.items()
    }
    lines = {module: [*filter(None, (text or "").splitlines())] for module, text in docstrings.items()}
    assert {module: len(found) for module, found in lines.items() if not 1 <= len(found) <= 3} == {}


OTHERS_PRIVATE = frozenset({"_asdict", "_exit", "_fields", "_getframe", "_replace", "_server"})
"""Public names of Python and pygls that begin with an underscore."""


def private(tree: ast.AST) -> Iterator[str]:
    """Yield the private names of other modules that code reads, imports, or patches."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls")):
                continue
            case ast.Attribute(attr=name):
                used = [name]
            case ast.ImportFrom(names=names):
                used = [alias.name for alias in names]
            case ast.Call(
                func=ast.Attribute(attr="setattr"), args=[owner, ast.Constant(value=str(name)), *_]
            ):
                # `safe` is one file that users copy, so its internal names are private
                used = [] if ast.unparse(owner) == "safe" else [name]
            case _:
                continue
        yield from (name for name in used if re.match("_(?!_)", name) and name not in OTHERS_PRIVATE)


def test_tests_use_only_public_names() -> None:
    found = {str(path): sorted(private(ast.parse(path.read_text("utf-8")))) for path in TESTS.rglob("*.py")}
    assert {name: used for name, used in found.items() if used} == {}


def test_test_modules_do_not_import_each_other() -> None:
    """Code that multiple test modules use is in `support`."""
    importing = re.compile(r"^\s*(?:from|import) (test_\w+|tests\.)", re.MULTILINE)
    found = {str(path): importing.findall(path.read_text("utf-8")) for path in TESTS.rglob("*.py")}
    assert {name: used for name, used in found.items() if used} == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("module._name = 1", ["_name"]),
        ("from module import _name", ["_name"]),
        ("monkeypatch.setattr(module, '_name', 1)", ["_name"]),
        ("self._name, module.__name__, value._replace(x=1)", []),
    ],
)
def test_private_names_are_detected(text: str, found: list[str]) -> None:
    assert [*private(ast.parse(text))] == found


@pytest.mark.parametrize(
    ("module", "text", "found"),
    [
        ("files.spans", "from fsrace_lint.findings.finding import Finding", ["findings.finding"]),
        ("config.settings", "from fsrace_lint.pipeline import discover", ["pipeline.discover"]),
        ("findings.finding", "import ast", ["ast"]),
        ("files.source", "from pathspec import GitIgnoreSpec", ["pathspec"]),
        ("catalog", "from fsrace_lint.syntax import model as m", ["syntax.model"]),
        ("syntax.extract", "from fsrace_lint.catalog import load", ["catalog"]),
        ("syntax.extract", "from fsrace_lint.config.settings import Settings", ["config.settings"]),
        (
            "engine.parallel.workers",
            "from fsrace_lint.analysis.values import resolve",
            ["analysis.values.resolve"],
        ),
        (
            "analysis.values.resolve",
            "from fsrace_lint.analysis.ranks import rank_tests",
            ["analysis.ranks.rank_tests"],
        ),
        ("analysis.dataflow", "def f():\n    from fsrace_lint.rules import load", ["rules"]),
        ("analysis.dataflow", "if TYPE_CHECKING:\n    import ast", ["ast"]),
        ("analysis.dataflow", "import tomllib, libcst, tokenize", ["libcst", "tokenize", "tomllib"]),
        (
            "rules.check_then_mkdir",
            "from fsrace_lint.rules import check_then_delete",
            ["rules.check_then_delete"],
        ),
        (
            "rules.check_then_mkdir",
            "from fsrace_lint.rules.check_then_delete import RULE",
            ["rules.check_then_delete"],
        ),
        ("rules.check_then_mkdir", "from fsrace_lint.rules.base import Rule", []),
        ("rules.check_then_mkdir", "import ast, click", ["ast", "click"]),
        (
            "fixes.recipes.exist_ok",
            "from fsrace_lint.analysis.queries import project",
            ["analysis.queries.project"],
        ),
        ("fixes.recipes.exist_ok", "from fsrace_lint import pipeline", ["pipeline"]),
        ("report.json", "import rich.text", ["rich"]),
        ("report.text", "from fsrace_lint.analysis.accesses.model import Site", ["analysis.accesses.model"]),
        ("pipeline", "import libcst", ["libcst"]),
        ("pipeline", "from fsrace_lint.cli.main import main", ["cli.main"]),
        ("integrations.server.app", "from fsrace_lint.cli.main import main", ["cli.main"]),
        ("explore.explorer", "from fsrace_lint import safe", ["safe"]),
        ("instrument.model", "from fsrace_lint.explore import moves", ["explore.moves"]),
        ("instrument.interception", "import msgspec", ["msgspec"]),
        ("flake8_plugin", "import click", ["click"]),
        ("findings.suppressions", "import pickle", ["pickle"]),
        ("files.spans", "import requests", ["requests"]),
        ("files.spans", "import os, re, functools", []),
        ("files.spans", "from fsrace_lint import __version__", []),
        ("analysis.dataflow", "import fsrace_lint.analysis.values.abstract_values", []),
    ],
)
def test_forbidden_imports_are_detected(module: str, text: str, found: list[str]) -> None:
    assert module in MODULES
    assert violations(module, text) == found


def test_unknown_module_has_no_layer() -> None:
    assert layer_of("helpers") is None
    assert violations("helpers", "from fsrace_lint.files import spans") == ["files.spans"]
    assert layer_of("syntax.helpers") == "syntax"


PROGRAM = """
import json, sys
from pathlib import Path

from fsrace_lint import rules
from fsrace_lint.config import settings
from fsrace_lint.pipeline import check

root = Path(sys.argv[1])
((run, checked),) = check.check([root], lambda path: settings.load(path, rules.names()))
if sys.argv[2] == "fix":
    from fsrace_lint.pipeline import repair
    repair.repair(run, checked, unsafe=False)
loaded = [name for name in ("black", "isort", "libcst", "rich", "flake8", "click") if name in sys.modules]
print(json.dumps([len(checked.outcome.findings), loaded]))
"""
CLEAN = "import os\nos.makedirs('a', exist_ok=True)\n"
HAZARD = "import os\nif not os.path.isdir('a'):\n    os.makedirs('a')\n"


COMMAND = """
import sys
from click.testing import CliRunner
from fsrace_lint.cli.main import main

for form in sys.argv[1:]:
    result = CliRunner().invoke(main, ["check", "--format", form, "."])
    print(form, result.exit_code, 'libcst' in sys.modules)
"""


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        (CLEAN, sorted(FORMATS)),
        (HAZARD, sorted({*FORMATS} - SHOWING_FIXES)),
        *((HAZARD, [form]) for form in sorted(SHOWING_FIXES)),
    ],
)
def test_only_formats_that_show_fixes_import_libcst(tmp_path: Path, text: str, forms: list[str]) -> None:
    (tmp_path / "pyproject.toml").write_text("", "utf-8")
    (tmp_path / "main.py").write_text(text, "utf-8")
    command = [sys.executable, "-c", COMMAND, *forms]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    code, needed = int(text == HAZARD), text == HAZARD and not SHOWING_FIXES.isdisjoint(forms)
    assert done.stdout.splitlines() == [f"{form} {code} {needed}" for form in forms]


@pytest.mark.parametrize(
    ("text", "task", "expected"),
    [
        (CLEAN, "check", [0, []]),
        (HAZARD, "check", [1, []]),
        (CLEAN, "fix", [0, ["libcst"]]),
        (HAZARD, "fix", [1, ["black", "libcst", "click"]]),  # black imports click
    ],
)
def test_check_imports_no_optional_libraries(
    tmp_path: Path, text: str, task: str, expected: list[object]
) -> None:
    """A check does not import the libraries for fixes, output, or plugins."""
    (tmp_path / "pyproject.toml").write_text("", "utf-8")
    (tmp_path / "main.py").write_text(text, "utf-8")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, tmp_path, task], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == expected
