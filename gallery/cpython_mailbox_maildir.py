"""CPython: a process delivers to a `Maildir` that another process has created only in part.

Promise: The documentation of `mailbox.Maildir` says that multiple programs can change a mailbox "without
data corruption, so file locking is unnecessary". The constructor creates the mailbox if it is missing.

Failure: The constructor creates the top directory first, and `tmp`, `new`, and `cur` afterwards. Another
process finds the top directory, takes the mailbox for complete, and its `add()` fails because `tmp` is
missing. If both find nothing, the second `os.mkdir()` fails.

Harm: The delivery fails with `FileNotFoundError` or `FileExistsError` when two processes start on a new
account.

Fix: Create each directory with `exist_ok=True`, in every process, whether the top directory exists or not.
"""

import mailbox
import os


def broken(root, rank):
    """Deliver one message."""
    mailbox.Maildir(root / "inbox", create=True).add("Subject: mail\n\ntext\n")


class CompleteMaildir(mailbox.Maildir):
    """The mailbox with the fix."""

    def __init__(self, dirname):
        for name in ("tmp", "new", "cur"):
            os.makedirs(os.path.join(dirname, name), exist_ok=True)
        super().__init__(dirname, create=False)


def repaired(root, rank):
    """The same, with the fix."""
    CompleteMaildir(root / "inbox").add("Subject: mail\n\ntext\n")
