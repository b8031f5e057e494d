"""The server: its state, and the diagnostics that it sends."""

from __future__ import annotations

import functools
import itertools
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from lsprotocol import types
from pygls import uris
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from fsrace_lint import __version__
from fsrace_lint.config.roots import SETTINGS_FILES
from fsrace_lint.integrations.server.analysis import Where
from fsrace_lint.integrations.server.answers import SOURCE, Document, Wishes
from fsrace_lint.integrations.server.sessions import Session, SessionResult, place
from fsrace_lint.integrations.server.worker import Worker
from fsrace_lint.pipeline.discover import SUFFIXES
from fsrace_lint.report.words import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pygls.server import ServerErrors
    from pygls.workspace import TextDocument

_SETTINGS: Final = (*SETTINGS_FILES, "setup.py", "setup.cfg")
WATCHED: Final = (
    *("**/*.py", "**/*.pyw", "**/setup.cfg", "**/.gitignore"),
    *(f"**/{name}" for name in SETTINGS_FILES),
)
_CONTENT_MODIFIED: Final = -32801
_logger: Final = logging.getLogger(__name__)


def watching(name: str, *globs: str) -> types.RegistrationParams:
    """Return a request to the client to report changes of files that match the globs."""
    watchers = [types.FileSystemWatcher(glob_pattern=glob) for glob in globs]
    options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
    method = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
    registration = types.Registration(id=f"{SOURCE}-{name}", method=method, register_options=options)
    return types.RegistrationParams([registration])


class ModifiedError(JsonRpcException):
    """The document has changed since the request."""

    CODE = _CONTENT_MODIFIED
    MESSAGE = "the document was changed"


class Server(LanguageServer):
    """The language server, with one session for each project that has open documents."""

    def __init__(self) -> None:
        """Initialize without reading a project."""
        super().__init__(SOURCE, __version__, types.TextDocumentSyncKind.Full)
        self.sessions: dict[Where, Session] = {}
        self.of: dict[str, Session] = {}
        self.is_shut_down = False
        self._worker = Worker()
        self._last: str | None = None
        self._told: dict[Where, str] = {}
        self._numbers = itertools.count(1)
        self._ids: dict[str, tuple[str, list[types.Diagnostic]]] = {}
        self._watched: set[str] = set()

    def report_server_error(self, error: Exception, source: ServerErrors) -> None:
        """Log an error, instead of showing it to the user of the editor."""
        _logger.error("%s: %s", source.__name__, error)

    # Capabilities of the client.

    @functools.cached_property
    def _text(self) -> types.TextDocumentClientCapabilities:
        return self.client_capabilities.text_document or types.TextDocumentClientCapabilities()

    @functools.cached_property
    def _space(self) -> types.WorkspaceClientCapabilities:
        return self.client_capabilities.workspace or types.WorkspaceClientCapabilities()

    @functools.cached_property
    def wishes(self) -> Wishes:
        """The capabilities of the client for diagnostics."""
        shown = self._text.publish_diagnostics or self._text.diagnostic
        return Wishes(
            str(getattr(self.workspace.position_encoding, "value", self.workspace.position_encoding)),
            related=bool(shown and shown.related_information),
            tags=bool(shown and shown.tag_support),
            data=bool(shown and shown.data_support),
        )

    @property
    def pulls(self) -> bool:
        """Whether the client requests diagnostics itself, so that the server must not push them."""
        return self._text.diagnostic is not None

    @property
    def resolves(self) -> bool:
        """Whether the client requests the edit of an action only after the user has chosen it."""
        support = self._text.code_action.resolve_support if self._text.code_action else None
        return support is not None and "edit" in support.properties

    @property
    def disables(self) -> bool:
        """Whether the client can display an action that cannot be chosen, and the reason."""
        return bool(self._text.code_action and self._text.code_action.disabled_support)

    @property
    def versioned(self) -> bool:
        """Whether the client supports edits for one version of a document."""
        edit = self._space.workspace_edit
        return bool(edit and edit.document_changes)

    @property
    def hover_markdown(self) -> bool:
        """Whether the client can display Markdown."""
        formats = self._text.hover.content_format if self._text.hover else None
        return not formats or types.MarkupKind.Markdown in formats

    @property
    def watches(self) -> bool:
        """Whether the client can report changes on the disk."""
        watched = self._space.did_change_watched_files
        return bool(watched and watched.dynamic_registration)

    # Documents and their projects.

    @property
    def folders(self) -> list[Path]:
        """The workspace folders of the client."""
        open_now = [folder.uri for folder in self.workspace.folders.values()]
        if not open_now and self.workspace.root_uri:
            open_now = [self.workspace.root_uri]
        return [Path(path) for path in map(uris.to_fs_path, open_now) if path]

    def document(self, uri: str) -> TextDocument | None:
        """Return an open document, or None."""
        found: TextDocument | None = self.workspace.text_documents.get(unquote(uri))
        return found

    def _file(self, uri: str) -> tuple[Path, Where] | None:
        """Return the file and the project of a document; None if it is not Python code."""
        document = self.document(uri)
        if document is None:
            return None
        path = uris.to_fs_path(uri)
        if document.language_id != "python" and not (path or "").endswith(SUFFIXES):
            return None
        if path is not None:
            return Path(path), place(Path(path), self.folders)
        if uris.uri_scheme(uri) != "untitled":
            return None
        name = "untitled " + uri.partition(":")[2].replace("/", " ").strip()
        if self.folders:
            return self.folders[0] / name, place(self.folders[0] / name, self.folders)
        return Path.cwd() / name, Where(Path.cwd(), alone=True)

    def regroup(self) -> None:
        """Assign every document to its current project."""
        for document in self.workspace.text_documents.values():
            self.opened(document.uri)

    def opened(self, uri: str) -> None:
        """Add a document, or move it to another project."""
        found = self._file(uri)
        old = self.of.get(uri)
        if found is None or (old is not None and old.where == found[1]):
            return
        if old is not None:
            self.closed(uri)
        file, where = found
        session = self.sessions.get(where)
        if session is None:
            session = self.sessions[where] = Session(where, self._worker, self.told)
        session.documents[uri] = file
        self.of[uri] = session
        self._last = uri
        self.look(session, delay=0)

    def closed(self, uri: str) -> None:
        """Remove a document, so that its file on the disk is used again."""
        session = self.of.pop(uri, None)
        self._ids.pop(uri, None)
        if session is None:
            return
        session.forget(uri)
        if not self.pulls:
            self._publish(uri, None, [])
        if session.documents:
            self.look(session)
        elif session.where.alone:
            self.sessions.pop(session.where, None)
            session.end()

    def changed(self, uri: str) -> None:
        """Analyze a document again."""
        session = self.of.get(uri)
        if session is not None:
            self._last = uri
            self.look(session)

    def look(self, session: Session, **how: float) -> None:
        """Analyze a project again."""
        session.touch(functools.partial(self._documents, session), **how)

    def _documents(self, session: Session) -> tuple[Sequence[Document], Wishes]:
        found = [known for known in map(self.document, session.documents) if known is not None]
        found.sort(key=lambda document: document.uri != self._last)
        return [Document(one.uri, one.version, one.source) for one in found], self.wishes

    def changed_on_disk(self, files: Iterable[Path]) -> None:
        """Analyze the projects of changed files again, except for files that are open in the editor."""
        held = {file for session in self.sessions.values() for file in session.documents.values()}
        changed = set(files) - held
        if any(file.name in _SETTINGS for file in files):
            self.regroup()
        for session in self.sessions.values():
            root, known = session.where.root, session.analysis.baselines
            mine = {file for file in changed if root in file.parents or file in known}
            if mine and not session.where.alone:
                whole = any(file.suffix not in SUFFIXES for file in mine)
                session.changed_on_disk(None if whole else mine)
                self.look(session)

    def saved_unwatched(self) -> None:
        """Analyze everything again, because the client does not report changes on the disk."""
        self.regroup()
        for session in self.sessions.values():
            session.changed_on_disk(None)
            self.look(session)

    # Results of the analysis.

    def told(self, session: Session, answer: Any) -> None:
        """Process a message from the analysis of a project."""
        for baseline in session.analysis.baselines:
            self._watch(baseline)
        if isinstance(answer, SessionResult):
            self._told.pop(session.where, None)
            self._show(answer)
        elif answer is not None:
            self._complain(session, answer)
        elif self._stale(session) and self._refreshes:
            self.workspace_diagnostic_refresh(None)

    def _watch(self, baseline: Path) -> None:
        """Watch a baseline, because only the settings determine its name."""
        if not self.watches or baseline.name in self._watched:
            return
        self._watched.add(baseline.name)
        self.client_register_capability(watching(f"baseline-{len(self._watched)}", f"**/{baseline.name}"))

    def _show(self, result: SessionResult) -> None:
        uri = result.document.uri
        diagnostics = [diagnostic for _, diagnostic in result.found]
        known = self.document(uri)
        if not self.pulls and known is not None and known.version == result.document.version:
            self._publish(uri, result.document.version, diagnostics)

    def _publish(self, uri: str, version: int | None, diagnostics: list[types.Diagnostic]) -> None:
        params = types.PublishDiagnosticsParams(uri=uri, version=version, diagnostics=diagnostics)
        self.text_document_publish_diagnostics(params)

    def _complain(self, session: Session, message: str) -> None:
        """Show an error once, and clear all diagnostics of the project, which may be outdated."""
        for uri in session.documents:
            if not self.pulls:
                self._publish(uri, None, [])
        if self._told.get(session.where) != message:
            self._told[session.where] = message
            text = visible(f"fsrace-lint: {message}")
            self.window_show_message(types.ShowMessageParams(types.MessageType.Error, text))
            if self._refreshes:
                self.workspace_diagnostic_refresh(None)

    # Diagnostics that the client requests.

    @property
    def _refreshes(self) -> bool:
        return bool(self.pulls and self._space.diagnostics and self._space.diagnostics.refresh_support)

    def _stale(self, session: Session) -> bool:
        """Return whether the client has outdated diagnostics."""
        return any(
            self._ids[uri][1] != [diagnostic for _, diagnostic in result.found]
            for uri, result in session.results.items()
            if uri in self._ids
        )

    def numbered(self, result: SessionResult | None, uri: str) -> tuple[str, list[types.Diagnostic]]:
        """Return the diagnostics of a document, with a unique id that changes when they change."""
        diagnostics = [] if result is None else [diagnostic for _, diagnostic in result.found]
        known = self._ids.get(uri)
        if known is None or known[1] != diagnostics:
            known = self._ids[uri] = str(next(self._numbers)), diagnostics
        return known
