"""Warm projects: a check finds what a new run finds, and reads only what has changed."""

from __future__ import annotations

import os
import random
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from support.sampling import bound
from support.settled import LONG_AGO, settle, write
from support.warm import check, keeping

from fsrace_lint import rules
from fsrace_lint.config import settings
from fsrace_lint.files import source
from fsrace_lint.files.stat_signature import Status
from fsrace_lint.pipeline import check as checking
from fsrace_lint.pipeline.files import ChangedError
from fsrace_lint.pipeline.warm import FEW, MOST, NotWarmError, WarmProjects
from fsrace_lint.program.name_index import FIELDS, NameIndex
from fsrace_lint.syntax import extract as extraction

if TYPE_CHECKING:
    from collections.abc import Callable

    from fsrace_lint.pipeline.run import Checked

pytestmark = pytest.mark.usefixtures("thawed")

GUARDED: Final = """\
import os
from helper import lead
if lead():
    if not os.path.exists('a'):
        os.makedirs('a')
"""
HELPER: Final = "import torch.distributed as dist\ndef lead():\n    return dist.get_rank() == 0\n"
HAZARD: Final = "import os\nif not os.path.exists('a'):\n    os.makedirs('a')\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project directory that is also the current directory."""
    root = tmp_path / "project"
    root.mkdir()
    (root / "pyproject.toml").touch()
    monkeypatch.chdir(root)
    return root


def codes(found: Checked) -> list[str]:
    return [finding.code for finding in found.outcome.findings]


def watched(monkeypatch: pytest.MonkeyPatch, where: Any, name: str, key: Callable[[Any], str]) -> list[str]:
    """Record the first argument of every call of a function."""
    seen: list[str] = []
    real = getattr(where, name)

    def watching(argument: Any, *others: Any) -> Any:
        seen.append(key(argument))
        return real(argument, *others)

    monkeypatch.setattr(where, name, watching)
    return seen


class TestWhatIsRead:
    @pytest.fixture(autouse=True)
    def settled(self, monkeypatch: pytest.MonkeyPatch) -> None:
        settle(monkeypatch)

    @pytest.fixture
    def parsed(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """The names of the files that are parsed."""
        return watched(monkeypatch, extraction, "extract", lambda read: str(read.relative))

    @pytest.fixture
    def listed(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """The names of all directories that are listed."""
        return watched(monkeypatch, os, "scandir", lambda directory: Path(directory).name)

    def test_only_changed_file_is_read(self, here: Path, parsed: list[str]) -> None:
        write({"a.py": GUARDED, "helper.py": HELPER, "c.py": HAZARD})
        warm = keeping("a.py")
        assert sorted(parsed) == ["a.py", "c.py", "helper.py"]
        parsed.clear()

        write({"helper.py": "def lead():\n    return True\n"})
        assert codes(check("a.py", warm=warm)[1]) == ["FSR101"]
        assert parsed == ["helper.py"]

    def test_unchanged_project_is_not_linked_again(self, here: Path) -> None:
        write({"a.py": HAZARD, "b.py": HAZARD})
        warm = keeping("a.py")
        linked = check("a.py", warm=warm)[0].link()
        assert check("b.py", warm=warm)[0].link() is linked

        write({"a.py": HAZARD + "# the end\n"})
        assert check("a.py", warm=warm)[0].link() is linked
        write({"a.py": HAZARD + "end = 1\n"})
        assert check("a.py", warm=warm)[0].link() is not linked

    def test_only_changed_directory_is_listed(self, here: Path, listed: list[str]) -> None:
        write({"a.py": HAZARD, "one/b.py": "", "two/three/c.py": ""})
        for directory in (".", "one", "two", "two/three"):
            os.utime(directory, (LONG_AGO, LONG_AGO))
        warm = keeping("a.py")
        assert {"one", "project", "three", "two"} <= {*listed}
        listed.clear()

        write({"two/three/d.py": ""})
        run, _ = check("a.py", warm=warm)
        assert listed == ["three"]
        assert sorted(run.files) == ["a.py", "one/b.py", "two/three/c.py", "two/three/d.py"]

    def test_touched_file_is_read_once(self, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write({"a.py": HAZARD, "b.py": "b = 1\n"})
        warm = keeping("a.py")
        read = watched(monkeypatch, source, "read", lambda path: str(path.name))
        os.utime("b.py", (LONG_AGO + 5, LONG_AGO + 5))
        linked = check("b.py", warm=warm)[0].link()
        assert read == ["b.py"]
        assert check("b.py", warm=warm)[0].link() is linked
        assert read == ["b.py"]

    def test_sources_are_dropped(self, here: Path) -> None:
        write({"a.py": HAZARD})
        warm = keeping("a.py")
        write({"a.py": HAZARD + "b = 1\n"})
        run, _ = check("a.py", warm=warm)
        write({"a.py": HAZARD + "c = 1\n"})
        check("a.py", warm=warm)
        with pytest.raises(ChangedError):
            _ = run.files["a.py"].source


class TestEqualTimestamps:
    """Two states of a file or directory with equal timestamps, as coarse clocks produce."""

    @pytest.fixture(autouse=True)
    def coarse(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Status, "of", lambda status: Status(status.st_size, status.st_mtime_ns, 0, 0))

    def test_changed_file_is_noticed(self, here: Path) -> None:
        Path("a.py").write_text(HAZARD)
        now = os.stat("a.py").st_mtime_ns  # noqa: PTH116  # in nanoseconds
        warm = keeping("a.py")
        Path("a.py").write_text(HAZARD.replace("not", "   "))
        os.utime("a.py", ns=(now, now))
        assert codes(check("a.py", warm=warm)[1]) == []

    def test_changed_directory_is_noticed(self, here: Path) -> None:
        write({"a.py": HAZARD})
        now = here.stat().st_mtime_ns
        warm = keeping("a.py")
        write({"b.py": HAZARD})
        os.utime(here, ns=(now, now))
        assert sorted(check("a.py", warm=warm)[0].files) == ["a.py", "b.py"]


class TestNotWarm:
    def test_another_project(self, here: Path) -> None:
        write({"a.py": HAZARD, "inner/pyproject.toml": "", "inner/b.py": HAZARD})
        warm = keeping("a.py")
        os.chdir("inner")
        with pytest.raises(NotWarmError, match="inner is not loaded"):
            check("b.py", warm=warm)

    def test_changed_settings(self, here: Path) -> None:
        write({"a.py": HAZARD})
        warm = keeping("a.py")
        Path("pyproject.toml").write_text('[tool.fsrace-lint]\nprofile = "strict"\n')
        with pytest.raises(NotWarmError):
            check("a.py", warm=warm)
        warm.loads = True
        check("a.py", warm=warm)
        assert warm.projects == [(str(here), False), (str(here), False)]

    def test_another_current_directory(self, here: Path) -> None:
        """Relative paths differ there."""
        write({"a.py": HAZARD, "inner/b.py": HAZARD})
        warm = keeping("a.py")
        os.chdir("inner")
        chosen = settings.load(here, rules.names())
        with pytest.raises(NotWarmError):
            checking.check([Path("b.py")], lambda _: chosen, warm=warm)

    def test_too_many_files(self, here: Path) -> None:
        names = [f"m{number}.py" for number in range(FEW + 1)]
        write(dict.fromkeys(names, HAZARD))
        warm = keeping(names[0])
        assert len(codes(check(*names[:FEW], warm=warm)[1])) == FEW
        with pytest.raises(NotWarmError, match=f"too many files: {FEW + 1}$"):
            check(*names, warm=warm)

    def test_least_recently_used_project_is_dropped(self, here: Path) -> None:
        warm = WarmProjects()
        warm.loads = True
        for name in (*"abcd", "a", "e"):
            (here / name).mkdir(exist_ok=True)
            os.chdir(here / name)
            write({"pyproject.toml": "", "m.py": HAZARD})
            check("m.py", warm=warm)
        assert len(warm.projects) == MOST
        assert [Path(root).name for root, _ in warm.projects] == ["c", "d", "a", "e"]


def test_number_of_projects_is_limited_when_checks_are_refused(here: Path) -> None:
    warm = WarmProjects()
    warm.loads = True
    names = [f"m{number}.py" for number in range(FEW + 1)]
    for number in range(MOST + 2):
        (here / f"p{number}").mkdir()
        os.chdir(here / f"p{number}")
        write({"pyproject.toml": "", **dict.fromkeys(names, "")})
        with pytest.raises(NotWarmError):
            check(*names, warm=warm)
    assert [Path(root).name for root, _ in warm.projects] == ["p2", "p3", "p4", "p5"]


STATES: Final[dict[str, tuple[str | Path | None, ...]]] = {
    "a.py": (
        GUARDED,
        HAZARD,
        GUARDED + "# more\n",
        "def broken(:\n",
        GUARDED.replace("helper", "link"),
        None,
    ),
    "helper.py": (HELPER, HELPER.replace("== 0", ">= 0"), "from pkg.b import lead\n", "lead = print\n", None),
    "link.py": (Path("helper.py"), Path("pkg/b.py"), HELPER, None),
    "pkg/b.py": (
        HELPER,
        "import os\ndef make():\n    if not os.path.exists('a'):\n        os.mkdir('a')\n",
        "",
    ),
    "pkg/__init__.py": ("", "from pkg.b import *\n", None),
    "pkg/a.py/inner.py": (HAZARD, None),
    "test_it.py": ("def test_a(): ...\n", HAZARD),
    ".gitignore": ("", "pkg/\n", "b.py\n", "helper.py\n", "/a.py\n", None),
    "pkg/.gitignore": ("*\n", "!b.py\n", None),
}
"""Contents of the files of a small project; a path is a symlink, and None is a missing file."""
STEPS: Final = st.lists(
    st.sampled_from([(name, state) for name, states in STATES.items() for state in states]), max_size=8
)


def change(name: str, state: str | Path | None, time: int) -> None:
    """Change the state of a file, and set the time of what has changed: the file or its directory."""
    path = Path(name)
    path.parent.mkdir(exist_ok=True, parents=True)
    if path.is_symlink() or not path.is_file() or not isinstance(state, str):
        path.unlink(missing_ok=True)
        if isinstance(state, Path):
            path.symlink_to(os.path.relpath(state, path.parent))
        elif state is not None:
            path.touch()
        for directory in (path.parent, *path.parent.parents):
            os.utime(directory, (time, time))
    if isinstance(state, str):
        path.write_text(state, "utf-8")
        os.utime(path, (time, time))


@pytest.mark.skipif(sys.platform == "win32", reason="symlinks need a privilege on Windows")
@pytest.mark.parametrize("settles", [True, False])
@given(steps=STEPS)
@example(
    steps=[
        ("a.py", GUARDED.replace("helper", "link")),
        ("pkg/b.py", ""),
        ("link.py", Path("helper.py")),
        ("link.py", Path("pkg/b.py")),
    ]
)
@example(steps=[(".gitignore", ""), ("pkg/b.py", HELPER), (".gitignore", "b.py\n")])
@hypothesis_settings(max_examples=bound(8, 60), deadline=None, suppress_health_check=list(HealthCheck))
def test_warm_check_matches_new_run(
    here: Path, monkeypatch: pytest.MonkeyPatch, *, settles: bool, steps: list[tuple[str, str | Path | None]]
) -> None:
    for each in here.iterdir():
        if each.is_dir():
            shutil.rmtree(each)
        elif each.name != "pyproject.toml":
            each.unlink()
    write({"a.py": GUARDED, "helper.py": HELPER, "c.py": "import helper\n" + HAZARD})
    os.utime(here, (LONG_AGO, LONG_AGO))
    with monkeypatch.context() as patch:
        if settles:
            settle(patch)
        warm = keeping("c.py")
        for number, (name, state) in enumerate(steps, 1):
            change(name, state, LONG_AGO + number)
            for path in ("a.py", "c.py"):
                assert report_of(path, warm) == report_of(path, None), (name, state)


def report_of(path: str, warm: WarmProjects | None) -> Any:
    """Return everything that a run reports about a file."""
    if not Path(path).exists():
        path = "c.py"
    run, found = check(path, warm=warm)
    return found.outcome, sorted(run.files), run.links, run.symlinks, run.targets


class _Head:
    """A module head with the same names in every field."""

    def __init__(self, *names: str) -> None:
        self.referenced_names = self.aliased = self.results = self.bases = names
        self.imported = self.classes = self.denoting = self.texts = names


def heads(names: list[str], before: NameIndex | None = None) -> NameIndex:
    """Index module heads that have one name each; equal names share one object."""
    return NameIndex(((f"{place}.py", _HEADS[name]) for place, name in enumerate(names)), before)


def at(names: dict[str, str], before: NameIndex) -> NameIndex:
    """Index module heads of files that are given by path."""
    return NameIndex(((path, _HEADS[name]) for path, name in names.items()), before)


_HEADS: Final[dict[str, Any]] = {name: _Head(name) for name in "abc"}


class TestNameIndex:
    def test_index_is_updated_after_changes(self) -> None:
        first = heads([*"abca"])
        assert not first.is_ordered("referenced_names")
        first.put_in_order()
        second = heads([*"abcb"], first)
        assert all(second.is_ordered(field) for field in FIELDS)
        third = heads([*"cbcb"], second)
        for field in FIELDS:
            assert [list(first.having(field, name)) for name in "abcd"] == [[0, 3], [1], [2], []]
            assert [list(second.having(field, name)) for name in "abcd"] == [[0], [1, 3], [2], []]
            assert [list(third.having(field, name)) for name in "abcd"] == [[], [1, 3], [0, 2], []]
        assert third.denoting >= {"", "b", "c"}

    def test_index_is_updated_when_files_are_added_or_removed(self) -> None:
        first = heads([*"abca"])
        first.put_in_order()
        second = at({"0.py": "b", "1.py": "b", "11.py": "c", "3.py": "a"}, first)
        third = at({"0.py": "a", "11.py": "c", "2.py": "a"}, second)
        assert all(third.is_ordered(field) for field in FIELDS)
        for field in FIELDS:
            assert [list(second.having(field, name)) for name in "abcd"] == [[3], [0, 1], [2], []]
            assert [list(third.having(field, name)) for name in "abcd"] == [[0, 2], [], [1], []]
        assert second.denoting >= {"", "a", "b", "c"}

    @pytest.mark.parametrize("other", ["b", ""])
    def test_index_is_rebuilt_after_many_changes(self, other: str) -> None:
        first = heads(["a"] * 100)
        first.put_in_order()
        for many in (40, 41):
            names = {f"{place}.py": other for place in range(many) if other}
            names |= {f"{place}.py": "a" for place in range(many, 100)}
            assert at(names, first).is_ordered("referenced_names") is (many == 40)

    def test_index_is_rebuilt_after_many_additions(self) -> None:
        first = heads(["a"])
        first.put_in_order()
        for many in (40, 41):
            names = {f"{place}.py": "a" for place in range(1 + many)}
            assert at(names, first).is_ordered("referenced_names") is (many == 40)

    @pytest.mark.parametrize("seed", range(5))
    def test_index_is_correct_after_random_changes(self, seed: int) -> None:
        chance = random.Random(seed)
        found = heads([chance.choice("abc") for _ in range(30)])
        for _ in range(10):
            paths = [f"{place}.py" for place in range(34) if chance.random() < 0.9]
            names = {path: chance.choice("abc") if chance.random() < 0.2 else "a" for path in paths}
            found = at(names, found)
            for name in "abc":
                places = [place for place, each in enumerate(names.values()) if each == name]
                assert list(found.having("further", name)) == places
            assert found.denoting >= {"", *names.values()}
