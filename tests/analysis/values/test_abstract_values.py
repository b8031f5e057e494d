"""Values of names: many names, and many branches that bind one name."""

from __future__ import annotations

import importlib
import pkgutil
import random
from typing import TYPE_CHECKING

from support.linked import project

import fsrace_lint.analysis
from fsrace_lint.analysis.values.abstract_values import (
    ConditionalValue,
    Environment,
    Expression,
    Union,
    Unknown,
    merge,
)
from fsrace_lint.analysis.values.trace_back import expressions_of
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.values.abstract_values import Binding
    from fsrace_lint.program.modules import LinkedFunction


def function() -> LinkedFunction:
    [module] = project({"a.py": "def f():\n    pass\n"}).flows.table.modules
    return module.functions[1]


def test_every_environment_keeps_its_bindings() -> None:
    """Environments share storage; an earlier one must not see later bindings."""
    owner = function()
    rng = random.Random(7)
    scope = Environment(owner, {})
    known: dict[str, Binding] = {}
    made = []
    for _ in range(3000):
        names = {f"x{rng.randrange(200)}": Expression(m.Constant(rng.random()), scope) for _ in range(2)}
        scope = scope.bind({**names})
        known = {**known, **names}
        made.append((scope, known))
    for scope, known in made[::37]:
        assert {name: scope.get(name) for name in known} == known
        assert scope.get("never") is None


def test_environments_share_storage() -> None:
    scope, count = Environment(function(), {}), 20_000
    held: dict[int, Environment] = {}
    for number in range(count):
        scope = scope.bind({f"x{number}": Unknown()})
        above: Environment | None = scope
        while above is not None and id(above) not in held:
            held[id(above)] = above
            above = above.parent
    assert sum(1 if one.names is None else len(one.names) for one in held.values()) < 5 * count
    length, above = 0, scope
    while above is not None:
        length, above = length + 1, above.parent
    assert length < 100


def test_name_bound_in_many_branches_becomes_unknown() -> None:
    start = Environment(function(), {"x": Unknown()})
    test, scope = Expression(m.Name("a"), start), start
    for number in range(3000):
        other = scope.bind({"x": Expression(m.Constant(number), scope)})
        scope = merge(other, scope, ["x"], test if number % 2 else None)
        assert len(expressions_of(scope.get("x"))) <= 101
    few = start
    for number in range(50):
        few = merge(few.bind({"x": Expression(m.Constant(number), few)}), few, ["x"])
    assert isinstance(few.get("x"), Union)
    assert len(expressions_of(few.get("x"))) == 50


def subclasses_of(kind: type[Record]) -> Iterator[type[Record]]:
    for one in kind.__subclasses__():
        yield one
        yield from subclasses_of(one)


def test_records_are_frozen() -> None:
    for found in pkgutil.walk_packages(fsrace_lint.analysis.__path__, "fsrace_lint.analysis."):
        importlib.import_module(found.name)
    records = list(subclasses_of(Record))
    assert len(records) > 50
    assert [one.__name__ for one in records if not one.__struct_config__.frozen] == []


def test_conditional_value_becomes_unknown_at_the_limit() -> None:
    flows = project({"main.py": "def main():\n    pass\n"}).flows
    _, function = flows.table.modules[0].functions
    scope = flows.final_environment(function)
    assert scope is not None
    here = scope.bind({"path": Expression(m.Constant("first"), scope)})
    test = Expression(m.Name("chosen"), scope)
    for number in range(100):
        here = merge(here.bind({"path": Expression(m.Constant(str(number)), here)}), here, ["path"], test)
    assert isinstance(here.get("path"), ConditionalValue)
    here = merge(here.bind({"path": Expression(m.Constant("last"), here)}), here, ["path"], test)
    assert isinstance(here.get("path"), Unknown)
