"""A lock shows that multiple processes run the code, also in a script that nothing starts twice.

Shows: `rules/base.py`
"""

from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING

import pytest
from support.mdtest import run

if TYPE_CHECKING:
    from pathlib import Path

    from fsrace_lint.findings.finding import Finding

HEAD = """\
import fcntl
import os
import shutil

from filelock import FileLock
"""
MAIN = """

if __name__ == "__main__":
    work("out")
"""
LAUNCHED = """

if __name__ == "__main__":
    import torch.distributed as dist

    dist.init_process_group("gloo")
    work("out")
"""
MISUSES = [
    pytest.param(
        "FSR501",
        """
        def work(path):
            if not os.path.exists(path + ".lock"):
                open(path + ".lock", "w").close()
                os.remove(path + ".lock")
        """,
        id="hand-written lock file",
    ),
    pytest.param(
        "FSR502",
        """
        def work(path):
            with FileLock(path + ".lock", timeout=600):
                print(path)
            os.remove(path + ".lock")
        """,
        id="deleted lock file",
    ),
    pytest.param(
        "FSR504",
        """
        def work(path):
            if not os.path.exists(path):
                with FileLock(path + ".lock", timeout=600):
                    shutil.unpack_archive("data.tar", path)
        """,
        id="check outside the lock",
    ),
    pytest.param(
        "FSR505",
        """
        def work(path):
            with FileLock(f"{path}.{os.getpid()}.lock", timeout=600):
                shutil.unpack_archive("data.tar", path)
        """,
        id="lock of each process",
    ),
    pytest.param(
        "FSR506",
        """
        def work(path):
            with open(path, "w") as stream:
                fcntl.flock(stream, fcntl.LOCK_EX)
                stream.write("x")
        """,
        id="truncated before locked",
    ),
]


def found(root: Path, code: str, text: str) -> Finding:
    """Return the only finding of a rule in a script."""
    (root / "main.py").write_text(HEAD + text, "utf-8")
    _, checked = run(root)
    (finding,) = (each for each in checked.outcome.findings if each.code == code)
    return finding


@pytest.mark.parametrize(("code", "text"), MISUSES)
def test_in_a_script(code: str, text: str, tmp_path: Path) -> None:
    finding = found(tmp_path, code, dedent(text) + MAIN)
    assert (finding.severity.value, finding.confidence, finding.strict) == ("warning", "medium", False)
    assert "the lock shows that multiple processes run this" in {each.message for each in finding.related}


@pytest.mark.parametrize(("code", "text"), MISUSES)
def test_in_a_job(code: str, text: str, tmp_path: Path) -> None:
    finding = found(tmp_path, code, dedent(text) + LAUNCHED)
    assert finding.evidence == "evident"
    assert "the lock shows that multiple processes run this" not in {each.message for each in finding.related}
