"""The effort for code is proportional to its size, also for recursive code and large hierarchies.

Shows: `engine/query.py`, `analysis/paths/path_normal_form.py`, `analysis/ranks/rank_sources.py`,
`analysis/callgraph/call_graph.py`, `analysis/callgraph/concurrency_evidence.py`
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest
from support.linking import all_results

from fsrace_lint.analysis.callgraph import call_graph, concurrency_evidence, concurrency_markers
from fsrace_lint.analysis.dataflow.process_set import ProcessSet
from fsrace_lint.analysis.paths.path_normal_form import PathNormalizer
from fsrace_lint.analysis.ranks.rank_sources import RankSources
from fsrace_lint.analysis.values import container_elements, resolve
from fsrace_lint.analysis.values.resolve import Resolver
from fsrace_lint.program import relevance

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, ModuleType

CONVERTER = """\
import os
import torch.distributed as dist

dist.init_process_group()

def to_text(value, errors=None, nonstring="repr"):
    if isinstance(value, str):
        return value
    if errors is None:
        return to_text(value, "strict", nonstring)
    if nonstring == "repr":
        try:
            value = str(value)
        except UnicodeError:
            value = repr(value)
        return to_text(to_text(value), errors)
    if isinstance(value, (list, tuple)):
        return to_text(to_text(value[0]) + to_text(value[-1]))
    return to_text(to_text(value, errors), nonstring)

def create(root):
"""
USE = """\
    path{0} = to_text(root + "{0}")
    if not os.path.isdir(path{0}):
        os.makedirs(path{0})
"""

RING = """\
class Node{0}:
    def __init__(self, owner):
        self.entry = None
        self.scope = Node{1}(self)
        self.owner = owner

    def lookup(self, name):
        if self.entry is None and self.scope.lookup(name) is None:
            self.entry = self.scope.declare(name)
        return self.entry

    def declare(self, name):
        if self.scope.entry is None or self.owner.scope.entry is None:
            self.entry = self.scope.scope.lookup(name)
        if not os.path.isdir(self.owner.lookup(name)):
            os.makedirs(self.owner.lookup(name))
        return self.owner.lookup(name) or self.scope.declare(name)

"""
EXITS = """\
    if value == {0}:
        return None if value > {0} else other
"""
CHOICE = """\
    if choose(value, {0}) is None:
        os.makedirs(str({0}))
"""

BASE = """\
import os

class Model:
    @classmethod
    def load(cls, path):
        return cls(path)

    def __init__(self, path):
        self.path = path
        self.prepare()

    def prepare(self):
        pass

"""
HEIR = """\
class Model{0}(Model):
    @classmethod
    def load_{0}(cls, path):
        return cls(path)

    def __init__(self, path):
        super().__init__(path)
        self.prepare()

    def prepare(self):
        if not os.path.isdir(self.path):
            os.makedirs(self.path)

"""
TREE = """\
import os

class Node:
    left: "Node"
    right: "Node"

    def name(self):
        ...

    def parent(self):
        ...

def make(node: Node):
    if not os.path.isdir(node.name().text):
        os.makedirs(node.name().text)

"""
KIND = """\
class Node{0}(Node):
    def name(self):
        return self.left.parent()

    def parent(self):
        return self.right.name()

"""
PAIR = """\
import os

def make(value):
    folder, name = first(value)
    if not os.path.isdir(folder.path):
        os.makedirs(folder.path)

def first(value):
    return second(value)

def second(value):
"""
EXIT = """\
    if value == {0}:
        return first(value + {0})
"""
HELPER = """\
import os

def make(path):
    if not os.path.isdir(path):
        os.makedirs(path)

"""
USER = """\
def use_{0}(path):
    make(path)

"""


def effort(monkeypatch: pytest.MonkeyPatch, code: str, *counted: tuple[type, str]) -> int:
    """Check code, and return how often some methods are called."""
    calls = [0]

    def counting(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            calls[0] += 1
            return method(*arguments)

        return call

    with monkeypatch.context() as patch:
        for owner, name in counted:
            patch.setattr(owner, name, counting(getattr(owner, name)))
        all_results({"code.py": code})
    return calls[0]


def test_conversion_that_calls_itself_is_followed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in `ansible.module_utils`, where the conversion was followed again for every path."""

    def used(times: int) -> int:
        code = CONVERTER + "".join(map(USE.format, range(times)))
        return effort(monkeypatch, code, (PathNormalizer, "_result"), (RankSources, "rank_scope"))

    once, twice, often = map(used, (1, 2, 8))
    assert once < 1_000
    assert often - once == 7 * (twice - once)


def test_effort_for_classes_in_a_ring_is_proportional(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a compiler, where each scope needs attributes of the next one."""

    def of(length: int) -> int:
        ring = "".join(RING.format(i, (i + 1) % length) for i in range(length))
        return effort(monkeypatch, f"import os\n\n{ring}", (Resolver, "_bound_by"), (Resolver, "_attribute"))

    short, long = of(4), of(16)
    assert short < 4_000
    assert long < 4 * short


def test_exits_of_a_function_are_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in an interpreter with a long `if` chain whose result is compared with None in many places."""

    def of(number: int) -> int:
        exits = "".join(map(EXITS.format, range(number)))
        uses = "".join(map(CHOICE.format, range(number)))
        code = f"import os\n\ndef choose(value, other):\n{exits}\ndef make(value):\n{uses}"
        return effort(monkeypatch, code, (ProcessSet, "__or__"))

    few, many = of(4), of(32)
    assert few < 100
    assert many < 8 * few


def calls_in(code: str, modules: tuple[ModuleType, ...]) -> int:
    """Check code, and return how often functions and generators of some modules are entered."""
    files = {module.__file__ for module in modules}
    calls = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        calls += event == "call" and frame.f_code.co_filename in files

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        all_results({"code.py": code})
    finally:
        sys.setprofile(before)
    return calls


@pytest.mark.parametrize(
    ("start", "repeated", "number", "modules"),
    [
        pytest.param(BASE, HEIR, 80, (call_graph, relevance), id="constructors of subclasses"),
        pytest.param(TREE, KIND, 4, (resolve,), id="overrides of abstract methods"),
        pytest.param(PAIR, EXIT, 4, (container_elements,), id="exits that unpack results"),
        pytest.param(
            HELPER, USER, 80, (concurrency_evidence, concurrency_markers), id="functions without callers"
        ),
    ],
)
def test_effort_for_many_users_is_proportional(
    start: str, repeated: str, number: int, modules: tuple[ModuleType, ...]
) -> None:
    """As in `transformers`, `sympy`, and `jax`, where a class or a helper has thousands of users."""

    def of(users: int) -> int:
        return calls_in(start + "".join(map(repeated.format, range(users))), modules)

    assert of(2 * number) < 2.2 * of(number)
