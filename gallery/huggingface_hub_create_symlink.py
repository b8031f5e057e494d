"""Hugging Face Hub: a path that was returned does not exist for a moment.

Promise: A comment in `_hf_hub_download_to_cache_dir()` says that the lock is "best-effort" and "cache
correctness does not depend on it". `_create_symlink()` handles a file that "has been cached twice
concurrently".

Failure: `_create_symlink()` deletes the destination before it creates the link. If the lock does not
exclude the other process, both can find no link: for example on a cluster filesystem with the option
`localflock`, where `flock()` works within one node only. One process creates the link and returns its path.
The other deletes it and creates it again, and the first process fails when it opens the path.

Harm: `open(hf_hub_download(...))` and `from_pretrained()` fail with `FileNotFoundError` on a shared cache.

Fix: Create the link under a temporary name and rename it to the destination.
"""

import os

from huggingface_hub import file_download

# the result of the test for symbolic links is remembered for each cache directory
file_download.are_symlinks_supported = lambda folder=None: True


def setup(root):
    """A cache with a downloaded blob, and without the link to it."""
    (root / "blobs").mkdir()
    (root / "blobs" / "1f2e").write_text("weights")
    (root / "snapshots").mkdir()


def broken(root, rank):
    """Get the path as `hf_hub_download()` does for a blob that exists, and open it."""
    pointer = str(root / "snapshots" / "weights")
    if not os.path.exists(pointer):
        file_download._create_symlink(str(root / "blobs" / "1f2e"), pointer)
    with open(pointer) as file:
        assert file.read() == "weights"


def create_symlink(src, dst, new_blob=False):
    """Create a link like `_create_symlink()`, in one step."""
    temporary = f"{dst}.{os.getpid()}"
    os.symlink(os.path.relpath(src, os.path.dirname(dst)), temporary)
    os.replace(temporary, dst)


def repaired(root, rank):
    """The same, with the fix."""
    file_download._create_symlink = create_symlink
    broken(root, rank)
