"""Objects for arguments that nothing describes, and modules that are not installed."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import pytest

from fsrace_lint.reproduce.stand_ins import StandIn, for_missing_modules

if TYPE_CHECKING:
    from pathlib import Path


def test_stand_in_is_nothing_in_particular() -> None:
    it: Any = StandIn(1, a=2)
    assert isinstance(it.name.other(1)["key"], StandIn)
    assert (list(it), len(it), bool(it), int(it), float(it), json.dumps(it)) == ([], 0, True, 1, 1.0, "{}")
    assert isinstance(pickle.loads(pickle.dumps(it)), StandIn)
    assert it + 1 is it
    assert 1 / it is it
    assert not it < 1
    with it as entered:
        assert entered is it
    with pytest.raises(AttributeError):
        it.__fspath__  # noqa: B018  # it must not pass for a path


def test_stand_in_is_a_decorator_and_a_base_class() -> None:
    it: Any = StandIn()

    @it.register  # type: ignore[untyped-decorator]
    def one() -> int:
        return 1

    @it.register("name")  # type: ignore[untyped-decorator]
    def two() -> int:
        return 2

    class Both(it.First, it.Second, key=1):  # type: ignore[misc, call-arg]
        def name(self) -> str:
            return "b"

    assert one() == 1
    assert two() == 2
    assert Both().name() == "b"


def test_nothing_is_an_instance_of_a_stand_in() -> None:
    it: Any = StandIn()
    assert not isinstance(1, it)
    assert not issubclass(int, it)


PROGRAM = """
import sys
from pathlib import Path

from fsrace_lint.reproduce.stand_ins import for_missing_modules

sys.path[:0] = [str(Path("project").resolve()), str(Path("library").resolve())]
with for_missing_modules(Path("project")) as missing:
    import code_of_project
print(sorted(missing), len(sys.meta_path) and "fsrace" in str(sys.meta_path))
"""
PROJECT = """
import absent_of_project.inner as inner
from absent_of_project import Base
import library_of_project

class Model(Base):
    pass

print(library_of_project.FOUND, inner.anything(1))
for name in ("code_of_project_2", "own.absent"):
    try:
        __import__(name)
    except ImportError as error:
        print(error)
"""
LIBRARY = """
try:
    import absent_of_library
    FOUND = True
except ImportError:
    FOUND = False
"""


def test_only_imports_of_the_project_are_replaced(tmp_path: Path) -> None:
    for name, text in (
        ("project/code_of_project.py", PROJECT),
        ("project/own/__init__.py", ""),
        ("library/library_of_project.py", LIBRARY),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(textwrap.dedent(text))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        "False {}",
        "No module named 'own.absent'",
        "['absent_of_project', 'code_of_project_2'] False",
    ]


def test_finder_is_removed(tmp_path: Path) -> None:
    before = list(sys.meta_path)
    with for_missing_modules(tmp_path):
        assert len(sys.meta_path) == len(before) + 1
    assert sys.meta_path == before


def test_names_of_dictionary_methods_are_attributes_too() -> None:
    found: Any = StandIn()
    assert len(found.names.values) == 0
    assert list(found.values()) == list(found.items()) == []
    assert found.get("x").y is not None
    assert pickle.loads(pickle.dumps(found)) == found
    assert json.dumps({"x": found}) == '{"x": {}}'
