"""YAML: CI files, Compose, Kubernetes, and configurations of job schedulers.

Shows: `launches/yaml_files.py`.
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


def test_github_workflow(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    text = """\
        name: python no.py
        env:
          N: 2
        jobs:
          test:
            env: {M: 4}
            steps:
              - name: run
                run: pytest -n auto
              - run: |
                  cd sub
                  torchrun --nproc_per_node $N a.py
                  python b.py ${{ matrix.x }}
              - working-directory: sub
                run: >
                  torchrun --nproc_per_node $M
                  c.py
              - run: python d.py
              - run: pytest
              - run: ./e.py
        """
    assert of(tmp_path, ".github/workflows/ci.yml", text) == [
        "9: pytest ?w . -n auto",
        "12: torchrun 2 a.py @sub",
        "13: python 1 b.py @sub _",
        "16: torchrun 4 c.py @sub",
        "18: python 1 d.py",
        "19: pytest 1w .",
        "20: python 1 e.py",
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (".gitlab-ci.yml", "test:\n  script:\n    - pip install x\n    - torchrun --nproc_per_node 2 t.py\n"),
        (
            ".gitlab-ci.yml",
            "test:\n  script:\n    - !reference [a, b]\n    - torchrun --nproc_per_node 2 t.py\n",
        ),
        (
            ".circleci/config.yml",
            "steps:\n  - run:\n      name: x\n      command: torchrun --nproc_per_node 2 t.py\n",
        ),
        (
            "azure-pipelines.yml",
            "steps:\n- script: |\n    torchrun --nproc_per_node 2 t.py\n  displayName: x\n",
        ),
        (".buildkite/pipeline.yml", "steps:\n- commands:\n  - x\n  - torchrun --nproc_per_node 2 t.py\n"),
        (
            ".buildkite/pipeline.yml",
            "steps:\n- command:\n  - pip install x\n  - torchrun --nproc_per_node 2 t.py\n",
        ),
    ],
)
def test_ci(tmp_path: Path, name: str, text: str) -> None:
    (launch,) = read(tmp_path, {name: text})
    assert (brief(launch), launch.origin) == ("torchrun 2 t.py", Origin.CI)
    assert "torchrun" in text.split("\n")[launch.line - 1]


def test_compose(tmp_path: Path) -> None:
    text = """\
        services:
          a:
            image: python:3
            command: gunicorn -w 4 pkg.app:app
          b:
            command: ["celery", "-A", "pkg", "worker", "-c", "2"]
          c:
            environment:
              - N=2
            entrypoint: [torchrun, --nproc_per_node, 8]
            command: [c.py, "a b"]
        """
    assert of(tmp_path, "docker-compose.yml", text) == [
        "4: gunicorn 4w -m pkg.app -w 4 pkg.app:app",
        "6: celery 2w -m pkg -A pkg worker -c 2",
        "10: torchrun 8 c.py a b",
    ]


def test_kubernetes(tmp_path: Path) -> None:
    text = """\
        apiVersion: batch/v1
        kind: Job
        spec:
          containers:
            - name: train
              env: [{name: N, value: "8"}]
              command: ["bash", "-c"]
              args:
                - |
                  torchrun --nproc_per_node $N a.py
            - name: other
              command: [python]
              args: ["-m", "pkg.b", "--x"]
        ---
        spec:
          command: [/bin/sh, -c, "python c.py"]
        """
    assert of(tmp_path, "deploy/job.yaml", text) == [
        "10: torchrun 8 a.py",
        "12: python 1 -m pkg.b --x",
        "16: python 1 c.py",
    ]


def test_configurations_of_jobs(tmp_path: Path) -> None:
    mosaic = "name: x\ncommand: |\n  cd repo\n  composer train.py conf.yaml\nimage: y\n"
    assert of(tmp_path, "mcli/a.yaml", mosaic) == ["4: composer ? train.py conf.yaml"]
    sky = "envs:\n  N: 4\nsetup: |\n  pip install x\nrun: |\n  torchrun --nproc_per_node $N t.py\n"
    assert of(tmp_path, "sky.yaml", sky) == ["6: torchrun 4 t.py"]


def test_prose_is_not_read(tmp_path: Path) -> None:
    assert of(tmp_path, "a.yaml", "description: python t.py\nhelp: |\n  python t.py\n") == []
    assert of(tmp_path, "a.yaml", "a: the script python t.py runs\n") == []


def test_aliases(tmp_path: Path) -> None:
    text = "a: &a\n  - python t.py\nb: *a\nc: &c\n  - *c\n  - python u.py\n"
    assert of(tmp_path, "a.yaml", text) == ["2: python 1 t.py", "6: python 1 u.py"]


@pytest.mark.parametrize(
    "text", ["a: [", "\ta: x", "a: 'x", "{{ x }}: [y", "--- !\n%", "[" * 9999, "- " * 9999, "? a\n: b"]
)
def test_malformed_yaml(tmp_path: Path, text: str) -> None:
    assert of(tmp_path, "a.yaml", f"{text} python t.py") == []
