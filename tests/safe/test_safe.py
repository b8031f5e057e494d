"""The safe helpers: standalone, in one process, and in multiple processes."""

from __future__ import annotations

import ast
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import TESTS
from support.jobs import environment

from fsrace_lint import safe

SOURCE = Path(safe.__file__)
LAUNCHERS = TESTS / "launchers"
TEXT = SOURCE.read_text(encoding="utf-8")
VERSIONS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
SMOKE = """
import io, os, sys, tarfile
sys.path.insert(0, sys.argv[1])
import safe
assert "fsrace_lint" not in sys.modules
os.chdir(sys.argv[2])
assert os.path.isdir(safe.ensure_dir("a/b"))
with safe.atomic_write("a/f.txt", encoding="utf-8", newline="") as stream:
    stream.write("new")
with safe.atomic_path("a/g.bin") as path:
    path.write_bytes(b"new")
with tarfile.open("t.tar", "w") as archive:
    for name in ("x/one", "two"):
        info = tarfile.TarInfo(name)
        info.size = 3
        archive.addfile(info, io.BytesIO(b"abc"))
    link = tarfile.TarInfo("x/link")
    link.type, link.linkname = tarfile.SYMTYPE, "../two"
    archive.addfile(link)
assert open(safe.extract_once("t.tar", "tree") / "x" / "link", "rb").read() == b"abc"
assert safe.download_once(lambda path: path.write_bytes(b"d"), "a/d").read_bytes() == b"d"
safe.publish_symlink("f.txt", "a/l")
safe.replace("a/g.bin", "a/h.bin")
assert safe.wait_for_path("a/h.bin", timeout=0).read_bytes() == b"new"
assert open("a/l").read() == "new"
safe.remove("a/l")
safe.remove_tree("tree")
safe.barrier()
assert safe.is_main_process() and safe.is_main_on_this_filesystem() and safe.run_on_main(int, "7") == 7
assert sorted(os.listdir(".")) == ["a", "t.tar"]
assert sorted(os.listdir("a")) == ["b", "d", "f.txt", "h.bin"]
print("fine")
"""


def find_python(version: str) -> str | None:
    pythons = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    for candidate in (*map(str, pythons), shutil.which(f"python{version}")):
        if (
            candidate
            and subprocess.run([candidate, "-c", ""], capture_output=True, check=False).returncode == 0
        ):
            return candidate
    return None


@pytest.mark.parametrize("version", VERSIONS)
def test_safe_module_runs_standalone(version: str, tmp_path: Path) -> None:
    python = find_python(version)
    if python is None:
        pytest.skip(f"Python {version} is not installed")
    (tmp_path / "vendored").mkdir()
    (tmp_path / "work").mkdir()
    shutil.copy(SOURCE, tmp_path / "vendored" / "safe.py")
    command = [
        python,
        "-I",
        "-S",
        "-W",
        "error",
        "-c",
        SMOKE,
        str(tmp_path / "vendored"),
        str(tmp_path / "work"),
    ]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert done.stdout == "fine\n", done.stderr


def test_safe_module_is_short_and_imports_only_the_standard_library() -> None:
    assert len(TEXT.splitlines()) <= 500
    tree = ast.parse(TEXT)
    modules = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    modules += [node.module or "." for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert {name.partition(".")[0] for name in modules} <= sys.stdlib_module_names
    ast.parse(TEXT, feature_version=(3, 8))


@pytest.mark.parametrize("name", safe.__all__)
def test_helper_docstring_states_purpose_and_limits(name: str) -> None:
    text = getattr(safe, name).__doc__
    assert "Protects against " in text
    assert "not " in text.partition("Protects against ")[2].lower()
    collective = name in {"barrier", "run_on_main", "decide_on_main", "is_main_on_this_filesystem"}
    assert ("A COLLECTIVE" in text) is collective


def test_public_functions_are_listed_in_all() -> None:
    defined = {node.name for node in ast.parse(TEXT).body if isinstance(node, ast.FunctionDef)}
    assert {name for name in defined if not name.startswith("_")} == set(safe.__all__)


def test_multiple_processes_without_a_framework(tmp_path: Path) -> None:
    command = [sys.executable, str(LAUNCHERS / "processes_job.py"), str(tmp_path), "200", "4"]
    paths = {"PYTHONPATH": str(SOURCE.parent.parent)}
    done = subprocess.run(command, env=environment(**paths), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("DONE")


def test_round_checks_detect_partial_and_leftover_files(tmp_path: Path) -> None:
    sys.path.insert(0, str(LAUNCHERS))
    try:
        rounds: Any = __import__("rounds")
    finally:
        sys.path.remove(str(LAUNCHERS))
    data = rounds.content(1, 2)
    rounds.assert_whole(data)
    for half in (
        b"",
        data[:100],
        data[:-1],
        data[1:],
        data[: len(data) // 2] + rounds.content(2, 2)[len(data) // 2 :],
    ):
        with pytest.raises(AssertionError):
            rounds.assert_whole(half)
    rounds.make_archive(tmp_path / "archive.tar.gz")
    tree = safe.extract_once(tmp_path / "archive.tar.gz", tmp_path / "tree")
    rounds.assert_tree(tree)
    (tree / "c").write_bytes(b"")
    with pytest.raises(AssertionError):
        rounds.assert_tree(tree)
    (tmp_path / ".left").touch()
    with pytest.raises(AssertionError):
        rounds.assert_nothing_hidden(tmp_path)


# atomic_write, atomic_path and publish_symlink in one process


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o755])
def test_existing_file_mode_is_preserved(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(mode)
    with safe.atomic_write(path) as stream:
        stream.write("new")
        (hidden,) = (entry for entry in tmp_path.iterdir() if entry != path)
        assert hidden.name.startswith(".file.")
        assert stat.S_IMODE(hidden.stat().st_mode) == 0o600
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", mode)
    with safe.atomic_path(path) as temporary:
        temporary.write_text("newer")
        assert (temporary.name, stat.S_IMODE(temporary.parent.stat().st_mode)) == ("file", 0o700)
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("newer", mode)


def test_new_file_honors_umask(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        with safe.atomic_write(tmp_path / "file") as stream:
            stream.write("new")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


@pytest.mark.parametrize("exists", [True, False])
def test_symlink_is_kept_and_its_target_replaced(exists: bool, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    if exists:
        (tmp_path / "real" / "file").write_text("old")
    (tmp_path / "link").symlink_to("real/file")
    with safe.atomic_write(tmp_path / "link", "wb") as stream:
        stream.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "file").read_bytes() == b"new"
    assert os.listdir(tmp_path / "real") == ["file"]


@pytest.mark.parametrize("mode", ["r", "a", "r+", "x", "xb", "", "rw", "wa", "wx", "wq"])
def test_unsupported_modes_are_rejected(mode: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="mode"), safe.atomic_write(tmp_path / "file", mode):
        pass
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("mode", ["w", "wt", "w+", "wb", "w+b"])
def test_stream_accepts_open_options(mode: str, tmp_path: Path) -> None:
    text: Any = b"new" if "b" in mode else "new\n"
    options: dict[str, Any] = (
        {} if "b" in mode else {"encoding": "utf-16", "newline": "\r\n", "errors": "strict"}
    )
    with safe.atomic_write(tmp_path / "file", mode, **options) as stream:
        stream.write(text)
        stream.close()
    assert (tmp_path / "file").read_bytes() == (b"new" if "b" in mode else "new\r\n".encode("utf-16"))


@pytest.mark.parametrize("helper", [safe.atomic_write, safe.atomic_path])
def test_special_files_and_directories_are_not_replaced(helper: Any, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"), helper(tmp_path / "pipe"):
        pass
    with pytest.raises(OSError, match="not a regular file"), helper(os.devnull):
        pass
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError), helper(tmp_path / "folder") as made:
        made.write_text("x")
    assert sorted(os.listdir(tmp_path)) == ["folder", "pipe"]


def test_long_file_name_is_written(tmp_path: Path) -> None:
    name = "ä" * 120 + ".npy"
    with safe.atomic_write(tmp_path / name) as stream:
        stream.write("x")
    with safe.atomic_path(tmp_path / name) as path:
        path.write_text("x")
    assert os.listdir(tmp_path) == [name]


def test_publish_symlink_replaces_links_but_not_directories(tmp_path: Path) -> None:
    for target in ("one", Path("two"), "/nowhere"):
        safe.publish_symlink(target, tmp_path / "link")
        assert os.readlink(tmp_path / "link") == str(target)
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        safe.publish_symlink("one", tmp_path / "folder")
    assert sorted(os.listdir(tmp_path)) == ["folder", "link"]


@pytest.mark.parametrize("kind", ["file", "link", "tree", "nothing"])
def test_remove_tree_removes_any_kind_of_path(kind: str, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    path = tmp_path / "gone"
    if kind == "file":
        path.touch()
    elif kind == "link":
        path.symlink_to("kept", target_is_directory=True)
    elif kind == "tree":
        (path / "a").mkdir(parents=True)
        (path / "a" / "link").symlink_to(tmp_path / "kept", target_is_directory=True)
    safe.remove_tree(path)
    assert (os.listdir(tmp_path), os.listdir(tmp_path / "kept")) == (["kept"], ["file"])
    for name in (".", "/", tmp_path / "kept" / ".."):
        with pytest.raises(ValueError, match="does not end in a name"):
            safe.remove_tree(name)


def test_replace_retries_on_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[object] = []
    rename = os.replace

    def busy(src: Any, dst: Any) -> None:
        calls.append(src)
        if len(calls) < 4:
            raise PermissionError(13, "somebody has it open")
        rename(src, dst)

    monkeypatch.setattr(os, "replace", busy)
    (tmp_path / "a").touch()
    with pytest.raises(PermissionError):
        safe.replace(tmp_path / "a", tmp_path / "b")
    assert len(calls) == 1
    monkeypatch.setattr(safe, "_WINDOWS", True)
    safe.replace(tmp_path / "a", tmp_path / "b")
    assert (len(calls), os.listdir(tmp_path)) == (4, ["b"])
