"""The confidence of findings in files that nothing in the repository runs.

Shows: `analysis/callgraph/unused_files.py`
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.mdtest import run

if TYPE_CHECKING:
    from pathlib import Path

MAKE = """\
import os

import torch.distributed as dist

{before}
def make(root):
    dist.init_process_group("nccl")
    if not os.path.exists("out"):
        os.makedirs("out")
{after}
"""
TRAIN = """\
import torch.distributed as dist

{before}
dist.init_process_group("nccl")
"""
LOADER = """\
import importlib

def load(name):
    return importlib.import_module(f"models.{name}_model").make()
"""
LAUNCH = {"launch.sh": "torchrun --nproc_per_node=8 train.py\n"}


def confidence(
    root: Path, texts: dict[str, str], *, train: str = "", before: str = "", after: str = ""
) -> str:
    """Return the confidence of the finding in `models/gan_model.py`."""
    files = {
        "train.py": TRAIN.format(before=train),
        "models/gan_model.py": MAKE.format(before=before, after=after),
        **texts,
    }
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, "utf-8")
    _, checked = run(root)
    (finding,) = (each for each in checked.outcome.findings if each.code == "FSR101")
    return finding.confidence


def test_no_other_file_names_it(tmp_path: Path) -> None:
    assert confidence(tmp_path, LAUNCH) == "low"


def test_it_is_not_known_what_is_started(tmp_path: Path) -> None:
    assert confidence(tmp_path, {}) == "high"


@pytest.mark.parametrize(
    "train",
    [
        "from models import gan_model",
        "from models.gan_model import make",
        "import models.gan_model",
        'MODELS = {"gan": "models.gan_model.make"}',
        'MODEL = "gan_model"',
    ],
)
def test_another_file_names_it(tmp_path: Path, train: str) -> None:
    assert confidence(tmp_path, LAUNCH, train=train) == "high"


def test_a_file_near_it_loads_files_by_computed_names(tmp_path: Path) -> None:
    assert confidence(tmp_path, {**LAUNCH, "models/__init__.py": LOADER}) == "medium"


def test_a_file_at_the_root_loads_files_by_computed_names(tmp_path: Path) -> None:
    assert confidence(tmp_path, {**LAUNCH, "plugins.py": LOADER}) == "medium"


def test_another_file_may_call_it_on_an_unknown_object(tmp_path: Path) -> None:
    text = MAKE.format(before="\nclass Gan:", after="").replace(
        "def make(root)", "    def make_all_gans(self)"
    )
    text = text.replace("\n    dist.init", "\n        dist.init").replace("\n    if not", "\n        if not")
    text = text.replace("\n        os.makedirs", "\n            os.makedirs")
    files = {**LAUNCH, "models/gan_model.py": text}
    assert confidence(tmp_path, files) == "low"
    assert confidence(tmp_path, {**files, "run.py": "def run(gan):\n    gan.make_all_gans()\n"}) == "high"


def test_a_file_elsewhere_loads_files_by_computed_names(tmp_path: Path) -> None:
    assert confidence(tmp_path, {**LAUNCH, "plugins/__init__.py": LOADER}) == "low"


@pytest.mark.parametrize(
    "after", ["make('out')", "if __name__ == '__main__':\n    make('out')", "def run():\n    make(1)\nrun()"]
)
def test_its_main_code_runs_it(tmp_path: Path, after: str) -> None:
    assert confidence(tmp_path, LAUNCH, after=after) == "high"


def test_a_decorator_registers_the_function(tmp_path: Path) -> None:
    before = "from registry import register\n\n@register"
    assert confidence(tmp_path, LAUNCH, before=before) == "high"


def test_a_decorator_registers_the_class(tmp_path: Path) -> None:
    text = """\
import os

import torch.distributed as dist

from registry import register

@register
class Gan:
    def make(self):
        dist.init_process_group("nccl")
        if not os.path.exists("out"):
            os.makedirs("out")
"""
    assert confidence(tmp_path, {**LAUNCH, "models/gan_model.py": text}) == "high"


def test_a_package_is_named_by_its_directory(tmp_path: Path) -> None:
    files = {**LAUNCH, "models/gan_model.py": "", "models/__init__.py": MAKE.format(before="", after="")}
    assert confidence(tmp_path, files) == "high"


def test_a_script_without_a_test_of_its_name(tmp_path: Path) -> None:
    text = 'import os\n\nif not os.path.exists("/data/out"):\n    os.makedirs("/data/out")\n'
    assert confidence(tmp_path, {**LAUNCH, "models/gan_model.py": text}) == "low"
    assert (
        confidence(tmp_path, {**LAUNCH, "models/gan_model.py": text}, train="import models.gan_model")
        != "low"
    )
