"""The language server, asked by a client of the protocol over the standard streams of the real process."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from support import ROOT
from support.editor import START, Editor, capabilities, session, uri
from support.settled import settle, write

from fsrace_lint import rules
from fsrace_lint.config import settings
from fsrace_lint.engine.parallel.progress import Observer
from fsrace_lint.files import source
from fsrace_lint.integrations.server.analysis import Analysis, Where
from fsrace_lint.integrations.server.answers import Document, Wishes
from fsrace_lint.integrations.server.positions import Text
from fsrace_lint.integrations.server.sessions import Session, SessionResult
from fsrace_lint.integrations.server.worker import Answer, SupersededError, Worker
from fsrace_lint.pipeline.run import Run
from fsrace_lint.report.edits import between
from fsrace_lint.syntax import name_index_entry

if TYPE_CHECKING:
    from collections.abc import Callable

    from fsrace_lint.syntax.model import FileFacts

HAZARD = 'import os\n\nif not os.path.isdir("d"):\n    os.mkdir("d")\n'
FIXED = 'import os\nfrom pathlib import Path\n\nPath("d").mkdir(exist_ok=True)\n'
TWICE = HAZARD + 'if not os.path.isdir("e"):\n    os.mkdir("e")\n'
WORK = "import os\n\n\ndef prepare(out):\n    if not os.path.exists(out):\n        os.makedirs(out)\n"
GUARDED = """import torch.distributed as dist

from work import prepare


def main(out):
    if dist.get_rank() == 0:
        prepare(out)
    dist.barrier()


main("out")
"""
UNGUARDED = GUARDED.replace("if dist.get_rank() == 0:", "if print(dist.get_rank()) is None:")
TWO_RULES = """import os
import torch.distributed as dist

dist.init_process_group("nccl")

if not os.path.exists("a"):
    os.makedirs("a")
if os.path.exists("b"):
    os.remove("b")
"""
NOTHING_KNOWN = '{"format": "fsrace-lint baseline", "version": 1, "findings": []}'
UNSAFE = """import os
import torch.distributed as dist

print(dist.get_rank())
os.rename("a", "b")
dist.barrier()
"""


# pygls asks asyncio what `inspect` answers since Python 3.14.
pytestmark = pytest.mark.filterwarnings("ignore:.*iscoroutinefunction.*:DeprecationWarning")


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A project, below a folder that is none."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("")
    return folder


def applied(text: str, edit: types.WorkspaceEdit | None, codec: str = "utf-16-le", width: int = 2) -> str:
    """Apply an edit as an editor would, by units of the encoding."""
    assert edit is not None
    if edit.changes is not None:
        ((_, found),) = edit.changes.items()
        changes = list(found)
    else:
        assert edit.document_changes is not None
        (document,) = edit.document_changes
        assert isinstance(document, types.TextDocumentEdit)
        changes = [one for one in document.edits if isinstance(one, types.TextEdit)]
        assert len(changes) == len(document.edits)
    lines = text.splitlines(keepends=True) if "\f" not in text else text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode(codec)))
    data = text.encode(codec)
    for change in sorted(changes, key=lambda one: one.range.start, reverse=True):
        first, last = (
            starts[place.line] + place.character * width for place in (change.range.start, change.range.end)
        )
        data = data[:first] + change.new_text.encode(codec) + data[last:]
    return data.decode(codec)


def saved(editor: Editor, name: str) -> None:
    """Tell the server that a document was saved."""
    editor.client.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(name)))


WISHES = Wishes("utf-16", related=True, tags=True, data=True)


class Idle(Worker):
    """Does no work before it is told to."""

    def __init__(self) -> None:
        self.jobs: list[Callable[[], Any]] = []

    def submit(self, job: Callable[[], Answer]) -> Future[Answer]:
        self.jobs.append(job)
        return Future()


class Alone:
    """A session of one document, whose work is done by hand."""

    def __init__(self, folder: Path) -> None:
        self.told: list[Any] = []
        self.worker = Idle()
        self.session = Session(Where(folder), self.worker, lambda _, answer: self.told.append(answer))
        self.file, self.uri = folder / "a.py", uri(folder / "a.py")
        self.session.documents[self.uri] = self.file

    async def asked(self, text: str) -> Callable[[], Any]:
        """Look at a text, and give the work that this is."""
        document = Document(self.uri, 1, text)
        self.worker.jobs.clear()
        self.session.touch(lambda: ([document], WISHES), delay=0)
        await turn()
        (job,) = self.worker.jobs
        return job

    def found(self) -> list[list[str]]:
        """Give the codes of each result that was told."""
        results = [answer for answer in self.told if isinstance(answer, SessionResult)]
        return [[finding.code for finding, _ in result.found] for result in results]


def calm() -> None:
    """End no work."""


def ended() -> None:
    """End the work."""
    raise SupersededError


async def turn() -> None:
    """Let the message loop do what waits."""
    for _ in range(3):
        await asyncio.sleep(0)


class TestSessions:
    def test_an_answer_to_an_older_question_is_dropped(self, here: Path) -> None:
        async def story() -> None:
            alone = Alone(here)
            (await alone.asked(HAZARD))()
            # The answer is on its way when the document changes.
            alone.session.touch(lambda: ([], WISHES))
            await turn()
            assert (alone.told, alone.session.results) == ([], {})
            (await alone.asked("x = 1\n"))()
            await turn()
            assert alone.found() == [[]]

        asyncio.run(story())

    def test_documents_of_an_older_question_are_not_judged(self, here: Path) -> None:
        async def story() -> None:
            alone = Alone(here)
            old = await alone.asked(HAZARD)
            new = await alone.asked("x = 1\n")
            judged: list[Path] = []
            judge = alone.session.analysis.judge

            def counting(file: Path, pulse: Callable[[], None]) -> Any:
                judged.append(file)
                return judge(file, pulse)

            alone.session.analysis.judge = counting  # type: ignore[method-assign]
            old()
            assert judged == []
            new()
            assert judged == [alone.file]

        asyncio.run(story())

    @pytest.mark.parametrize("why", ["closed", "settings"])
    def test_reading_ends_where_nobody_waits_for_it(self, here: Path, why: str) -> None:
        (here / "b.py").write_text("")

        async def story() -> None:
            alone = Alone(here)
            work = await alone.asked(HAZARD)
            if why == "closed":
                alone.session.forget(alone.uri)
            else:
                alone.session.changed_on_disk(None)
            work()
            await turn()
            assert (alone.told, alone.session.analysis.sources()) == ([], {})
            alone.session.documents[alone.uri] = alone.file
            (await alone.asked(HAZARD))()
            await turn()
            assert alone.found() == [["FSR101"]]
            assert len(alone.session.analysis.sources()) == 2

        asyncio.run(story())

    def test_reading_goes_on_where_only_a_buffer_has_changed(self, here: Path) -> None:
        (here / "b.py").write_text("")

        async def story() -> None:
            alone = Alone(here)
            old = await alone.asked(HAZARD)
            await alone.asked("x = 1\n")
            old()
            assert len(alone.session.analysis.sources()) == 2

        asyncio.run(story())


class TestDiagnostics:
    def test_what_a_finding_says(self, here: Path) -> None:
        async def story(editor: Editor) -> None:
            name = editor.open(here / "a.py", HAZARD)
            (found,) = await editor.diagnostics(name)
            assert found.range == types.Range(types.Position(3, 4), types.Position(3, 17))
            assert (found.code, found.source, found.tags) == ("FSR101", "fsrace-lint", None)
            assert found.severity == types.DiagnosticSeverity.Error
            assert found.message == (
                "another process can create 'd' after the check on line 3\n"
                "Outcome: process 1 dies with FileExistsError"
            )
            assert found.data == {
                "name": "check-then-mkdir",
                "evidence": "plausible",
                "applicability": "safe",
            }
            (related,) = found.related_information or ()
            assert related.location.uri == name
            assert related.location.range == types.Range(types.Position(2, 7), types.Position(2, 25))

        session([here], story)

    def test_as_one_types(self, here: Path) -> None:
        async def story(editor: Editor) -> None:
            name = editor.open(here / "a.py", "x = 1\n")
            assert await editor.codes(name) == []
            editor.change(name, HAZARD)
            assert await editor.codes(name) == ["4 FSR101"]
            editor.change(name, "\n" + HAZARD)
            assert await editor.codes(name) == ["5 FSR101"]

        session([here], story)

    def test_only_the_newest_version_is_answered(self, here: Path) -> None:
        async def story(editor: Editor) -> None:
            name = editor.open(here / "a.py", "x = 1\n")
            await editor.codes(name)
            editor.forget()
            for count in range(30):
                editor.change(name, "\n" * count + HAZARD)
            assert await editor.codes(name) == ["33 FSR101"]
            assert [one.version for one in editor.published] == [31]

        session([here], story)

    def test_buffers_of_other_files_count(self, here: Path) -> None:
        (here / "train.py").write_text(UNGUARDED)

        async def story(editor: Editor) -> None:
            work = editor.open(here / "work.py", WORK)
            (found,) = await editor.diagnostics(work)
            places = {related.location.uri for related in found.related_information or ()}
            assert places == {work, uri(here / "train.py")}
            train = editor.open(here / "train.py", GUARDED)
            editor.forget()
            assert await editor.codes(work) == []
            editor.forget()
            editor.close(train)
            assert await editor.codes(work) == ["6 FSR101"]

        session([here], story)

    def test_a_buffer_that_does_not_parse_keeps_its_guards(self, here: Path) -> None:
        async def story(editor: Editor) -> None:
            train = editor.open(here / "train.py", GUARDED)
            work = editor.open(here / "work.py", WORK)
            assert await editor.codes(work) == []
            await editor.codes(train)
            editor.forget()
            editor.change(train, GUARDED + "def f(:\n")
            assert await editor.codes(train) == ["13 FSR001"]
            assert await editor.codes(work) == []
            editor.forget()
            editor.change(train, UNGUARDED)
            assert await editor.codes(train) == []
            assert await editor.codes(work) == ["6 FSR101"]

        session([here], story)

    def test_suppressions(self, here: Path) -> None:
        async def story(editor: Editor) -> None:
            text = HAZARD.replace('mkdir("d")', 'mkdir("d")  # noqa: FSR101') + "x = 1  # noqa: FSR101\n"
            (found,) = await editor.diagnostics(editor.open(here / "a.py", text))
            assert found.code == "FSR003"
            assert list(found.tags or ()) == [types.DiagnosticTag.Unnecessary]
            assert found.range == types.Range(types.Position(4, 15), types.Position(4, 21))

        session([here], story)

    def test_what_is_left_out(self, here: Path) -> None:
        (here / "pyproject.toml").write_text('[tool.fsrace-lint]\nextend-exclude = ["old.py"]\n')
        (here / ".gitignore").write_text("/ignored/\n")

        async def story(editor: Editor) -> None:
            for name in ("tests/test_a.py", "test_b.py", "old.py", "ignored/a.py", "build/lib.py"):
                assert await editor.codes(editor.open(here / name, HAZARD)) == []
            assert await editor.codes(editor.open(here / "a.py", HAZARD)) == ["4 FSR101"]

        session([here], story)

    def test_a_closed_document_has_none(self, here: Path) -> None:
        async def story(editor: Editor) -> None:
            name = editor.open(here / "a.py", HAZARD)
            await editor.codes(name)
            editor.forget()
            editor.close(name)
            assert await editor.codes(name) == []

        session([here], story)

    @pytest.mark.parametrize(
        ("text", "codes"),
        [
            ("", []),
            ("\ufeff" + HAZARD, ["4 FSR101"]),
            (HAZARD.replace("\n", "\r\n"), ["4 FSR101"]),
            ("x = '\f\u2028'\n" + HAZARD, ["5 FSR101"]),
            ("# coding: latin-1\nx = '\xe9'\n" + HAZARD, ["6 FSR101"]),
            ("# coding: klingon\n", ["1 FSR001"]),
            ("\nx = '\0'\n", ["2 FSR001"]),
            ("def f(:\n", ["1 FSR001"]),
            ("x = = 1  # noqa: check-then-mkdir\n", ["1 FSR001"]),
            ("x = = 1  # noqa: FSR001\n", []),
            ("(" * 5000, ["1 FSR001"]),
        ],
    )
    def test_texts(self, here: Path, text: str, codes: list[str]) -> None:
        async def story(editor: Editor) -> None:
            assert await editor.codes(editor.open(here / "a.py", text)) == codes

        session([here], story)


class TestDocuments:
    def test_several_folders_and_projects_in_them(self, here: Path, tmp_path: Path) -> None:
        other, inner = tmp_path / "other", here / "inner"
        for folder, table in ((other, ""), (inner, '[tool.fsrace-lint]\nignore = ["FSR101"]\n')):
            folder.mkdir()
            (folder / "pyproject.toml").write_text(table)

        async def story(editor: Editor) -> None:
            assert await editor.codes(editor.open(here / "a.py", HAZARD)) == ["4 FSR101"]
            assert await editor.codes(editor.open(inner / "a.py", HAZARD)) == []
            assert await editor.codes(editor.open(other / "a.py", HAZARD)) == ["4 FSR101"]

        session([here, other], story)

    def test_a_folder_without_a_project_is_one(self, tmp_path: Path) -> None:
        (tmp_path / "sub").mkdir()
        (tmp_path / "train.py").write_text(GUARDED.replace("from work", "from sub.work"))

        async def story(editor: Editor) -> None:
            assert await editor.codes(editor.open(tmp_path / "sub" / "work.py", WORK)) == []

        session([tmp_path], story)

    def test_a_document_outside_stands_alone(self, here: Path, tmp_path: Path) -> None:
        (tmp_path / "train.py").write_text(GUARDED)

        async def story(editor: Editor) -> None:
            work = editor.open(tmp_path / "work.py", WORK)
            assert await editor.codes(work) == ["6 FSR101"]
            editor.forget()
            # From the disk the other file does not count, but as a document it does.
            editor.open(tmp_path / "train.py", GUARDED)
            assert await editor.codes(work) == []

        session([here], story)

    @pytest.mark.parametrize("with_folder", [True, False])
    def test_an_untitled_buffer(self, here: Path, with_folder: bool) -> None:
        async def story(editor: Editor) -> None:
            assert await editor.codes(editor.open("untitled:Untitled-1", HAZARD)) == ["4 FSR101"]

        session([here] if with_folder else [], story)

    def test_other_languages_and_schemes_are_left_alone(self, here: Path) -> None:
        async def story(editor: Editor) -> None:
            editor.open(here / "notes.txt", HAZARD, "plaintext")
            editor.open("git:/a.py", HAZARD)
            name = editor.open(here / "script", HAZARD)
            assert await editor.codes(name) == ["4 FSR101"]
            assert {one.uri for one in editor.published} == {name}
            assert await editor.actions(uri(here / "notes.txt")) == []

        session([here], story)

    def test_a_renamed_file(self, here: Path) -> None:
        (here / "train.py").write_text(GUARDED)
        (here / "helpers.py").write_text(WORK)

        async def story(editor: Editor) -> None:
            name = editor.open(here / "helpers.py", WORK)
            assert await editor.codes(name) == ["6 FSR101"]
            (here / "helpers.py").rename(here / "work.py")
            editor.close(name)
            editor.client.workspace_did_rename_files(
                types.RenameFilesParams([types.FileRename(name, uri(here / "work.py"))])
            )
            name = editor.open(here / "work.py", WORK)
            assert await editor.codes(name) == []

        session([here], story)


def all_known(file: Path, root: Path) -> str:
    """Write a baseline that holds all that is found in a file."""
    seen = Run(settings.load(root, rules.names()), [file]).check().seen
    entries = [{**known_by._asdict(), "count": count} for known_by, count in seen.reported.items()]
    return json.dumps({**json.loads(NOTHING_KNOWN), "findings": entries})


class TestDisk:
    def test_what_is_watched(self, here: Path) -> None:
        async def story(editor: Editor) -> None:
            (registration,) = await editor.until(lambda: editor.registered)
            assert registration.method == "workspace/didChangeWatchedFiles"
            watched: Any = registration.register_options
            assert {"globPattern": "**/pyproject.toml"} in watched["watchers"]

        session([here], story)

    def test_files_come_change_and_go(self, here: Path) -> None:
        train = here / "train.py"

        async def story(editor: Editor) -> None:
            work = editor.open(here / "work.py", WORK)
            assert await editor.codes(work) == ["6 FSR101"]
            for text, codes in ((GUARDED, []), (UNGUARDED, ["6 FSR101"]), (GUARDED, [])):
                train.write_text(text)
                editor.forget()
                editor.changed_on_disk(train)
                assert await editor.codes(work) == codes
            train.unlink()
            editor.forget()
            editor.changed_on_disk(train, kind=types.FileChangeType.Deleted)
            assert await editor.codes(work) == ["6 FSR101"]

        session([here], story)

    def test_settings_are_read_again(self, here: Path) -> None:
        table = here / "pyproject.toml"

        async def story(editor: Editor) -> None:
            name = editor.open(here / "a.py", HAZARD)
            assert await editor.codes(name) == ["4 FSR101"]
            for text, codes in (('ignore = ["FSR101"]', []), ("", ["4 FSR101"])):
                table.write_text(f"[tool.fsrace-lint]\n{text}\n")
                editor.forget()
                editor.changed_on_disk(table)
                assert await editor.codes(name) == codes

        session([here], story)

    def test_bad_settings_are_told_once(self, here: Path) -> None:
        table = here / "pyproject.toml"
        table.write_text('[tool.fsrace-lint]\nprofil = "strict"\n')

        async def story(editor: Editor) -> None:
            name = editor.open(here / "a.py", HAZARD)
            (message,) = await editor.until(lambda: editor.messages)
            assert message == (
                f"fsrace-lint: {table}: unknown key `profil` in [tool.fsrace-lint]; did you mean `profile`?"
            )
            editor.change(name, HAZARD + "\n")
            assert await editor.actions(name) == []
            assert len(editor.messages) == 1
            table.write_text("")
            editor.forget()
            editor.changed_on_disk(table)
            assert await editor.codes(name) == ["4 FSR101"]

        session([here], story)

    def test_a_project_comes_into_being(self, here: Path) -> None:
        inner = here / "inner"
        inner.mkdir()

        async def story(editor: Editor) -> None:
            name = editor.open(inner / "a.py", HAZARD)
            assert await editor.codes(name) == ["4 FSR101"]
            (inner / "pyproject.toml").write_text('[tool.fsrace-lint]\nignore = ["FSR101"]\n')
            editor.forget()
            editor.changed_on_disk(inner / "pyproject.toml", kind=types.FileChangeType.Created)
            await editor.until(lambda: [one for one in editor.published if one.version == 1])
            assert await editor.codes(name) == []

        session([here], story)

    def test_without_a_watcher_saving_looks_again(self, here: Path) -> None:
        async def story(editor: Editor) -> None:
            work = editor.open(here / "work.py", WORK)
            assert await editor.codes(work) == ["6 FSR101"]
            (here / "train.py").write_text(GUARDED)
            editor.forget()
            saved(editor, work)
            assert await editor.codes(work) == []
            assert editor.registered == []

        session([here], story, capabilities(watch=False))

    @pytest.mark.parametrize("how", ["save", "save, unwatched", "watch"])
    def test_the_baseline_is_read_again(self, here: Path, tmp_path: Path, how: str) -> None:
        known = (here if how == "watch" else tmp_path) / "known.json"
        (here / "pyproject.toml").write_text(
            f"[tool.fsrace-lint]\nbaseline = '{os.path.relpath(known, here)}'\n"
        )
        known.write_text(NOTHING_KNOWN)
        (here / "a.py").write_text(HAZARD)
        full = all_known(here / "a.py", here)

        async def story(editor: Editor) -> None:
            name = editor.open(here / "a.py", HAZARD)
            assert await editor.codes(name) == ["4 FSR101"]
            for state, codes in ((full, []), (NOTHING_KNOWN, ["4 FSR101"])):
                known.write_text(state)
                editor.forget()
                if how == "watch":
                    editor.changed_on_disk(known)
                else:
                    saved(editor, name)
                assert await editor.codes(name) == codes
            if how != "save, unwatched":
                _, registration = await editor.until(
                    lambda: editor.registered if len(editor.registered) > 1 else []
                )
                assert registration.register_options["watchers"] == [{"globPattern": "**/known.json"}]

        session([here], story, capabilities(watch=how != "save, unwatched"))

    def test_a_baseline_that_is_gone_is_told(self, here: Path) -> None:
        (here / "pyproject.toml").write_text('[tool.fsrace-lint]\nbaseline = "known.json"\n')
        known = here / "known.json"
        known.write_text(NOTHING_KNOWN)

        async def story(editor: Editor) -> None:
            name = editor.open(here / "a.py", HAZARD)
            assert await editor.codes(name) == ["4 FSR101"]
            known.unlink()
            editor.changed_on_disk(known, kind=types.FileChangeType.Deleted)
            (message,) = await editor.until(lambda: editor.messages)
            assert "there is no such baseline" in message
            known.write_text(NOTHING_KNOWN)
            editor.forget()
            editor.changed_on_disk(known, kind=types.FileChangeType.Created)
            assert await editor.codes(name) == ["4 FSR101"]

        session([here], story)


class TestActions:
    def test_a_quick_fix(self, here: Path) -> None:
        async def story(editor: Editor) -> None:
            name = editor.open(here / "a.py", HAZARD)
            (found,) = await editor.diagnostics(name)
            at = types.Range(found.range.start, found.range.start)
            (action,) = await editor.actions(name, at, [types.CodeActionKind.QuickFix])
            assert action.title == "FSR101: accept a directory that is there already"
            assert (action.is_preferred, action.edit) == (True, None)
            assert [one.code for one in action.diagnostics or ()] == ["FSR101"]
            assert await editor.actions(name, types.Range(START, START), ["quickfix"]) == []
            edit = (await editor.resolve(action)).edit
            assert applied(HAZARD, edit) == FIXED
            assert edit is not None
            (document,) = edit.document_changes or ()
            assert isinstance(document, types.TextDocumentEdit)
            assert document.text_document.version == 1
            assert "import os" not in "".join(
                one.new_text for one in document.edits if isinstance(one, types.TextEdit)
            )

        session([here], story)

    def test_edits_at_once_and_without_versions(self, here: Path) -> None:
        async def story(editor: Editor) -> None:
            name = editor.open(here / "a.py", HAZARD)
            (action,) = await editor.actions(name, only=["quickfix"])
            assert action.edit is not None
            assert action.edit.document_changes is None
            assert applied(HAZARD, action.edit) == FIXED

        session([here], story, capabilities(resolve=False, versioned=False))

    def test_fix_all(self, here: Path) -> None:
        async def story(editor: Editor) -> None:
            name = editor.open(here / "a.py", TWICE)
            asked = (["source.fixAll"], ["source"], ["source.fixAll.fsrace"])
            offered = [await editor.actions(name, types.Range(START, START), only) for only in asked]
            assert [[action.kind for action in one] for one in offered] == [["source.fixAll.fsrace"]] * 3
            action = offered[0][0]
            fixed = applied(TWICE, (await editor.resolve(action)).edit)
            assert fixed == FIXED + 'Path("e").mkdir(exist_ok=True)\n'
            assert await editor.actions(name, only=["source.organizeImports"]) == []
            assert len(await editor.actions(name)) == 3

        session([here], story)

    def test_unsafe_fixes_say_so(self, here: Path) -> None:
        async def story(editor: Editor) -> None:
            name = editor.open(here / "a.py", UNSAFE)
            (action,) = await editor.actions(name)
            assert action.title.endswith(" (unsafe)")
            assert action.is_preferred is False
            fixed = applied(UNSAFE, (await editor.resolve(action)).edit)
            assert 'if is_main_process():\n    os.rename("a", "b")\n' in fixed

        session([here], story)

    def test_a_refusal_is_told(self, here: Path) -> None:
        text = UNSAFE.replace('os.rename("a", "b")', 'torch.save({}, "state.pt")').replace(
            "import os", "import torch"
        )

        async def story(editor: Editor) -> None:
            name = editor.open(here / "a.py", text)
            (action,) = await editor.actions(name)
            assert (await editor.resolve(action)).edit is None
            (message,) = await editor.until(lambda: editor.messages)
            assert message.startswith("FSR201 not fixed: it would bring FSR")

        session([here], story)

    def test_an_old_action_is_not_made(self, here: Path) -> None:
        async def story(editor: Editor) -> None:
            name = editor.open(here / "a.py", HAZARD)
            (action,) = await editor.actions(name, only=["quickfix"])
            editor.change(name, "\n" + HAZARD)
            assert await editor.codes(name) == ["5 FSR101"]
            with pytest.raises(JsonRpcException) as caught:
                await editor.resolve(action)
            assert caught.value.code == -32801

        session([here], story)

    @pytest.mark.parametrize("watch", [True, False])
    def test_an_action_makes_the_fix_of_its_own_finding_only(self, here: Path, watch: bool) -> None:
        async def story(editor: Editor) -> None:
            name = editor.open(here / "a.py", TWO_RULES)
            assert sorted(await editor.codes(name)) == ["7 FSR101", "9 FSR103"]
            first, second = await editor.actions(name, only=["quickfix"])
            (all_safe,) = await editor.actions(name, only=["source.fixAll"])
            assert (first.title[:6], second.title[:6]) == ("FSR101", "FSR103")
            (here / "pyproject.toml").write_text('[tool.fsrace-lint]\nignore = ["FSR101"]\n')
            editor.forget()
            if watch:
                editor.changed_on_disk(here / "pyproject.toml")
            else:
                saved(editor, name)
            assert await editor.codes(name) == ["9 FSR103"]
            for gone in (first, all_safe):
                with pytest.raises(JsonRpcException) as caught:
                    await editor.resolve(gone)
                assert caught.value.code == -32801
            fixed = applied(TWO_RULES, (await editor.resolve(second)).edit)
            assert 'os.makedirs("a")' in fixed
            assert "suppress(FileNotFoundError)" in fixed

        session([here], story, capabilities(watch=watch))

    def test_an_action_of_another_version_is_not_made_though_its_finding_stands(self, here: Path) -> None:
        async def story(editor: Editor) -> None:
            name = editor.open(here / "a.py", HAZARD)
            (action,) = await editor.actions(name, only=["quickfix"])
            editor.forget()
            editor.change(name, HAZARD + "# more\n")
            for _ in ("before it is looked at", "and after"):
                with pytest.raises(JsonRpcException) as caught:
                    await editor.resolve(action)
                assert caught.value.code == -32801
                assert await editor.codes(name) == ["4 FSR101"]
            (action,) = await editor.actions(name, only=["quickfix"])
            assert applied(HAZARD, (await editor.resolve(action)).edit) == FIXED

        session([here], story)

    def test_versions_that_begin_again_are_not_mixed_up(self, here: Path) -> None:
        async def story(editor: Editor) -> None:
            name = editor.open(here / "a.py", "")
            editor.change(name, HAZARD)
            (action,) = await editor.actions(name, only=["quickfix"])
            editor.close(name)
            editor.forget()
            editor.open(here / "a.py", HAZARD)
            assert await editor.codes(name) == ["4 FSR101"]
            editor.change(name, "x = 1\n")
            with pytest.raises(JsonRpcException) as caught:
                await editor.resolve(action)
            assert caught.value.code == -32801

        session([here], story)

    def test_data_that_is_not_ours(self, here: Path) -> None:
        async def story(editor: Editor) -> None:
            name = editor.open(here / "a.py", HAZARD)
            await editor.codes(name)
            for data in (
                None,
                1,
                {"uri": name},
                {"uri": name, "version": 1, "findings": [0], "unsafe": True},
            ):
                action = types.CodeAction("x", data=data)
                assert (await editor.resolve(action)).edit is None

        session([here], story)

    @pytest.mark.parametrize(
        ("encoding", "codec", "width", "column"),
        [("utf-8", "utf-8", 1, 12), ("utf-16", "utf-16-le", 2, 10), ("utf-32", "utf-32-le", 4, 9)],
    )
    @pytest.mark.parametrize("newline", ["\n", "\r\n"])
    def test_encodings(
        self, here: Path, encoding: str, codec: str, width: int, column: int, newline: str
    ) -> None:
        before = (
            "import os\nimport torch.distributed as dist\n\nprint(dist.get_rank())\n"
            'd = "\U0001f525"; os.makedirs(d)  # \xe9\n'
        ).replace("\n", newline)

        async def story(editor: Editor) -> None:
            name = editor.open(here / "a.py", before)
            (found,) = await editor.diagnostics(name)
            assert found.range.start == types.Position(4, column)
            (action,) = await editor.actions(name, found.range, ["quickfix"])
            fixed = applied(before, (await editor.resolve(action)).edit, codec, width)
            assert fixed == before.replace("makedirs(d)", "makedirs(d, exist_ok=True)")

        session([here], story, capabilities(encodings=[encoding]))

    def test_a_bom_and_a_cookie_stay(self, here: Path) -> None:
        async def story(editor: Editor) -> None:
            for start in ("\ufeff", "# coding: latin-1\n# \xe9\n"):
                name = editor.open(here / "a.py", start + HAZARD)
                (action,) = await editor.actions(name, only=["quickfix"])
                assert applied(start + HAZARD, (await editor.resolve(action)).edit) == start + FIXED
                editor.close(name)

        session([here], story)


class TestQuestions:
    def test_hover(self, here: Path) -> None:
        async def story(editor: Editor) -> None:
            name = editor.open(here / "a.py", HAZARD)

            async def hover(line: int, column: int) -> types.Hover | None:
                at = types.HoverParams(types.TextDocumentIdentifier(name), types.Position(line, column))
                return await editor.client.text_document_hover_async(at)

            shown = await hover(3, 6)
            assert shown is not None
            assert isinstance(shown.contents, types.MarkupContent)
            assert shown.contents.kind == types.MarkupKind.Markdown
            assert shown.contents.value.startswith("### FSR101 check-then-mkdir\n\nA directory is created")
            assert "**Bad:**\n\n```python\n" in shown.contents.value
            assert await hover(0, 0) is None

        session([here], story)

    def test_diagnostics_that_are_asked_for(self, here: Path) -> None:
        async def story(editor: Editor) -> None:
            async def pull(name: str, previous: str | None = None) -> types.DocumentDiagnosticReport:
                return await editor.client.text_document_diagnostic_async(
                    types.DocumentDiagnosticParams(
                        types.TextDocumentIdentifier(name), previous_result_id=previous
                    )
                )

            work = editor.open(here / "work.py", WORK)
            first = await pull(work)
            assert isinstance(first, types.RelatedFullDocumentDiagnosticReport)
            assert [one.code for one in first.items] == ["FSR101"]
            again = await pull(work, first.result_id)
            assert isinstance(again, types.RelatedUnchangedDocumentDiagnosticReport)
            editor.open(here / "train.py", GUARDED)
            await editor.until(lambda: editor.refreshes)
            last = await pull(work, first.result_id)
            assert isinstance(last, types.RelatedFullDocumentDiagnosticReport)
            assert list(last.items) == []
            assert editor.published == []

        session([here], story, capabilities(pull=True))

    def test_a_document_that_is_opened_again_has_news(self, here: Path) -> None:
        async def story(editor: Editor) -> None:
            async def pull(previous: str | None = None) -> types.DocumentDiagnosticReport:
                return await editor.client.text_document_diagnostic_async(
                    types.DocumentDiagnosticParams(
                        types.TextDocumentIdentifier(name), previous_result_id=previous
                    )
                )

            name = editor.open(here / "a.py", HAZARD)
            first = await pull()
            assert isinstance(first, types.RelatedFullDocumentDiagnosticReport)
            assert len(first.items) == 1
            editor.close(name)
            editor.open(here / "a.py", "x = 1\n")
            last = await pull(first.result_id)
            assert isinstance(last, types.RelatedFullDocumentDiagnosticReport)
            assert list(last.items) == []

        session([here], story, capabilities(pull=True))

    def test_what_the_server_says_it_can(self, here: Path) -> None:
        async def story() -> None:
            editor = Editor()
            told = (await editor.start([here], capabilities(encodings=["utf-8"]))).capabilities
            assert told.position_encoding == "utf-8"
            assert told.hover_provider
            assert isinstance(told.code_action_provider, types.CodeActionOptions)
            assert list(told.code_action_provider.code_action_kinds or ()) == [
                "quickfix",
                "source.fixAll.fsrace",
            ]
            assert told.code_action_provider.resolve_provider
            assert await editor.stop() == 0
            await editor.gone()

        asyncio.run(story())


class TestTheEnd:
    def test_an_exit_without_a_shutdown(self, here: Path) -> None:
        async def story() -> None:
            editor = Editor()
            await editor.start([here], capabilities())
            editor.open(here / "a.py", HAZARD)
            editor.client.exit(None)
            assert await editor.exit_code() == 1
            await editor.gone()

        asyncio.run(story())

    @pytest.mark.parametrize("data", [b"", b"Content-Length: 5\r\n\r\nnone!", b"what?\n"])
    def test_a_client_that_goes_away(self, data: bytes) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "fsrace_lint", "server"],
            input=data,
            capture_output=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 1
        assert done.stdout == b""

    def test_without_pygls(self, tmp_path: Path) -> None:
        (tmp_path / "pygls.py").write_text("raise ModuleNotFoundError(name='pygls')\n")
        done = subprocess.run(
            [sys.executable, "-m", "fsrace_lint", "server"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 2
        assert done.stdout == ""
        assert done.stderr == (
            "Error: the language server needs pygls 2, which is not installed: "
            'python -m pip install "fsrace-lint[server]"\n'
        )


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ("", "", []),
        ("a\nb\n", "a\nb\n", []),
        ("", "a\n", [((0, 0), (0, 0), "a\n")]),
        ("a\n", "", [((0, 0), (1, 0), "")]),
        ("a\nb\nc\n", "a\nx\nc\n", [((1, 0), (1, 1), "x")]),
        ("f(a)\n", "f(a, b)\n", [((0, 3), (0, 3), ", b")]),
        ("a\r\nb", "a\nb", [((0, 1), (1, 0), "\n")]),
        ("a\nb\nc\nd\n", "b\nc\nx\nd\n", [((0, 0), (1, 0), ""), ((3, 0), (3, 0), "x\n")]),
        ("a\fb\u2028c\nd", "a\fb\u2028c\ne", [((1, 0), (1, 1), "e")]),
    ],
)
def test_edits(before: str, after: str, found: list[tuple[tuple[int, int], tuple[int, int], str]]) -> None:
    """As a client takes them: from 0."""
    lines = Text(before, "utf-32")
    ranges = [(lines.range(edit.span), edit.text) for edit in between(before, after)]
    told = [((r.start.line, r.start.character), (r.end.line, r.end.character), text) for r, text in ranges]
    assert told == found


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_looking_at_the_disk_again_finds_links(here: Path) -> None:
    (here / "a.py").write_text(HAZARD)
    analysis, file = Analysis(Where(here)), here / "b.py"

    analysis.update({file: HAZARD}, (), calm)
    (here / "c.py").symlink_to("a.py")
    analysis.update({file: "x = 1\n"}, None, calm)
    assert analysis.judge(file, calm) == []
    assert len(analysis.sources()) == 2
    (here / "c.py").unlink()
    (here / "c.py").write_text(HAZARD)
    analysis.update({file: "x = 1\n"}, None, calm)
    assert len(analysis.sources()) == 3


def test_looking_at_the_disk_again_reads_what_has_changed(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(monkeypatch)
    os.chdir(here)
    write({"a.py": HAZARD, "b.py": HAZARD})
    analysis, file = Analysis(Where(here)), here / "new.py"
    analysis.update({file: "x = 1\n"}, (), calm)
    read: list[str] = []
    real = source.read

    def reading(path: Path, root: Path) -> source.Source | source.Unreadable:
        read.append(path.name)
        return real(path, root)

    monkeypatch.setattr(source, "read", reading)
    (here / "b.py").write_text(HAZARD + "y = 2\n")
    analysis.update({file: "x = 1\n"}, None, calm)
    assert read == ["b.py"]
    assert [Path(path).name for path in analysis.sources()] == ["a.py", "b.py", "new.py"]


def test_a_change_ends_the_making_of_a_fix(here: Path) -> None:
    (here / "a.py").write_text("")
    analysis, file = Analysis(Where(here)), here / "a.py"
    analysis.update({file: HAZARD}, (), calm)
    found = analysis.judge(file, calm)

    with pytest.raises(SupersededError):
        analysis.repair(file, found, ended, unsafe=False)
    assert analysis.repair(file, found, calm, unsafe=False) is not None


def read(folder: Path) -> Run:
    chosen = settings.load(folder, rules.names())
    return Run(chosen, [])


def codes(run: Run, name: str) -> list[str]:
    return [finding.code for finding in run.check_file(name, []).kept]


def test_work_ends_where_it_is_told(here: Path) -> None:
    (here / "a.py").write_text(HAZARD)
    run = read(here)
    steps: list[int] = []

    class Canceling(Observer):
        def checkpoint(self) -> None:
            steps.append(1)
            if len(steps) == left:
                raise SupersededError

        step = checkpoint

    assert codes(run.with_sources(), "a.py") == ["FSR101"]
    left, run.observer = 0, Canceling()
    assert codes(run.with_sources(), "a.py") == ["FSR101"]
    every = len(steps)
    assert every > len(rules.load()) / 2
    for left in range(1, every + 1):
        steps.clear()
        with pytest.raises(SupersededError):
            run.with_sources().check_file("a.py", [])
        assert len(steps) == left
    steps.clear()
    left = 0
    assert codes(run, "a.py") == ["FSR101"]


def test_names_of_a_file_are_gathered_once_for_all_that_is_linked(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gathered: list[FileFacts] = []

    class Counted(name_index_entry.ComputedIndexEntry):
        def __init__(self, facts: FileFacts) -> None:
            gathered.append(facts)
            super().__init__(facts)

    monkeypatch.setattr(name_index_entry, "ComputedIndexEntry", Counted)
    (here / "a.py").write_text(HAZARD)
    (here / "b.py").write_text("from a import *\n")
    run = read(here)
    run.link()
    assert len(gathered) == 2
    changed = run.with_sources(source.of_text(HAZARD + "x = 1\n", here / "a.py", here))
    changed.link()
    assert gathered[2:] == [changed.files["a.py"].facts]


def test_only_code_is_linked_anew(here: Path) -> None:
    (here / "a.py").write_text(HAZARD)
    (here / "b.py").write_text("")
    run = read(here)
    linked = run.link()

    def changed(text: str) -> Run:
        return run.with_sources(source.of_text(text, here / "a.py", here))

    assert changed(HAZARD + "# more\n").link() is linked
    assert codes(changed(HAZARD.replace('("d")\n', '("d")  # noqa: FSR101\n')), "a.py") == []
    for text in ("\n" + HAZARD, HAZARD.replace('"d"', '"e"')):
        assert changed(text).link() is not linked
    assert run.with_sources(without=("b.py",)).link() is not linked
    assert run.with_sources(without=("c.py",)).link() is linked
