"""Normal forms of paths: which are equal, and which are private to a process."""

from __future__ import annotations

import os
from pathlib import Path
from textwrap import dedent, indent
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.linked import project
from support.sampling import bound

from fsrace_lint.analysis.accesses.model import Reach
from fsrace_lint.analysis.paths.path_normal_form import PathNormalizer
from fsrace_lint.syntax import model as m

if TYPE_CHECKING:
    from fsrace_lint.analysis.paths import abstract_path as normal
    from fsrace_lint.analysis.values.abstract_values import Environment

HEAD = """\
import os
import os.path as osp
import pathlib
import posixpath
import secrets
import socket
import tempfile
import time
import uuid
from datetime import datetime
from os.path import dirname
from pathlib import Path, PurePath
import torch.distributed as dist
"""


def forms(
    code: str, *exprs: str, parameters: str = "d, e, name, step, args, config"
) -> list[normal.AbstractPath | None]:
    """The normal forms of expressions that follow some code in a function."""
    body = dedent(code).strip("\n") + f"\nmark({', '.join(exprs)})"
    linked = project({"main.py": f"{HEAD}\ndef main({parameters}):\n{indent(body, '    ')}\n"})
    function = linked.targets[0].top_functions["main"]
    flow = linked.flows.flow(function)
    assert flow is not None
    (event,) = [event for event in flow.call_sites if event.call.function == m.Name("mark")]
    return [linked.entry_states.paths.normalize(value, event.state.scope) for value in event.call.arguments]


def form(code: str, expr: str) -> normal.AbstractPath:
    (found,) = forms(code, expr)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("code", "one", "other"),
    [
        pytest.param("", '"out"', "'out'", id="quotes"),
        pytest.param("", '"./out"', '"out"', id="leading dot"),
        pytest.param("", '"out/"', '"out"', id="trailing slash"),
        pytest.param("", '"out//a"', '"out/a"', id="double slash"),
        pytest.param("", '"out/./a"', '"out/a"', id="dot component"),
        pytest.param("", 'os.path.join("out", "a")', '"out/a"', id="join"),
        pytest.param("", 'os.path.join("out", "a", "b")', '"out/a/b"', id="join with three arguments"),
        pytest.param("", 'os.path.join("out/", "a")', '"out/a"', id="join after a trailing slash"),
        pytest.param("", 'os.path.join("out", "/a")', '"/a"', id="join with an absolute path"),
        pytest.param("", 'osp.join("out", "a")', 'posixpath.join("out", "a")', id="aliases of join"),
        pytest.param("", 'Path("out") / "a"', '"out/a"', id="slash operator"),
        pytest.param("", 'Path("out") / "a" / "b"', 'Path("out") / "a/b"', id="two slash operators"),
        pytest.param("", 'Path("out", "a")', 'Path("out") / "a"', id="Path with two arguments"),
        pytest.param("", 'Path("out").joinpath("a", "b")', '"out/a/b"', id="joinpath"),
        pytest.param("", 'PurePath("out")', '"out"', id="pure path"),
        pytest.param("", 'pathlib.Path("out")', 'Path("out")', id="Path through its module"),
        pytest.param("", 'Path("out") / Path("a")', '"out/a"', id="slash operator with a path"),
        pytest.param("", '"out" / Path("a")', '"out/a"', id="slash operator on a string"),
        pytest.param("", 'str(Path("out"))', '"out"', id="str"),
        pytest.param("", "os.fspath(d)", "d", id="fspath"),
        pytest.param("", "os.path.abspath(d)", "d", id="abspath"),
        pytest.param("", "Path(d).resolve()", "d", id="resolve"),
        pytest.param("", "os.path.expanduser(d)", "d", id="expanduser"),
        pytest.param("", "d.rstrip('/')", "d", id="rstrip"),
        pytest.param("", "str(d).strip()", "d", id="strip"),
        pytest.param("", "Path(d).as_posix()", "d", id="as_posix"),
        pytest.param("", 'f"{d}/a"', 'os.path.join(d, "a")', id="f-string"),
        pytest.param("", 'f"{d}/{name}.pt"', 'os.path.join(d, name + ".pt")', id="f-string with two names"),
        pytest.param("", 'f"{d!s}/a"', 'f"{d}/a"', id="f-string with str"),
        pytest.param("", 'd + "/a"', 'Path(d) / "a"', id="concatenation"),
        pytest.param("", '"%s/a" % d', 'f"{d}/a"', id="percent"),
        pytest.param("", '"%s/%s" % (d, name)', 'f"{d}/{name}"', id="percent with two values"),
        pytest.param("", '"{}/{}".format(d, name)', 'f"{d}/{name}"', id="format"),
        pytest.param('p = os.path.join(d, "a")', "p", 'f"{d}/a"', id="one variable"),
        pytest.param("p = d\nq = Path(p)", 'q / "a"', 'f"{d}/a"', id="two variables"),
        pytest.param('p, q = d, "a"', "os.path.join(p, q)", 'f"{d}/a"', id="unpacked"),
        pytest.param("", '(p := Path(d)) / "a"', 'f"{d}/a"', id="walrus"),
        pytest.param("p = d\np = os.path.join(p, name)", "p", 'f"{d}/{name}"', id="rebound to a join"),
        pytest.param('p = d\np += "/a"', "p", 'f"{d}/a"', id="augmented assignment"),
        pytest.param("", 'os.path.dirname("out/a")', '"out"', id="dirname"),
        pytest.param("", 'dirname(os.path.join(d, "a.pt"))', "d", id="dirname of a join"),
        pytest.param("", 'Path(d, "a.pt").parent', "d", id="parent"),
        pytest.param("", '(Path(d) / "a" / "b.pt").parent', 'os.path.join(d, "a")', id="parent of a join"),
        pytest.param("", "os.path.dirname(d)", "Path(d).parent", id="dirname and parent of a name"),
        pytest.param("", "f'{d}/{dist.get_rank()}'", "f'{d}/{args.rank}'", id="two spellings of the rank"),
        pytest.param("", "args.out", "args.out", id="attribute"),
        pytest.param("", 'args.out + "/a"', 'Path(args.out, "a")', id="joined attribute"),
        pytest.param("", 'config["out"]', 'config["out"]', id="mapping item"),
        pytest.param("o = args.out", "o", "args.out", id="attribute in a variable"),
        pytest.param("p = make()", "p", "Path(p)", id="same unknown value"),
        pytest.param("args.p = d", "args.p", "d", id="assigned attribute"),
        pytest.param("if step: p = d\nelse: p = e", "p", "str(p)", id="one of two branches"),
        pytest.param("p = f'{d}/{step:05d}'", "p", "Path(p)", id="formatted path in a variable"),
    ],
)  # fmt: skip
def test_equal_paths(code: str, one: str, other: str) -> None:
    first, second = forms(code, one, other)
    assert first is not None
    assert first == second


@pytest.mark.parametrize(
    ("code", "one", "other"),
    [
        pytest.param("", '"out"', '"in"', id="literals"),
        pytest.param("", '"out"', '"/out"', id="absolute and relative"),
        pytest.param("", '"out/a"', '"out"', id="directory and its child"),
        pytest.param("", '"a/../out"', '"a/out"', id="dot-dot"),
        pytest.param("", "d", "e", id="parameters"),
        pytest.param("", "d", '"d"', id="name and literal"),
        pytest.param("", 'f"{d}a"', 'f"{d}/a"', id="suffix and child"),
        pytest.param("", 'f"{d}{e}"', 'f"{e}{d}"', id="swapped names"),
        pytest.param("", "args.out", "args.tmp", id="attributes"),
        pytest.param("", "args.out", "config.out", id="same attribute of two objects"),
        pytest.param("", 'config["a"]', 'config["b"]', id="mapping items"),
        pytest.param("", "config[0]", 'config["0"]', id="number and string keys"),
        pytest.param("", "make()", "make()", id="two calls"),
        pytest.param("p = make()\nq = make()", "p", "q", id="two values"),
        pytest.param("p = d", "p", "os.path.dirname(p)", id="path and its directory"),
        pytest.param("p = make()\nq = p\np = make()", "p", "q", id="before and after rebinding"),
        pytest.param("", 'f"{step:05d}"', 'f"{step}"', id="format specification"),
        pytest.param("", 'f"{step:05d}"', 'f"{step:06d}"', id="two format specifications"),
        pytest.param("", 'f"{d!r}"', 'f"{d}"', id="conversion"),
        pytest.param("", "d[0]", "d", id="character"),
        pytest.param("", "d[:3]", "d[:4]", id="slices"),
        pytest.param("", 'Path(d).with_suffix(".a")', "Path(d)", id="with_suffix"),
        pytest.param("", 'Path(d).with_suffix(".a")', 'Path(d).with_suffix(".b")', id="two suffixes"),
        pytest.param("", "os.path.join(*d)", "os.path.join(*e)", id="starred arguments"),
        pytest.param("", "d or e", "d", id="or"),
        pytest.param("", "d if step else e", "e", id="ternary"),
        pytest.param("", '"%05d" % step', '"%d" % step', id="padded percent format"),
        pytest.param("", 'os.path.dirname("out/a/")', '"out"', id="dirname of a trailing slash"),
        pytest.param("", 'os.path.dirname("%s/%s" % (d, "a/"))', "d", id="dirname of a formatted path"),
        pytest.param("", 'os.path.dirname("/data")', '"."', id="dirname of a child of the root"),
        pytest.param("", 'os.path.join("a", "%s/b" % "/c")', '"a/c/b"', id="join with a formatted path"),
        pytest.param("", 'os.path.join("", "a")', '"/a"', id="join with an empty string"),
    ],
)  # fmt: skip
def test_different_paths(code: str, one: str, other: str) -> None:
    first, second = forms(code, one, other)
    assert first != second


@pytest.mark.parametrize(
    ("code", "expr"),
    [
        pytest.param("for p in d: p = make()", "p", id="bound by a for loop"),
        pytest.param("try: p = make()\nexcept OSError: mark_it()", "p", id="bound in a try block"),
        pytest.param("p, q = make()", "p", id="unpacked"),
        pytest.param("while step: p = make()", "p", id="bound in a while loop"),
        pytest.param("match d:\n    case {'p': p}: pass", "p", id="bound by a pattern"),
        pytest.param("try: make()\nexcept OSError as p: pass", "p", id="bound by a handler"),
    ],
)
def test_unknown_path_equals_nothing(code: str, expr: str) -> None:
    first, second = forms(code, expr, expr + '+ "/a"')
    assert first is None or first != second


def test_variable_bound_in_a_loop_is_unknown_there() -> None:
    text = f"""{HEAD}
def main(d, items):
    p = d
    for item in items:
        mark(p)
        p = make()
"""
    linked = project({"main.py": text})
    flow = linked.flows.flow(linked.targets[0].top_functions["main"])
    assert flow is not None
    event = next(event for event in flow.call_sites if event.call.function == m.Name("mark"))
    assert linked.entry_states.paths.normalize(event.call.arguments[0], event.state.scope) is None


@pytest.mark.parametrize(
    ("inner", "outer", "expected"),
    [
        ('os.path.join(d, "a", "b")', "d", True),
        ('os.path.join(d, "a", "b")', 'os.path.join(d, "a")', True),
        ("d", "d", True),
        ("d", 'os.path.join(d, "a")', False),
        ('f"{d}a"', "d", False),
        ('"out/ab"', '"out/a"', False),
        ('"/out/a"', '"out"', False),
        ("e", "d", False),
    ],
)
def test_is_within(inner: str, outer: str, expected: bool) -> None:
    one, other = forms("", inner, outer)
    assert one is not None
    assert other is not None
    assert one.is_within(other) is expected


def test_text_of_a_path_in_messages() -> None:
    assert form("", 'os.path.join(args.out, f"{step}", "a.pt")').text == "{args.out}/{step}/a.pt"
    assert form("", 'Path("/data") / name').text == "/data/{name}"


# Random literal expressions, evaluated in Python.

SEGMENTS = ("a", "b", "c/d", ".", "..", "./a", "a/", "/a", "a//b", "a.pt")


@st.composite
def texts(draw: st.DrawFn, depth: int, names: tuple[str, ...]) -> str:
    """An expression whose value is a string."""
    if depth == 0:
        return draw(st.sampled_from([*map(repr, SEGMENTS), *names]))
    one, other = (draw(texts(depth - 1, names)) for _ in range(2))
    path = draw(purepaths(depth - 1, names))
    return draw(
        st.sampled_from(
            (
                one,
                f"os.path.join({one}, {other})",
                f"os.path.join({path}, {one})",
                f"str({path})",
                f"f'{{{unquoted(one)}}}/{{{unquoted(other)}}}'",
                f"({one} + '/' + {other})",
                f"'{{}}/{{}}'.format({one}, {other})",
                f"('%s/%s' % ({one}, {other}))",
                f"os.path.dirname({one} + '/a')",
                f"os.fspath({path})",
            )
        )
    )


@st.composite
def purepaths(draw: st.DrawFn, depth: int, names: tuple[str, ...]) -> str:
    """An expression whose value is a path."""
    text = draw(texts(max(depth - 1, 0), names))
    if depth == 0:
        return f"Path({text})"
    path = draw(purepaths(depth - 1, names))
    return draw(
        st.sampled_from(
            (
                f"Path({text})",
                f"Path({path}, {text})",
                f"({path} / {text})",
                f"({text} / {path})",
                f"{path}.joinpath({text})",
                f"{path}.parent",
            )
        )
    )


def unquoted(text: str) -> str:
    """An expression that is valid inside an f-string in single quotes."""
    return text.replace("'", '"') if text.count('"') == 0 and "{" not in text and "\\" not in text else '"a"'


def canonical(value: object) -> str:
    """A path without redundant dots and slashes."""
    text = str(value)
    parts = [part for part in text.split("/") if part not in {"", "."}]
    return ("/" if text.startswith("/") else "") + "/".join(parts)


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, str, str]:
    """An assignment to `p`, and two expressions that may use it."""
    assigned = draw(st.one_of(texts(1, ()), texts(2, ())))
    one, other = (draw(st.one_of(texts(2, ("p",)), purepaths(2, ("p",)))) for _ in range(2))
    return f"p = {assigned}", one, other


def evaluated(code: str, *exprs: str) -> list[str]:
    names: dict[str, object] = {"os": os, "Path": Path}
    exec(code, names)
    return [canonical(eval(expr, names)) for expr in exprs]


@settings(max_examples=bound(50, 200), deadline=None)
@given(programs())
def test_equal_forms_are_equal_paths(program: tuple[str, str, str]) -> None:
    found = forms(*program)
    real = evaluated(*program)
    if found[0] is not None and found[0] == found[1]:
        assert real[0] == real[1]
    for one, value in zip(found, real, strict=True):
        if one is not None and not list(one.variables()):
            assert canonical(one.text or ("/" if one.components else "")) == value


# Which processes share a path.


@pytest.mark.parametrize(
    ("code", "expr"),
    [
        pytest.param("", 'f"{d}/{dist.get_rank()}"', id="rank"),
        pytest.param("r = dist.get_rank()", "os.path.join(d, str(r))", id="rank, join"),
        pytest.param("r = dist.get_rank()", 'd + "/" + str(r)', id="rank, concatenation"),
        pytest.param("r = dist.get_rank()", '"%s/%d" % (d, r)', id="rank, percent"),
        pytest.param("r = dist.get_rank()", '"{}/{}".format(d, r)', id="rank, format"),
        pytest.param("r = dist.get_rank()", '"{d}/{r}".format(d=d, r=r)', id="rank, format by name"),
        pytest.param("r = dist.get_rank()", 'f"{d}/{r:02d}"', id="rank, format specification"),
        pytest.param("r = dist.get_rank()", 'Path(d) / f"rank{r}" / "a.pt"', id="rank, slash operator"),
        pytest.param("r = dist.get_rank()", 'Path(d).with_name(f"{r}")', id="rank, with_name"),
        pytest.param("r = dist.get_rank()", 'Path(d, f"{r}").with_suffix(".pt")', id="rank, with_suffix"),
        pytest.param("r = dist.get_rank()\np = f'{d}/{r}'", "p", id="rank, one variable"),
        pytest.param("r = dist.get_rank()\np = f'{d}/{r}'\nq = Path(p)", 'q / "a"', id="rank, two variables"),
        pytest.param("r = dist.get_rank()\np = Path(d, str(r))", "p.parent / p.name", id="rank, name"),
        pytest.param("", 'f"{d}/{args.rank}"', id="rank attribute"),
        pytest.param("", 'f"{d}/{os.environ[\'RANK\']}"', id="RANK"),
        pytest.param("", 'os.path.join(d, os.environ.get("SLURM_PROCID", "0"))', id="SLURM_PROCID"),
        pytest.param("", 'f"{d}/{os.getpid()}"', id="pid"),
        pytest.param("", 'f"{d}.{os.getpid()}.tmp"', id="pid in a suffix"),
        pytest.param("", "os.path.join(d, str(uuid.uuid4()))", id="uuid"),
        pytest.param("", "os.path.join(d, uuid.uuid4().hex)", id="uuid hex"),
        pytest.param("", "f'{d}/{uuid.uuid4().hex[:8]}'", id="uuid prefix"),
        pytest.param("", "os.path.join(d, secrets.token_hex(8))", id="secrets token"),
        pytest.param("", "tempfile.mkdtemp()", id="mkdtemp"),
        pytest.param("p = tempfile.mkdtemp(dir=d)", 'os.path.join(p, "a")', id="mkdtemp in a variable"),
        pytest.param("p = tempfile.TemporaryDirectory()", "p.name", id="name of a TemporaryDirectory"),
        pytest.param("f, p = tempfile.mkstemp()", "p", id="unpacked mkstemp"),
        pytest.param("if step: p = tempfile.mkdtemp()\nelse: p = tempfile.mkdtemp(dir=d)", "p", id="branch"),
        pytest.param("", "str(os.getpid()) if step else str(uuid.uuid4())", id="ternary"),
        pytest.param("p = args.p or tempfile.mkdtemp()", "p", id="or"),
    ],
)  # fmt: skip
def test_private_paths(code: str, expr: str) -> None:
    assert form(code, expr).rank_dependent


@pytest.mark.parametrize(
    ("code", "expr"),
    [
        pytest.param("", "d", id="parameter"),
        pytest.param("", 'f"{d}/{step}"', id="step"),
        pytest.param("", "args.out", id="setting"),
        pytest.param("", '"out"', id="literal"),
        pytest.param("", 'f"{d}/rank"', id="literal with the word rank"),
        pytest.param("", 'f"{d}/{args.world_size}"', id="world size attribute"),
        pytest.param("", "tempfile.gettempdir()", id="gettempdir"),
        pytest.param("", 'os.path.join(d, "rank0.pt")', id="literal rank number"),
        pytest.param("", "f\"{d}/{config['name']}\"", id="mapping item"),
        pytest.param("p = d if dist.get_rank() == 0 else e", "p", id="selected by rank"),
        pytest.param("r = dist.get_rank()\nr = step", 'f"{d}/{r}"', id="reassigned"),
        pytest.param("", 'f"{d}/{dist.get_world_size()}"', id="world size"),
    ],
)
def test_paths_that_are_not_private(code: str, expr: str) -> None:
    assert not form(code, expr).rank_dependent


def reach(text: str, **files: str) -> Reach:
    linked = project({"main.py": HEAD + dedent(text), **{f"{name}.py": code for name, code in files.items()}})
    (site,) = (site for site in linked.accesses("mkdir") if site.file == "main.py")
    return site.reach


PRIVATE_SITES = {
    "TemporaryDirectory": """
        def main():
            with tempfile.TemporaryDirectory() as p:
                os.makedirs(os.path.join(p, "a"))
        """,
    "NamedTemporaryFile": """
        def main():
            with tempfile.NamedTemporaryFile() as f:
                os.makedirs(f.name + ".d")
        """,
    "attribute": """
        class Saver:
            def __init__(self, d):
                self.folder = os.path.join(d, str(dist.get_rank()))
            def save(self):
                os.makedirs(self.folder)
        """,
    "attribute of an attribute": """
        class Saver:
            def __init__(self, d):
                self.me = os.getpid()
                self.folder = f"{d}/{self.me}"
            def save(self):
                os.makedirs(os.path.join(self.folder, "a"))
        """,
    "attribute of a base class": """
        class Base:
            def __init__(self, d):
                self.folder = tempfile.mkdtemp()
        class Saver(Base):
            def save(self):
                os.makedirs(self.folder + "/a")
        """,
    "property": """
        class Saver:
            @property
            def folder(self):
                return f"{self.root}/{dist.get_rank()}"
            def save(self):
                os.makedirs(self.folder)
        """,
    "method": """
        class Saver:
            def folder(self, name):
                return os.path.join(name, str(os.getpid()))
            def save(self):
                os.makedirs(self.folder("a"))
        """,
    "helper": """
        def folder(d):
            return os.path.join(d, uuid.uuid4().hex)
        def main(d):
            os.makedirs(folder(d))
        """,
    "helper result in a variable": """
        def folder(d):
            p = tempfile.mkdtemp()
            return p
        def main(d):
            p = folder(d)
            os.makedirs(f"{p}/a")
        """,
    "helper in another file": """
        from names import folder
        def main(d):
            os.makedirs(folder(d))
        """,
    "constant in another file": """
        from names import FOLDER
        def main(d):
            os.makedirs(FOLDER)
        """,
    "passed by every caller": """
        def main(d):
            make(os.path.join(d, str(dist.get_rank())))
            make(tempfile.mkdtemp() + "/a")
        def make(p):
            os.makedirs(p)
        """,
    "passed through two calls": """
        def main(d):
            outer(d, dist.get_rank())
        def outer(d, number):
            make(f"{d}/{number}")
        def make(p):
            os.makedirs(p)
        """,
    "enclosing function": """
        def main(d):
            p = tempfile.mkdtemp()
            def make():
                os.makedirs(p + "/a")
            make()
        """,
    "loop over path components": """
        def main(d):
            p = tempfile.mkdtemp()
            for name in ("a", "b"):
                os.makedirs(os.path.join(p, name))
        """,
    "rank parameter": """
        def main(rank, d):
            os.makedirs(f"{d}/{rank}")
        """,
}


@pytest.mark.parametrize("text", PRIVATE_SITES.values(), ids=PRIVATE_SITES)
def test_private_call_sites(text: str) -> None:
    names = "import os\ndef folder(d):\n    return d + str(os.getpid())\nFOLDER = f'run-{os.getpid()}'\n"
    assert reach(text, names=names) is Reach.PRIVATE


SHARED_SITES = {
    "one of two callers": """
        def main(d):
            make(os.path.join(d, str(dist.get_rank())))
            make(d)
        def make(p):
            os.makedirs(p)
        """,
    "no caller": """
        def make(p):
            os.makedirs(p)
        """,
    "attribute": """
        class Saver:
            def __init__(self, d):
                self.folder = d
            def save(self):
                os.makedirs(self.folder)
        """,
    "helper": """
        def folder(d):
            return os.path.join(d, "a")
        def main(d):
            os.makedirs(folder(d))
        """,
    "other attribute is private": """
        class Saver:
            def __init__(self, d):
                self.scratch = tempfile.mkdtemp()
                self.folder = d
            def save(self):
                os.makedirs(self.folder)
        """,
}


@pytest.mark.parametrize("text", SHARED_SITES.values(), ids=SHARED_SITES)
def test_shared_call_sites(text: str) -> None:
    assert reach(text) is Reach.SHARED


@pytest.mark.parametrize("path", ["/tmp/a", "/dev/shm/a", "/var/tmp/a"])
def test_node_local_call_sites(path: str) -> None:
    assert reach(f"def main(name):\n    os.makedirs(os.path.join({path!r}, name))\n") is Reach.NODE


@pytest.mark.parametrize("path", ["tmp/a", "/tmpfs/a", "/data/tmp"])
def test_paths_that_only_look_node_local(path: str) -> None:
    assert reach(f"def main(name):\n    os.makedirs(os.path.join({path!r}, name))\n") is Reach.SHARED


@pytest.mark.parametrize(
    "expr",
    [
        pytest.param("'name'" + ".replace('a', 'b')" * 12, id="string methods"),
        pytest.param("os.path.basename(" * 12 + "'name'" + ")" * 12, id="library functions"),
        pytest.param("called(" * 12 + "'name'" + ")" * 12, id="project functions"),
    ],
)
def test_nested_calls_are_normalized_once_per_level(expr: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the work doubles per level, and twenty levels take half a minute."""
    read, readings = PathNormalizer.pieces, []

    def noted(self: PathNormalizer, part: m.Expr, scope: Environment, depth: int) -> object:
        readings.append(part)
        return read(self, part, scope, depth)

    monkeypatch.setattr(PathNormalizer, "pieces", noted)
    (found,) = forms("def called(x):\n    return f'a-{x}'\n", expr)
    assert found is not None
    assert 12 <= len(readings) <= 200


def test_alias_chains_are_followed_to_a_limit() -> None:
    code = "name0 = 'out'\n" + "".join(f"name{n + 1} = name{n} + '/a'\n" for n in range(20))
    near, far = forms(code, "name5", "name20")
    assert near is not None
    assert near.text == "out" + "/a" * 5
    assert far is None


def test_more_paths_than_the_memo_holds() -> None:
    found = forms("", *(f"'out/{n}'" for n in range(1500)))
    assert [None if path is None else path.text for path in found] == [f"out/{n}" for n in range(1500)]
