"""What rules rest on: weaknesses, promises of systems, incidents; and the settings they depend on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

CWES: Final[Mapping[int, str]] = {
    362: "Concurrent Execution using Shared Resource with Improper Synchronization ('Race Condition')",
    367: "Time-of-check Time-of-use (TOCTOU) Race Condition",
    377: "Insecure Temporary File",
    667: "Improper Locking",
    833: "Deadlock",
}
"""The weaknesses, as the Common Weakness Enumeration titles them."""

_PROMISES: Final[Mapping[str, str]] = {
    "mkdir": "mkdir(2) makes the directory or fails with EEXIST, in one step",
    "excl": "open(2) with O_CREAT and O_EXCL makes the file or fails with EEXIST, in one step",
    "trunc": "open(2) with O_TRUNC empties the file at once, before anything is written or locked",
    "symlink": "symlink(2) fails with EEXIST where the name is taken",
    "rename": "rename(2) puts the new file in the place of the old one in one step",
    "exdev": "rename(2) fails with EXDEV where the two paths are on different filesystems",
    "unlink": "unlink(2) fails with ENOENT where the file is gone",
    "open": "unlink(2) takes a name away; the file stays for those who have it open",
    "flock": "flock(2) locks an open file and not its name, and only keeps out those who lock too",
    "nfs": "nfs(5): a client may answer from the attributes and names that it remembers",
    "tmp": "hier(7): /tmp and the like belong to one machine",
    "collective": "torch.distributed: a collective returns when every process of the group has called it",
    "group": "torch.distributed: there is no rank before init_process_group",
    "sleep": "nanosleep(2) waits for time to pass, and for no other process",
    "mktemp": "Python, tempfile.mktemp: another process can take the name first",
    "hash": "Python, object.__hash__: the hash of a text differs from one interpreter to the next",
    "call": "Python, calls: all arguments are evaluated before the call",
    "with": "Python, the with statement: a context manager does its work in __enter__ and __exit__",
    "buffer": "Python, io: what is written waits in a buffer until it is flushed or closed",
    "rmtree": "Python, shutil.rmtree removes entry by entry, and others can come in between",
    "download": "Python, urllib.request.urlretrieve writes to the final name as the data comes",
    "tar": "Python, tarfile and zipfile write each member to its final name",
    "clock": "clock_gettime(2) tells each process the time at which it asks",
}

_STORAGE: Final = ("filesystem", "shared-paths", "local-paths")


class About(msgspec.Struct, frozen=True):
    """What one rule rests on.

    `promises` are what it knows of systems and libraries, `incidents` sections of
    docs/incidents.md, and `settings` the keys that change what it reports or offers,
    besides those that select rules and files.
    """

    promises: tuple[str, ...] = ()
    incidents: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()


def _of(promises: str, *incidents: str, settings: tuple[str, ...] = ()) -> About:
    return About(tuple(_PROMISES[word] for word in promises.split()), incidents, settings)


ABOUT: Final[Mapping[str, About]] = {
    "FSR001": About(),
    "FSR002": About(),
    "FSR003": About(),
    "FSR101": _of("mkdir", "SageMaker training toolkit"),
    "FSR102": _of("trunc symlink excl"),
    "FSR103": _of("unlink"),
    "FSR104": _of("unlink rename nfs"),
    "FSR105": _of("mkdir"),
    "FSR106": _of("mkdir nfs", "Lingua", settings=_STORAGE),
    "FSR201": _of("trunc", settings=_STORAGE),
    "FSR202": _of("unlink open"),
    "FSR203": _of("rmtree"),
    "FSR204": _of("trunc rename"),
    "FSR205": _of("trunc rename"),
    "FSR206": _of("clock"),
    "FSR207": _of("mktemp excl"),
    "FSR208": _of("exdev rename tmp"),
    "FSR209": _of("buffer rename"),
    "FSR301": _of("tar rename", "Flyte"),
    "FSR302": _of("download rename"),
    "FSR401": _of("collective", "OLMo"),
    "FSR402": _of("collective"),
    "FSR403": _of("collective nfs"),
    "FSR404": _of("group"),
    "FSR405": _of("rename unlink", settings=_STORAGE),
    "FSR406": _of("tmp", settings=_STORAGE),
    "FSR407": _of("nfs collective", "OLMo"),
    "FSR408": _of("sleep collective"),
    "FSR409": _of("call"),
    "FSR410": _of("with"),
    "FSR501": _of("excl flock"),
    "FSR502": _of("flock open", "WebDataset"),
    "FSR503": _of("flock"),
    "FSR504": _of("flock"),
    "FSR505": _of("flock hash"),
    "FSR506": _of("trunc flock"),
}
"""By code."""

HELPED: Final = frozenset(
    {
        "atomic-write",
        "barrier",
        "barrier-before",
        "download-once",
        "ensure-dir",
        "extract-once",
        "guard-and-barrier",
        "publish-symlink",
        "rank-guard",
    }
)
"""The recipes that may call a helper, so that `helper-module` matters."""
