"""nbformat: two processes create the key that signs notebooks, and use different keys.

Promise: The key is one for all notebooks of a user: a notebook that one server has signed is trusted by all
later ones.

Failure: `_secret_default()` checks whether the file exists, and writes a new key otherwise. Two servers
that start for the first time write two keys. A server that finds the file before its contents are written
reads an empty key.

Harm: Notebooks that were signed with the lost key are not trusted later: their outputs and widgets are
hidden. With an empty key, the signatures of a server can be computed by anyone.

Fix: Write the key to a temporary file, `os.link()` it to the name, and read the file that is there then.
"""

import hashlib
import os
import tempfile

from nbformat.sign import MemorySignatureStore, NotebookNotary


def key(notary):
    """The fingerprint of the key that a server uses."""
    return hashlib.sha256(notary.secret).hexdigest()[:8] if notary.secret else "an empty key"


def broken(root, rank):
    """Start a server that signs notebooks."""
    return key(NotebookNotary(data_dir=str(root), store_factory=MemorySignatureStore))


class LinkingNotary(NotebookNotary):
    """The notary with the fix."""

    def _secret_default(self):
        if not os.path.exists(self.secret_file):
            descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(self.secret_file))
            with os.fdopen(descriptor, "wb") as file:
                file.write(os.urandom(1024))
            try:
                os.link(temporary, self.secret_file)
            except FileExistsError:
                pass
            os.unlink(temporary)
        with open(self.secret_file, "rb") as file:
            return file.read()


def repaired(root, rank):
    """The same, with the fix."""
    return key(LinkingNotary(data_dir=str(root), store_factory=MemorySignatureStore))
