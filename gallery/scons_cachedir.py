"""SCons: two builds start with a new cache directory, and one fails.

Promise: A cache directory is shared by the builds of multiple developers. `CacheDir._add_config()` takes a
lock, because "it is legal to call CacheDir with an existing directory, which may be missing the config
file, and in that case we do need locking".

Failure: The check for the config file is outside the lock. Two builds both find no file. The second one
waits for the lock and then creates the file with mode `"x"`, which fails because the file exists.

Harm: `scons` fails with `FileExistsError`, for example in two jobs of a CI system that share an empty
directory.

Fix: Accept a file that exists when the lock is held.
"""

from SCons.CacheDir import CacheDir
from SCons.Util.filelock import LockTimeoutError  # noqa: F401  # an expected exception


def setup(root):
    """A directory for the cache, without a config file."""
    (root / "cache").mkdir()


def broken(root, rank):
    """Start a build."""
    assert CacheDir(str(root / "cache")).config["prefix_len"] == 2


class PatientCacheDir(CacheDir):
    """The cache directory with the fix."""

    def _add_config(self, path):
        try:
            super()._add_config(path)
        except FileExistsError:
            pass


def repaired(root, rank):
    """The same, with the fix."""
    assert PatientCacheDir(str(root / "cache")).config["prefix_len"] == 2
