"""Name resolution: imports, attributes, and methods; and termination."""

from __future__ import annotations

import sys
from textwrap import indent
from typing import TYPE_CHECKING

import pytest
from support.linked import SITE, marked, project, runs

from fsrace_lint.analysis.dataflow.process_set import Runs
from fsrace_lint.analysis.values.abstract_values import Environment, Expression
from fsrace_lint.analysis.values.resolve import Resolver
from fsrace_lint.engine.query import query
from fsrace_lint.program.modules import LinkedClass, LinkedFunction, module_name
from fsrace_lint.syntax import model as m

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fsrace_lint.analysis.queries.project import Project

LIB = "def f(): pass\nclass C:\n    def m(self): pass\n    @staticmethod\n    def s(): pass\nvalue = 1\n"


def meaning(files: Mapping[str, str], head: str, expr: str, path: str = "main.py") -> str | None:
    """What an expression denotes in a function of an added file; an object is shown by its class."""
    text = f"{head}\ndef main(a, b):\n    mark({expr})\n"
    event = marked(linked := project({**files, path: text}))
    resolver = linked.flows.resolver
    return resolver.type_name(resolver.symbol(event.call.arguments[0], event.state.scope))


def test_repr_of_functions_and_classes() -> None:
    (module,) = project({"lib.py": LIB}).flows.table.modules
    assert repr(module.functions[1:]) == "(lib.f, lib.C.m, lib.C.s)"
    assert repr(module.top_classes) == "{'C': lib.C}"


@pytest.mark.parametrize(
    ("head", "expr", "expected"),
    [
        ("from lib import f", "f", "lib.f"),
        ("from lib import f as g", "g", "lib.f"),
        ("import lib", "lib.f", "lib.f"),
        ("import lib as other", "other.f", "lib.f"),
        ("from lib import C", "C", "lib.C"),
        ("from lib import C", "C()", "lib.C"),
        ("from lib import C", "C().m", "lib.C.m"),
        ("from lib import C", "C.s", "lib.C.s"),
        ("from lib import *", "f", "lib.f"),
        ("from lib import *", "C().m", "lib.C.m"),
        ("import lib\nf = lib.f", "f", "lib.f"),
        ("import lib\nc = lib.C()", "c.m", "lib.C.m"),
        ("from lib import value", "value", "lib.value"),
        ("from lib import absent", "absent", "lib.absent"),
        ("import os", "os.path.join", "os.path.join"),
        ("import os as system", "system.makedirs", "os.makedirs"),
        ("import os.path", "os.path.join", "os.path.join"),
        ("import os.path as p", "p.join", "os.path.join"),
        ("from os import makedirs as mk", "mk", "os.makedirs"),
        ("from pathlib import Path", "Path('a')", "pathlib.Path"),
        ("from pathlib import Path", "Path('a') / 'b'", "pathlib.Path"),
        ("from pathlib import Path", "(Path('a') / 'b').mkdir", "pathlib.Path.mkdir"),
        ("from pathlib import Path", "Path('a').parent.mkdir", "pathlib.Path.mkdir"),
        ("from pathlib import Path", "Path.cwd().mkdir", "pathlib.Path.mkdir"),
        ("from pathlib import Path", "Path('a').with_suffix('.b').unlink", "pathlib.Path.unlink"),
        ("import tarfile", "tarfile.open('a').extractall", "tarfile.TarFile.extractall"),
        ("import zipfile", "zipfile.ZipFile('a').extractall", "zipfile.ZipFile.extractall"),
        ("", "open", "open"),
        ("", "a.anything", None),
        ("", "a()", None),
        ("", "unknown", "unknown"),
        ("", "'text'.format", None),
        ("", "super().f", None),
        ("", "(lambda: 1)", "main.main.<lambda>"),
        ("from lib import f", "f if a else b", "lib.f"),
        ("from lib import f", "a or f", "lib.f"),
    ],
)
def test_names_and_imports(head: str, expr: str, expected: str | None) -> None:
    assert meaning({"lib.py": LIB}, head, expr) == expected


PACKAGE = {
    "pkg/__init__.py": "from .core import f as exported\nfrom .core import *\nfrom . import extra\n",
    "pkg/core.py": LIB,
    "pkg/extra.py": "from pkg.core import C as D\ndef e(): pass\n",
    "pkg/sub/__init__.py": "",
    "pkg/sub/deep.py": "from ..core import f\nfrom ... import nothing\ndef d(): pass\n",
}


@pytest.mark.parametrize(
    ("path", "head", "expr", "expected"),
    [
        ("main.py", "from pkg import exported", "exported", "pkg.core.f"),
        ("main.py", "from pkg import f", "f", "pkg.core.f"),
        ("main.py", "import pkg", "pkg.C", "pkg.core.C"),
        ("main.py", "import pkg.core", "pkg.core.f", "pkg.core.f"),
        ("main.py", "import pkg.core as c", "c.f", "pkg.core.f"),
        ("main.py", "import pkg.sub.deep", "pkg.sub.deep.d", "pkg.sub.deep.d"),
        ("main.py", "from pkg.sub import deep", "deep.d", "pkg.sub.deep.d"),
        ("main.py", "from pkg.sub.deep import f", "f", "pkg.core.f"),
        ("main.py", "from pkg.extra import D", "D().m", "pkg.core.C.m"),
        ("main.py", "from pkg import extra", "extra.e", "pkg.extra.e"),
        ("pkg/main.py", "from .core import f", "f", "pkg.core.f"),
        ("pkg/main.py", "from . import core", "core.f", "pkg.core.f"),
        ("pkg/main.py", "from .sub.deep import d", "d", "pkg.sub.deep.d"),
        ("pkg/main.py", "from pkg.core import f", "f", "pkg.core.f"),
        ("pkg/main.py", "from core import f", "f", "pkg.core.f"),
        ("pkg/sub/main.py", "from ..core import f", "f", "pkg.core.f"),
        ("pkg/sub/main.py", "from .. import core", "core.C", "pkg.core.C"),
        ("pkg/sub/main.py", "from ..extra import D", "D", "pkg.core.C"),
        ("pkg/sub/main.py", "from .deep import d", "d", "pkg.sub.deep.d"),
    ],
)
def test_names_in_packages(path: str, head: str, expr: str, expected: str) -> None:
    assert meaning(PACKAGE, head, expr, path) == expected


@pytest.mark.parametrize(
    ("files", "path", "head", "expr", "expected"),
    [
        pytest.param(
            {"src/pkg/__init__.py": "", "src/pkg/lib.py": LIB},
            "src/pkg/main.py",
            "from pkg.lib import f",
            "f",
            "src.pkg.lib.f",
            id="src layout, from the package",
        ),
        pytest.param(
            {"src/pkg/__init__.py": "", "src/pkg/lib.py": LIB},
            "train.py",
            "from pkg.lib import f",
            "f",
            "src.pkg.lib.f",
            id="src layout, from outside",
        ),
        pytest.param(
            {"src/lib.py": LIB},
            "train.py",
            "from lib import f",
            "f",
            "src.lib.f",
            id="src layout, single module",
        ),
        pytest.param(
            {"scripts/lib.py": LIB, "lib.py": "def f(): pass\n"},
            "scripts/main.py",
            "from lib import f",
            "f",
            "scripts.lib.f",
            id="sibling before root",
        ),
        pytest.param(
            {"scripts/lib.py": LIB},
            "scripts/main.py",
            "import lib",
            "lib.f",
            "scripts.lib.f",
            id="sibling",
        ),
        pytest.param(
            {"scripts/tools/lib.py": LIB},
            "scripts/main.py",
            "from tools.lib import f",
            "f",
            "scripts.tools.lib.f",
            id="sibling directory",
        ),
        pytest.param(
            {"space/part/lib.py": LIB},
            "main.py",
            "from space.part.lib import f",
            "f",
            "space.part.lib.f",
            id="namespace package",
        ),
        pytest.param(
            {"space/part/lib.py": LIB},
            "main.py",
            "import space.part.lib",
            "space.part.lib.f",
            "space.part.lib.f",
            id="namespace package, dotted access",
        ),
        pytest.param(
            {"space/part/lib.py": LIB},
            "main.py",
            "from space.part import lib",
            "lib.f",
            "space.part.lib.f",
            id="namespace package, from import",
        ),
        pytest.param(
            {"app/logging.py": LIB, "app/__init__.py": ""},
            "app/main.py",
            "import logging",
            "logging.f",
            "logging.f",
            id="sibling named like a standard library module",
        ),
        pytest.param(
            {"app/logging.py": LIB, "app/__init__.py": ""},
            "app/main.py",
            "from . import logging",
            "logging.f",
            "app.logging.f",
            id="same name, relative import",
        ),
        pytest.param(
            {"app/logging.py": LIB, "app/__init__.py": ""},
            "app/main.py",
            "from app.logging import f",
            "f",
            "app.logging.f",
            id="same name, absolute import",
        ),
        pytest.param(
            {},
            "torch.py",
            "import torch",
            "torch.save",
            "torch.save",
            id="file that imports a module with its own name",
        ),
        pytest.param(
            {"one/lib.py": LIB, "two/lib.py": LIB},
            "two/main.py",
            "from lib import f",
            "f",
            "two.lib.f",
            id="nearest module",
        ),
        pytest.param(
            {"pkg/__init__.py": "from .a import *\n", "pkg/a.py": "from .b import *\n", "pkg/b.py": LIB},
            "main.py",
            "from pkg import f",
            "f",
            "pkg.b.f",
            id="star import of a star import",
        ),
        pytest.param(
            {"pkg/__init__.py": "from .a import f\n", "pkg/a.py": "from .b import f\n", "pkg/b.py": LIB},
            "main.py",
            "import pkg as p",
            "p.f",
            "pkg.b.f",
            id="re-exported twice",
        ),
        pytest.param(
            {
                "lib.py": "try:\n    from fast import f\nexcept ImportError:\n    from slow import f\n",
                "slow.py": LIB,
            },
            "main.py",
            "from lib import f",
            "f",
            "slow.f",
            id="last import wins",
        ),
    ],
)
def test_project_layouts(files: dict[str, str], path: str, head: str, expr: str, expected: str) -> None:
    assert meaning(files, head, expr, path) == expected


@pytest.mark.parametrize(
    ("relative", "expected"),
    [
        ("a.py", "a"),
        ("pkg/a.py", "pkg.a"),
        ("pkg/__init__.py", "pkg"),
        ("__init__.py", ""),
        ("gui.pyw", "gui"),
        ("./a.py", "a"),
    ],
)
def test_module_names(relative: str, expected: str) -> None:
    assert module_name(relative) == expected


CLASSES = """\
import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Optional, Union

class Base:
    shared = Path("a")
    def over(self): pass
    def kept(self): pass
    @classmethod
    def build(cls):
        return cls()
    @property
    def prop(self): return Path("a")

class Middle(Base):
    pass

class Derived(Middle):
    def over(self): pass
    def __init__(self):
        self.helper = Helper()
        self.path = Path("a")
        self.late: Helper = make()
        if self.path:
            self.maybe = Helper()
        else:
            self.maybe = None

class Helper:
    def act(self): pass
    def __call__(self): pass

def make(): ...
def made(): return Helper()
def made_late():
    helper = Helper()
    return helper
"""


@pytest.mark.parametrize(
    ("signature", "code", "expr", "expected"),
    [
        pytest.param("self", "", "self.kept", "lib.Base.kept", id="inherited method on self"),
        pytest.param("self", "", "self.over", "lib.Derived.over", id="overridden method on self"),
        pytest.param(
            "self",
            "",
            "super().over",
            "lib.Base.over",
            id="super",
        ),
        pytest.param(
            "self", "", "self.helper.act", "lib.Helper.act", id="instance of a project class in an attribute"
        ),
        pytest.param(
            "self",
            "",
            "self.path.mkdir",
            "pathlib.Path.mkdir",
            id="instance of a library class in an attribute",
        ),
        pytest.param("self", "", "self.maybe.act", "lib.Helper.act", id="attribute set in a branch"),
        pytest.param("self", "", "self.shared.mkdir", "pathlib.Path.mkdir", id="class attribute"),
        pytest.param("self", "h = self.helper", "h.act", "lib.Helper.act", id="attribute in a variable"),
        pytest.param("x: Helper", "", "x.act", "lib.Helper.act", id="annotation"),
        pytest.param("x: 'Helper'", "", "x.act", "lib.Helper.act", id="string annotation"),
        pytest.param("x: Optional[Helper]", "", "x.act", "lib.Helper.act", id="optional"),
        pytest.param("x: 'Optional[Helper]'", "", "x.act", "lib.Helper.act", id="string optional"),
        pytest.param("x: Union[None, Helper]", "", "x.act", "lib.Helper.act", id="union"),
        pytest.param("x: Helper | None", "", "x.act", "lib.Helper.act", id="pipe None"),
        pytest.param("x: None | Helper", "", "x.act", "lib.Helper.act", id="None pipe"),
        pytest.param("x: 'Helper | None'", "", "x.act", "lib.Helper.act", id="string pipe None"),
        pytest.param("x: Path", "", "x.mkdir", "pathlib.Path.mkdir", id="library annotation"),
        pytest.param("x: str | Path", "", "x.mkdir", "pathlib.Path.mkdir", id="str or Path"),
        pytest.param("x: list[Helper]", "", "x.act", None, id="list annotation"),
        pytest.param("x=Path('a')", "", "x.mkdir", "pathlib.Path.mkdir", id="default only"),
        pytest.param("x", "x = Helper()", "x.act", "lib.Helper.act", id="local variable"),
        pytest.param("x", "x: Helper = x", "x.act", "lib.Helper.act", id="annotated local variable"),
        pytest.param("x", "x = made()", "x.act", "lib.Helper.act", id="return value"),
        pytest.param("x", "x = made_late()", "x.act", "lib.Helper.act", id="return value of a variable"),
        pytest.param("x", "x = make()", "x.act", None, id="unknown return value"),
        pytest.param("x", "with Helper() as x: pass", "x.act", "lib.Helper.act", id="with as"),
        pytest.param(
            "x", "if x: x = Helper()\nelse: x = None", "x.act", "lib.Helper.act", id="one of two branches"
        ),
        pytest.param(
            "x",
            "x = Derived.build()",
            "x.over",
            "lib.Derived.over",
            id="class method",
        ),
        pytest.param("x", "", "Derived().kept", "lib.Base.kept", id="inherited method"),
        pytest.param(
            "x",
            "",
            "Derived().prop.mkdir",
            "pathlib.Path.mkdir",
            id="property",
        ),
        pytest.param("x", "f = functools.partial(made)", "f", None, id="partial"),
        pytest.param("x", "f = made", "f", "lib.made", id="alias of a function"),
        pytest.param("x", "def inner(): pass", "inner", "lib.Derived.main.inner", id="nested function"),
        pytest.param("x", "for x in (Helper(), Helper()): pass", "x.act", None, id="loop variable"),
    ],
)
def test_objects_and_attributes(signature: str, code: str, expr: str, expected: str | None) -> None:
    """The expression is in `main`, a method of Derived."""
    body = indent(f"{code}\nmark({expr})\n", "        ")
    first = "" if signature == "self" else "self, "
    derived, helper = CLASSES.split("class Helper:")
    text = f"{derived}    def main({first}{signature}):\n{body}\nclass Helper:{helper}"
    event = marked(linked := project({"lib.py": text}))
    resolver = linked.flows.resolver
    assert resolver.type_name(resolver.symbol(event.call.arguments[0], event.state.scope)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            f"""
            import os
            class Base:
                def run(self, rank):
                    if rank == 0:
                        self.save()
                def save(self): pass
            class Derived(Base):
                def save(self):
                    {SITE}
            """,
            Runs.ONE,
            id="override called through the base class",
        ),
        pytest.param(
            f"""
            import os
            class Base:
                def save(self):
                    {SITE}
            class Derived(Base):
                def run(self, rank):
                    if rank == 0:
                        self.save()
            """,
            Runs.ONE,
            id="method called in a subclass",
        ),
        pytest.param(
            f"""
            import os
            class Base:
                def save(self):
                    {SITE}
            class Derived(Base):
                def save(self):
                    if self.rank == 0:
                        super().save()
            """,
            Runs.ONE,
            id="super",
        ),
        pytest.param(
            f"""
            import os
            class Base:
                def save(self):
                    {SITE}
            class Derived(Base):
                def save(self):
                    def inner():
                        super(Derived, self).save()
                    if self.rank == 0:
                        inner()
            """,
            Runs.ONE,
            id="super in a nested function",
        ),
        pytest.param(
            f"""
            import os
            class Store:
                def save(self):
                    {SITE}
            class Trainer:
                def __init__(self):
                    self.save = Store().save
                def run(self, rank):
                    if rank == 0:
                        self.save()
            """,
            Runs.ONE,
            id="method of another object in an attribute",
        ),
        pytest.param(
            f"""
            import os, sys
            def leave(rank, n):
                if n: leave(rank, n - 1)
                if rank != 0: sys.exit()
            def main(rank):
                leave(rank, 3)
                {SITE}
            """,
            Runs.ONE,
            id="recursion that exits the other ranks",
        ),
        pytest.param(
            f"""
            import os, sys
            def again(n):
                if n:
                    again(n - 1)
                    {SITE}
                if n > 9: sys.exit()
            """,
            Runs.MANY,
            id="recursion that may exit every rank",
        ),
        pytest.param(
            f"""
            import os
            class Helper:
                def __init__(self):
                    {SITE}
            def main(rank):
                if rank == 0:
                    Helper()
            """,
            Runs.ONE,
            id="constructor",
        ),
        pytest.param(
            f"""
            import os
            class Helper:
                def save(self):
                    {SITE}
            class Main:
                def __init__(self):
                    self.helper = Helper()
                def run(self, rank):
                    if rank == 0:
                        self.helper.save()
            """,
            Runs.ONE,
            id="object in an attribute",
        ),
        pytest.param(
            f"""
            import os
            def even(n, rank):
                if rank == 0:
                    odd(n - 1, rank)
            def odd(n, rank):
                {SITE}
                if n: even(n - 1, rank)
            """,
            Runs.MANY,
            id="mutual recursion under a rank check, unknown entry",
        ),
        pytest.param(
            f"""
            import os
            def even(n, rank):
                if n: odd(n - 1, rank)
            def odd(n, rank):
                {SITE}
                if n: even(n - 1, rank)
            def main(rank):
                if rank == 0:
                    even(3, rank)
            """,
            Runs.ONE,
            id="mutual recursion entered under a rank check",
        ),
        pytest.param(
            f"""
            import os
            def even(n, rank):
                if n: odd(n - 1, rank)
            def odd(n, rank):
                {SITE}
                if n: even(n - 1, rank)
            """,
            Runs.MANY,
            id="mutual recursion without a caller",
        ),
        pytest.param(
            f"""
            import os
            def main(rank, n):
                {SITE}
                if rank == 0:
                    main(rank, n - 1)
            """,
            Runs.MANY,
            id="recursive call under a rank check",
        ),
        pytest.param(
            f"""
            import os
            def main(rank):
                walk(1)
            def walk(n):
                {SITE}
                if n: walk(n - 1)
            """,
            Runs.MANY,
            id="recursion entered by every rank",
        ),
    ],
)
def test_method_calls_are_resolved(text: str, expected: Runs) -> None:
    assert runs({"main.py": text}) is expected


CYCLES = {
    "mutual imports": {
        "a.py": "from b import g\ndef f(): return g()\n",
        "b.py": "from a import f\ndef g(): return f()\n",
    },
    "star import cycle": {"a.py": "from b import *\nx = y\n", "b.py": "from a import *\ny = x\n"},
    "import cycle without a definition": {"a.py": "from b import x\n", "b.py": "from a import x\n"},
    "package and its submodule": {
        "pkg/__init__.py": "from .part import f\n",
        "pkg/part.py": "from pkg import f\nfrom . import f as g\n",
    },
    "class with itself as base": {"a.py": "class A(A): pass\n"},
    "two classes with each other as base": {
        "a.py": "from b import B\nclass A(B): pass\n",
        "b.py": "from a import A\nclass B(A): pass\n",
    },
    "class whose base is an attribute of its instance": {
        "a.py": "class A(x.Base): pass\nx = A()\nx.Base.f()\n"
    },
    "function that returns its own result": {"a.py": "def f(): return f()\nx = f().y.z\n"},
    "two functions that return each other's result": {
        "a.py": "def f(): return g()\ndef g(): return f()\nx = f() == 0\n"
    },
    "attribute defined by itself": {
        "a.py": "class A:\n    def f(self):\n        self.x = self.x.x\n        self.x.f()\n"
    },
    "variable defined by itself": {"a.py": "x = x\ny = y.y\nz = z()\n"},
    "two variables defined by each other": {
        "a.py": "from b import y\nx = y\n",
        "b.py": "from a import x\ny = x\n",
    },
    "property defined by itself": {"a.py": "class A:\n    @property\n    def p(self): return self.p == 0\n"},
    "default that calls the function": {"a.py": "def f(x=f()): return x\n"},
    "function passed to itself": {"a.py": "def f(x):\n    if x == 0: f(x)\n    if x: open(x, 'w')\nf(f)\n"},
    "decorator applied to itself": {"a.py": "@d\ndef d(f):\n    return d(f)\n"},
}


def run_all_queries(linked: Project) -> int:
    """Run all queries of a check."""
    sites = [*linked.accesses("mkdir", "write"), *linked.instantiated("mkdir", "write")]
    for module in linked.flows.table.modules:
        for function in module.functions:
            linked.flows.flow(function)
            linked.flows.result_partition(function)
    assert linked.statistics()["functions"] > 0
    return len(sites)


@pytest.mark.parametrize("files", CYCLES.values(), ids=CYCLES)
def test_cycles_terminate(files: dict[str, str]) -> None:
    users = "\n".join(
        f"from {path[:-3].replace('/', '.')} import *" for path in files if "__init__" not in path
    )
    body = "if f() == 0 or x == 0 or A().p:\n    open(x, 'w')\n    open(A().f(), 'w')\n    A().x.f()\n"
    run_all_queries(project({**files, "main.py": f"{users}\n{body}"}))


def chain(count: int, call: str) -> str:
    body = "".join(f"def f{i}(x, r):\n    {call.format(n=i + 1)}\n" for i in range(count))
    return f"import os\n{body}def f{count}(x, r):\n    os.makedirs(x)\n"


CHAINS = {
    "calls": chain(500, "f{n}(x, r)"),
    "return values": chain(500, "return f{n}(x, r)"),
    "rank checks": chain(500, "if f{n}(x, r) == 0: return f{n}(x, r) == 0"),
    "paths": chain(500, "return os.path.join(f{n}(x, r), 'a')"),
    "callers": "import os\n"
    + "".join(
        f"def g{i}(x, r):\n    {'os.makedirs(x)' if i == 0 else f'g{i - 1}(x, r)'}\n" for i in range(500)
    ),
    "aliases": "import os\nx0 = 1\n"
    + "".join(f"x{i + 1} = x{i}\n" for i in range(500))
    + "os.makedirs(x500)\n",
    "joins": "import os\nx0 = 'a'\n"
    + "".join(f"x{i + 1} = os.path.join(x{i}, x{i})\n" for i in range(60))
    + "os.makedirs(x60)\n",
    "rank checks in variables": "import os\nx0 = 1\n"
    + "".join(f"x{i + 1} = x{i} and x{i}\n" for i in range(60))
    + "if x60: os.makedirs(x60)\n",
    "bool calls": "import os\nx0 = 1\n"
    + "".join(f"x{i + 1} = bool(x{i})\n" for i in range(500))
    + "if x500: os.makedirs(x500)\n",
    "branches": "import os\nx = 1\n"
    + "".join(f"if x == {i}: x = x + {i}\n" for i in range(100))
    + "os.makedirs(x)\n",
    "classes": "".join(f"class C{i}({f'C{i - 1}' if i else ''}): pass\n" for i in range(500))
    + "C499().m()\n",
    "attributes": "import os\nos.makedirs(a" + ".b" * 150 + ")\n",
    "nested functions": "".join(f"{'  ' * i}def f{i}(x):\n" for i in range(40))
    + "  " * 40
    + "open(x, 'w')\n",
}


@pytest.mark.parametrize("text", CHAINS.values(), ids=CHAINS)
def test_long_chains_terminate(text: str) -> None:
    limit = sys.getrecursionlimit()
    assert run_all_queries(project({"main.py": text})) >= 0
    assert sys.getrecursionlimit() == limit


def test_long_import_chain_terminates() -> None:
    files = {f"m{i}.py": f"from m{i + 1} import f\n" for i in range(300)}
    run_all_queries(project({**files, "m300.py": LIB, "main.py": "from m0 import f\nf()\n"}))


def test_long_reexport_chain_of_a_class_terminates() -> None:
    text = "from m0 import C\nclass D(C): pass\nD().m()\n"
    for count, found in ((5, "C"), (300, None)):
        files = {f"m{i}.py": f"from m{i + 1} import C\n" for i in range(count)}
        linked = project({**files, f"m{count}.py": LIB, "main.py": text})
        run_all_queries(linked)
        (derived,) = next(m for m in linked.flows.table.modules if m.name == "main").classes
        assert [base.facts.name for base in derived.bases] == ([found] if found else [])


def test_subclasses_with_one_name_in_two_files() -> None:
    base = f"import os\nclass Base:\n    def __init__(self):\n        {SITE}\n"
    heir = "from base import Base\nclass Heir(Base): pass\ndef main(rank):\n    if rank == 0: Heir()\n"
    assert runs({"base.py": base, "one.py": heir, "two.py": heir}) is Runs.ONE
    assert runs({"base.py": base, "one.py": heir, "two.py": heir.replace("== 0", "> 0")}) is Runs.MANY


def test_evicted_results_are_recomputed(monkeypatch: pytest.MonkeyPatch) -> None:
    few = query(shared=True, keep=1)(Resolver.denoted.compute)
    monkeypatch.setattr(Resolver, "denoted", few)
    more = "import os\ndef f(a):\n    os.makedirs(a.one)\n    os.makedirs(a.two)\n    os.makedirs(a.one)\n"
    cycle = CYCLES["function passed to itself"]["a.py"]
    linked = project({"a.py": cycle, "b.py": CLASSES, "c.py": more})
    assert run_all_queries(linked) == 8


def test_rank_check_holds_through_a_long_call_chain() -> None:
    calls = "".join(f"def f{i}(x):\n    f{i + 1}(x)\n" for i in range(200))
    text = (
        f"import os\ndef main(rank, x):\n    if rank == 0: f0(x)\n{calls}def f200(x):\n    os.makedirs(x)\n"
    )
    assert runs({"main.py": text}) is Runs.ONE


@pytest.mark.parametrize(
    "text",
    [
        "import pkg\nclass D(pkg.models.Base): pass\n",
        "from pkg import models\nclass D(models.Base): pass\n",
        "from pkg import again\nclass D(again.Base): pass\n",
        "from pkg import again\nclass D(again.models.Base): pass\n",
    ],
    ids=[
        "from the package",
        "from the module",
        "from a re-exporting module",
        "from a module attribute of a module",
    ],
)
def test_base_class_by_dotted_name(text: str) -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/models.py": "class Base: pass\n",
        "pkg/again.py": "from pkg import models\nfrom pkg.models import Base\n",
    }
    linked = project({**files, "main.py": text})
    run_all_queries(linked)
    (derived,) = next(m for m in linked.flows.table.modules if m.name == "main").classes
    assert [base.facts.name for base in derived.bases] == ["Base"]


SET: dict[str, tuple[str, str]] = {
    "class body": ("shared = Path('a')", ""),
    "branch of the class body": (
        "if flag:\n        shared = Path('a')\n    else: pass",
        "",
    ),
    "multiple targets": ("shared = other = Path('a')", ""),
    "outside of the class": ("pass", "Base.shared = Path('a')"),
    "second class with the same name": (
        "pass",
        "class Base:\n    shared = Path('a')\nclass Derived(Base): pass",
    ),
}


@pytest.mark.parametrize(("body", "after"), SET.values(), ids=SET)
def test_attributes_set_on_a_class(body: str, after: str) -> None:
    lib = f"from pathlib import Path\nflag = 1\nclass Base:\n    {body}\nclass Derived(Base): pass\n{after}\n"
    files = {"lib.py": lib}
    assert meaning(files, "from lib import Derived", "Derived().shared.mkdir") == "pathlib.Path.mkdir"
    assert meaning(files, "from lib import Derived", "Derived().another.mkdir") is None


CONSTANTS: dict[str, tuple[str, bool]] = {
    "class body": ("class Base:\n    mode = 'x'\n", True),
    "subclass body": ("class Base: pass\nclass Heir(Base):\n    mode = 'x'\n", True),
    "class body with a docstring and a method": (
        "class Base:\n    'It.'\n    mode = 'x'\n    def f(self):\n        return self.mode\n",
        True,
    ),
    "method": ("class Base:\n    def f(self):\n        self.mode = 'x'\n", True),
    "method, before a return": (
        "class Base:\n    def f(self, a):\n        self.mode = 'x'\n        if a:\n            return 1\n",
        True,
    ),
    "method, after a return": (
        "class Base:\n    def f(self, a):\n        if a:\n            return 1\n        self.mode = 'x'\n",
        False,
    ),
    "branch of the class body": ("class Base:\n    if flag:\n        mode = 'x'\n", False),
    "branch of a method": (
        "class Base:\n    def f(self, a):\n        if a:\n            self.mode = 'x'\n",
        False,
    ),
    "twice in the class body": ("class Base:\n    mode = 'x'\n    mode = 'y'\n", False),
    "twice in a method": (
        "class Base:\n    def f(self):\n        self.mode = 'x'\n        self.mode = flag\n",
        False,
    ),
    "unpacked string": ("class Base:\n    mode, other = 'xy'\n", False),
    "one target of an unpacked string": ("class Base:\n    mode, other = 'xy'\n", False),
    "multiple targets": ("class Base:\n    mode = other = 'x'\n", False),
    "annotated field": ("class Base:\n    mode: str = 'x'\n", False),
    "not a constant": ("class Base:\n    mode = flag\n", False),
    "outside of the class": ("class Base:\n    mode = 'x'\nBase.mode = 'y'\n", False),
    "second class with the same name": ("class Base:\n    mode = 'x'\nclass Base:\n    mode = 'y'\n", False),
    "class in a branch": ("if flag:\n    class Base:\n        mode = 'x'\n", False),
    "class in a function": (
        "def f():\n    class Base:\n        mode = 'x'\n    return Base\n",
        False,
    ),
    "assignment expression": ("class Base:\n    mode = 'x'\n    other = (mode := 'y')\n", False),
}


@pytest.mark.parametrize(("text", "is_known"), CONSTANTS.values(), ids=CONSTANTS)
def test_constant_class_attribute_needs_no_flow_analysis(
    text: str, monkeypatch: pytest.MonkeyPatch, *, is_known: bool
) -> None:
    """The shortcut finds the same as the flow analysis."""

    def values() -> tuple[list[m.Expr | None], int]:
        linked = project({"lib.py": f"flag = 1\n{text}"})
        resolver, followed = linked.flows.resolver, list[LinkedFunction]()
        final = linked.flows.final_environment

        def following(function: LinkedFunction) -> Environment | None:
            followed.append(function)
            return final(function)

        monkeypatch.setattr(linked.flows, "final_environment", following)
        found = resolver.attribute_values(linked.flows.table.modules[0].classes[0], "mode")
        return [each.expr if isinstance(each, Expression) else None for each in found], len(followed)

    found, followed = values()
    assert (followed == 0) is is_known
    monkeypatch.setattr(LinkedClass, "constant", lambda *_: None)
    monkeypatch.setattr(LinkedClass, "constant_of_objects", lambda *_: None)
    by_following, followed = values()
    assert by_following == found
    assert followed > 0 or not found


def test_module_flow_is_analyzed_only_for_attributes_that_it_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Analyzing it for every name finds nothing more."""
    head = "from pathlib import Path\nflag = 1\nclass Base:\n    "
    files = {f"set_{n}.py": f"{head}{body}\n{after}\n" for n, (body, after) in enumerate(SET.values())}
    files["heirs.py"] = (
        "import set_0, set_3\nclass One(set_0.Base):\n    more = 1\nclass Two(set_3.Base): pass\n"
        "def make():\n    class Inner(One):\n        here = 2\n    Inner.set = 3\n    return Inner\n"
    )

    def known() -> list[tuple[str, str, int]]:
        linked = project(files)
        modules = linked.flows.table.modules
        names = sorted(
            {name for module in modules for f in module.functions for name in f.facts.referenced_names}
        )
        classes = [class_ for module in modules for class_ in module.classes]
        values = linked.flows.resolver.attribute_values
        return [(repr(c), name, len(values(c, name))) for c in classes for name in [*names, "set", "here"]]

    found = known()
    assert sum(count for *_, count in found) > 8
    monkeypatch.setattr(LinkedClass, "may_set", lambda *_: True)
    assert known() == found


def test_name_reexported_by_six_modules() -> None:
    handing_on = {f"m{number}.py": f"from m{number + 1} import store\n" for number in range(6)}
    using = {"m6.py": "def store():\n    pass\n", "main.py": "from m0 import store\n"}
    flows = project({**handing_on, **using}).flows
    modules = {module.name: module for module in flows.table.modules}
    (store,) = modules["m6"].functions[1:]
    scope = flows.final_environment(modules["main"].functions[0])
    assert scope is not None
    assert flows.resolver.symbol(m.Name("store"), scope) is store
