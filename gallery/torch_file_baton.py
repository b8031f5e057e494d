"""PyTorch: after a kill during the compilation of an extension, every process waits forever.

Promise: `FileBaton` is a "file-based synchronization utility". `torch.utils.cpp_extension.load()` uses it
so that one process compiles an extension, and the others wait.

Failure: The baton is a file that its owner deletes. If the owner is killed, the file stays, and `wait()`
polls forever.

Harm: All other ranks of the job wait forever, and so does every later job that loads the extension, until
the file `lock` in the build directory is deleted by hand. A job that reaches its time limit during a
compilation is enough.

Fix: Hold `fcntl.flock()` on the file, which the kernel releases when the owner dies.
"""

import fcntl
import os

from torch.utils.file_baton import FileBaton


def load(baton, root):
    """Compile an extension, or wait until it is compiled, as `_jit_compile()` does."""
    if baton.try_acquire():
        try:
            (root / "extension.so").touch()
        finally:
            baton.release()
    else:
        baton.wait()


def broken(root, rank):
    """Load an extension."""
    load(FileBaton(str(root / "lock")), root)


class KernelBaton(FileBaton):
    """The baton with the fix."""

    def try_acquire(self):
        """Try to get the baton."""
        self.fd = os.open(self.lock_file_path, os.O_CREAT | os.O_RDWR)
        try:
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def wait(self):
        """Wait until the baton is released."""
        fcntl.flock(self.fd, fcntl.LOCK_EX)
        os.close(self.fd)

    def release(self):
        """Release the baton; the file stays."""
        os.close(self.fd)


def repaired(root, rank):
    """The same, with the fix."""
    load(KernelBaton(str(root / "lock")), root)
