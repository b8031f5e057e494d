"""Memory of a run: sources are kept as bytes, equal names are shared, and unneeded sources are dropped."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cli import write

import fsrace_lint
from fsrace_lint import rules
from fsrace_lint.config import settings
from fsrace_lint.engine.parallel.progress import Observer
from fsrace_lint.engine.parallel.workers import NAMES, PLAIN, Sending
from fsrace_lint.files import source
from fsrace_lint.files.source import Source
from fsrace_lint.pipeline import check
from fsrace_lint.pipeline.files import ChangedError, ProjectFile
from fsrace_lint.pipeline.project_cache import CacheUse
from fsrace_lint.syntax.extract import extract
from fsrace_lint.syntax.model import FileFacts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.pipeline.run import Checked, Run

pytestmark = pytest.mark.usefixtures("here")

PACKAGE = Path(fsrace_lint.__file__).parent
CLEAN = "def f(a):\n    return a.b\n"
RACE = "import os\n\n\ndef prepare(out):\n    if not os.path.exists(out):\n        os.makedirs(out)\n"
COMMENT = "def f(a):\n    return a.b  # NoQA: FSR101\n"


def objects(value: object) -> Iterator[object]:
    """Yield every value that facts contain, once per occurrence."""
    waiting = [value]
    while waiting:
        here = waiting.pop()
        yield here
        if isinstance(here, msgspec.Struct):
            waiting.extend(getattr(here, name) for name in here.__struct_fields__)
        elif isinstance(here, tuple):
            waiting.extend(here)


def facts(text: str) -> FileFacts:
    found = extract(source.of_text(text, Path("/p/a.py"), Path("/p")))
    assert isinstance(found, FileFacts)
    return found


def copies(kind: type, *values: object) -> list[object]:
    """Return the values that exist as more than one object."""
    first: dict[object, object] = {}
    every = [one for value in values for one in objects(value) if type(one) is kind]
    return [one for one in every if first.setdefault(one, one) is not one]


class TestText:
    @pytest.mark.parametrize(
        "data",
        [
            b"x = 1\r\n\ry = 2\n",
            b"\xef\xbb\xbfx = '\xc3\xa9'\n",
            b"# coding: latin-1\nx = '\xe9'\n",
            # a codec that accepts no error handler
            b"# coding: idna\nx = 1\n",
        ],
    )
    def test_text_is_what_python_reads(self, data: bytes, tmp_path: Path) -> None:
        file = tmp_path / "a.py"
        file.write_bytes(data)
        found = source.read(file, tmp_path)
        assert isinstance(found, Source)
        assert ast.dump(ast.parse(found.text)) == ast.dump(ast.parse(data))
        assert (
            found.text.splitlines()
            == found.data.removeprefix(b"\xef\xbb\xbf").decode(found.encoding).splitlines()
        )

    @given(st.text())
    def test_text_from_another_tool_is_unchanged(self, text: str) -> None:
        assert source.of_text(text, Path("/p/a.py"), Path("/p")).text == text

    @pytest.mark.parametrize("text", ["x = '\udcff'", "\ufeffx = 1"])
    def test_surrogate_and_leading_bom_are_kept(self, text: str) -> None:
        assert source.of_text(text, Path("/p/a.py"), Path("/p")).text == text

    def test_source_holds_its_bytes_once(self, tmp_path: Path) -> None:
        file = tmp_path / "a.py"
        file.write_text("x = 1\n" * 1000)
        found = source.read(file, tmp_path)
        fields = [getattr(found, name) for name in Source.__struct_fields__]
        sizes = [len(value) for value in fields if isinstance(value, (bytes, str))]
        assert [size for size in sizes if size > 1000] == [6000]


class TestFacts:
    TEXT = "\n" * 1000 + 'f("a text")\ng(h("a text"), [1], x == 2, (y == 3))\nk(\n    z,\n    [a],\n)\n'

    def test_equal_numbers_and_strings_are_shared(self) -> None:
        found = facts(self.TEXT)
        assert {1001, 1002, 1003} < {one for one in objects(found) if type(one) is int}
        assert copies(int, found) == []
        assert copies(str, found) == []

    def test_equal_operators_are_shared(self) -> None:
        found = [one for one in objects(facts(self.TEXT)) if one == ("==",)]
        assert len(found) == 2
        assert found[0] is found[1]


class TestSending:
    @pytest.mark.parametrize("sending", [PLAIN, NAMES])
    def test_received_facts_equal_sent_facts(self, sending: Sending) -> None:
        for file in sorted(PACKAGE.rglob("*.py")):
            sent = facts(file.read_text("utf-8"))
            assert repr(sending.unpack(sending.pack(sent), FileFacts)) == repr(sent)

    @pytest.mark.parametrize(
        "text", ["1", "1.0", "-0.0", "True", "None", "''", "1e999", f"{2**61}", "'\\udcff'", "'\\0'"]
    )
    def test_constants_keep_their_type(self, text: str) -> None:
        sent = facts(f"x = {text}")
        assert repr(NAMES.unpack(NAMES.pack(sent), FileFacts)) == repr(sent)

    def test_names_are_shared_across_files(self) -> None:
        sent = [
            facts(f"import name_{end}\ndef some_name(a_name):\n    return a_name.some_name\n") for end in "ab"
        ]
        got = [NAMES.unpack(NAMES.pack(one), FileFacts) for one in sent]
        named = [one for one in got for one in objects(one) if one in ("some_name", "a_name")]
        assert len(named) > 10
        assert len({id(one) for one in named}) == 2

    def test_deeply_nested_value_cannot_be_sent(self) -> None:
        deep: object = ()
        for _ in range(100_000):
            deep = (deep,)
        with pytest.raises((ValueError, RecursionError)):
            NAMES.pack(deep)


def look(*, streaming: bool = True, observer: Observer | None = None) -> tuple[Run, Checked]:
    (found,) = check.check(
        [Path.cwd()],
        lambda _: settings.load(Path.cwd(), rules.names()),
        cache=CacheUse.NOT,
        observer=observer or Observer(),
        streaming=streaming,
    )
    return found


def held(run: Run) -> list[str]:
    return sorted(name for name, file in run.files.items() if file.is_loaded)


@pytest.mark.usefixtures("here")
class TestDroppedSources:
    FILES = {"clean.py": CLEAN, "race.py": RACE, "comment.py": COMMENT}  # noqa: RUF012  # never modified

    def test_unneeded_sources_are_dropped(self) -> None:
        write(self.FILES)
        run, checked = look()
        assert held(run) == ["comment.py", "race.py"]
        assert [finding.code for finding in checked.outcome.findings] == ["FSR003", "FSR101"]

    def test_run_without_streaming_keeps_sources(self) -> None:
        write(self.FILES)
        streaming, plain = look(), look(streaming=False)
        assert held(plain[0]) == ["clean.py", "comment.py", "race.py"]
        assert streaming[1].outcome == plain[1].outcome

    def test_dropped_source_can_be_read_again(self) -> None:
        write(self.FILES)
        checked = look()[1]
        assert checked.sources["clean.py"].text == CLEAN
        Path("clean.py").write_text("x = 1\n")
        checked = look()[1]
        Path("clean.py").write_text("x = 2\n")
        with pytest.raises(ChangedError):
            _ = checked.sources["clean.py"]

    @pytest.mark.parametrize("name", ["race.py", "comment.py"])
    def test_file_changed_during_run_makes_run_read_all_files_again(self, name: str) -> None:
        class Changes(Observer):
            notes: list[str] = []  # noqa: RUF012  # used by one test only

            def stage(self, title: str, total: int) -> None:
                if title == "Checking" and not self.notes:
                    Path(name).write_text(f"# {total}\n{RACE}")

            def note(self, message: str) -> None:
                self.notes.append(message)

        write(self.FILES)
        changes = Changes()
        run, checked = look(observer=changes)
        assert changes.notes == [f"{name} was changed during the run; reading all files again"]
        assert held(run) == ["clean.py", "comment.py", "race.py"]
        again = look(streaming=False)[1]
        assert checked.outcome == again.outcome
        assert {finding.place.path for finding in again.outcome.findings} >= {name}

    def test_editor_text_is_never_dropped(self) -> None:
        write(self.FILES)
        file = ProjectFile.of(source.of_text(CLEAN, Path("no.py").absolute(), Path.cwd()))
        file.drop_source()
        assert file.source.text == CLEAN


@pytest.mark.skipif(sys.platform in {"win32", "darwin"}, reason="workers are not forked on this platform")
@pytest.mark.usefixtures("here")
def test_facts_from_workers_share_names() -> None:
    """Runs as a separate program, because a process that forks must have no other threads."""
    body = "\n".join(f"def f_{index}(argument):\n    return argument.attribute" for index in range(3000))
    write({f"file_{end}.py": f"{body}\n" for end in "abcd"})
    program = """
import os
from pathlib import Path
from fsrace_lint import rules
from fsrace_lint.config import settings
from fsrace_lint.engine.parallel import extraction
from fsrace_lint.pipeline.run import Run

root = Path.cwd()
run = Run(settings.load(root, rules.names()), sorted(root.glob("*.py")), whole=True, jobs=2)
real, parent, here = extraction.extract, os.getpid(), []

def extract(source):
    here.extend([source] if os.getpid() == parent else [])
    return real(source)

extraction.extract = extract
found = extraction.extracted([file.source for file in run.files.values()], 2, run.observer)
names = [one.functions[5].body[0].value.name for one in found]
print(len(names), len(set(map(id, names))), names[0], len(here))
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert (done.stdout.split(), done.stderr) == (["4", "1", "attribute", "0"], "")
