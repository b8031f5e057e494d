"""Shell scripts that a launcher starts.

Shows: `launches/scripts.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.launching import brief, read

if TYPE_CHECKING:
    from pathlib import Path

WORKER = "python t.py --x\n"


def of(root: Path, **scripts: str) -> list[str]:
    """Return the launches of shell scripts in one directory."""
    files = {f"scripts/{name}.sh": text for name, text in scripts.items()}
    return [f"{launch.path.rpartition('/')[2]} {brief(launch)}" for launch in read(root, files)]


@pytest.mark.parametrize(
    "name", ["scripts/worker.sh", "worker.sh", "$DIR/worker.sh", '"$(dirname "$0")"/worker.sh']
)
def test_script_in_a_launcher(tmp_path: Path, name: str) -> None:
    assert of(tmp_path, run=f"srun -n 4 bash {name} a\n", worker=WORKER) == ["worker.sh srun 4 t.py --x"]


def test_script_in_a_background_loop(tmp_path: Path) -> None:
    script = "for i in 1 2 3; do ./scripts/worker.sh $i & done\n"
    assert of(tmp_path, run=script, worker=WORKER) == ["worker.sh & 3w t.py --x"]
    assert of(tmp_path, run=script, worker="python t.py $1 --x\n") == ["worker.sh & 3w~ t.py _ --x"]
    assert of(tmp_path, run=script, worker="python t.py --a=$1\n") == ["worker.sh & 3w~ t.py --a="]
    script = "for i in 1; do ./scripts/worker.sh $i & done\n"
    assert of(tmp_path, run=script, worker=WORKER)[-1] == "worker.sh python 1 t.py --x"


def test_script_that_starts_plainly(tmp_path: Path) -> None:
    assert of(tmp_path, run="bash scripts/worker.sh\n", worker=WORKER) == ["worker.sh python 1 t.py --x"]


def test_launchers_with_other_numbers(tmp_path: Path) -> None:
    script = "srun -n 4 bash scripts/worker.sh\nsrun -n 2 bash scripts/worker.sh\n"
    assert of(tmp_path, run=script, worker=WORKER) == ["worker.sh srun ? t.py --x"]


def test_launcher_in_the_script(tmp_path: Path) -> None:
    worker = "torchrun --nproc_per_node 8 t.py\n"
    assert of(tmp_path, run="srun bash scripts/worker.sh\n", worker=worker) == ["worker.sh torchrun ? t.py"]
    script = "ls | xargs -P 2 bash scripts/worker.sh\n"
    assert of(tmp_path, run=script, worker=worker) == ["worker.sh torchrun 8 t.py"]


def test_chain_of_scripts(tmp_path: Path) -> None:
    found = of(tmp_path, a="srun -n 2 bash scripts/b.sh\n", b="exec bash scripts/c.sh\n", c=WORKER)
    assert found == ["c.sh srun 2 t.py --x"]
    found = of(tmp_path, a="srun -n 2 bash scripts/b.sh\n", b="srun -n 3 bash scripts/c.sh\n", c=WORKER)
    assert found == ["c.sh srun ? t.py --x"]


def test_scripts_that_start_each_other(tmp_path: Path) -> None:
    scripts = {"a": f"srun bash scripts/b.sh\n{WORKER}", "b": f"srun bash scripts/a.sh\n{WORKER}"}
    assert of(tmp_path, **scripts) == ["a.sh srun ? t.py --x", "b.sh srun ? t.py --x"]


def test_script_that_is_missing(tmp_path: Path) -> None:
    assert of(tmp_path, run="srun -n 2 bash missing.sh\n") == ["run.sh srun 2 missing.sh"]
    assert of(tmp_path, run="srun -n 2 bash scripts/run.sh\n") == ["run.sh srun 2 scripts/run.sh"]
