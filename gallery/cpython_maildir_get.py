"""CPython: reading a message of a `Maildir` fails while a mail program marks it as read.

Promise: The documentation of `mailbox.Maildir` says that multiple programs can change a mailbox "without
data corruption, so file locking is unnecessary". `get_message()` raises `KeyError` if there is no such
message.

Failure: `get_message()` looks up the file name of the message and opens it. Each change of a flag renames
the file, so the name can change in between. A message that moves from `new` to `cur` while the directories
are listed is not found at all. The message exists all the time.

Harm: Programs that process mail fail with `FileNotFoundError`, or skip a message, while a mail client is
open.

Fix: Look up the name again if the message is not found.
"""

import mailbox
import os

KEY = "1700000000.M1P1.host"


def setup(root):
    """A mailbox with one new message."""
    box = mailbox.Maildir(root / "inbox", create=True)
    with open(os.path.join(box._path, "new", KEY), "w") as file:
        file.write("Subject: mail\n\ntext\n")


def use(box, root, rank):
    """Process 0 reads the message; process 1 is a mail program that marks it as read."""
    if rank == 0:
        assert box.get_message(KEY)["Subject"] == "mail"
    else:
        os.rename(root / "inbox" / "new" / KEY, root / "inbox" / "cur" / f"{KEY}:2,S")


def broken(root, rank):
    """Use the mailbox."""
    use(mailbox.Maildir(root / "inbox"), root, rank)


class CarefulMaildir(mailbox.Maildir):
    """The mailbox with the fix."""

    def get_message(self, key):
        """Return a message; look up its name again if it was renamed in the meantime."""
        try:
            return super().get_message(key)
        except (FileNotFoundError, KeyError):
            self._toc_mtimes = {"cur": 0, "new": 0}
            return super().get_message(key)


def repaired(root, rank):
    """The same, with the fix."""
    use(CarefulMaildir(root / "inbox"), root, rank)
