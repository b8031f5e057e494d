"""Tests of the oldest Python version that a file must run on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fsrace_lint.fixes.python_versions import declared, lower_bound, oldest

if TYPE_CHECKING:
    from pathlib import Path

LISTED = """\
[metadata]
classifiers =
    Programming Language :: Python :: 3
    Programming Language :: Python :: 3.10
    Programming Language :: Python :: 3.6
"""
FOR_BOTH = "from __future__ import print_function\n"


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (">=3.8,<4", (3, 8)),
        ("^3.7", (3, 7)),
        ("==3.12.*", (3, 12)),
        (">3.7.0", (3, 7)),
        ("~=3.6", (3, 6)),
        (">=2.7, !=3.0.*, !=3.1.*, <4", (2, 7)),
        (">=2.6", (2, 7)),
        (">=3", (3, 0)),
        ("^2.7 || >=3.8", (2, 7)),
        ("<3.9", None),
        ("*", None),
        ("", None),
    ],
)
def test_lower_bound(text: str, version: tuple[int, int] | None) -> None:
    assert lower_bound(text) == version


@pytest.mark.parametrize(
    ("name", "text", "version"),
    [
        ("pyproject.toml", '[project]\nrequires-python = ">=3.6"\n', (3, 6)),
        ("pyproject.toml", '[tool.poetry.dependencies]\npython = "^3.7"\n', (3, 7)),
        ("pyproject.toml", '[project]\nclassifiers = ["Programming Language :: Python :: 2"]\n', (2, 7)),
        ("pyproject.toml", '[tool.ruff]\ntarget-version = "py37"\n', (3, 7)),
        ("pyproject.toml", '[tool.black]\ntarget-version = ["py38", "py36"]\n', (3, 6)),
        ("pyproject.toml", "[project\n", None),
        ("pyproject.toml", 'project = "3.6"\n', None),
        ("setup.cfg", "[options]\npython_requires = >=3.5\n", (3, 5)),
        ("setup.cfg", "[options]\npython_requires =\n    >=3.5\n", (3, 5)),
        ("setup.py", 'setup(python_requires=">=2.7, !=3.0.*")\n', (2, 7)),
        ("setup.py", "REQUIRES_PYTHON = '>=3.6.0'\nsetup(python_requires=REQUIRES_PYTHON)\n", (3, 6)),
        ("setup.py", 'setup(classifiers=["Programming Language :: Python :: 3"])\n', None),
        ("setup.cfg", LISTED, (3, 6)),
        ("setup.py", "setup()\n", None),
    ],
)
def test_declared(tmp_path: Path, name: str, text: str, version: tuple[int, int] | None) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "package").mkdir()
    (tmp_path / name).write_text(text)
    assert declared(tmp_path / "package") == version


def test_requirement_goes_before_classifiers(tmp_path: Path) -> None:
    text = 'setup(python_requires=">=3.8", classifiers=["Programming Language :: Python :: 2.7"])\n'
    (tmp_path / "setup.py").write_text(text)
    assert declared(tmp_path) == (3, 8)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (FOR_BOTH, (2, 7)),
        ("import six\n", (2, 7)),
        ("from future.builtins import str\n", (2, 7)),
        ("from . import six\n", None),
        ("from __future__ import annotations\n", None),
        ("import os\n", None),
        (f"{FOR_BOTH}print(f'{{1}}')\n", None),
    ],
)
def test_file_shows_it(tmp_path: Path, text: str, version: tuple[int, int] | None) -> None:
    (tmp_path / ".git").mkdir()
    assert oldest(tmp_path, text) == version


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("pass\n", (2, 7)),
        ("print(f'{1}')\n", (3, 6)),
        ("def act(path: str): pass\n", (3, 5)),
        ("path.unlink(missing_ok=True)\n", (3, 8)),
        ("os.makedirs(path, exist_ok=True)\n", (3, 5)),
        ("path.mkdir(exist_ok=True)\n", (2, 7)),
    ],
)
def test_file_can_need_more_than_declared(tmp_path: Path, text: str, version: tuple[int, int]) -> None:
    (tmp_path / "setup.py").write_text('setup(python_requires=">=2.7")\n')
    assert oldest(tmp_path, text) == version


@pytest.mark.parametrize(("wanted", "version"), [(">=3", None), (">=3.10", (3, 10))])
def test_settings_decide_over_imports(tmp_path: Path, wanted: str, version: tuple[int, int] | None) -> None:
    (tmp_path / "setup.py").write_text(f'setup(python_requires="{wanted}")\n')
    assert oldest(tmp_path, FOR_BOTH) == version
