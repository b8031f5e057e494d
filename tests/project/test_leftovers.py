"""A test run fails if it leaves processes or files behind, and lists them."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from support import TESTS

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")

LEAVING = {
    "process": "subprocess.Popen(['sleep', '20.25'], stdin=subprocess.DEVNULL)",
    "directory": "tempfile.mkdtemp(prefix='forgotten-')",
    "socket": "socket.socket(socket.AF_UNIX).bind(tempfile.gettempdir() + '/forgotten-')",
    "nothing": "with tempfile.TemporaryDirectory(): subprocess.run(['true'])",
}


@pytest.mark.parametrize(("what", "options"), [*((what, ()) for what in LEAVING), ("directory", ("-n2",))])
def test_leftovers_are_reported(what: str, options: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["support.leftovers"]\n')
    (tmp_path / "test_it.py").write_text(
        f"import socket, subprocess, tempfile\n\ndef test_it():\n    {LEAVING[what]}\n"
    )
    patience = (
        "from support import leftovers; leftovers.PATIENCE = 0.5; import pytest, sys; sys.exit(pytest.main())"
    )
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(TESTS)!r}); {patience}"]
    done = subprocess.run([*command, *options], cwd=tmp_path, capture_output=True, text=True, check=False)
    left = what != "nothing"
    assert done.returncode == int(left), done.stdout + done.stderr
    assert ("The tests have left behind:" in done.stdout) is left
    assert {"process": "sleep 20.25", "nothing": "1 passed"}.get(what, "forgotten-") in done.stdout
