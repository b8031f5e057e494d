"""Which paths the settings declare as shared or node-local."""

from __future__ import annotations

import pytest

from fsrace_lint.analysis.paths.abstract_path import AbstractPath, PathVariable
from fsrace_lint.analysis.paths.storage import Storage


def path(*pieces: str | PathVariable) -> AbstractPath:
    return AbstractPath.of(pieces)


def symbol(text: str) -> PathVariable:
    return PathVariable(("name", text), text)


OUT = path(symbol("args.out_dir"), "/logs/run")
WORK = path(symbol("os.environ['WORK']"), "/a")
NFS = path("/mnt/nfs/a/b.pt")


@pytest.mark.parametrize(
    ("name", "named", "spelled", "fits"),
    [
        ("/mnt/nfs", NFS, "target", True),
        ("/mnt/nfs/", NFS, "target", True),
        ("/mnt/nf", NFS, "target", False),
        ("/mnt/*/a", NFS, "target", True),
        ("/mnt/*", path("/mnt"), "target", False),
        ("mnt/nfs", NFS, "target", False),
        ("runs/here", path("runs/here/a"), "target", True),
        ("/mnt/nfs", path("/mnt/", symbol("disk"), "/a"), "target", False),
        ("/mnt/nfs", None, "target", False),
        ("out_dir", OUT, "target", True),
        ("out", OUT, "target", False),
        ("logs", OUT, "target", True),
        ("target", NFS, "os.path.join(target, 'x')", True),
        ("x", NFS, "os.path.join(target, 'x')", False),
        ("target", None, "self.target", True),
        ("$WORK", WORK, "target", True),
        ("${WORK}", WORK, "target", True),
        ("$WOR", WORK, "target", False),
        ("$WORK", path("$WORK/a"), "target", True),
        ("$WORK", path(symbol("settings['WORK']"), "/a"), "target", False),
        ("$WORK", None, "os.getenv('WORK')", True),
    ],
)
def test_storage_name_matches_path(name: str, named: AbstractPath | None, spelled: str, fits: bool) -> None:
    assert Storage(shared=(name,)).named(named, spelled) is (True if fits else None)
    assert Storage(local=(name,)).named(named, spelled) is (False if fits else None)


def test_longest_matching_name_wins() -> None:
    storage = Storage(shared=("/mnt",), local=("/mnt/nfs/a",))
    assert storage.named(NFS, "target") is False
    assert storage.named(path("/mnt/nfs/c"), "target") is True
    assert storage.named(path("/data"), "target") is None
