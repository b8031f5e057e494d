"""The safe helpers with malicious and damaged archives and with interrupted downloads."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import io
import lzma
import os
import stat
import tarfile
import threading
import urllib.error
import zipfile
import zlib
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.sampling import bound
from support.trees import NEW, TREE, make_tar, read_tree

from fsrace_lint import safe

if TYPE_CHECKING:
    from collections.abc import Iterator

DAMAGE = (ValueError, OSError, zlib.error, lzma.LZMAError)


@pytest.fixture(params=["filtered", "unfiltered"])
def _filter(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also run without `tarfile` filters, so that only the helper's own checks apply."""
    if request.param == "unfiltered":
        monkeypatch.setattr(tarfile, "data_filter", tarfile.fully_trusted_filter)


def member(
    name: str, kind: bytes = tarfile.REGTYPE, link: str = "", size: int = 0, **more: Any
) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, size
    for key, value in more.items():
        setattr(info, key, value)
    return info


def tar_of(path: Path, *members: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w") as archive:
        for info in members:
            archive.addfile(info, io.BytesIO(bytes(info.size)))
    return path


def zip_of(path: Path, *names: str, mode: int = 0, data: bytes = b"x") -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            info = zipfile.ZipInfo("placeholder")
            info.filename, info.external_attr = name, mode << 16
            archive.writestr(info, data)
    return path


def assert_rejected(archive: Path, match: str = "refused", **options: Any) -> None:
    with pytest.raises(ValueError, match=match):
        safe.extract_once(archive, archive.parent / "tree", **options)
    assert os.listdir(archive.parent) == [archive.name], "nothing is published, nothing left, nothing outside"


MALICIOUS = {
    "absolute path": [member("/tmp/fsrace-evil")],
    "parent directory": [member("../evil")],
    "parent directory in the middle": [member("a/../../evil")],
    "out of the tree and back": [member("a/../evil")],
    "drive letter": [member("C:evil")],
    "backslash": [member("..\\evil")],
    "deep nesting": [member("a/" * 101 + "b")],
    "link to an absolute path": [member("link", tarfile.SYMTYPE, "/etc")],
    "link to the parent directory": [member("link", tarfile.SYMTYPE, "..")],
    "link out of the tree from a subdirectory": [member("a/b/link", tarfile.SYMTYPE, "../../../evil")],
    "link out of the tree through a subdirectory": [
        member("a", tarfile.DIRTYPE),
        member("link", tarfile.SYMTYPE, "a/../../evil"),
    ],
    "member through a link": [member("link", tarfile.SYMTYPE, "."), member("link/evil")],
    "member over a link": [member("link", tarfile.SYMTYPE, "evil"), member("link")],
    "link through a link": [
        member("a/b/short", tarfile.SYMTYPE, "../.."),
        member("out", tarfile.SYMTYPE, "a/b/short/../../evil"),
        member("out/evil"),
    ],
    "hard link out of the tree": [member("hard", tarfile.LNKTYPE, "../evil")],
    "hard link to an absolute path": [member("hard", tarfile.LNKTYPE, "/etc/passwd")],
    "hard link to a missing member": [member("hard", tarfile.LNKTYPE, "nothing")],
    "hard link to a link": [
        member("a/b/l", tarfile.SYMTYPE, "../../x"),
        member("hard", tarfile.LNKTYPE, "a/b/l"),
    ],
    "hard link through a link": [
        member("a/x"),
        member("l", tarfile.SYMTYPE, "a"),
        member("hard", tarfile.LNKTYPE, "l/x"),
    ],
    "pipe": [member("pipe", tarfile.FIFOTYPE)],
    "character device": [member("device", tarfile.CHRTYPE, devmajor=1, devminor=3)],
    "block device": [member("device", tarfile.BLKTYPE)],
}


@pytest.mark.usefixtures("_filter")
@pytest.mark.parametrize("name", MALICIOUS)
def test_malicious_tar_is_rejected(name: str, tmp_path: Path) -> None:
    assert_rejected(
        tar_of(tmp_path / "archive.tar", member("good"), *MALICIOUS[name]), match="refused|archive"
    )


CONFLICTS = {
    "no name": [member(".")],
    "file over directory": [member("a/b"), member("a")],
    "directory over file": [member("a"), member("a/b")],
    "link over directory": [member("a/b"), member("a", tarfile.SYMTYPE, "b")],
    "hard link over file": [member("a"), member("b"), member("b", tarfile.LNKTYPE, "a")],
}


@pytest.mark.parametrize("name", CONFLICTS)
def test_conflicting_members_are_rejected(name: str, tmp_path: Path) -> None:
    with pytest.raises((OSError, ValueError)):
        safe.extract_once(tar_of(tmp_path / "archive", *CONFLICTS[name]), tmp_path / "tree")
    assert os.listdir(tmp_path) == ["archive"]


@pytest.mark.parametrize(
    "name", ["/evil", "../evil", "a/../../evil", "a/../evil", "C:/evil", "..\\evil", "\\evil"]
)
def test_malicious_zip_is_rejected(name: str, tmp_path: Path) -> None:
    assert_rejected(zip_of(tmp_path / "archive.zip", "good", name))


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR])
def test_zip_with_links_or_devices_is_rejected(kind: int, tmp_path: Path) -> None:
    assert_rejected(zip_of(tmp_path / "archive.zip", "name", mode=kind | 0o777, data=b"../../etc"))


@pytest.mark.usefixtures("_filter")
def test_valid_tar_is_extracted(tmp_path: Path) -> None:
    archive = tar_of(
        tmp_path / "archive.tar",
        member("./", tarfile.DIRTYPE, mode=0o755),
        member("./a/b/file", size=5, mode=0o755),
        member("a/b/up", tarfile.SYMTYPE, "../../top"),
        member("down", tarfile.SYMTYPE, "a/./x/../b"),
        member("twice", size=1),
        member("hard", tarfile.LNKTYPE, "a/b/file", mode=0o755),
        member("twice", size=2),
        member("ü n", size=1),
    )
    tree = safe.extract_once(archive, tmp_path / "tree")
    assert {name: len(data) for name, data in read_tree(tree).items()} == {
        "a/b/file": 5,
        "twice": 2,
        "hard": 5,
        "ü n": 1,
    }
    assert (os.readlink(tree / "down"), os.readlink(tree / "a/b/up")) == ("a/b", "../../top")
    assert os.access(tree / "a/b/file", os.X_OK)
    assert not os.access(tree / "twice", os.X_OK)
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(tree.stat().st_mode) == 0o777 & ~mask


@pytest.mark.parametrize("kind", ["w", "w:gz", "w:bz2", "w:xz"])
def test_truncated_tar_is_rejected(kind: str, tmp_path: Path) -> None:
    make_tar(tmp_path / "archive", TREE, kind)
    assert read_tree(safe.extract_once(tmp_path / "archive", tmp_path / "good")) == TREE
    whole = (tmp_path / "archive").read_bytes()
    cuts = (
        range(0, len(whole) - 1, 512) if kind == "w" else range(0, len(whole) - 1, max(1, len(whole) // 40))
    )
    last = len(whole.rstrip(b"\0")) // 512 * 512 + 1024 if kind == "w" else len(whole)
    for cut in (cut for cut in cuts if cut < last):
        (tmp_path / "archive").write_bytes(whole[:cut])
        with pytest.raises(DAMAGE):
            safe.extract_once(tmp_path / "archive", tmp_path / "tree")
    assert sorted(os.listdir(tmp_path)) == ["archive", "good"]


def test_truncation_that_tarfile_accepts_is_rejected(tmp_path: Path) -> None:
    make_tar(tmp_path / "archive")
    whole = (tmp_path / "archive").read_bytes()
    cut = 512 + -(-len(NEW) // 512) * 512
    (tmp_path / "archive").write_bytes(whole[:cut])
    with tarfile.open(tmp_path / "archive") as archive:
        assert archive.getnames() == ["a"]
    assert_rejected(tmp_path / "archive", match="no end-of-archive mark")


def test_corrupt_byte_in_compressed_archive_is_detected(tmp_path: Path) -> None:
    data = bytearray(gzip.compress(make_tar(tmp_path / "plain").read_bytes(), compresslevel=0))
    (tmp_path / "plain").unlink()
    data[data.index(b"newnew") + 3] ^= 1
    (tmp_path / "archive").write_bytes(data)
    with pytest.raises(OSError, match="CRC"):
        safe.extract_once(tmp_path / "archive", tmp_path / "tree")
    assert os.listdir(tmp_path) == ["archive"]


def test_truncated_or_damaged_zip_is_rejected(tmp_path: Path) -> None:
    whole = zip_of(tmp_path / "archive", "a", "b/c", data=NEW).read_bytes()
    for data in (
        whole[:-1],
        whole[: len(whole) // 2],
        whole.replace(b"newnew", b"newold", 1),
        b"",
        b"no archive",
    ):
        (tmp_path / "archive").write_bytes(data)
        assert_rejected(tmp_path / "archive", match="archive: ")


def test_extract_once_enforces_limits(tmp_path: Path) -> None:
    many = tar_of(tmp_path / "archive", *(member(str(number)) for number in range(100_000)))
    assert_rejected(many, match="max_members", max_members=1000)
    bomb = gzip.compress(tar_of(tmp_path / "archive", member("zeros", size=50_000_000)).read_bytes())
    (tmp_path / "archive").write_bytes(bomb)
    assert_rejected(tmp_path / "archive", match="max_bytes", max_bytes=49_999_999)
    assert safe.extract_once(tmp_path / "archive", tmp_path / "tree", max_bytes=50_000_000).is_dir()


def test_zip_header_that_understates_size_is_rejected(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "archive", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(1_000_000))
        archive.filelist[0].file_size = 10
    assert_rejected(tmp_path / "archive", match="CRC", max_bytes=1000)


def test_sparse_member_is_rejected(tmp_path: Path) -> None:
    headers = {"GNU.sparse.map": f"0,1,{10**9},512", "GNU.sparse.size": "10", "GNU.sparse.numblocks": "2"}
    with tarfile.open(tmp_path / "archive", "w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(member("sparse", size=513, pax_headers=headers), io.BytesIO(bytes(513)))
    assert_rejected(tmp_path / "archive")


NAMES = st.lists(st.sampled_from(["a", "b", "..", ".", "", "C:", "\\", "l"]), max_size=5).map("/".join)
KINDS = st.sampled_from([tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE])


@settings(
    max_examples=bound(40, 300), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(entries=st.lists(st.tuples(NAMES, KINDS, NAMES), max_size=6), own=st.booleans())
def test_random_archive_cannot_escape_destination(
    entries: list[Any], own: bool, tmp_path_factory: Any
) -> None:
    directory = tmp_path_factory.mktemp("names")
    members = [member(name, kind, link, size=kind == tarfile.REGTYPE) for name, kind, link in entries]
    tar_of(directory / "archive", *members)
    tree = directory / "tree"
    with pytest.MonkeyPatch.context() as patch:
        if own:
            patch.setattr(tarfile, "data_filter", tarfile.fully_trusted_filter)
        try:
            safe.extract_once(directory / "archive", tree)
        except (ValueError, OSError):
            assert os.listdir(directory) == ["archive"]
            return
    assert sorted(os.listdir(directory)) == ["archive", "tree"]
    for path in tree.rglob("*"):
        try:
            end = path.resolve(strict=True)
        except (OSError, RuntimeError):
            end = Path(os.path.normpath(path.parent.resolve() / os.readlink(path)))
        assert end == tree or tree in end.parents


# downloads


class Handler(http.server.BaseHTTPRequestHandler):
    requests = 0

    def do_GET(self) -> None:
        type(self).requests += 1
        kind = self.path.strip("/")
        if kind == "missing":
            self.send_error(404)
            return
        self.send_response(200)
        if kind != "unknown":
            self.send_header("Content-Length", str(len(NEW) + (kind == "short")))
        self.end_headers()
        self.wfile.write(NEW)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


DIGEST = "sha256:" + hashlib.sha256(NEW).hexdigest()


@pytest.mark.parametrize("kind", ["whole", "unknown"])
@pytest.mark.parametrize("digest", [None, DIGEST, "sha512:" + hashlib.sha512(NEW).hexdigest()])
def test_download_is_made_only_once(kind: str, digest: str | None, address: str, tmp_path: Path) -> None:
    before = Handler.requests
    path = tmp_path / "new" / "file"
    for _ in range(3):
        assert safe.download_once(f"{address}/{kind}", tmp_path / "new" / "file", digest=digest) == path
    assert (path.read_bytes(), os.listdir(path.parent), Handler.requests) == (NEW, ["file"], before + 1)


@pytest.mark.parametrize(
    ("kind", "digest", "error"),
    [
        ("short", None, (OSError, HTTPException)),
        ("missing", None, urllib.error.HTTPError),
        ("whole", "sha256:" + "0" * 64, ValueError),
        ("whole", "nonsense:1", ValueError),
        ("whole", "0" * 64, ValueError),
    ],
)
def test_failed_download_is_not_published(
    kind: str, digest: Any, error: Any, address: str, tmp_path: Path
) -> None:
    with pytest.raises(error) as caught:
        safe.download_once(f"{address}/{kind}", tmp_path / "file", digest=digest)
    if isinstance(caught.value, urllib.error.HTTPError):
        caught.value.close()
    assert os.listdir(tmp_path) == []


def test_existing_file_is_verified(address: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"half")
    assert safe.download_once(f"{address}/whole", path).read_bytes() == b"half"
    assert safe.download_once(f"{address}/whole", path, digest=DIGEST).read_bytes() == NEW
    with pytest.raises(ValueError, match="not sha256:0"):
        safe.download_once(f"{address}/whole", path, digest="sha256:0")
    assert path.read_bytes() == NEW


@pytest.mark.parametrize("source", ["file:///etc/passwd", "ftp://host/file", "/etc/passwd", ""])
def test_only_http_addresses_are_accepted(source: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not an http or https URL"):
        safe.download_once(source, tmp_path / "file")
    assert os.listdir(tmp_path) == []


def test_fetch_function_that_writes_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        safe.download_once(lambda path: None, tmp_path / "file")
    assert os.listdir(tmp_path) == []
