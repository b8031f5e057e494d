"""The setting `helpers`: a name that does not exist is an error, and the rules know what the functions do."""

from __future__ import annotations

import pytest
from support.cli import run, write

pytestmark = pytest.mark.usefixtures("here")

COMM = "def leads():\n    return first\n\n\nclass Lock:\n    pass\n"
MAIN = """\
import torch.distributed as dist
{}

def main():
    dist.init_process_group("nccl")
    if leads():
        open("run/config.json", "w").write("x")
"""


def project(name: str, text: str) -> None:
    write({"pyproject.toml": f"[tool.fsrace-lint.helpers]\nis-main-process = '{name}'\n"})
    write({"pkg/__init__.py": "", "pkg/comm.py": COMM, "pkg/main.py": MAIN.format(text)})


@pytest.mark.parametrize("name", ["pkg.comm.leds", "pkg.com.leads", "pgk.comm.leads", "pkg.leads"])
@pytest.mark.parametrize("command", ["check", "fix"])
def test_unknown_name_is_an_error(name: str, command: str) -> None:
    project(name, "from pkg.comm import leads")
    said = f"`helpers.is-main-process`: the project contains no `{name}`, and no file imports it"
    assert said in run(command, "--no-cache", code=2).stderr


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pkg.comm.leads", "from pkg.comm import leads"),
        ("pkg.comm.leads", "from .comm import leads"),
        ("company.comm.leads", "from company.comm import leads"),
    ],
)
def test_rules_know_what_a_named_function_does(name: str, text: str) -> None:
    project(name, text)
    run("check", "--no-cache", code=0)


def test_other_function_is_no_rank_check() -> None:
    project("pkg.comm.Lock", "from pkg.comm import leads")
    assert "FSR201" in run("check", "--no-cache", code=1).stdout
