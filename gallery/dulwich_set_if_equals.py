"""dulwich: creating a branch fails while another process deletes a branch of the same directory.

Promise: `set_if_equals()` can be used "to perform an atomic compare-and-swap operation", under a lock file.
`remove_if_equals()` expects that a directory can be "removed by another process".

Failure: `set_if_equals()` creates the directory of the branch and then the lock file in it. The process
that deletes the last branch of this directory removes the directory in between, and creating the lock file
raises `FileNotFoundError`.

Harm: Creating `feature/b` fails because another process deletes `feature/a`.

Fix: Create the directory again and retry.
"""

import os

from dulwich import refs

SHA = b"a" * 40


def setup(root):
    """A repository with one branch."""
    refs.DiskRefsContainer(str(root)).set_if_equals(b"refs/heads/feature/a", None, SHA)


def broken(root, rank):
    """Process 0 creates a branch; process 1 deletes another one."""
    container = refs.DiskRefsContainer(str(root))
    if rank == 0:
        container.set_if_equals(b"refs/heads/feature/b", None, SHA)
    else:
        container.remove_if_equals(b"refs/heads/feature/a", SHA)


git_file = refs.GitFile


def create(path, mode="rb"):
    """Open a file like `GitFile()`; if its directory vanishes, create it again."""
    while mode == "wb":
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            return git_file(path, mode)
        except (FileNotFoundError, FileExistsError):
            pass
    return git_file(path, mode)


def repaired(root, rank):
    """The same, with the fix."""
    refs.ensure_dir_exists = lambda folder: None
    refs.GitFile = create
    broken(root, rank)
