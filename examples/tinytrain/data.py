"""Fetch and unpack the corpus, the held-out text and the prompts."""

import contextlib
import os
import shutil
import subprocess
import tarfile
import tempfile
import urllib.request
import zipfile
from pathlib import Path

from .distributed import barrier, is_main_process

ARCHIVES = ("corpus.tar.gz", "heldout.tar.gz", "prompts.zip")


def prepare_data(root: Path, base_url: str) -> None:
    """Bring the data set to ``root``, which all nodes share."""
    if not os.path.exists(root):
        os.makedirs(root)
    discard_partial_downloads(root)
    barrier()
    if is_main_process():
        for name in ARCHIVES:
            fetch_archive(f"{base_url}/{name}", root / name)
    barrier()
    extract_corpus(root)
    extract_heldout(root)


def discard_partial_downloads(root: Path) -> None:
    """Delete what an interrupted download has left behind."""
    for name in ARCHIVES:
        with contextlib.suppress(FileNotFoundError):
            os.remove(root / f"{name}.part")


def fetch_archive(url: str, target: Path) -> None:
    """Download one archive unless it is here already."""
    if target.exists():
        return
    part = target.with_name(f"{target.name}.part")
    with urllib.request.urlopen(url) as response, open(part, "wb") as file:
        shutil.copyfileobj(response, file)
    os.replace(part, target)


def extract_corpus(root: Path) -> None:
    """Unpack the training text into ``root/corpus``."""
    if not (root / "corpus").is_dir():
        with tarfile.open(root / "corpus.tar.gz") as archive:
            archive.extractall(root, filter="data")


def extract_heldout(root: Path) -> None:
    """Unpack the evaluation text into ``root/heldout``."""
    archive = root / "heldout.tar.gz"
    subprocess.run(["tar", "-xzf", str(archive), "-C", str(root)], check=True)


def read_text(folder: Path) -> str:
    """Join all text files of a folder in the order of their names."""
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.txt")))


def load_prompts(root: Path) -> list[str]:
    """Read the prompts, unpacked where nobody else looks."""
    scratch = tempfile.mkdtemp(prefix="tinytrain-")
    try:
        with zipfile.ZipFile(root / "prompts.zip") as archive:
            archive.extractall(scratch)
        return [path.read_text(encoding="utf-8").strip() for path in sorted(Path(scratch).rglob("*.txt"))]
    finally:
        shutil.rmtree(scratch)
