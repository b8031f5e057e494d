"""CPython: two processes create an `mbox`, and delivered mail is lost.

Promise: The documentation of `mailbox` says that "you must lock" a mailbox before you change it, if other
processes can change it too. `Mailbox.lock()` gets an exclusive lock. The constructor creates the file if it
is missing.

Failure: `_singlefileMailbox.__init__()` tries `open(path, "rb+")`. After `FileNotFoundError`, it calls
`open(path, "wb+")`, which truncates the file. In between, another process can create the mailbox, lock it,
and deliver mail. The lock cannot help, because it needs the open file.

Harm: Mail that was delivered and flushed under the lock is lost.

Fix: Create the file without truncating it. Code that uses the library can open it with `"ab"` before it
calls `mbox()`.
"""

import mailbox


def deliver(root, rank):
    """Deliver one message under the lock, and say so; give up if another process has the lock."""
    box = mailbox.mbox(root / "inbox")
    try:
        box.lock()
    except mailbox.ExternalClashError:
        return
    box.add(f"Subject: mail {rank}\n\ntext\n")
    box.flush()
    box.unlock()
    (root / f"mail {rank}").touch()


def broken(root, rank):
    """Deliver one message to a mailbox that does not exist yet."""
    deliver(root, rank)


def check(root):
    """Every message that was delivered is in the mailbox."""
    found = {message["Subject"] for message in mailbox.mbox(root / "inbox")}
    lost = sorted(path.name for path in root.glob("mail*") if path.name not in found)
    assert not lost, f"{lost[0]} was delivered and is lost"


def repaired(root, rank):
    """The same, with a file that is created first."""
    with open(root / "inbox", "ab"):
        pass
    deliver(root, rank)
