"""What may import what: a table, and our own imports read and held against it."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from support import TESTS
from support.imports import MODULES, NAME, imported, our_module

from fsrace_lint.report import FORMATS, SHOWING_FIXES

if TYPE_CHECKING:
    from collections.abc import Iterator


class Room(NamedTuple):
    """Modules that may import the same; all names are patterns, and ours are without `fsrace_lint.`.

    A module that is named in full belongs to that room and to none that only a pattern puts it in.
    `libraries` are those beyond the ordinary standard library.
    """

    modules: str
    ours: str = ""
    libraries: str = ""


DATA = "facts.heads facts.model facts.names facts.spell facts.annotations facts.syntax"
# The floors of the project room, each with those below it.
LINKED = (
    f"{DATA} catalog catalog.entries spans project.dependencies project.memo project.records project.trail"
)
FOLLOWED = "project.names.* project.flow.*"
READ = "project.ranks.* project.paths.*"
CALLED = "project.model project.callers.*"
DONE = "project.acts.* project.order.*"
EXPLORED = "explore.errors explore.links explore.messages explore.process explore.process.*"
# Ordinary everywhere but these, which have a room; and what nobody here may use at all.
SPECIAL = frozenset({"ast", "tokenize", "tomllib", "symtable", "pickle", "shelve", "marshal", "dbm"})
ROOMS = (
    Room("__init__"),
    Room("__main__", "cli daemon.client"),
    Room("spans", "", "msgspec"),
    Room("depth"),
    Room("failures"),
    Room("leftovers placing.dressing committed"),
    Room("placing.swapping"),
    Room("placing", "leftovers placing.dressing placing.swapping"),
    Room("vendor", "__init__ placing reading"),
    Room("terminal", "placing report.words", "click"),
    Room("mistakes", "", "msgspec"),
    Room("globs"),
    Room("reading"),
    Room("settings", "globs mistakes reading", "msgspec tomllib tomli"),
    Room("findings", "spans", "msgspec"),
    Room("source", "spans", "msgspec tokenize"),
    Room("status", "", "msgspec"),
    Room("gitignore", "reading", "pathspec"),
    Room("discover", "gitignore globs reading settings source status"),
    Room("catalog", "catalog.arguments catalog.entries catalog.kinds catalog.reading", "msgspec"),
    Room("catalog.arguments", "", "msgspec"),
    Room("catalog.entries", "", "msgspec"),
    Room("catalog.kinds", "catalog.entries"),
    Room(
        "catalog.reading",
        "catalog.arguments catalog.entries catalog.kinds mistakes",
        "msgspec tomllib tomli",
    ),
    Room("facts"),
    Room("facts.model", "spans", "msgspec"),
    Room("facts.names facts.spell facts.annotations facts.syntax", "facts.model facts.names"),
    Room("facts.heads", "facts.model facts.names facts.syntax", "msgspec"),
    Room("facts.targets facts.scripts", "", "ast"),
    Room("facts.bounds", "facts.expressions", "ast"),
    Room("facts.newer", "source"),
    Room(
        "facts.extract facts.expressions",
        f"{DATA} depth facts.bounds facts.expressions facts.newer facts.scripts facts.targets source spans",
        "ast msgspec",
    ),
    Room("project"),
    Room("project.dependencies"),
    Room("project.memo", "project.dependencies"),
    Room("project.trail", "project.dependencies project.memo"),
    Room("project.records", "", "msgspec"),
    Room("project.names project.names.*", f"{LINKED} project.names.*", "msgspec"),
    Room("project.flow project.flow.*", f"{LINKED} {FOLLOWED}", "msgspec"),
    Room("project.ranks project.ranks.*", f"{LINKED} {FOLLOWED} project.ranks.*"),
    Room("project.paths project.paths.*", f"{LINKED} {FOLLOWED} {READ}", "msgspec"),
    Room("project.model", f"{LINKED} {FOLLOWED} project.paths.forms"),
    Room("project.callers project.callers.*", f"{LINKED} {FOLLOWED} {READ} {CALLED}", "msgspec"),
    Room("project.acts project.acts.*", f"{LINKED} {FOLLOWED} {READ} {CALLED} project.acts.*", "msgspec"),
    Room("project.order project.order.*", f"{LINKED} {FOLLOWED} {READ} {CALLED} {DONE}", "msgspec"),
    Room(
        "project.locks project.locks.*",
        f"{LINKED} {FOLLOWED} {READ} {CALLED} {DONE} project.locks.*",
        "msgspec",
    ),
    Room("project.queries project.queries.*", f"{LINKED} project.*", "msgspec"),
    Room("rules.remedies", "findings project.* spans", "msgspec"),
    Room("rules.base", "facts.spell findings project.* rules.remedies spans", "msgspec"),
    Room("rules", "findings project.queries rules.base", "msgspec"),
    Room("rules.*", "findings project.* rules.base rules.remedies spans"),
    Room("fixes fixes.*", "fixes fixes.* findings placing source spans", "ast libcst msgspec"),
    Room("report report.*", "findings report report.* source spans", "msgspec"),
    Room("report.fingerprints", "findings fingerprints report.lines"),
    Room(
        "report.text",
        "findings report report.cells report.lines report.measured report.suppressions report.words source"
        " spans",
    ),
    Room("report.cells", "", "rich"),
    Room("fingerprints", "findings"),
    Room("noqa", "", "msgspec tokenize"),
    Room("suppress", "findings noqa source spans", "msgspec"),
    Room("baseline", "findings fingerprints placing reading settings", "msgspec"),
    Room("cache", "cache.*"),
    Room(
        "cache.*",
        "cache.folder cache.seal cache.version facts.extract facts.heads facts.model leftovers status",
        "msgspec",
    ),
    Room(
        "pipeline.run",
        "baseline discover findings fingerprints pipeline.ahead pipeline.files pipeline.judging pipeline.kept"
        " pipeline.linking pipeline.memory pipeline.observer pipeline.workers project.names.heads"
        " project.names.modules project.queries report settings source spans",
        "msgspec",
    ),
    Room(
        "pipeline.files",
        "cache discover facts.extract facts.heads facts.model pipeline.run settings source status suppress",
    ),
    Room(
        "pipeline.ahead",
        "depth pipeline.files pipeline.observer pipeline.run project.callers.retained project.callers.tracked"
        " project.names.modules project.queries",
    ),
    Room(
        "pipeline.kept",
        "discover pipeline.ahead pipeline.linking pipeline.memory pipeline.observer pipeline.run settings"
        " source",
    ),
    Room(
        "pipeline.linking",
        "catalog depth facts.extract findings pipeline.ahead pipeline.extracting pipeline.files"
        " pipeline.judging pipeline.observer pipeline.run"
        " project.names.heads project.names.modules"
        " project.queries report rules settings source spans",
    ),
    Room(
        "pipeline.memory",
        "cache cache.folder findings pipeline.files pipeline.judging pipeline.observer pipeline.run settings"
        " source spans",
        "msgspec",
    ),
    Room("pipeline.mistaken", "catalog settings"),
    Room("pipeline.observer", "settings"),
    Room("pipeline.configured", "baseline catalog rules settings"),
    Room(
        "pipeline.judging",
        "baseline findings fingerprints report report.lines rules source spans suppress",
        "msgspec",
    ),
    Room("pipeline.machine", ""),
    Room("pipeline.workers", "pipeline.observer", "msgspec marshal"),
    Room(
        "pipeline.extracting",
        "facts.extract facts.model pipeline.observer pipeline.workers source",
        "msgspec",
    ),
    Room("pipeline.merging", "findings pipeline.files pipeline.run report source"),
    Room("pipeline.accepting", "baseline fingerprints pipeline.run source"),
    Room(
        "pipeline.comments",
        "baseline findings fixes noqa pipeline.judging pipeline.run rules source suppress",
        "msgspec",
    ),
    Room(
        "pipeline.repairing",
        "catalog findings fixes fixes.apply leftovers pipeline.comments pipeline.run source spans suppress",
    ),
    Room(
        "pipeline.previewing",
        "findings fixes pipeline.comments pipeline.repairing pipeline.run report report.edits source"
        " spans suppress",
        "msgspec",
    ),
    Room("pipeline.handed", "discover pipeline.memory pipeline.observer pipeline.run settings source"),
    Room(
        "pipeline",
        "pipeline.accepting pipeline.comments pipeline.configured pipeline.files pipeline.handed"
        " pipeline.judging pipeline.kept pipeline.linking pipeline.machine pipeline.memory pipeline.merging"
        " pipeline.mistaken pipeline.observer pipeline.previewing pipeline.repairing pipeline.run",
    ),
    Room("cli", "__init__ commands commands.* failures report.words terminal", "click"),
    Room("commands"),
    Room(
        "commands.choosing",
        "commands.caching commands.completing commands.stdin commands.watching commands.words findings"
        " pipeline report report.words settings terminal",
        "click",
    ),
    Room(
        "commands.writing",
        "commands.watching committed findings fixes pipeline report report.words terminal",
        "click",
    ),
    Room("commands.caching", "cache pipeline report.words settings terminal", "click"),
    Room("commands.completing", "rules", "click"),
    Room("commands.stdin", "report.words", "click"),
    Room(
        "commands.deliver",
        "__init__ commands.watching commands.words pipeline placing report report.words rules terminal",
        "click",
    ),
    Room(
        "commands.accepting",
        "baseline commands.choosing commands.watching commands.writing pipeline report.words terminal",
        "click",
    ),
    Room(
        "commands.check",
        "commands.accepting commands.choosing commands.deliver commands.showing commands.stdin"
        " commands.watching commands.words daemon.client pipeline",
        "click",
    ),
    Room("commands.watching", "pipeline report.words settings terminal", "click rich"),
    Room(
        "commands.showing",
        "commands.choosing discover pipeline report report.words rules settings source terminal",
        "click msgspec",
    ),
    Room(
        "commands.fix",
        "catalog commands.choosing commands.stdin commands.watching commands.words commands.writing findings"
        " fixes pipeline report.diff report.words terminal",
        "click",
    ),
    Room("commands.words", "mistakes", "click"),
    Room(
        "commands.explain",
        "commands.completing commands.words manual report.words rules settings terminal",
        "click msgspec",
    ),
    Room(
        "manual",
        "findings pipeline project.model report.json report.text rules rules.base rules.references settings"
        " source",
        "msgspec",
    ),
    Room("rules.references", "", "msgspec"),
    Room("commands.vendor", "report.words terminal vendor", "click"),
    Room("commands.server", "server.handlers terminal", "click"),
    Room("commands.daemon", "daemon.client report.words", "click"),
    Room("daemon"),
    Room("daemon.wire", "__init__"),
    Room("daemon.client", "daemon.wire"),
    Room("daemon.asking", "daemon.client daemon.wire", "msgspec"),
    Room("daemon.process", "cache commands.check daemon.wire pipeline report report.words terminal", "click"),
    Room("daemon.__main__", "daemon.process"),
    Room("server"),
    Room("server.worker", "pipeline"),
    Room("server.positions", "source spans", "lsprotocol"),
    Room(
        "server.analysis",
        "baseline catalog discover facts.extract findings fixes pipeline report rules settings source"
        " suppress",
        "msgspec",
    ),
    Room(
        "server.answers",
        "findings report.pages report.words rules server.positions source suppress",
        "lsprotocol pygls",
    ),
    Room("server.sessions", "failures findings pipeline server.* settings", "lsprotocol"),
    Room("server.actions", "findings fixes report.edits report.words server.*", "lsprotocol"),
    Room("server.app", "__init__ discover report.words server.*", "lsprotocol pygls"),
    Room("server.handlers", "fixes report.words server.* source", "lsprotocol pygls"),
    Room("commands.prove", "commands.words explore mistakes report.words terminal", "click"),
    Room(
        "flake8_plugin",
        "__init__ daemon.asking discover failures findings pipeline report.words rules settings source",
        "ast flake8",
    ),
    Room("codemod", "fixes pipeline rules settings", "libcst"),
    Room("explore", "explore.errors explore.explorer explore.result"),
    Room("explore.errors explore.links"),
    Room("explore.messages explore.moves explore.scenario", "explore.errors", "msgspec"),
    Room("explore.process explore.process.*", EXPLORED),
    Room("explore.running explore.running.*", f"{EXPLORED} explore.moves explore.scenario explore.running.*"),
    Room(
        "explore.search explore.search.*",
        f"{EXPLORED} explore.moves explore.scenario explore.running.* explore.search.*",
    ),
    Room(
        "explore.result explore.timeline explore.tokens",
        "explore.errors explore.moves explore.running.run explore.scenario",
    ),
    Room("explore.explorer", "explore.*"),
    # What processes bring to a collective is pickled, as torch.distributed does it, and so are their results.
    Room("explore.process.collectives explore.process.worker", EXPLORED, "pickle"),
    # What rank 0 sends to the other ranks of its own job is pickled, as torch.distributed does it.
    Room("safe", "", "pickle"),
)


def matches(name: str, patterns: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns.split())


def rooms_of(module: str) -> list[Room]:
    named = [room for room in ROOMS if module in room.modules.split()]
    return named or [room for room in ROOMS if matches(module, room.modules)]


def violations(module: str, text: str) -> list[str]:
    """What a module with this text imports and must not."""
    (room,) = rooms_of(module)
    found = set()
    for name in imported(ast.parse(text)):
        top = name.partition(".")[0]
        if top == NAME:
            target = our_module(name)
            if target != module and not matches(target, room.ours):
                found.add(target)
        elif (top in SPECIAL or top not in sys.stdlib_module_names) and not matches(top, room.libraries):
            found.add(top)
    return sorted(found)


def test_a_module_lives_in_one_room() -> None:
    wrong = [module for module in MODULES if len(rooms_of(module)) != 1]
    assert wrong == [], f"give each of them one room in the table of {Path(__file__).name}"


def test_the_table_is_kept() -> None:
    found = {module: violations(module, path.read_text("utf-8")) for module, path in MODULES.items()}
    assert {module: wrong for module, wrong in found.items() if wrong} == {}


OTHERS_PRIVATE = frozenset({"_asdict", "_exit", "_fields", "_getframe", "_replace", "_server"})
"""What is private by its name alone, in Python and in pygls."""


def private(tree: ast.AST) -> Iterator[str]:
    """Names of other modules that code uses though they are private: attributes, imports, what it patches."""
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
                # the helpers are one file for others to copy: what only they use is private
                used = [] if ast.unparse(owner) == "safe" else [name]
            case _:
                continue
        yield from (name for name in used if re.match("_(?!_)", name) and name not in OTHERS_PRIVATE)


def test_tests_use_what_is_public() -> None:
    found = {path.name: sorted(private(ast.parse(path.read_text("utf-8")))) for path in TESTS.rglob("*.py")}
    assert {name: used for name, used in found.items() if used} == {}


def test_no_module_of_tests_imports_another() -> None:
    """What several of them use is in `support`."""
    importing = re.compile(r"^\s*(?:from|import) (test_\w+|tests\.)", re.MULTILINE)
    found = {path.name: importing.findall(path.read_text("utf-8")) for path in TESTS.rglob("*.py")}
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
def test_what_is_private(text: str, found: list[str]) -> None:
    assert [*private(ast.parse(text))] == found


@pytest.mark.parametrize(
    ("module", "text", "found"),
    [
        ("spans", "from fsrace_lint.findings import Finding", ["findings"]),
        ("settings", "from fsrace_lint import source", ["source"]),
        ("findings", "import ast", ["ast"]),
        ("source", "from pathspec import GitIgnoreSpec", ["pathspec"]),
        ("catalog", "from fsrace_lint.facts import model as m", ["facts.model"]),
        ("facts.model", "from fsrace_lint.facts.names import dotted", ["facts.names"]),
        ("facts.spell", "import ast", ["ast"]),
        ("facts.extract", "from fsrace_lint.catalog import load", ["catalog"]),
        ("facts.extract", "from fsrace_lint.settings import Settings", ["settings"]),
        ("project.flow", "from fsrace_lint.facts.extract import extract", ["facts.extract"]),
        ("project.flow", "def f():\n    from fsrace_lint.findings import Finding", ["findings"]),
        ("project.flow", "if TYPE_CHECKING:\n    import ast", ["ast"]),
        ("project.flow", "import tomllib, libcst, tokenize", ["libcst", "tokenize", "tomllib"]),
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
        ("rules.check_then_mkdir", "from fsrace_lint.facts.model import Call", ["facts.model"]),
        ("rules.check_then_mkdir", "import ast, msgspec", ["ast", "msgspec"]),
        ("rules.base", "from fsrace_lint.rules import load", ["rules"]),
        ("fixes.recipes.exist_ok", "from fsrace_lint.project.queries import Project", ["project.queries"]),
        ("fixes.recipes.exist_ok", "from fsrace_lint import pipeline", ["pipeline"]),
        ("report.json", "import rich.text", ["rich"]),
        ("report.text", "from fsrace_lint.project.model import Site", ["project.model"]),
        ("pipeline", "import libcst", ["libcst"]),
        ("pipeline", "from fsrace_lint.rules.check_then_mkdir import RULE", ["rules.check_then_mkdir"]),
        ("pipeline", "from fsrace_lint.cli import main", ["cli"]),
        ("cli", "from fsrace_lint.project.queries import Project", ["project.queries"]),
        ("commands.check", "from fsrace_lint.commands.fix import fix", ["commands.fix"]),
        ("flake8_plugin", "import click", ["click"]),
        ("suppress", "import pickle", ["pickle"]),
        ("spans", "import requests", ["requests"]),
        ("spans", "import os, re, functools", []),
        (
            "project.flow",
            "import fsrace_lint.project.names.values\nfrom fsrace_lint.project.flow import states",
            [],
        ),
    ],
)
def test_the_table_forbids(module: str, text: str, found: list[str]) -> None:
    assert module in MODULES
    assert violations(module, text) == found


def test_a_new_module_has_no_room() -> None:
    assert rooms_of("helpers") == []
    assert rooms_of("facts.helpers") == []


PROGRAM = """
import json, sys
from pathlib import Path
from fsrace_lint import pipeline, rules, settings

root = Path(sys.argv[1])
((run, checked),) = pipeline.check([root], lambda path: settings.load(path, rules.names()))
if sys.argv[2] == "fix":
    pipeline.repair(run, checked, unsafe=False)
loaded = [name for name in ("libcst", "rich", "flake8", "click") if name in sys.modules]
print(json.dumps([len(checked.outcome.findings), loaded]))
"""
CLEAN = "import os\nos.makedirs('a', exist_ok=True)\n"
HAZARD = "import os\nif not os.path.exists('a'):\n    os.makedirs('a')\n"


COMMAND = """
import sys
from click.testing import CliRunner
from fsrace_lint import cli

for form in sys.argv[1:]:
    result = CliRunner().invoke(cli.main, ["check", "--format", form, "."])
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
def test_only_reports_that_show_fixes_load_what_makes_them(
    tmp_path: Path, text: str, forms: list[str]
) -> None:
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
        (HAZARD, "fix", [1, ["libcst"]]),
    ],
)
def test_what_is_loaded(tmp_path: Path, text: str, task: str, expected: list[object]) -> None:
    """A check loads nothing of what repairs, prints or plugs in."""
    (tmp_path / "pyproject.toml").write_text("", "utf-8")
    (tmp_path / "main.py").write_text(text, "utf-8")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, tmp_path, task], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == expected
