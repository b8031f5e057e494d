"""The language server, driven by an LSP client over the standard streams of a real process."""

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
FIXED = 'import os\n\nos.makedirs("d", exist_ok=True)\n'
TWICE = HAZARD + 'if not os.path.isdir("e"):\n    os.mkdir("e")\n'
WORK = "import os\n\n\ndef prepare(out):\n    if not os.path.isdir(out):\n        os.makedirs(out)\n"
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

if not os.path.isdir("a"):
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
UNPACKED = """if not os.path.isdir("data"):
    shutil.unpack_archive("data.tar", "data")
print(open("data/index").read())"""
CACHED = """path = "a" + os.environ["B"]
if not os.path.exists(path):
    np.save(path, [1])
np.load(path)"""


# pygls still calls the asyncio function that Python 3.14 deprecates in favor of `inspect`.
pytestmark = pytest.mark.filterwarnings("ignore:.*iscoroutinefunction.*:DeprecationWarning")


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A project in a directory that is not a project itself."""
    directory = tmp_path / "project"
    directory.mkdir()
    (directory / "pyproject.toml").write_text("")
    return directory


def applied(text: str, edit: types.WorkspaceEdit | None, codec: str = "utf-16-le", width: int = 2) -> str:
    """Apply an edit as an editor would, counting code units of the encoding."""
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


def notify_saved(editor: Editor, name: str) -> None:
    """Notify the server that a document was saved."""
    editor.client.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(name)))


WISHES = Wishes("utf-16", related=True, tags=True, data=True)


class QueueingWorker(Worker):
    """A worker that only queues jobs."""

    def __init__(self) -> None:
        self.jobs: list[Callable[[], Any]] = []

    def submit(self, job: Callable[[], Answer]) -> Future[Answer]:
        self.jobs.append(job)
        return Future()


class SingleDocumentSession:
    """A session with one document, whose jobs the test runs itself."""

    def __init__(self, directory: Path) -> None:
        self.received: list[Any] = []
        self.worker = QueueingWorker()
        self.session = Session(Where(directory), self.worker, lambda _, answer: self.received.append(answer))
        self.file, self.uri = directory / "a.py", uri(directory / "a.py")
        self.session.documents[self.uri] = self.file

    async def request_check(self, text: str) -> Callable[[], Any]:
        """Request a check of a text, and return the queued job."""
        document = Document(self.uri, 1, text)
        self.worker.jobs.clear()
        self.session.touch(lambda: ([document], WISHES), delay=0)
        await run_pending()
        (job,) = self.worker.jobs
        return job

    def found(self) -> list[list[str]]:
        """The codes of each received result."""
        results = [answer for answer in self.received if isinstance(answer, SessionResult)]
        return [[finding.code for finding, _ in result.found] for result in results]


def not_canceled() -> None:
    """A checkpoint that does not cancel."""


def canceled() -> None:
    """A checkpoint that cancels."""
    raise SupersededError


async def run_pending() -> None:
    """Run the pending tasks of the event loop."""
    for _ in range(3):
        await asyncio.sleep(0)


class TestSessions:
    def test_result_of_an_outdated_request_is_dropped(self, here: Path) -> None:
        async def story() -> None:
            alone = SingleDocumentSession(here)
            (await alone.request_check(HAZARD))()
            # The document changes while the result is being delivered.
            alone.session.touch(lambda: ([], WISHES))
            await run_pending()
            assert (alone.received, alone.session.results) == ([], {})
            (await alone.request_check("x = 1\n"))()
            await run_pending()
            assert alone.found() == [[]]

        asyncio.run(story())

    def test_outdated_document_is_not_checked(self, here: Path) -> None:
        async def story() -> None:
            alone = SingleDocumentSession(here)
            old = await alone.request_check(HAZARD)
            new = await alone.request_check("x = 1\n")
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
    def test_reading_stops_if_the_result_is_not_needed(self, here: Path, why: str) -> None:
        (here / "b.py").write_text("")

        async def story() -> None:
            alone = SingleDocumentSession(here)
            work = await alone.request_check(HAZARD)
            if why == "closed":
                alone.session.forget(alone.uri)
            else:
                alone.session.changed_on_disk(None)
            work()
            await run_pending()
            assert (alone.received, alone.session.analysis.sources()) == ([], {})
            alone.session.documents[alone.uri] = alone.file
            (await alone.request_check(HAZARD))()
            await run_pending()
            assert alone.found() == [["FSR101"]]
            assert len(alone.session.analysis.sources()) == 2

        asyncio.run(story())

    def test_reading_continues_if_only_a_buffer_changed(self, here: Path) -> None:
        (here / "b.py").write_text("")

        async def story() -> None:
            alone = SingleDocumentSession(here)
            old = await alone.request_check(HAZARD)
            await alone.request_check("x = 1\n")
            old()
            assert len(alone.session.analysis.sources()) == 2

        asyncio.run(story())


class TestDiagnostics:
    def test_finding_becomes_a_diagnostic(self, here: Path) -> None:
        async def story(editor: Editor) -> None:
            name = editor.open(here / "a.py", HAZARD)
            (found,) = await editor.diagnostics(name)
            assert found.range == types.Range(types.Position(3, 4), types.Position(3, 17))
            assert (found.code, found.source, found.tags) == ("FSR101", "fsrace-lint", None)
            assert found.severity == types.DiagnosticSeverity.Warning
            assert found.message == (
                "directory `'d'` is created by multiple processes after a separate existence check\n"
                "Outcome: the slower process fails with `FileExistsError`"
            )
            assert found.data == {
                "name": "check-then-mkdir",
                "confidence": "medium",
                "evidence": "plausible",
                "applicability": "safe",
                "tier": "local",
            }
            (related,) = found.related_information or ()
            assert related.location.uri == name
            assert related.location.range == types.Range(types.Position(2, 7), types.Position(2, 25))

        session([here], story)

    def test_diagnostics_follow_edits(self, here: Path) -> None:
        async def story(editor: Editor) -> None:
            name = editor.open(here / "a.py", "x = 1\n")
            assert await editor.codes(name) == []
            editor.change(name, HAZARD)
            assert await editor.codes(name) == ["4 FSR101"]
            editor.change(name, "\n" + HAZARD)
            assert await editor.codes(name) == ["5 FSR101"]

        session([here], story)

    def test_only_the_newest_version_gets_diagnostics(self, here: Path) -> None:
        async def story(editor: Editor) -> None:
            name = editor.open(here / "a.py", "x = 1\n")
            await editor.codes(name)
            editor.forget()
            for count in range(30):
                editor.change(name, "\n" * count + HAZARD)
            assert await editor.codes(name) == ["33 FSR101"]
            assert [one.version for one in editor.published] == [31]

        session([here], story)

    def test_unsaved_buffers_of_other_files_are_used(self, here: Path) -> None:
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

    def test_unparsable_buffer_keeps_its_last_guards(self, here: Path) -> None:
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

    def test_unused_suppression_is_tagged_unnecessary(self, here: Path) -> None:
        async def story(editor: Editor) -> None:
            text = HAZARD.replace('mkdir("d")', 'mkdir("d")  # noqa: FSR101') + "x = 1  # noqa: FSR101\n"
            (found,) = await editor.diagnostics(editor.open(here / "a.py", text))
            assert found.code == "FSR003"
            assert list(found.tags or ()) == [types.DiagnosticTag.Unnecessary]
            assert found.range == types.Range(types.Position(4, 15), types.Position(4, 21))

        session([here], story)

    def test_excluded_files_have_no_diagnostics(self, here: Path) -> None:
        (here / "pyproject.toml").write_text('[tool.fsrace-lint]\nextend-exclude = ["old.py"]\n')
        (here / ".gitignore").write_text("/ignored/\n")

        async def story(editor: Editor) -> None:
            for name in ("tests/test_a.py", "test_b.py", "old.py", "ignored/a.py", "build/lib.py"):
                assert await editor.codes(editor.open(here / name, HAZARD)) == []
            assert await editor.codes(editor.open(here / "a.py", HAZARD)) == ["4 FSR101"]

        session([here], story)

    def test_closed_document_has_no_diagnostics(self, here: Path) -> None:
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
    def test_unusual_texts(self, here: Path, text: str, codes: list[str]) -> None:
        async def story(editor: Editor) -> None:
            assert await editor.codes(editor.open(here / "a.py", text)) == codes

        session([here], story)


class TestDocuments:
    def test_multiple_workspace_folders_and_nested_projects(self, here: Path, tmp_path: Path) -> None:
        other, inner = tmp_path / "other", here / "inner"
        for directory, table in ((other, ""), (inner, '[tool.fsrace-lint]\nignore = ["FSR101"]\n')):
            directory.mkdir()
            (directory / "pyproject.toml").write_text(table)

        async def story(editor: Editor) -> None:
            assert await editor.codes(editor.open(here / "a.py", HAZARD)) == ["4 FSR101"]
            assert await editor.codes(editor.open(inner / "a.py", HAZARD)) == []
            assert await editor.codes(editor.open(other / "a.py", HAZARD)) == ["4 FSR101"]

        session([here, other], story)

    def test_workspace_folder_without_a_marker_is_a_project(self, tmp_path: Path) -> None:
        (tmp_path / "sub").mkdir()
        (tmp_path / "train.py").write_text(GUARDED.replace("from work", "from sub.work"))

        async def story(editor: Editor) -> None:
            assert await editor.codes(editor.open(tmp_path / "sub" / "work.py", WORK)) == []

        session([tmp_path], story)

    def test_document_outside_the_workspace_is_checked_alone(self, here: Path, tmp_path: Path) -> None:
        (tmp_path / "train.py").write_text(GUARDED)

        async def story(editor: Editor) -> None:
            work = editor.open(tmp_path / "work.py", WORK)
            assert await editor.codes(work) == ["6 FSR101"]
            editor.forget()
            # The other file is ignored on disk, but used once it is an open document.
            editor.open(tmp_path / "train.py", GUARDED)
            assert await editor.codes(work) == []

        session([here], story)

    @pytest.mark.parametrize("with_folder", [True, False])
    def test_untitled_buffer(self, here: Path, with_folder: bool) -> None:
        async def story(editor: Editor) -> None:
            assert await editor.codes(editor.open("untitled:Untitled-1", HAZARD)) == ["4 FSR101"]

        session([here] if with_folder else [], story)

    def test_other_languages_and_schemes_are_ignored(self, here: Path) -> None:
        async def story(editor: Editor) -> None:
            editor.open(here / "notes.txt", HAZARD, "plaintext")
            editor.open("git:/a.py", HAZARD)
            name = editor.open(here / "script", HAZARD)
            assert await editor.codes(name) == ["4 FSR101"]
            assert {one.uri for one in editor.published} == {name}
            assert await editor.actions(uri(here / "notes.txt")) == []

        session([here], story)

    def test_renamed_file(self, here: Path) -> None:
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


def full_baseline(file: Path, root: Path) -> str:
    """A baseline with all findings of a file."""
    seen = Run(settings.load(root, rules.names()), [file]).check().seen
    entries = [{**known_by._asdict(), "count": count} for known_by, count in seen.reported.items()]
    return json.dumps({**json.loads(NOTHING_KNOWN), "findings": entries})


class TestDisk:
    def test_watched_files_are_registered(self, here: Path) -> None:
        async def story(editor: Editor) -> None:
            (registration,) = await editor.until(lambda: editor.registered)
            assert registration.method == "workspace/didChangeWatchedFiles"
            watched: Any = registration.register_options
            assert {"globPattern": "**/pyproject.toml"} in watched["watchers"]

        session([here], story)

    def test_created_changed_and_deleted_files(self, here: Path) -> None:
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

    def test_changed_settings_are_applied(self, here: Path) -> None:
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

    def test_invalid_settings_are_reported_once(self, here: Path) -> None:
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

    def test_new_pyproject_creates_a_project(self, here: Path) -> None:
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

    def test_save_rereads_files_without_a_watcher(self, here: Path) -> None:
        async def story(editor: Editor) -> None:
            work = editor.open(here / "work.py", WORK)
            assert await editor.codes(work) == ["6 FSR101"]
            (here / "train.py").write_text(GUARDED)
            editor.forget()
            notify_saved(editor, work)
            assert await editor.codes(work) == []
            assert editor.registered == []

        session([here], story, capabilities(watch=False))

    @pytest.mark.parametrize("how", ["save", "save, unwatched", "watch"])
    def test_changed_baseline_is_applied(self, here: Path, tmp_path: Path, how: str) -> None:
        known = (here if how == "watch" else tmp_path) / "known.json"
        (here / "pyproject.toml").write_text(
            f"[tool.fsrace-lint]\nbaseline = '{os.path.relpath(known, here)}'\n"
        )
        known.write_text(NOTHING_KNOWN)
        (here / "a.py").write_text(HAZARD)
        full = full_baseline(here / "a.py", here)

        async def story(editor: Editor) -> None:
            name = editor.open(here / "a.py", HAZARD)
            assert await editor.codes(name) == ["4 FSR101"]
            for state, codes in ((full, []), (NOTHING_KNOWN, ["4 FSR101"])):
                known.write_text(state)
                editor.forget()
                if how == "watch":
                    editor.changed_on_disk(known)
                else:
                    notify_saved(editor, name)
                assert await editor.codes(name) == codes
            if how != "save, unwatched":
                _, registration = await editor.until(
                    lambda: editor.registered if len(editor.registered) > 1 else []
                )
                assert registration.register_options["watchers"] == [{"globPattern": "**/known.json"}]

        session([here], story, capabilities(watch=how != "save, unwatched"))

    def test_deleted_baseline_is_reported(self, here: Path) -> None:
        (here / "pyproject.toml").write_text('[tool.fsrace-lint]\nbaseline = "known.json"\n')
        known = here / "known.json"
        known.write_text(NOTHING_KNOWN)

        async def story(editor: Editor) -> None:
            name = editor.open(here / "a.py", HAZARD)
            assert await editor.codes(name) == ["4 FSR101"]
            known.unlink()
            editor.changed_on_disk(known, kind=types.FileChangeType.Deleted)
            (message,) = await editor.until(lambda: editor.messages)
            assert "known.json: baseline not found; to create it, run " in message
            known.write_text(NOTHING_KNOWN)
            editor.forget()
            editor.changed_on_disk(known, kind=types.FileChangeType.Created)
            assert await editor.codes(name) == ["4 FSR101"]

        session([here], story)


class TestActions:
    def test_quick_fix(self, here: Path) -> None:
        async def story(editor: Editor) -> None:
            name = editor.open(here / "a.py", HAZARD)
            (found,) = await editor.diagnostics(name)
            at = types.Range(found.range.start, found.range.start)
            (action,) = await editor.actions(name, at, [types.CodeActionKind.QuickFix])
            assert action.title.startswith("FSR101: use `os.makedirs(exist_ok=True)`, which also")
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

    def test_inline_edits_for_clients_without_resolve(self, here: Path) -> None:
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
            kinds = (["source.fixAll"], ["source"], ["source.fixAll.fsrace"])
            offered = [await editor.actions(name, types.Range(START, START), only) for only in kinds]
            assert [[action.kind for action in one] for one in offered] == [["source.fixAll.fsrace"]] * 3
            action = offered[0][0]
            fixed = applied(TWICE, (await editor.resolve(action)).edit)
            assert fixed == FIXED + 'os.makedirs("e", exist_ok=True)\n'
            assert await editor.actions(name, only=["source.organizeImports"]) == []
            assert len(await editor.actions(name)) == 3

        session([here], story)

    def test_unsafe_fix_is_labeled(self, here: Path) -> None:
        async def story(editor: Editor) -> None:
            name = editor.open(here / "a.py", UNSAFE)
            (action,) = await editor.actions(name)
            assert action.title.endswith(" (unsafe: coordination)")
            assert action.is_preferred is False
            assert "os.rename" in applied(UNSAFE, (await editor.resolve(action)).edit)

        session([here], story)

    def test_refused_fix_shows_the_reason(self, here: Path) -> None:
        text = "import numpy as np\n" + UNSAFE.replace('os.rename("a", "b")', CACHED)

        async def story(editor: Editor) -> None:
            name = editor.open(here / "a.py", text)
            (action,) = await editor.actions(name)
            assert (await editor.resolve(action)).edit is None
            (message,) = await editor.until(lambda: editor.messages)
            assert message.startswith("FSR102 not fixed: `numpy.save` appends `.npy`")

        session([here], story)

    def test_manual_fix_shows_the_reason(self, here: Path) -> None:
        text = "import shutil\n" + UNSAFE.replace('os.rename("a", "b")', UNPACKED)

        async def story(editor: Editor) -> None:
            name = editor.open(here / "a.py", text)
            (action,) = await editor.actions(name)
            assert action.title.startswith("FSR301: extract to a temporary directory")
            assert action.disabled is not None
            assert action.disabled.reason == "`helper-module` is not set"
            assert await editor.actions(name, types.Range(START, START)) == []
            assert await editor.actions(name, only=["source.fixAll"]) == []

        session([here], story)

    def test_manual_fix_for_clients_without_disabled_actions(self, here: Path) -> None:
        text = "import shutil\n" + UNSAFE.replace('os.rename("a", "b")', UNPACKED)

        async def story(editor: Editor) -> None:
            assert await editor.actions(editor.open(here / "a.py", text)) == []

        session([here], story, capabilities(disabled=False))

    def test_outdated_action_is_rejected(self, here: Path) -> None:
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
    def test_action_applies_only_its_own_fix(self, here: Path, watch: bool) -> None:
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
                notify_saved(editor, name)
            assert await editor.codes(name) == ["9 FSR103"]
            for gone in (first, all_safe):
                with pytest.raises(JsonRpcException) as caught:
                    await editor.resolve(gone)
                assert caught.value.code == -32801
            fixed = applied(TWO_RULES, (await editor.resolve(second)).edit)
            assert 'os.makedirs("a")' in fixed
            assert "suppress(FileNotFoundError)" in fixed

        session([here], story, capabilities(watch=watch))

    def test_action_of_another_version_is_rejected_even_if_its_finding_remains(self, here: Path) -> None:
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

    def test_version_numbers_that_restart_are_not_confused(self, here: Path) -> None:
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

    def test_foreign_action_data_is_rejected(self, here: Path) -> None:
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
    def test_position_encodings(
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

    def test_bom_and_encoding_cookie_are_kept(self, here: Path) -> None:
        async def story(editor: Editor) -> None:
            for start in ("\ufeff", "# coding: latin-1\n# \xe9\n"):
                name = editor.open(here / "a.py", start + HAZARD)
                (action,) = await editor.actions(name, only=["quickfix"])
                assert applied(start + HAZARD, (await editor.resolve(action)).edit) == start + FIXED
                editor.close(name)

        session([here], story)


class TestRequests:
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
            title = "### FSR101 check-then-mkdir\n\nDirectory created after a separate existence check\n"
            assert shown.contents.value.startswith(title)
            assert "**Bad:**\n\n```python\n" in shown.contents.value
            assert await hover(0, 0) is None

        session([here], story)

    def test_pull_diagnostics(self, here: Path) -> None:
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

    def test_reopened_document_gets_a_full_report(self, here: Path) -> None:
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

    def test_server_capabilities(self, here: Path) -> None:
        async def story() -> None:
            editor = Editor()
            received = (await editor.start([here], capabilities(encodings=["utf-8"]))).capabilities
            assert received.position_encoding == "utf-8"
            assert received.hover_provider
            assert isinstance(received.code_action_provider, types.CodeActionOptions)
            assert list(received.code_action_provider.code_action_kinds or ()) == [
                "quickfix",
                "source.fixAll.fsrace",
            ]
            assert received.code_action_provider.resolve_provider
            assert await editor.stop() == 0
            await editor.gone()

        asyncio.run(story())


class TestShutdown:
    def test_exit_without_shutdown(self, here: Path) -> None:
        async def story() -> None:
            editor = Editor()
            await editor.start([here], capabilities())
            editor.open(here / "a.py", HAZARD)
            editor.client.exit(None)
            assert await editor.exit_code() == 1
            await editor.gone()

        asyncio.run(story())

    @pytest.mark.parametrize("data", [b"", b"Content-Length: 5\r\n\r\nnone!", b"what?\n"])
    def test_client_that_disconnects(self, data: bytes) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "fsrace_lint", "server"],
            input=data,
            capture_output=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 1
        assert done.stdout == b""

    def test_missing_pygls_is_an_error(self, tmp_path: Path) -> None:
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
            "Error: the language server requires pygls 2, which is not installed; "
            'run `python -m pip install "fsrace-lint[server]"`\n'
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
def test_edits_between_two_texts(
    before: str, after: str, found: list[tuple[tuple[int, int], tuple[int, int], str]]
) -> None:
    """Positions are zero-based, as in the protocol."""
    lines = Text(before, "utf-32")
    ranges = [(lines.range(edit.span), edit.text) for edit in between(before, after)]
    received = [
        ((r.start.line, r.start.character), (r.end.line, r.end.character), text) for r, text in ranges
    ]
    assert received == found


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_rescan_finds_links(here: Path) -> None:
    (here / "a.py").write_text(HAZARD)
    analysis, file = Analysis(Where(here)), here / "b.py"

    analysis.update({file: HAZARD}, (), not_canceled)
    (here / "c.py").symlink_to("a.py")
    analysis.update({file: "x = 1\n"}, None, not_canceled)
    assert analysis.judge(file, not_canceled) == []
    assert len(analysis.sources()) == 2
    (here / "c.py").unlink()
    (here / "c.py").write_text(HAZARD)
    analysis.update({file: "x = 1\n"}, None, not_canceled)
    assert len(analysis.sources()) == 3


def test_rescan_reads_only_changed_files(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(monkeypatch)
    os.chdir(here)
    write({"a.py": HAZARD, "b.py": HAZARD})
    analysis, file = Analysis(Where(here)), here / "new.py"
    analysis.update({file: "x = 1\n"}, (), not_canceled)
    read: list[str] = []
    real = source.read

    def reading(path: Path, root: Path) -> source.Source | source.Unreadable:
        read.append(path.name)
        return real(path, root)

    monkeypatch.setattr(source, "read", reading)
    (here / "b.py").write_text(HAZARD + "y = 2\n")
    analysis.update({file: "x = 1\n"}, None, not_canceled)
    assert read == ["b.py"]
    assert [Path(path).name for path in analysis.sources()] == ["a.py", "b.py", "new.py"]


def test_change_cancels_a_fix(here: Path) -> None:
    (here / "a.py").write_text("")
    analysis, file = Analysis(Where(here)), here / "a.py"
    analysis.update({file: HAZARD}, (), not_canceled)
    found = analysis.judge(file, not_canceled)

    with pytest.raises(SupersededError):
        analysis.repair(file, found, canceled, unsafe=False)
    assert analysis.repair(file, found, not_canceled, unsafe=False) is not None


def read(directory: Path) -> Run:
    chosen = settings.load(directory, rules.names())
    return Run(chosen, [])


def codes(run: Run, name: str) -> list[str]:
    return [finding.code for finding in run.check_file(name, []).kept]


def test_check_stops_at_any_checkpoint(here: Path) -> None:
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


def test_index_entry_of_a_file_is_computed_once(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_comment_change_does_not_relink(here: Path) -> None:
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
