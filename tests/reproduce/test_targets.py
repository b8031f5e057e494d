"""The function that a scenario calls, and how it is imported."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.reproducing import body_of, finding_in, scenario

from fsrace_lint.reproduce.target import CannotReproduce, target_of


@pytest.mark.parametrize(
    ("text", "name", "body"),
    [
        ("def f():\n    pass  # here\n", "f", ["f()"]),
        ("def f():\n    def g():\n        pass  # here\n    return g\n", "f", ["f()"]),
        ("if True:\n    def f():\n        pass  # here\n", "f", ["f()"]),
        ("try:\n    pass\nexcept OSError:\n    def f():\n        pass  # here\n", "f", ["f()"]),
        ("def f():\n    yield 1  # here\n", "f", ["list(f())"]),
        ("def f():\n    def g():\n        yield 1  # here\n", "f", ["f()"]),
        ("@contextlib.contextmanager\ndef f():\n    yield  # here\n", "f", ["with f():", "    pass"]),
        ("class C:\n    def f(self):\n        pass  # here\n", "C.f", ["owner = C.__new__(C)", "owner.f()"]),
        ("class C:\n    @staticmethod\n    def f(a: int):\n        pass  # here\n", "C.f", ["C.f(a=1)"]),
        ("class C:\n    @classmethod\n    def f(cls, a: int):\n        pass  # here\n", "C.f", ["C.f(a=1)"]),
        ("class C:\n    def __init__(self, a: int):\n        pass  # here\n", "C.__init__", ["C(a=1)"]),
        (
            "class C:\n    @functools.cached_property\n    def f(self):\n        pass  # here\n",
            "C.f",
            ["owner = C.__new__(C)", "owner.f"],
        ),
    ],
)
def test_function(tmp_path: Path, text: str, name: str, body: list[str]) -> None:
    made = scenario(tmp_path, text)
    assert made.target.name == name
    assert body_of(made) == body
    imported = name.partition(".")[0]
    assert f"\nfrom main import {imported}\n" in made.text


def test_module_code_is_run(tmp_path: Path) -> None:
    made = scenario(tmp_path, "import os\nfrom json import dumps\nos.mkdir('a')  # here\n")
    assert made.target.name == "<module>"
    assert body_of(made) == [f'runpy.run_path({str(tmp_path / "main.py")!r}, run_name="__main__")']
    assert "\nfor name in ['json', 'os']:\n" in made.text


@pytest.mark.parametrize(
    ("packages", "text", "module", "folder"),
    [
        ([], "", "c", "a/b"),
        (["a/b"], "", "b.c", "a"),
        (["a", "a/b"], "", "a.b.c", ""),
        ([], "from . import d\n", "b.c", "a"),
        ([], "from ..d import e\n", "a.b.c", ""),
    ],
)
def test_module_name(tmp_path: Path, packages: list[str], text: str, module: str, folder: str) -> None:
    for package in packages:
        (tmp_path / package).mkdir(parents=True, exist_ok=True)
        (tmp_path / package / "__init__.py").touch()
    made = scenario(tmp_path, f"{text}def f():\n    pass  # here\n", "a/b/c.py")
    assert (made.target.module, made.target.folder) == (module, tmp_path / folder)
    assert f"\nfrom {module} import f\n" in made.text
    first = f"str(PROJECT / {folder!r}), str(PROJECT)" if folder else "str(PROJECT)"
    assert f"\nsys.path[:0] = [{first}]\n" in made.text


def test_package_itself_is_imported_by_its_name(tmp_path: Path) -> None:
    assert scenario(tmp_path, "def f():\n    pass  # here\n", "a/__init__.py").target.module == "a"


def test_source_directories_are_in_the_search_path(tmp_path: Path) -> None:
    for folder in ("src", "part/src"):
        (tmp_path / folder).mkdir(parents=True)
    made = scenario(tmp_path, "def f():\n    pass  # here\n")
    assert "sys.path[:0] = [str(PROJECT), str(PROJECT / 'src'), str(PROJECT / 'part/src')]" in made.text


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("main.py", "async def f():\n    pass  # here\n", "`f` is an `async` function"),
        ("a-b.py", "def f():\n    pass  # here\n", "`a-b` cannot be imported by name"),
        ("main.py", "def f(:\n    pass  # here\n", "cannot be read"),
    ],
)
def test_what_cannot_be_called(tmp_path: Path, name: str, text: str, reason: str) -> None:
    with pytest.raises(CannotReproduce) as raised:
        scenario(tmp_path, text, name)
    assert reason in str(raised.value)


def test_path_is_relative_to_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "main.py").write_text("def f():\n    pass  # here\n")
    monkeypatch.chdir(tmp_path)
    assert target_of(finding_in(Path("main.py"))).file == tmp_path / "main.py"


def test_process_group_is_simulated_if_the_file_uses_one(tmp_path: Path) -> None:
    assert scenario(tmp_path, "import torch.distributed\ndef f():\n    pass  # here\n").is_distributed
    assert not scenario(tmp_path, "import torch\ndef f():\n    pass  # here\n").is_distributed


def test_scenario_is_valid_python(tmp_path: Path) -> None:
    text = "class C:\n    def f(self, out, thing):\n        os.listdir(out)  # here\n"
    compile(scenario(tmp_path, text).text, "scenario.py", "exec")
