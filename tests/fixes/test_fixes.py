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
from fsrace_lint.fixes.text import is_text
from fsrace_lint.fixes.tree import Tree
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


ALONE = Surroundings(lambda span: Idiom(), lambda span: (), catalog.load)


def content(source: Source, gone: tuple[Finding, ...]) -> str | None:
    return None


def run(text: str | bytes, recipe: str, verify: Verify = content, around: Surroundings = ALONE) -> Patch:
    source = read(text)
    return repair(source, [finding(fix) for fix in fixes(source, recipe)], verify, around)


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
    "mkdir": Case(MAKE, OS + "os.mkdir(str(p))\n", OS + "os.makedirs(str(p), exist_ok=True)\n"),
    "mkdir mode": Case(
        MAKE,
        "import os as o\no.mkdir(path=f'{p}/q', mode=7)\n",
        "import os as o\no.makedirs(name=f'{p}/q', mode=7, exist_ok=True)\n",
    ),
    "mkdir bare": Case(
        MAKE,
        "from os import mkdir\nmkdir('p')\n",
        "import os\nos.makedirs('p', exist_ok=True)\n",
    ),
    "mkdir bare with makedirs": Case(
        MAKE,
        "from os import makedirs, mkdir\nmkdir('p')\n",
        "from os import makedirs\nmakedirs('p', exist_ok=True)\n",
    ),
    "mkdir in a handler": Case(
        MAKE,
        OS + "try:\n    f()\nexcept FileExistsError:\n    os.mkdir(p)\n",
        OS + "try:\n    f()\nexcept FileExistsError:\n    os.makedirs(p, exist_ok=True)\n",
    ),
    "mkdir in a function in a try": Case(
        MAKE,
        OS + "try:\n    def f():\n        os.mkdir(p)\nexcept FileExistsError:\n    pass\n",
        OS + "try:\n    def f():\n        os.makedirs(p, exist_ok=True)\nexcept FileExistsError:\n    pass\n",
    ),
    "mkdir lines": Case(
        MAKE,
        OS + "os.mkdir(\n    'p',  # a\n    7,  # b\n)\nos.mkdir(\n    'r', 7\n)\n",
        OS + "os.makedirs(\n    'p',  # a\n    7,  # b\n    exist_ok=True,\n)\n"
        "os.makedirs(\n    'r', 7, exist_ok=True\n)\n",
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
        PATH.replace("import os\n", "") + "p.mkdir(exist_ok=True)\nPath(q).mkdir(7, exist_ok=True)\n",
    ),
    "unwrap mkdir": Case(
        MAKE,
        OS + "if not os.path.isdir(p):\n    os.mkdir(p, 7)\n",
        OS + "os.makedirs(p, 7, exist_ok=True)\n",
    ),
    "unwrap exists": Case(
        MAKE,
        OS + "if not os.path.exists(p):\n    os.makedirs(p)\n",
        OS + "os.makedirs(p, exist_ok=True)\n",
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
        OS + "if a:\n    pass\n# b\nelif not os.path.exists(p):  # c\n    os.makedirs(p)  # d\n    # e\n",
        OS + "if a:\n    pass\n# b\nelse:  # c\n    os.makedirs(p, exist_ok=True)  # d\n    # e\n",
    ),
    "longer test": Case(
        MAKE,
        OS + "if a and not os.path.exists(p):\n    os.makedirs(p)\n",
        OS + "if a:\n    os.makedirs(p, exist_ok=True)\n",
    ),
    "longer test without a space": Case(
        MAKE,
        OS + "if(a and not os.path.exists(p)):\n    os.makedirs(p)\n",
        OS + "if a:\n    os.makedirs(p, exist_ok=True)\n",
    ),
    "longer test on lines": Case(
        MAKE,
        OS + "if (\n    f(a) and\n    b\n    and not os.path.exists(p)\n):\n    os.makedirs(p)\n",
        OS + "if (\n    f(a) and\n    b\n):\n    os.makedirs(p, exist_ok=True)\n",
    ),
    "check before other tests": Case(
        MAKE,
        OS + "if not os.path.exists(p) and a and b:\n    os.makedirs(p)\n",
        OS + "if a and b:\n    os.makedirs(p, exist_ok=True)\n",
    ),
    "check before a test that may fail": Case(
        MAKE,
        OS + "if not os.path.exists(p) and f() and b:\n    os.makedirs(p)\n",
        OS + "if not os.path.exists(p) and f() and b:\n    os.makedirs(p, exist_ok=True)\n",
    ),
    "test of one of two": Case(
        MAKE,
        OS + "if a or not os.path.exists(p):\n    os.makedirs(p)\n",
        OS + "if a or not os.path.exists(p):\n    os.makedirs(p, exist_ok=True)\n",
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
        "p.unlink(missing_ok=True)\n",
    ),
    "unlink after lexists": Case(
        DROP,
        OS + "if os.path.lexists(p):  # a\n    p.unlink(False)\n",
        "# a\np.unlink(True)\n",
    ),
    "remove": Case(
        DROP,
        OS + "# a\nif os.path.exists(p):  # b\n    # c\n    os.remove(p)  # d\n    # e\n",
        "import contextlib\nimport os\n# a\n# b\n# c\n"
        "with contextlib.suppress(FileNotFoundError):\n"
        "    os.remove(p)  # d\n# e\n",
    ),
    "remove after a test with a mark": Case(
        DROP,
        LIB + "if os.path.exists(p) == True:  # pragma: no cover\n    os.remove(p)\n",
        LIB + "with contextlib.suppress(FileNotFoundError):  # pragma: no cover\n    os.remove(p)\n",
    ),
    "remove in a block with more": Case(
        DROP,
        LIB + "if os.path.exists(p):\n    print(p)\n    os.remove(p)\n",
        LIB + "if os.path.exists(p):\n    print(p)\n    with contextlib.suppress(FileNotFoundError):\n"
        "        os.remove(p)\n",
    ),
    "remove after elif": Case(
        DROP,
        LIB + "if a:\n    pass\nelif os.path.exists(p):\n    os.remove(p)\n",
        LIB + "if a:\n    pass\nelse:\n    with contextlib.suppress(FileNotFoundError):\n"
        "        os.remove(p)\n",
    ),
    "remove one line": Case(
        DROP,
        LIB + "if os.path.exists(p): os.remove(p)  # a\n",
        LIB + "with contextlib.suppress(FileNotFoundError):\n    os.remove(p)  # a\n",
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
        "import contextlib\nfrom shutil import rmtree\nif p.exists():\n    rmtree(p)\n",
        "import contextlib\nfrom shutil import rmtree\n"
        "with contextlib.suppress(FileNotFoundError):\n    rmtree(p)\n",
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
    (MAKE, OS + "os.mkdir(p, dir_fd=3)\n", "does not accept `dir_fd`"),
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
    (MAKE, OS + "os.mkdir(**kw)\n", "does not accept `dir_fd`"),
    (MAKE, OS + "os.mkdir(*p)\n", "does not accept `dir_fd`"),
    (MAKE, "def f():\n    from os import mkdir\n    mkdir('p')\n    import os\n", "inside the same function"),
    (MAKE, OS + "f'{os.makedirs(p)}'\n", "inside an f-string"),
    (MAKE, "import os\n\x0cos.makedirs(p)\n", "without changing unrelated bytes"),
    (MAKE, "import os\ros.makedirs(p)\r", "without changing unrelated bytes"),
    (MAKE, OS + "os.makedirs(p for p in q)\n", "would not parse"),
    (
        MAKE,
        OS + "if a and not os.path.exists(  # b\n    p):\n    os.makedirs(p)\n",
        "a comment would be lost",
    ),
    (DROP, OS + "x = os.remove(p)\n", "not a statement on its own line"),
    (DROP, OS + "os.remove(p); x()\n", "not a statement on its own line"),
    (DROP, OS + "if x: y(); os.remove(p)\n", "not a statement on its own line"),
    (DROP, OS + "os.removedirs(p)\n", "deletes empty parents"),
    (DROP, OS + "os.mkdir(p)\n", "not known to accept"),
    (DROP, OS + "contextlib = 1\nos.remove(p)\n", "has another meaning"),
    (DROP, OS + "FileNotFoundError = IOError\nos.remove(p)\n", "has another meaning"),
    (DROP, LIB + "try:\n    os.remove(p)\nexcept OSError as e:\n    log(e)\n", "already handles"),
    (DROP, LIB + "try:\n    os.remove(p)\nexcept:\n    log()\n", "already handles"),
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
    ("", "text"),
    ("", "quoted"),
    ("", "either"),
    ("", "union"),
    ("", "maybe"),
    ("", "''"),
    ("r: str = f()", "r"),
    ("r = f'{p}'", "r"),
    ("r = text; s = r", "s"),
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


def is_text_in(text: str) -> bool:
    tree = Tree(text, "\n")
    (call,) = (call for call in tree.calls.values() if tree.names.meaning(call.func) == "os.mkdir")
    return is_text(tree, call.args[0].value)


@pytest.mark.parametrize(("before", "path"), TEXT)
def test_text_or_path_is_known(before: str, path: str) -> None:
    assert is_text_in(FUNCTION.format(before=before or "pass", path=path))


@pytest.mark.parametrize(("before", "path"), UNKNOWN)
def test_possible_bytes_are_not_text(before: str, path: str) -> None:
    assert not is_text_in(FUNCTION.format(before=before or "pass", path=path))


def test_variable_at_module_level_is_text() -> None:
    assert is_text_in(PATH + "p = 'p'\nos.mkdir(p)\n")


@pytest.mark.parametrize("rebound", ["str", "Path"])
def test_rebound_type_name_is_not_trusted(rebound: str) -> None:
    assert not is_text_in(f"{OS}def f(p: {rebound}):\n    os.mkdir(p)\n{rebound} = bytes\n")


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


def waiting(source: Source, *barriers: str, recipes: tuple[str, str] = ("barrier", "barrier")) -> Patch:
    """Add a barrier next to one `if` for each of two calls in it; each call has its own barrier."""
    spans = (Span(3, 5, 3, 12), Span(4, 5, 4, 12))
    check = Span(2, 4, 2, 9)
    found = [
        finding(Fix(recipe, span, Applicability.UNSAFE, "wait", check))
        for recipe, span in zip(recipes, spans, strict=True)
    ]
    spelled = {span: Idiom(barriers=(f"safe.{name}()",)) for span, name in zip(spans, barriers, strict=True)}
    return repair(source, found, content, msgspec.structs.replace(ALONE, idiom=spelled.__getitem__))


def test_one_barrier_serves_two_fixes() -> None:
    source = read("import safe\nif first:\n    make(a)\n    make(b)\n")
    patch = waiting(source, "barrier", "barrier")
    assert patch.after.decode() == source.text + "safe.barrier()\n"
    assert len(patch.applied) == 2
    assert patch.refused == ()


def test_two_different_barriers_are_not_added_next_to_one_statement() -> None:
    source = read("import safe\nif first:\n    make(a)\n    make(b)\n")
    for recipes in (("barrier", "barrier"), ("barrier", "barrier-before")):
        patch = waiting(source, "barrier", "synchronize", recipes=recipes)
        assert patch.after.decode() == source.text + "safe.barrier()\n"
        assert len(patch.applied) == 1
        assert [refusal.reason for refusal in patch.refused] == [
            "another fix adds code next to the same statement"
        ]


def test_nested_calls_are_both_fixed() -> None:
    patch = run(OS + "os.mkdir(str(os.makedirs(p)))\n", MAKE)
    after = OS + "os.makedirs(str(os.makedirs(p, exist_ok=True)), exist_ok=True)\n"
    assert patch.after.decode() == after


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
    # other files use the imports, so that none is removed
    patch = run(before, program.recipe, around=msgspec.structs.replace(ALONE, is_needed=lambda _: True))
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
