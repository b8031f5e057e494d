"""Makefiles, justfiles, Dockerfiles, and the tables of task runners.

Shows: `launches/build_files.py`.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest
from support.launching import brief, read

from fsrace_lint.launches.model import Origin

if TYPE_CHECKING:
    from pathlib import Path


def of(root: Path, name: str, text: str) -> list[str]:
    """Return the launches of one file, with their lines."""
    return [f"{launch.line}: {brief(launch)}" for launch in read(root, {name: textwrap.dedent(text)})]


def test_makefile(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    text = """\
        PYTHON ?= python3
        N = 4
        RUN := torchrun --nproc_per_node $(N)
        RUN += --standalone
        python: no.py

        train: data
        \t@$(PYTHON) a.py --out $@ --home $$HOME
        \tcd sub && \\
        \t  $(RUN) b.py
        \t-python c.py $(shell ls) $(wildcard *.py)
        \tfor i in 1 2; do python d.py $$i & done
        """
    assert of(tmp_path, "Makefile", text) == [
        "8: python 1 a.py --out _ --home _",
        "10: torchrun 4 b.py @sub",
        "11: python 1 c.py _ _",
        "12: & 2w~ d.py _",
    ]


def test_makefile_in_a_directory(tmp_path: Path) -> None:
    assert of(tmp_path, "x/Makefile", "a:\n\tpython t.py\n") == ["2: python 1 t.py @x"]
    assert of(tmp_path, "x/rules.mk", "a:\n\tpython ../t.py\n") == ["2: python 1 ../t.py @x"]


def test_makefile_that_ends_in_a_continued_line(tmp_path: Path) -> None:
    assert of(tmp_path, "Makefile", "a:\n\tpython t.py \\") == ["2: python 1 t.py"]


def test_justfile(tmp_path: Path) -> None:
    text = """\
        n := "4"

        train arg="x":
            @torchrun --nproc_per_node {{n}} a.py {{ arg }}
            python b.py \\
              --x

        script:
            #!/usr/bin/env bash
            N=2
            mpirun -np $N python c.py
        """
    assert of(tmp_path, "justfile", text) == [
        "4: torchrun 4 a.py _",
        "5: python 1 b.py --x",
        "11: mpirun 2 c.py",
    ]


def test_dockerfile(tmp_path: Path) -> None:
    text = """\
        FROM python:3
        ENV N=2 M="3"
        ARG K 4
        # RUN python no.py
        RUN --mount=type=cache pip install x && \\
            # a comment
            python a.py
        RUN ["python", "b.py", "--x y"]
        CMD torchrun --nproc_per_node $N c.py
        HEALTHCHECK CMD python no.py
        ENTRYPOINT ["torchrun", "--nproc_per_node", "8"]
        CMD ["d.py"]
        FROM other
        CMD ["python", "e.py"]
        ENTRYPOINT [python
        """
    assert of(tmp_path, "docker/Dockerfile.gpu", text) == [
        "7: python 1 a.py",
        "8: python 1 b.py --x y",
        "9: torchrun 2 c.py",
        "12: torchrun 8 d.py",
        "14: python 1 e.py",
    ]


def test_directories_of_an_image_are_unknown(tmp_path: Path) -> None:
    (tmp_path / "docker" / "sub").mkdir(parents=True)
    text = "RUN cd docker/sub && cd .. && python a.py\nRUN cd sub && python b.py\n"
    assert of(tmp_path, "docker/Dockerfile", text) == ["1: python 1 a.py", "2: python 1 b.py"]


def test_tox(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    text = """\
        [tox]
        commands = python no.py
        [testenv]
        deps = python
        commands =
            pytest -n 4 {posargs:tests}
            - {envpython} a.py {envtmpdir} \\
                --x
        [testenv:b]
        changedir = {toxinidir}/sub
        commands = python b.py {posargs}
        """
    assert of(tmp_path, "tox.ini", text) == [
        "6: pytest 4w tests -n 4 tests",
        "7: python 1 a.py _ --x",
        "11: python 1 b.py @sub _",
    ]


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("pyproject.toml", "[tool.hatch.envs.default.scripts]\ntrain = "),
        ("pyproject.toml", "[tool.pixi.tasks]\ntrain = "),
        ("pyproject.toml", "[tool.pixi.feature.x.tasks.train]\ncmd = "),
        ("pyproject.toml", "[tool.pdm.scripts]\ntrain.shell = "),
        ("pyproject.toml", "[tool.taskipy.tasks]\ntrain = "),
        ("pyproject.toml", "[tool.poe.tasks.train]\ncmd = "),
        ("pixi.toml", "[tasks]\ntrain = "),
        ("hatch.toml", "[envs.test.scripts]\ntrain = "),
    ],
)
def test_tasks(tmp_path: Path, name: str, table: str) -> None:
    text = f"{table}'torchrun --nproc_per_node 2 t.py {{args:--x}}'\n"
    assert of(tmp_path, name, text) == ["2: torchrun 2 t.py --x"]


def test_task_with_multiple_commands(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    text = """\
        [tool.pixi.tasks.a]
        cwd = "sub"
        cmd = "python a.py"
        [tool.hatch.envs.x.scripts]
        b = [
          "python b.py",
        ]
        """
    assert of(tmp_path, "pyproject.toml", text) == ["3: python 1 a.py @sub", "6: python 1 b.py"]


def test_other_tables_are_not_read(tmp_path: Path) -> None:
    assert (
        of(tmp_path, "pyproject.toml", "[tool.other]\na = 'python t.py'\n[project]\nb = 'python t.py'\n")
        == []
    )
    for text in ("tool = 3 # python", "[tool\npython", "[tool]\npixi = 3 # python", "a = " + "[" * 9999):
        assert of(tmp_path, "pyproject.toml", f"{text} # python") == []


def test_noxfile(tmp_path: Path) -> None:
    text = """\
        @nox.session
        def tests(session):
            session.run("pytest", "-n", "4", "tests", *session.posargs, env={"A": "b"})
            session.run(
                "torchrun",
                "--nproc_per_node=2",  # two
                'a.py',
                f(x),
            )
            session.run(*args)
            session.run(
        """
    assert of(tmp_path, "noxfile.py", text)[1:] == ["4: torchrun 2 a.py"]
    assert of(tmp_path, "noxfile.py", text)[0].startswith("3: pytest 4w tests -n 4 tests")


def test_origin(tmp_path: Path) -> None:
    found = read(tmp_path, {"Makefile": "a:\n\tpython a.py\n", "Dockerfile": "RUN python b.py\n"})
    assert [launch.origin for launch in found] == [Origin.CONTAINER, Origin.BUILD]


@pytest.mark.parametrize("name", ["pytest.ini", ".pytest.ini", "sub/pytest.ini", "tox.ini"])
def test_options_of_pytest(tmp_path: Path, name: str) -> None:
    folder = " @sub" if "/" in name else ""
    text = "[pytest]\naddopts =\n    -q\n    -n 3\n"
    assert of(tmp_path, name, text) == [f"2: pytest 3w .{folder} -q -n 3"]


def test_options_of_pytest_in_other_files(tmp_path: Path) -> None:
    assert of(tmp_path, "setup.cfg", "[tool:pytest]\naddopts = -n auto\n") == ["2: pytest ?w . -n auto"]
    assert of(tmp_path, "pytest.ini", "[pytest]\nAddOpts = -n 3\n") == ["2: pytest 3w . -n 3"]
    escaped = '[tool.pytest.ini_options]\n"\\u0061ddopts" = "-n 3"\n'
    assert of(tmp_path, "pyproject.toml", escaped) == ["1: pytest 3w . -n 3"]
    text = "[tool.pytest.ini_options]\naddopts = {}\n"
    assert of(tmp_path, "pyproject.toml", text.format('["-q", "-n4"]')) == ["2: pytest 4w . -q -n4"]
    assert of(tmp_path, "pyproject.toml", text.format('"-n 4"')) == ["2: pytest 4w . -n 4"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("setup.cfg", "[tool:pytest]\ntestpaths = tests\n"),
        ("setup.cfg", "addopts = -n 4\n"),
        ("pytest.ini", "[pytest]\naddopts =\n"),
        ("pyproject.toml", "[tool.pytest.ini_options]\naddopts = 4\n"),
        ("pyproject.toml", "tool = 'pytest'\n"),
    ],
)
def test_no_options_of_pytest(tmp_path: Path, name: str, text: str) -> None:
    assert of(tmp_path, name, text) == []
