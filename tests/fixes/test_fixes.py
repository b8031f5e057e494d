"""The fixes package: the text that recipes produce, and the fixes that are refused."""

from __future__ import annotations

import ast
import collections
import io
import os
import stat
import tokenize
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import ROOT
from support.sampling import bound

from fsrace_lint import catalog, rules
from fsrace_lint.analysis.queries.project import Project
from fsrace_lint.files import atomic_write
from fsrace_lint.files.source import Columns, Source, decode
from fsrace_lint.files.spans import Place, Span
from fsrace_lint.findings.finding import Applicability, Finding, Fix, Idiom, Severity
from fsrace_lint.fixes import Patch, Surroundings, Verify, repair
from fsrace_lint.fixes.apply import write
from fsrace_lint.fixes.recipe import Change, Target, TreeEdit
from fsrace_lint.fixes.recipes import RECIPES, load
from fsrace_lint.program.modules import link_module
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.extract import extract
from fsrace_lint.syntax.model import FileFacts

if TYPE_CHECKING:
    from collections.abc import Iterator

ACTS = frozenset(("makedirs", "mk", "mkdir", "copytree", "remove", "unlink", "rmdir", "removedirs", "rmtree"))
CHECKS = frozenset(("exists", "isdir", "isfile", "is_dir", "lexists"))


def read(text: str | bytes) -> Source:
    data = text if isinstance(text, bytes) else text.encode()
    source = decode(data, Path("/nowhere/case.py"), Path("/nowhere"))
    assert isinstance(source, Source)
    return source


def last_name(node: ast.AST) -> str:
    if isinstance(node, ast.Call):
        node = node.func
    return str(getattr(node, "attr", None) or getattr(node, "id", ""))


def apis(source: Source) -> dict[Span, str]:
    """Return the library model name of each call."""
    facts = extract(source)
    if not isinstance(facts, FileFacts):
        return {}
    module = link_module(source.path, source.path, facts)
    flows, found = Project([module], catalog.load()).flows, {}
    for call_site in (call_site for function in module.functions for call_site in flows.call_sites(function)):
        function = call_site.call.function
        resolved = flows.resolver.qualify(function, call_site.state.scope)
        guessed = f"*.{function.name}" if isinstance(function, m.Attribute) else None
        for name in (guessed, resolved):
            if name is not None and flows.catalog.exact("effect", name) is not None:
                found[call_site.call.span] = name
    return found


def fixes(source: Source, recipe: str) -> Iterator[Fix]:
    """Yield a fix for each operation, with the check in the innermost `if` around it."""
    columns, called = Columns(source.text), apis(source)

    def visit(node: ast.AST, check: Span | None) -> Iterator[Fix]:
        if isinstance(node, ast.If):
            tests = [child for child in ast.walk(node.test) if isinstance(child, ast.Call)]
            check = next((columns.span(test) for test in tests if last_name(test) in CHECKS), None)
        if isinstance(node, ast.Call) and last_name(node) in ACTS:
            span = columns.span(node)
            yield Fix(recipe, span, Applicability.SAFE, "fix it", check, api=called.get(span, ""))
        for child in ast.iter_child_nodes(node):
            yield from visit(child, check)

    yield from visit(ast.parse(source.text), None)


def finding(fix: Fix | None, span: Span | None = None) -> Finding:
    place = Place("case.py", fix.span if fix else span or Span(1, 1, 1, 2))
    return Finding("FSR101", "a-rule", "a message", place, "<module>", Severity.ERROR, "evident", fix=fix)


ALONE = Surroundings(lambda span: Idiom(), lambda span: (), catalog.load, "fsrace_lint.safe")


def content(source: Source, gone: tuple[Finding, ...]) -> str | None:
    return None


def run(text: str | bytes, recipe: str, verify: Verify = content) -> Patch:
    source = read(text)
    return repair(source, [finding(fix) for fix in fixes(source, recipe)], verify, ALONE)


def comments(text: str) -> collections.Counter[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return collections.Counter(token.string for token in tokens if token.type == tokenize.COMMENT)


def assert_sound(before: bytes, patch: Patch, recipe: str) -> None:
    old, new = read(before), read(patch.after)
    ast.parse(new.text)
    assert comments(new.text) == comments(old.text)
    assert (new.encoding, new.bom) == (old.encoding, old.bom)
    again = run(patch.after, recipe)
    assert again.after == patch.after
    assert not again.applied


class Case(NamedTuple):
    recipe: str
    before: str
    after: str


MAKE, DROP = "exist-ok", "missing-ok"
OS = "import os\n"
PATH = "import os\nfrom pathlib import Path\n"
LIB = "import contextlib\nimport os\n"


def handled(call: str, test: str, indent: str = "", end: str = "") -> str:
    lines = ("try:", f"    {call}{end}", "except FileExistsError:", f"    if not {test}:", "        raise")
    return "".join(f"{indent}{line}\n" for line in lines)


CASES = {
    "makedirs": Case(MAKE, OS + "os.makedirs(p)\n", OS + "os.makedirs(p, exist_ok=True)\n"),
    "module alias": Case(
        MAKE, "import os as o\no.makedirs(p, 0o7)\n", "import os as o\no.makedirs(p, 0o7, exist_ok=True)\n"
    ),
    "function alias": Case(
        MAKE,
        "from os import makedirs as mk\nmk(p)\n",
        "from os import makedirs as mk\nmk(p, exist_ok=True)\n",
    ),
    "false keyword": Case(
        MAKE, OS + "os.makedirs(p, exist_ok=False)\n", OS + "os.makedirs(p, exist_ok=True)\n"
    ),
    "false position": Case(MAKE, OS + "os.makedirs(p, 0o7, False)\n", OS + "os.makedirs(p, 0o7, True)\n"),
    "path method": Case(MAKE, "out.mkdir()\n", "out.mkdir(exist_ok=True)\n"),
    "path method of a call": Case(
        MAKE, 'Path("é").mkdir(parents=True)\n', 'Path("é").mkdir(parents=True, exist_ok=True)\n'
    ),
    "path method third": Case(MAKE, "out.mkdir(7, True, False)\n", "out.mkdir(7, True, True)\n"),
    "unbound path method": Case(
        MAKE, PATH + "Path.mkdir(p, 7, True, False)\n", PATH + "Path.mkdir(p, 7, True, True)\n"
    ),
    "copytree keeps its if": Case(
        MAKE,
        "import os\nimport shutil\nif not os.path.exists(b):\n    shutil.copytree(a, b)\n",
        "import os\nimport shutil\nif not os.path.exists(b):\n"
        "    shutil.copytree(a, b, dirs_exist_ok=True)\n",
    ),
    "inline trailing comma": Case(MAKE, OS + "os.makedirs(p,)\n", OS + "os.makedirs(p, exist_ok=True,)\n"),
    "own lines": Case(
        MAKE,
        OS + "os.makedirs(\n    p,  # a\n    0o7,  # b\n    # c\n)  # d\n",
        OS + "os.makedirs(\n    p,  # a\n    0o7,  # b\n    # c\n    exist_ok=True,\n)  # d\n",
    ),
    "own lines without comma": Case(
        MAKE, OS + "os.makedirs(\n    p  # a\n)\n", OS + "os.makedirs(\n    p, exist_ok=True  # a\n)\n"
    ),
    "hanging": Case(
        MAKE,
        OS + "os.makedirs(p,  # a\n            0o7)\n",
        OS + "os.makedirs(p,  # a\n            0o7, exist_ok=True)\n",
    ),
    "comma on its own line": Case(
        MAKE,
        OS + "os.makedirs(\n    p  # a\n    , # b\n)\n",
        OS + "os.makedirs(\n    p  # a\n    , # b\n    exist_ok=True,\n)\n",
    ),
    "empty with comment": Case(MAKE, "a.mkdir(  # b\n)\n", "a.mkdir(  # b\n    exist_ok=True\n)\n"),
    "mkdir": Case(MAKE, PATH + "os.mkdir(str(p))\n", PATH + "Path(str(p)).mkdir(exist_ok=True)\n"),
    "mkdir mode": Case(
        MAKE,
        PATH + "os.mkdir(path=f'{p}/q', mode=7)\n",
        PATH + "Path(f'{p}/q').mkdir(mode=7, exist_ok=True)\n",
    ),
    "mkdir pathlib": Case(
        MAKE,
        "import os\nimport pathlib as pl\nos.mkdir('p', 7)\n",
        "import os\nimport pathlib as pl\npl.Path('p').mkdir(7, exist_ok=True)\n",
    ),
    "mkdir bare": Case(
        MAKE,
        "from os import mkdir\nmkdir('p')\n",
        "from os import mkdir\nfrom pathlib import Path\nPath('p').mkdir(exist_ok=True)\n",
    ),
    "mkdir import": Case(
        MAKE,
        '"""Doc."""\nfrom __future__ import annotations\n\n# std\nimport os\nfrom typing import Any  # t\n\n'
        "import torch\nos.mkdir('p')\n",
        '"""Doc."""\nfrom __future__ import annotations\n\n# std\nimport os\n'
        "from pathlib import Path\nfrom typing import Any  # t\n\nimport torch\n"
        "Path('p').mkdir(exist_ok=True)\n",
    ),
    "mkdir lines": Case(
        MAKE,
        PATH
        + "os.mkdir(\n    'p',  # a\n    7,  # b\n)\nos.mkdir(\n    'q',  # c\n)\nos.mkdir(\n    'r', 7\n)\n",
        PATH + "Path(\n    'p',  # a\n).mkdir(\n    7,  # b\n    exist_ok=True,\n)\n"
        "Path(\n    'q',  # c\n).mkdir(exist_ok=True)\nPath('r').mkdir(\n    7, exist_ok=True\n)\n",
    ),
    "unwrap": Case(
        MAKE,
        OS + "# a\nif not os.path.isdir(p):  # b\n\n    # c\n    os.makedirs(p)  # d\n    # e\n# f\nx = 1\n",
        OS + "# a\n# b\n# c\nos.makedirs(p, exist_ok=True)  # d\n# e\n# f\nx = 1\n",
    ),
    "unwrap last": Case(
        MAKE,
        OS + "def f():\n    if not (os.path.isdir(p)):\n        os.makedirs(p)\n        # e\n    # f\n# g\n",
        OS + "def f():\n    os.makedirs(p, exist_ok=True)\n    # e\n    # f\n# g\n",
    ),
    "unwrap one line": Case(
        MAKE,
        OS + "if os.path.isdir(p) is False: os.makedirs(p)  # a\n",
        OS + "os.makedirs(p, exist_ok=True)  # a\n",
    ),
    "unwrap neighbors": Case(
        MAKE,
        OS + "if not os.path.isdir(a):\n    os.makedirs(a)\n    # x\nif os.path.isdir(b) == False:\n"
        "    os.makedirs(b)\n    # y\n",
        OS + "os.makedirs(a, exist_ok=True)\n# x\nos.makedirs(b, exist_ok=True)\n# y\n",
    ),
    "unwrap pragma": Case(
        MAKE,
        OS + "if not os.path.isdir(p):  # pragma: no cover\n    os.makedirs(p)\n",
        OS + "os.makedirs(p, exist_ok=True)  # pragma: no cover\n",
    ),
    "unwrap test with comments": Case(
        MAKE,
        OS + "if not os.path.isdir(\n    p  # a\n):\n    os.makedirs(p)\n",
        OS + "# a\nos.makedirs(p, exist_ok=True)\n",
    ),
    "unwrap methods": Case(
        MAKE,
        PATH + "if not p.is_dir():\n    p.mkdir()\nif not os.path.isdir(str(q)):\n    Path(q).mkdir(7)\n",
        PATH + "p.mkdir(exist_ok=True)\nPath(q).mkdir(7, exist_ok=True)\n",
    ),
    "unwrap mkdir": Case(
        MAKE,
        PATH + "if not os.path.isdir(p):\n    os.mkdir(str(p))\n",
        PATH + "Path(str(p)).mkdir(exist_ok=True)\n",
    ),
    "try": Case(MAKE, OS + "os.mkdir(p, 7)\n", OS + handled("os.mkdir(p, 7)", "os.path.isdir(p)")),
    "try with an alias": Case(
        MAKE,
        "import os as o\no.mkdir(mode=7, path=p)\n",
        "import os as o\n" + handled("o.mkdir(mode=7, path=p)", "o.path.isdir(p)"),
    ),
    "try with a bare name": Case(
        MAKE,
        "from os import mkdir\nmkdir(p)\n",
        "import os\nfrom os import mkdir\n" + handled("mkdir(p)", "os.path.isdir(p)"),
    ),
    "try with a bare name and os.path": Case(
        MAKE,
        "import os.path as osp\nfrom os import mkdir\nmkdir(p)\n",
        "import os.path as osp\nfrom os import mkdir\n" + handled("mkdir(p)", "osp.isdir(p)"),
    ),
    "try with the module of a function": Case(
        MAKE,
        "def f(p):\n    import os\n    os.mkdir(p)\n",
        "def f(p):\n    import os\n" + handled("os.mkdir(p)", "os.path.isdir(p)", "    "),
    ),
    "try with bytes": Case(
        MAKE, OS + "os.mkdir(b'p')\n", OS + handled("os.mkdir(b'p')", "os.path.isdir(b'p')")
    ),
    "try with parts": Case(
        MAKE,
        OS + "os.mkdir((self . a ['k'] [-1] [0]))\n",
        OS + handled("os.mkdir((self . a ['k'] [-1] [0]))", "os.path.isdir(self.a['k'][-1][0])"),
    ),
    "try with comments": Case(
        MAKE,
        OS + "# a\nos.mkdir(  # b\n    (p  # c\n    ),\n    0o7,  # d\n)  # e\n# f\n",
        OS + "# a\ntry:\n    os.mkdir(  # b\n        (p  # c\n        ),\n        0o7,  # d\n    )  # e\n"
        "except FileExistsError:\n    if not os.path.isdir(p):\n        raise\n# f\n",
    ),
    "try with tabs": Case(
        MAKE,
        OS + "def f(p):\n\tif a and not os.path.isdir(p):\n\t\tos.mkdir(p)\n",
        OS + "def f(p):\n\tif a and not os.path.isdir(p):\n"
        "\t\ttry:\n\t\t\tos.mkdir(p)\n\t\texcept FileExistsError:\n"
        "\t\t\tif not os.path.isdir(p):\n\t\t\t\traise\n",
    ),
    "try in one line": Case(
        MAKE,
        OS + "if a: os.mkdir(p)  # b\n",
        OS + "if a:\n" + handled("os.mkdir(p)", "os.path.isdir(p)", "    ", "  # b"),
    ),
    "try in a try": Case(
        MAKE,
        OS + "try:\n    os.mkdir(p)\nexcept OSError:\n    raise ValueError\n",
        OS + f"try:\n{handled('os.mkdir(p)', 'os.path.isdir(p)', '    ')}"
        "except OSError:\n    raise ValueError\n",
    ),
    "try in a handler": Case(
        MAKE,
        OS + "try:\n    f()\nexcept FileExistsError:\n    os.mkdir(p)\n",
        OS + "try:\n    f()\nexcept FileExistsError:\n" + handled("os.mkdir(p)", "os.path.isdir(p)", "    "),
    ),
    "try in a function in a try": Case(
        MAKE,
        OS + "try:\n    def f():\n        os.mkdir(p)\nexcept FileExistsError:\n    pass\n",
        OS + f"try:\n    def f():\n{handled('os.mkdir(p)', 'os.path.isdir(p)', '        ')}"
        "except FileExistsError:\n    pass\n",
    ),
    "try keeps the check": Case(
        MAKE,
        OS + "# a\nif not os.path.isdir(p):  # b\n\n    # c\n    os.mkdir(p)  # d\n    # e\n# f\nx = 1\n",
        OS + "# a\nif not os.path.isdir(p):  # b\n\n    # c\n"
        f"{handled('os.mkdir(p)', 'os.path.isdir(p)', '    ', '  # d')}    # e\n# f\nx = 1\n",
    ),
    "try keeps the check in one line": Case(
        MAKE,
        OS + "if os.path.exists(p) is False: os.mkdir(p)  # a\n",
        OS + "if os.path.exists(p) is False:\n" + handled("os.mkdir(p)", "os.path.isdir(p)", "    ", "  # a"),
    ),
    "a test that is also true of a file": Case(
        MAKE,
        OS + "if not os.path.exists(p):\n    os.makedirs(p)\n",
        OS + "if not os.path.exists(p):\n    os.makedirs(p, exist_ok=True)\n",
    ),
    "a test that may do more": Case(
        MAKE,
        OS + "if not os.path.isdir(made()):\n    os.makedirs(made())\n",
        OS + "if not os.path.isdir(made()):\n    os.makedirs(made(), exist_ok=True)\n",
    ),
    "if with more": Case(
        MAKE,
        OS + "if not os.path.exists(p):\n    os.makedirs(p)\n    go()\n",
        OS + "if not os.path.exists(p):\n    os.makedirs(p, exist_ok=True)\n    go()\n",
    ),
    "if with else": Case(
        MAKE,
        OS + "if not os.path.exists(p):\n    os.makedirs(p)\nelse:\n    go()\n",
        OS + "if not os.path.exists(p):\n    os.makedirs(p, exist_ok=True)\nelse:\n    go()\n",
    ),
    "elif": Case(
        MAKE,
        OS + "if a:\n    pass\nelif not os.path.exists(p):\n    os.makedirs(p)\n",
        OS + "if a:\n    pass\nelif not os.path.exists(p):\n    os.makedirs(p, exist_ok=True)\n",
    ),
    "longer test": Case(
        MAKE,
        OS + "if a and not os.path.exists(p):\n    os.makedirs(p)\n",
        OS + "if a and not os.path.exists(p):\n    os.makedirs(p, exist_ok=True)\n",
    ),
    "test the other way": Case(
        MAKE,
        OS + "if os.path.exists(p):\n    os.makedirs(p)\n",
        OS + "if os.path.exists(p):\n    os.makedirs(p, exist_ok=True)\n",
    ),
    "another path": Case(
        MAKE,
        OS + "if not os.path.exists(p):\n    os.makedirs(q)\n",
        OS + "if not os.path.exists(p):\n    os.makedirs(q, exist_ok=True)\n",
    ),
    "test that binds": Case(
        MAKE,
        OS + "if not os.path.exists(p := f()):\n    os.makedirs(p)\n",
        OS + "if not os.path.exists(p := f()):\n    os.makedirs(p, exist_ok=True)\n",
    ),
    "value": Case(
        MAKE,
        OS + "if not os.path.exists(p):\n    x = os.makedirs(p)\n",
        OS + "if not os.path.exists(p):\n    x = os.makedirs(p, exist_ok=True)\n",
    ),
    "several on a line": Case(
        MAKE, OS + 'é = "ü"; os.makedirs(p); x()\n', OS + 'é = "ü"; os.makedirs(p, exist_ok=True); x()\n'
    ),
    "unlink": Case(
        DROP,
        OS + "if os.path.exists(p):\n    p.unlink()\n",
        OS + "if os.path.exists(p):\n    p.unlink(missing_ok=True)\n",
    ),
    "unlink after lexists": Case(
        DROP,
        OS + "if os.path.lexists(p):  # a\n    p.unlink(False)\n",
        OS + "if os.path.lexists(p):  # a\n    p.unlink(True)\n",
    ),
    "remove": Case(
        DROP,
        OS + "# a\nif os.path.exists(p):  # b\n    # c\n    os.remove(p)  # d\n    # e\n",
        "import contextlib\nimport os\n# a\nif os.path.exists(p):  # b\n    # c\n"
        "    with contextlib.suppress(FileNotFoundError):\n"
        "        os.remove(p)  # d\n    # e\n",
    ),
    "remove one line": Case(
        DROP,
        LIB + "if os.path.exists(p): os.remove(p)  # a\n",
        LIB + "if os.path.exists(p):\n    with contextlib.suppress(FileNotFoundError):\n"
        "        os.remove(p)  # a\n",
    ),
    "remove with tabs": Case(
        DROP,
        LIB + "for p in q:\n\tos.unlink(\n\t\tp,  # a\n\t)\n",
        LIB + "for p in q:\n\twith contextlib.suppress(FileNotFoundError):\n"
        "\t\tos.unlink(\n\t\t\tp,  # a\n\t\t)\n",
    ),
    "remove in mixed indents": Case(
        DROP,
        LIB + "def f():\n    x\ndef g():\n  os.rmdir(p)\n",
        LIB + "def f():\n    x\ndef g():\n  with contextlib.suppress(FileNotFoundError):\n    os.rmdir(p)\n",
    ),
    "suppress": Case(
        DROP,
        "import os\nfrom contextlib import suppress\nos.rmdir(p)\n",
        "import os\nfrom contextlib import suppress\nwith suppress(FileNotFoundError):\n    os.rmdir(p)\n",
    ),
    "path rmdir without imports": Case(
        DROP,
        "# about f\ndef f():\n    p.rmdir()\n",
        "import contextlib\n\n\n# about f\ndef f():\n    with contextlib.suppress(FileNotFoundError):\n"
        "        p.rmdir()\n",
    ),
    "rmdir beside foreign imports": Case(
        DROP,
        '"""Doc."""\n\nimport torch\np.rmdir()\n',
        '"""Doc."""\n\nimport contextlib\n\nimport torch\nwith contextlib.suppress(FileNotFoundError):\n'
        "    p.rmdir()\n",
    ),
    "rmtree": Case(
        DROP,
        "from shutil import rmtree\nrmtree(p)\n",
        "from shutil import rmtree\nrmtree(p, ignore_errors=True)\n",
    ),
}


def variants(text: str) -> dict[str, bytes]:
    crlf = text.replace("\n", "\r\n")
    return {
        "plain": text.encode(),
        "crlf": crlf.encode(),
        "bom": b"\xef\xbb\xbf" + text.encode(),
        "latin-1": ("# coding: latin-1\n# é\n\n" + text).encode("latin-1"),
        "no last newline": text.removesuffix("\n").encode(),
        "first line differs": ("# top: x\r\n\n" + text).encode(),
        "most lines differ": ("# top: x\n\r\n" + crlf).encode(),
    }


@pytest.mark.parametrize("variant", variants(""))
@pytest.mark.parametrize("name", CASES)
def test_fix_produces_exact_text(name: str, variant: str) -> None:
    case = CASES[name]
    before = variants(case.before)[variant]
    patch = run(before, case.recipe)
    assert patch.after.decode("latin-1") == variants(case.after)[variant].decode("latin-1")
    assert patch.applied
    assert not patch.refused
    assert_sound(before, patch, case.recipe)


REFUSED = [
    (MAKE, OS + "os.makedirs(p, exist_ok=True)\n", "`exist_ok` is already `True`"),
    (MAKE, OS + "os.makedirs(p, exist_ok=x)\n", "`exist_ok` is set to an expression"),
    (MAKE, OS + "os.makedirs(p, 7, x)\n", "`exist_ok` is set to an expression"),
    (MAKE, OS + "os.makedirs(p, **kw)\n", "unpacked arguments"),
    (MAKE, OS + "os.makedirs(*a)\n", "unpacked arguments"),
    (MAKE, OS + "def f(os):\n    os.mkdir(p)\n", "could be a different function"),
    (MAKE, "makedirs(p)\n", "could be a different function"),
    (MAKE, "from mine import makedirs\nmakedirs(p)\n", "could be a different function"),
    (MAKE, "import sh\nsh.mkdir(p)\n", "could be a different function"),
    (MAKE, "conn.mkdir('out')\n", "not a `pathlib` method"),
    (MAKE, "self.fs.mkdir(p)\n", "different kind of filesystem"),
    (MAKE, "import tensorflow as tf\ntf.io.gfile.mkdir(p)\n", "not known to accept"),
    (MAKE, "from etils.epath import Path\n(Path(p) / 'x').mkdir()\n", "different kind of filesystem"),
    (MAKE, "a_fs.mkdir(p)\nsftp_conn.mkdir(p)\nPathManager.mkdir(p)\n", "different kind of filesystem"),
    (MAKE, OS + "os.remove(p)\n", "not known to accept"),
    (MAKE, OS + "os.mkdir(p, dir_fd=3)\n", "relative to `dir_fd`"),
    (MAKE, OS + "os.mkdir(os.fsencode(p))\n", "not simple enough to evaluate twice"),
    (MAKE, OS + "os.mkdir(f().p)\n", "not simple enough to evaluate twice"),
    (MAKE, OS + "os.mkdir(f()[0])\n", "not simple enough to evaluate twice"),
    (MAKE, OS + "os.mkdir(p[i])\n", "not simple enough to evaluate twice"),
    (MAKE, OS + "os.mkdir(p[0, 1])\n", "not simple enough to evaluate twice"),
    (MAKE, OS + "os.mkdir(p[1:])\n", "not simple enough to evaluate twice"),
    (MAKE, OS + "x = os.mkdir(p)\n", "not a statement on its own line"),
    (MAKE, OS + "x(); os.mkdir(p)\n", "not a statement on its own line"),
    (MAKE, OS + "FileExistsError = OSError\nos.mkdir(p)\n", "`FileExistsError` has another meaning"),
    (MAKE, OS + "os = fake\nos.mkdir(p)\n", "could be a different function"),
    (MAKE, "from os import mkdir\nos = fake\nmkdir(p)\n", "`os` has another meaning"),
    (
        MAKE,
        OS + "try:\n    os.mkdir(p)\nexcept FileExistsError:\n    x()\n",
        "already handles `FileExistsError`",
    ),
    (
        MAKE,
        OS + "try:\n    os.mkdir(p)\nexcept (A, FileExistsError):\n    x()\n",
        "already handles `FileExistsError`",
    ),
    (
        MAKE,
        OS + "try:\n    os.makedirs(p)\nexcept FileExistsError:\n    x()\n",
        "already handles `FileExistsError`",
    ),
    (MAKE, "try:\n    p.mkdir()\nexcept FileExistsError:\n    lost()\n", "already handles `FileExistsError`"),
    (MAKE, OS + "os.mkdir()\n", "does not pass `path`"),
    (MAKE, OS + "os.mkdir(name=p)\n", "does not pass `path`"),
    (MAKE, OS + "os.mkdir(**kw)\n", "unpacked"),
    (MAKE, OS + "os.mkdir(*p)\n", "unpacked"),
    (MAKE, OS + "os.mkdir(mode=7, path=str(p))\n", "not the first argument"),
    (MAKE, OS + "Path = str\nos.mkdir('p')\n", "has another meaning"),
    (MAKE, OS + "from py.path import Path\nos.mkdir('p')\n", "has another meaning"),
    (MAKE, OS + "def f(Path):\n    pass\nos.mkdir('p')\n", "has another meaning"),
    (MAKE, OS + "from x import *\nos.mkdir('p')\n", "star import"),
    (MAKE, OS + "os.mkdir('p')\nfrom pathlib import Path\n", "only after this line"),
    (MAKE, OS + "def f():\n    os.mkdir('p')\n    from pathlib import Path\n", "inside the same function"),
    (MAKE, OS + "f'{os.makedirs(p)}'\n", "inside an f-string"),
    (MAKE, "import os\n\x0cos.makedirs(p)\n", "without changing unrelated bytes"),
    (MAKE, "import os\ros.makedirs(p)\r", "without changing unrelated bytes"),
    (MAKE, OS + "os.makedirs(p for p in q)\n", "would not parse"),
    (MAKE, PATH + "(os  # a\n .mkdir)('p')\n", "a comment would be lost"),
    (DROP, OS + "x = os.remove(p)\n", "not a statement on its own line"),
    (DROP, OS + "os.remove(p); x()\n", "not a statement on its own line"),
    (DROP, OS + "if x: y(); os.remove(p)\n", "not a statement on its own line"),
    (DROP, OS + "os.removedirs(p)\n", "deletes empty parents"),
    (DROP, OS + "os.mkdir(p)\n", "not known to accept"),
    (DROP, OS + "contextlib = 1\nos.remove(p)\n", "has another meaning"),
    (DROP, OS + "FileNotFoundError = IOError\nos.remove(p)\n", "has another meaning"),
    (DROP, LIB + "with contextlib.suppress(OSError):\n    os.remove(p)\n", "already inside a `suppress()`"),
    (DROP, "import shutil\nshutil.rmtree(p, True)\n", "already specifies"),
    (DROP, "import shutil\nshutil.rmtree(p, onerror=f)\n", "already specifies"),
    (DROP, "import shutil\nshutil.rmtree(p, **kw)\n", "unpacked"),
    (DROP, "a.unlink(missing_ok=True)\n", "`missing_ok` is already `True`"),
    (DROP, "a.rmdir(p)\n", "not a `pathlib` method"),
    ("no-such", OS + "os.remove(p)\n", "unknown recipe `no-such`"),
]


@pytest.mark.parametrize(("recipe", "text", "reason"), REFUSED)
def test_recipe_refuses_with_reason(recipe: str, text: str, reason: str) -> None:
    patch = run(text, recipe)
    assert patch.after == patch.before == text.encode()
    assert not patch.applied
    assert patch.refused
    assert all(reason in refusal.reason for refusal in patch.refused), patch.refused


# The code before `os.mkdir(...)` in the function, and its argument.
TEXT = (
    ("", "'p'"),
    ("", "'p' 'q'"),
    ("", "f'{p}' 'q'"),
    ("", "str(p)"),
    ("", "p + '/q'"),
    ("", "'p/' + p + q"),
    ("", "'%s' % p"),
    ("", "'{}'.format(p)"),
    ("", "os.path.join(p, 'q')"),
    ("", "os.path.join(*p, 'q')"),
    ("", "os.path.join('p', q)"),
    ("", "Path(p)"),
    ("", "p / 'q' / q"),
    ("", "Path(p) / q"),
    ("r = str(p)", "r"),
    ("r = s = str(p)", "r"),
    ("r = p / 'q'", "os.path.join(r, q)"),
    ("r = 'p'; s = r + q", "s"),
    ("o: int = f(); r = str(p)", "r"),
    ("", "path"),
    ("", "like"),
    ("", "like / q"),
)
EMPTY = (
    ("", "text"),
    ("", "quoted"),
    ("", "either"),
    ("", "union"),
    ("", "maybe"),
    ("", "''"),
    ("r: str = f()", "r"),
    ("r = f'{p}'", "r"),
    ("r = text + ''", "r"),
    ("r = text; s = r", "s"),
    ("r = os.path.join()", "r"),
)
UNKNOWN = (
    ("", "p"),
    ("", "self.p"),
    ("", "b'p'"),
    ("", "raw"),
    ("", "any_text"),
    ("", "raw_like"),
    ("", "parts"),
    ("", "named"),
    ("", "broken"),
    ("", "constant"),
    ("r = os.fsencode(p)", "r"),
    ("r = b'p'", "r"),
    ("r = b'%s' % p", "r"),
    ("r = os.path.join(p, q)", "r"),
    ("r = os.path.join(b'p', q)", "r"),
    ("r = p / q", "r"),
    ("r = p % 'q'", "r"),
    ("r = p - 'q'", "r"),
    ("r = f(p)", "r"),
    ("r = r + q", "r"),
    ("r: bytes = f()", "r"),
    ("r = str(p); r = q", "r"),
    ("r = str(p); r += q", "r"),
    ("r = str(p)\n    for r in q: pass", "r"),
    ("r = str(p)\n    with q as r: pass", "r"),
    ("r = str(p)\n    import r", "r"),
    ("r = str(p)\n    def g(r): pass", "r"),
    ("r = str(p)\n    if (r := q): pass", "r"),
    ("r, s = str(p), str(q)", "r"),
    ("text = q", "text"),
    ("global r; r = str(p)", "r"),
    ("r = str(p)\n    def g():\n        nonlocal r", "r"),
    ("def g():\n        r = str(p)", "r"),
    ("class A:\n        r = str(p)", "r"),
)
FUNCTION = """\
import os
import typing
from pathlib import Path

constant = "p"


def function(p, q, text: str, path: Path, like: os.PathLike[str], quoted: "str | None", either: str | Path,
             union: typing.Union[str, Path], maybe: typing.Optional[str], raw: bytes, any_text: typing.AnyStr,
             raw_like: os.PathLike[bytes], broken: "str |", *parts: str, **named: str):
    {before}
    os.mkdir({path})
"""


@pytest.mark.parametrize(("before", "path"), TEXT)
def test_known_text_or_path_is_passed_to_pathlib(before: str, path: str) -> None:
    text = FUNCTION.format(before=before or "pass", path=path)
    patch = run(text, MAKE)
    assert patch.after.decode() == text.replace(f"os.mkdir({path})", f"Path({path}).mkdir(exist_ok=True)")


@pytest.mark.parametrize(("before", "path"), [*UNKNOWN, *EMPTY])
def test_possible_bytes_or_empty_path_is_not_passed_to_pathlib(before: str, path: str) -> None:
    text = FUNCTION.format(before=before or "pass", path=path)
    patch = run(text, MAKE)
    expected = handled(f"os.mkdir({path})", f"os.path.isdir({path})", "    ")
    assert patch.after.decode() == text.replace(f"    os.mkdir({path})\n", expected)


def test_text_variable_at_module_level_is_passed_to_pathlib() -> None:
    text = PATH + "p = 'p'\nos.mkdir(p)\n"
    assert run(text, MAKE).after.decode() == text.replace("os.mkdir(p)", "Path(p).mkdir(exist_ok=True)")


@pytest.mark.parametrize("rebound", ["str", "Path"])
def test_rebound_type_name_is_not_trusted(rebound: str) -> None:
    text = f"{OS}def f(p: {rebound}):\n    os.mkdir(p)\n{rebound} = bytes\n"
    expected = handled("os.mkdir(p)", "os.path.isdir(p)", "    ")
    assert run(text, MAKE).after.decode() == text.replace("    os.mkdir(p)\n", expected)


STATES = (
    "absent",
    "directory",
    "file",
    "link to a directory",
    "link to a file",
    "dangling link",
    "no parent",
)
KNOWN = ("Path(name)", "str(name)", "'a\\0b'")
PATHS = (
    ("p", "os.fsencode(name)"),
    ("p", "(lambda: name)()"),
    ("p", "None"),
    ("p", "1.5"),
    ("str(p)", "(lambda: name)()"),
    *(("p", value) for value in KNOWN),
)


def outcome(code: str, directory: Path, state: str) -> tuple[type[Exception] | None, list[tuple[Path, int]]]:
    """Run code in a directory with the given state; return what it raised and the final tree."""
    directory.mkdir()
    path = directory / ("gone/p" if state == "no parent" else "p")
    if "directory" in state:
        (directory / "there").mkdir()
    if "file" in state:
        (directory / "there").touch()
    if state in ("directory", "file"):
        (directory / "there").rename(path)
    elif "link" in state:
        path.symlink_to("there")
    raised = None
    try:
        exec(compile(code, "case.py", "exec"), {"name": str(path)})
    except (OSError, TypeError, ValueError) as error:
        raised = type(error)
    found = sorted(directory.rglob("*"))
    return raised, [(entry.relative_to(directory), entry.lstat().st_mode) for entry in found]


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("check", ["isdir", "exists"])
@pytest.mark.parametrize(("path", "value"), PATHS)
def test_fixed_code_behaves_the_same_in_one_process(
    tmp_path: Path, path: str, value: str, check: str, state: str
) -> None:
    text = f"{PATH}p = {value}\nif not os.path.{check}({path}):\n    os.mkdir({path}, 0o750)\n"
    patch = run(text, MAKE)
    after = patch.after.decode()
    assert ("try:" in after) == (path == "p" and value not in KNOWN)
    assert (f"if not os.path.{check}(" in after.partition("except")[0]) == (
        check == "exists" or "try:" in after
    )
    before, fixed = outcome(text, tmp_path / "before", state), outcome(after, tmp_path / "after", state)
    assert fixed == before


def test_findings_without_applicable_fix_are_refused() -> None:
    source = read(OS + "os.makedirs(p)\n")
    (fix,) = fixes(source, MAKE)
    sketch = Fix(MAKE, fix.span, Applicability.SKETCH, "think")
    stray = Fix(MAKE, Span(1, 1, 1, 3), Applicability.SAFE, "miss")
    patch = repair(source, [finding(sketch), finding(None), finding(stray)], content, ALONE)
    assert patch.after == patch.before
    reasons = sorted(refusal.reason for refusal in patch.refused)
    assert [reason.split(",")[0] for reason in reasons] == [
        "the fix is manual",
        "the position does not contain a call",
        "there is no automatic fix for this finding",
    ]


def test_findings_with_the_same_change_share_it() -> None:
    source = read(OS + "if not os.path.isdir(p):\n    os.makedirs(p)\n")
    (fix,) = fixes(source, MAKE)
    plain = msgspec.structs.replace(fix, applicability=Applicability.UNSAFE, check=None)
    patch = repair(source, [finding(plain), finding(fix)], content, ALONE)
    assert patch.after == (OS + "os.makedirs(p, exist_ok=True)\n").encode()
    assert len(patch.applied) == 2


def test_only_one_fix_inserts_next_to_a_statement() -> None:
    source = read("import safe\nif first:\n    make(a)\n    make(b)\n")
    spans = (Span(3, 5, 3, 12), Span(4, 5, 4, 12))
    found = [finding(Fix("barrier", span, Applicability.UNSAFE, "wait", Span(2, 4, 2, 9))) for span in spans]
    around = msgspec.structs.replace(ALONE, idiom=lambda _span: Idiom(barriers=("safe.barrier()",)))
    patch = repair(source, found, content, around)
    assert patch.after.decode() == source.text + "safe.barrier()\n"
    assert len(patch.applied) == 1
    assert [refusal.reason for refusal in patch.refused] == [
        "another fix adds code next to the same statement"
    ]


def test_nested_calls_are_both_fixed() -> None:
    patch = run(PATH + "os.mkdir(str(os.makedirs(p)))\n", MAKE)
    assert patch.after.decode() == PATH + "Path(str(os.makedirs(p, exist_ok=True))).mkdir(exist_ok=True)\n"


def test_fix_rejected_by_verification_is_skipped() -> None:
    seen: list[int] = []

    def verify(source: Source, gone: tuple[Finding, ...]) -> str | None:
        seen.append(len(gone))
        assert source.digest == read(source.data).digest
        assert source.path == "/nowhere/case.py"
        return "b must stay" if "os.makedirs(b, exist_ok=True)" in source.text else None

    patch = run(OS + "os.makedirs(a)\nos.makedirs(b)\nos.makedirs(c)\n", MAKE, verify)
    expected = OS + "os.makedirs(a, exist_ok=True)\nos.makedirs(b)\nos.makedirs(c, exist_ok=True)\n"
    assert patch.after.decode() == expected
    assert [refusal.reason for refusal in patch.refused] == ["b must stay"]
    assert seen == [3, 1, 2, 2]


def test_order_of_findings_does_not_matter() -> None:
    source = read(OS + "os.makedirs(a)\nos.makedirs(b)\nos.makedirs(c, exist_ok=True)\n")
    findings = [finding(fix) for fix in fixes(source, MAKE)]
    assert repair(source, findings, content, ALONE) == repair(source, findings[::-1], content, ALONE)


def test_conflicting_fixes_are_not_combined(monkeypatch: pytest.MonkeyPatch) -> None:
    class Renaming:
        def recipe(self, target: Target) -> Change:
            line = target.tree.module.body[1]
            name = TreeEdit(target.call.func, lambda node: node.with_changes(value="x"))
            return Change((TreeEdit(line, lambda node: node), name))

    monkeypatch.setattr("fsrace_lint.fixes.load", lambda name: Renaming())
    patch = run("import os\nmkdir(p), rmdir(q)\n", MAKE)
    assert patch.after == b"import os\nx(p), rmdir(q)\n"
    assert [refusal.reason for refusal in patch.refused] == ["another fix changes the same lines"]


class Program(NamedTuple):
    """A program with one fixable region."""

    recipe: str
    head: str
    region: str
    tail: str


COMMENTS = st.sampled_from(("", "  # é", "  # noqa", "# x"))
LINES = st.lists(st.sampled_from(("x = 1", "", "# z", "é = 'ü'  # y", "if a: b()")), max_size=2)
LONG = st.sampled_from(((), ("f(\n  1)",), ("'''a\n b'''",), ("@d", "def g(): pass")))
HEADERS = st.sampled_from(((), ("'''Doc.'''", ""), ("#!x", "# a: b"), ("# c",)))
OPENERS = st.sampled_from(("if a:", "for i in é:", "with a as b:", "def f():  # f", "while a:", "class A:"))
CALLS = st.sampled_from(
    (
        (MAKE, "if not os.path.exists(p):", "os.makedirs(p)"),
        (MAKE, "if not p.is_dir():", "p.mkdir(\n7,  # k\n)"),
        (MAKE, "if os.path.isdir('é') is False:", "os.mkdir('é', 7)"),
        (MAKE, "if not os.path.isdir(ö):", "os.mkdir(\nö,  # k\n)"),
        (DROP, "if os.path.lexists(p):", "p.unlink()"),
        (DROP, "if os.path.exists(p):", "os.remove('ü')"),
        (DROP, "while p:", "os.rmdir(\np  # k\n)"),
    )
)
BEFORE = st.sampled_from(((), ("# i",), ("", "# j")))
AFTER = st.sampled_from(((), ("# l",), ("x",), ("", "# m")))


@st.composite
def programs(draw: st.DrawFn) -> Program:
    unit = draw(st.sampled_from(("    ", "  ", "\t")))
    indent = ""
    head = [*draw(HEADERS), "import os", *draw(LINES), *draw(LONG)]
    tail = draw(LINES)
    for opener in draw(st.lists(OPENERS, max_size=3)):
        head.append(indent + opener)
        indent += unit
        head += [indent + line for line in draw(LINES)]
        tail = [indent + line for line in draw(LINES)] + tail
    recipe, guard, call = draw(CALLS)
    call = draw(st.sampled_from(("", "é = 'é'; "))) + call + draw(COMMENTS)
    region = [indent + call]
    if draw(st.booleans()):
        inner, outer = ([indent + unit + line for line in draw(lines)] for lines in (BEFORE, AFTER))
        region = [indent + guard + draw(COMMENTS), *inner, indent + unit + call, *outer]
    newline = draw(st.sampled_from(("\n", "\r\n")))
    parts = ["".join(f"{line}\n" for line in part).replace("\n", newline) for part in (head, region, tail)]
    if draw(st.booleans()):
        last = 2 if tail else 1
        parts[last] = parts[last].removesuffix(newline)
    return Program(recipe, *parts)


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_is_offered_and_documented(name: str) -> None:
    """Every recipe loads, is offered by a rule, and is described in docs/fixes.md."""
    assert callable(load(name).recipe)
    offered = {remedy.recipe for loaded in rules.load() for remedy in loaded.rule.remedies}
    offered |= {remedy.otherwise for loaded in rules.load() for remedy in loaded.rule.remedies}
    assert name in offered | {"exist-ok", "missing-ok"}
    page = ROOT / "docs" / "fixes.md"
    assert f"`{name}`" in page.read_text("utf-8")


@settings(max_examples=bound(60, 300), deadline=None)
@given(programs())
def test_fix_keeps_comments_and_other_lines(program: Program) -> None:
    before = program.head + program.region + program.tail
    patch = run(before, program.recipe)
    if not patch.applied:
        assert patch.after == patch.before
        assert "not a statement on its own line" in patch.refused[0].reason
        return
    assert_sound(before.encode(), patch, program.recipe)
    newline = "\r\n" if "\r" in before else "\n"
    after = patch.after.decode()
    assert after.count("\n") == after.count(newline)
    for added in ("import contextlib", "from pathlib import Path"):
        start, found, rest = after.partition(added + newline)
        if found:
            after = start + rest
    assert after.startswith(program.head)
    assert after.endswith(program.tail)


@pytest.fixture
def patch(tmp_path: Path) -> Patch:
    file = tmp_path / "case.py"
    file.write_bytes(b"old\n")
    return Patch(file, "case.py", b"old\n", b"new\n", (), ())


def test_written_patch_keeps_file_mode(patch: Patch) -> None:
    patch.file.chmod(0o751)
    assert write(patch) is None
    assert patch.file.read_bytes() == b"new\n"
    assert stat.S_IMODE(patch.file.stat().st_mode) == 0o751
    assert [entry.name for entry in patch.file.parent.iterdir()] == ["case.py"]


def test_empty_patch_does_not_touch_the_file(tmp_path: Path) -> None:
    assert write(Patch(tmp_path / "absent.py", "absent.py", b"x", b"x", (), ())) is None


def test_symlink_is_kept_and_its_target_replaced(patch: Patch) -> None:
    directory = patch.file.parent / "links"
    directory.mkdir()
    link = directory / "link.py"
    link.symlink_to("../case.py")
    assert write(Patch(link, "link.py", patch.before, patch.after, (), ())) is None
    assert link.is_symlink()
    assert patch.file.read_bytes() == b"new\n"
    assert [entry.name for entry in directory.iterdir()] == ["link.py"]


def test_file_changed_by_another_process_is_not_written(patch: Patch) -> None:
    patch.file.write_bytes(b"theirs\n")
    assert "changed by another process" in (write(patch) or "")
    assert patch.file.read_bytes() == b"theirs\n"


def test_file_changed_during_the_write_is_not_replaced(patch: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: patch.file.write_bytes(b"theirs\n"))
    assert "changed by another process" in (write(patch) or "")
    assert patch.file.read_bytes() == b"theirs\n"
    assert len(list(patch.file.parent.iterdir())) == 1


def test_file_with_multiple_hard_links_is_not_written(patch: Patch) -> None:
    patch.file.with_name("other.py").hardlink_to(patch.file)
    assert "hard link" in (write(patch) or "")
    assert patch.file.read_bytes() == b"old\n"


def test_read_only_file_is_not_written(patch: Patch) -> None:
    patch.file.chmod(0o444)
    assert write(patch) == "is read-only"
    assert patch.file.read_bytes() == b"old\n"


def test_missing_or_non_regular_file_is_not_written(patch: Patch) -> None:
    patch.file.unlink()
    assert write(patch) == "was deleted by another process during the run"
    patch.file.mkdir()
    assert write(patch) == "is not a regular file"


@pytest.mark.parametrize("call", ["replace", "fsync", "fchmod"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_failed_write_leaves_file_and_no_temporary(
    patch: Patch, monkeypatch: pytest.MonkeyPatch, call: str, error: BaseException
) -> None:
    def fail(*arguments: object) -> None:
        raise error

    monkeypatch.setattr(os, call, fail)
    monkeypatch.setattr(atomic_write, "swap", lambda one, other: False)
    with pytest.raises(type(error)):
        write(patch)
    assert patch.file.read_bytes() == b"old\n"
    assert [entry.name for entry in patch.file.parent.iterdir()] == ["case.py"]


def test_temporary_file_name_contains_pid(patch: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def watch(new: Path, old: Path) -> bool:
        seen.append(new.name)
        return False

    monkeypatch.setattr(atomic_write, "swap", watch)
    assert write(patch) is None
    (name,) = seen
    assert name.startswith(".")
    assert f".{os.getpid()}." in name
