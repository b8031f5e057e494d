"""W&B: cleaning up the artifact cache fails while another process downloads an artifact.

Promise: The cache is shared by all processes of a user. By default, `cleanup()` keeps temporary files,
"files that are currently being written to the cache", and counts their size.

Failure: The function lists the temporary files and then calls `stat()` for each. A download that is
complete in between is renamed to its final name, and the `FileNotFoundError` is raised.

Harm: `wandb artifact cache cleanup` and the automatic clean-up of a full disk fail while training jobs run.

Fix: Skip files that do not exist anymore.
"""

from types import SimpleNamespace

from wandb.sdk.artifacts import artifact_file_cache
from wandb.sdk.artifacts.artifact_file_cache import ArtifactFileCache

# the original starts a program that prints the umask
artifact_file_cache._get_sys_umask_threadsafe = lambda: 0o022


def setup(root):
    """An empty cache."""
    ArtifactFileCache(root)


def broken(root, rank):
    """Process 0 downloads a file of an artifact; process 1 cleans up the cache."""
    cache = ArtifactFileCache(root)
    if rank == 0:
        _, _, opener = cache.check_digest_obj_path("1B2M2Y8AsgTpgAmY7PhCfg==", 7)
        with opener("w") as file:
            file.write("weights")
    else:
        cache.cleanup(target_size=1_000_000)


original = artifact_file_cache.files_in


def existing_files(folder):
    """List files like `files_in()`, with the result of `stat()`, but skip those that have vanished."""
    for entry in original(folder):
        try:
            found = entry.stat()
        except FileNotFoundError:
            continue
        yield SimpleNamespace(path=entry.path, stat=lambda found=found: found)


def repaired(root, rank):
    """The same, with the fix."""
    artifact_file_cache.files_in = existing_files
    broken(root, rank)
