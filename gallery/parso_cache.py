"""parso: a reader loads a cache file that another process has only opened.

Promise: The cache directory is shared by all processes of a user (`jedi`, IPython, editors). The module has
a lock file so that multiple processes do not clear the cache at the same time, and `load_module()` returns
`None` if it fails.

Failure: `_save_to_file_system()` opens the final path with `"wb"` and pickles into it. Another process that
parses the same file finds the empty cache file, and `pickle.load()` raises `EOFError`. Only
`FileNotFoundError` is handled.

Harm: `Grammar.parse(path=..., cache=True)` fails with `EOFError`. With `jedi`, a completion request fails.

Fix: Write to a temporary file in the same directory and rename it.
"""

import os
import pickle
import tempfile

import parso
import parso.cache

GRAMMAR = parso.load_grammar()


def setup(root):
    """A source file older than the cache, and the directory of an earlier run."""
    source = root / "module.py"
    source.write_text("x = 1\n")
    os.utime(source, (1, 1))
    parso.cache._get_cache_directory_path(root / "cache")
    parso.cache._touch(root / "cache" / "PARSO-CACHE-LOCK")


def broken(root, rank):
    """Parse a file with the cache."""
    return GRAMMAR.parse(path=root / "module.py", cache=True, cache_path=root / "cache").get_code()


def save_atomically(hashed_grammar, path, item, cache_path=None):
    """Save like `_save_to_file_system()`, in one step."""
    final = parso.cache._get_hashed_path(hashed_grammar, path, cache_path=cache_path)
    descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(final))
    with os.fdopen(descriptor, "wb") as file:
        pickle.dump(item, file, pickle.HIGHEST_PROTOCOL)
    os.replace(temporary, final)


def repaired(root, rank):
    """The same, with the fix."""
    parso.cache._save_to_file_system = save_atomically
    return broken(root, rank)
