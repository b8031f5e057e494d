"""The commands that packaging files install."""

from __future__ import annotations

import pytest

from fsrace_lint.launches.installed import read_packaging


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", '[project.scripts]\nwork = "pkg.cli:main"\n'),
        ("pyproject.toml", '[project.gui-scripts]\nwork = "pkg.cli:main"\n'),
        ("pyproject.toml", '[project.entry-points.console_scripts]\nwork = "pkg.cli:main"\n'),
        ("pyproject.toml", '[tool.poetry.scripts]\nwork = "pkg.cli:main"\n'),
        ("pyproject.toml", '[tool.own_backend.scripts]\nwork = "pkg.cli:main"\ntask = "python -m pkg"\n'),
        ("pyproject.toml", '[project.scripts]\nwork = "pkg.cli:main"\nodd = 1\nother = "no function"\n'),
        ("setup.cfg", "[options.entry_points]\nconsole_scripts =\n    work = pkg.cli:main\n"),
        ("setup.cfg", "[options.entry_points]\nconsole_scripts = work=pkg.cli:main\nother =\n    x = a:b\n"),
        ("setup.py", 'setup(entry_points={"console_scripts": ["work = pkg.cli:main"]})'),
        ("setup.py", "setup(entry_points='''[console_scripts]''', scripts=['work=pkg.cli:main [extra]'])"),
    ],
)
def test_commands_are_read(name: str, text: str) -> None:
    assert read_packaging(name, text) == {"work": "pkg.cli:main"}


def test_multiple_commands_are_read() -> None:
    text = "[options.entry_points]\nconsole_scripts =\n    a-b = pkg:one\n    c.d=pkg.x:Two.run [extra]\n"
    assert read_packaging("setup.cfg", text) == {"a-b": "pkg:one", "c.d": "pkg.x:Two.run"}


def test_entry_of_poetry_can_be_a_table() -> None:
    text = '[tool.poetry.scripts]\nwork = {reference = "bin/run.sh", type = "file"}\n'
    assert read_packaging("pyproject.toml", text) == {}


@pytest.mark.parametrize("data", ["", "[", "[project]\nscripts = 1\n", "project = 1\n", "\0", "a" * 5000])
@pytest.mark.parametrize("name", ["pyproject.toml", "setup.cfg", "setup.py"])
def test_malformed_files_install_nothing(name: str, data: str) -> None:
    assert read_packaging(name, data) == {}
