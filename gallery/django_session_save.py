"""Django: a request that saves its session revives a session that was logged out.

Promise: `SessionStore.save()` raises `UpdateError` if the session was deleted in the meantime, so that a
session is not recreated after a logout. Django tests this for all backends.

Failure: The file backend opens the session file to check that it exists, writes a temporary file, and
renames it to the session file. If another request logs the user out between the check and the rename, the
rename creates the session file again.

Harm: The user has logged out, and the session cookie is valid again, with all its data.

Fix: Hold `fcntl.flock()` on a lock file of the storage directory in `save()` and `delete()`.
"""

import contextlib
import fcntl
import os

from django.conf import settings

settings.configure(USE_TZ=True, SECRET_KEY="key", SESSION_ENGINE="django.contrib.sessions.backends.file")

from django.contrib.sessions.backends.base import UpdateError  # noqa: E402  # needs the settings
from django.contrib.sessions.backends.file import SessionStore  # noqa: E402

KEY = "a" * 32


def store(kind, root):
    """The session of the user."""
    kind._storage_path = str(root)
    session = kind(KEY)
    session._session_cache = {"user": 1}
    return session


def setup(root):
    """A user who has logged in."""
    session = store(SessionStore, root)
    session.save(must_create=True)


def requests(kind, root, rank):
    """Process 0 changes the session; process 1 logs the user out."""
    session = store(kind, root)
    if rank == 1:
        session.delete(KEY)
        (root / "logged out").mkdir()
        return
    session["cart"] = 1
    with contextlib.suppress(UpdateError):
        session.save()


def broken(root, rank):
    """Handle two requests of one user."""
    requests(SessionStore, root, rank)


def check(root):
    """A session that was logged out does not exist."""
    assert not (root / f"sessionid{KEY}").exists(), "the user has logged out, and the session exists"


class GuardedStore(SessionStore):
    """The sessions with the fix."""

    @contextlib.contextmanager
    def guard(self):
        """Let one process at a time save or delete sessions."""
        with open(os.path.join(self._get_storage_path(), "lock"), "a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def save(self, must_create=False):
        """Save like `SessionStore.save()`."""
        with self.guard():
            super().save(must_create)

    def delete(self, session_key=None):
        """Delete like `SessionStore.delete()`."""
        with self.guard():
            super().delete(session_key)


def repaired(root, rank):
    """The same, with the fix."""
    requests(GuardedStore, root, rank)
