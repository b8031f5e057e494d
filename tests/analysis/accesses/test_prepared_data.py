"""Data that a hook such as `prepare_data()` has fetched in one process.

Shows: `analysis/accesses/prepared_data.py`
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.mdtest import run

if TYPE_CHECKING:
    from pathlib import Path

BASE = """\
from lightning.pytorch import LightningDataModule


class Module(LightningDataModule):
    def __init__(self, dataset_class, **kwargs):
        super().__init__()
        self.dataset_class = dataset_class
        self.kwargs = kwargs

    def prepare_data(self):
        PREPARE
"""
DATA = """\
import os
import urllib.request

from base import Module

URL = "https://example.org/a.zip"


class Images:
    def __init__(self, root, split="train", download=False):
        self.root, self.split, self.download = root, split, download
        self._verify()

    def exists(self):
        return os.path.exists(os.path.join(self.root, "images"))

    def _verify(self):
        CHECK
        self._download()

    def _download(self):
        urllib.request.urlretrieve(URL, os.path.join(self.root, NAME))


class Data(Module):
    def __init__(self, **kwargs):
        super().__init__(Images, **kwargs)

    def setup(self, stage):
        self.data = SETUP
"""
ASKED = "if self.kwargs.get('download', False):\n            self.dataset_class(**self.kwargs)"
ALWAYS = "self.dataset_class(**self.kwargs)"
CHECKED = """if self.exists():
            return
        if not self.download:
            raise ValueError(self.root)"""
SETUP = "Images(split='val', **self.kwargs)"
EMPTY = "if self.kwargs == {}:\n            self.dataset_class(**self.kwargs)"


@pytest.mark.parametrize(
    ("prepare", "check", "name", "setup", "expected"),
    [
        (ASKED, CHECKED, "'a.zip'", SETUP, ["note"]),
        (ASKED, CHECKED, "'a.zip'", "Images(**self.kwargs)", ["note"]),
        (ALWAYS, CHECKED, "'a.zip'", SETUP, ["note"]),
        (ALWAYS, "if self.exists():\n            return", "'a.zip'", SETUP, ["note"]),
        (
            ALWAYS,
            "if os.path.exists(os.path.join(self.root, 'images')):\n            return",
            "'a.zip'",
            SETUP,
            ["note"],
        ),
        # the hook asks for another setting, makes something else, or makes another file
        (ASKED.replace("'download'", "'fetch'"), CHECKED, "'a.zip'", SETUP, ["warning"]),
        (ASKED, "if self.exists():\n            return", "'a.zip'", SETUP, ["warning"]),
        (ASKED.replace("**self.kwargs)", "**self.more, a=1)"), CHECKED, "'a.zip'", SETUP, ["warning"]),
        (
            "if self.kwargs == {}:\n            self.dataset_class(**self.kwargs)",
            CHECKED,
            "'a.zip'",
            SETUP,
            ["warning"],
        ),
        (ASKED, CHECKED, "self.split + '.zip'", SETUP, ["warning"]),
        ("pass", CHECKED, "'a.zip'", SETUP, ["warning"]),
        # every process fetches it again
        (ALWAYS, "print(self.root)", "'a.zip'", SETUP, ["warning"]),
        (ALWAYS, "if len(self.root) == 0:\n            return", "'a.zip'", SETUP, ["warning"]),
    ],
)
def test_hook(tmp_path: Path, prepare: str, check: str, name: str, setup: str, expected: list[str]) -> None:
    (tmp_path / "base.py").write_text(BASE.replace("PREPARE", prepare), "utf-8")
    text = DATA.replace("CHECK", check).replace("NAME", name).replace("SETUP", setup)
    (tmp_path / "data.py").write_text(text, "utf-8")
    _, checked = run(tmp_path)
    found = [finding for finding in checked.outcome.findings if finding.code == "FSR302"]
    assert [finding.severity.value for finding in found] == expected
