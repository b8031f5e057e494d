"""The vocabulary, kept between runs and shared by them."""

import json
from pathlib import Path

import torch
from filelock import FileLock

from .distributed import get_rank, get_world_size

UNKNOWN = "\N{REPLACEMENT CHARACTER}"


def open_cache(cache_dir: Path, *, rebuild_vocabulary: bool) -> None:
    """Make the cache ready for use."""
    if not cache_dir.is_dir():
        cache_dir.mkdir(parents=True)
    if rebuild_vocabulary:
        drop_vocabulary(cache_dir / "vocabulary.json")


def drop_vocabulary(path: Path) -> None:
    """Forget the vocabulary of an earlier corpus."""
    if path.exists():
        path.unlink()


def load_vocabulary(cache_dir: Path, text: str) -> dict[str, int]:
    """Return the index of each character; the first process to come builds it."""
    path = cache_dir / "vocabulary.json"
    with FileLock(f"{path}.lock", timeout=600):
        if not path.exists():
            part = path.with_suffix(".part")
            part.write_text(json.dumps([UNKNOWN, *sorted(set(text))]), encoding="utf-8")
            part.replace(path)
        characters = json.loads(path.read_text(encoding="utf-8"))
    return {character: index for index, character in enumerate(characters)}


def encode(text: str, vocabulary: dict[str, int]) -> torch.Tensor:
    """Turn text into a vector of character indices."""
    return torch.tensor([vocabulary.get(character, 0) for character in text], dtype=torch.long)


def load_shard(text: str, vocabulary: dict[str, int]) -> torch.Tensor:
    """Encode the part of the corpus that this process trains on."""
    return torch.tensor_split(encode(text, vocabulary), get_world_size())[get_rank()]
