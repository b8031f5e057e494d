"""The handler of each message."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lsprotocol import types
from pygls import uris

from fsrace_lint.files.source import Source, decode
from fsrace_lint.integrations.server import actions
from fsrace_lint.integrations.server.actions import Wanted
from fsrace_lint.integrations.server.answers import SOURCE, page
from fsrace_lint.integrations.server.app import WATCHED, ModifiedError, Server, watching
from fsrace_lint.integrations.server.worker import SupersededError
from fsrace_lint.report.words import visible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fsrace_lint.fixes import Patch
    from fsrace_lint.integrations.server.sessions import Session, SessionResult

_FILES: Final = types.FileOperationRegistrationOptions(
    filters=[
        types.FileOperationFilter(types.FileOperationPattern(glob="**/*.{py,pyw}"), scheme="file"),
        types.FileOperationFilter(
            types.FileOperationPattern(glob="**/*", matches=types.FileOperationPatternKind.Folder),
            scheme="file",
        ),
    ]
)


def serve() -> int:
    """Serve on standard input and output until the client ends the connection.

    Returns:
        The exit code: 0 after a shutdown request, otherwise 1.
    """
    # The worker thread yields to the message loop every 1 ms; the default is 5 ms.
    sys.setswitchinterval(0.001)
    server = Server()
    _lifetime(server)
    _documents(server)
    _disk(server)
    _questions(server)
    _repairs(server)
    server.start_io()
    return 0 if server.is_shut_down else 1


def _lifetime(server: Server) -> None:
    @server.feature(types.INITIALIZED)
    async def initialized(_: types.InitializedParams) -> None:
        if server.watches:
            await server.client_register_capability_async(watching("files", *WATCHED))

    @server.feature(types.SHUTDOWN)
    def shutdown(_: None) -> None:
        server.is_shut_down = True
        for session in server.sessions.values():
            session.end()


def _documents(server: Server) -> None:
    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        uri = params.text_document.uri
        server.opened(uri)
        server.changed(uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        server.changed(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        server.closed(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: types.DidSaveTextDocumentParams) -> None:
        if not server.watches:
            server.saved_unwatched()
        else:
            # No watcher covers a baseline outside the workspace folders.
            server.changed(params.text_document.uri)


def _disk(server: Server) -> None:
    def report(changed: Iterable[str]) -> None:
        paths = (uris.to_fs_path(uri) for uri in changed)
        server.changed_on_disk({Path(path) for path in paths if path})

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def watched(params: types.DidChangeWatchedFilesParams) -> None:
        report(change.uri for change in params.changes)

    @server.feature(types.WORKSPACE_DID_RENAME_FILES, _FILES)
    def renamed(params: types.RenameFilesParams) -> None:
        report(uri for file in params.files for uri in (file.old_uri, file.new_uri))

    @server.feature(types.WORKSPACE_DID_DELETE_FILES, _FILES)
    def deleted(params: types.DeleteFilesParams) -> None:
        report(file.uri for file in params.files)

    @server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def folders(_: types.DidChangeWorkspaceFoldersParams) -> None:
        server.regroup()


def _questions(server: Server) -> None:
    options = types.DiagnosticOptions(
        inter_file_dependencies=True, workspace_diagnostics=False, identifier=SOURCE
    )

    @server.feature(types.TEXT_DOCUMENT_DIAGNOSTIC, options)
    async def diagnostic(params: types.DocumentDiagnosticParams) -> types.DocumentDiagnosticReport:
        uri = params.text_document.uri
        number, found = server.numbered(await _newest(server, uri), uri)
        if number == params.previous_result_id:
            return types.RelatedUnchangedDocumentDiagnosticReport(result_id=number)
        return types.RelatedFullDocumentDiagnosticReport(items=found, result_id=number)

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> types.Hover | None:
        result = await _newest(server, params.text_document.uri)
        here = [
            diagnostic
            for _, diagnostic in (result.found if result else ())
            if diagnostic.range.start <= params.position <= diagnostic.range.end
        ]
        if not here:
            return None
        kind = types.MarkupKind.Markdown if server.hover_markdown else types.MarkupKind.PlainText
        codes = dict.fromkeys(str(diagnostic.code) for diagnostic in here)
        pages = [page(code, markdown=server.hover_markdown) for code in codes]
        return types.Hover(types.MarkupContent(kind, "\n\n---\n\n".join(pages)), here[0].range)


def _repairs(server: Server) -> None:
    options = types.CodeActionOptions(code_action_kinds=list(actions.KINDS), resolve_provider=True)

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, options)
    async def offer(params: types.CodeActionParams) -> list[types.CodeAction]:
        result = await _newest(server, params.text_document.uri)
        if result is None:
            return []
        found = []
        for action, wanted in actions.offered(result, params.range, params.context.only):
            if server.resolves:
                action.data = wanted.write()
            elif not await _fill(server, action, wanted):
                continue
            found.append(action)
        if server.disables:
            found += actions.disabled(result, params.range, params.context.only)
        return found

    @server.feature(types.CODE_ACTION_RESOLVE)
    async def resolve(action: types.CodeAction) -> types.CodeAction:
        wanted = Wanted.read(action.data)
        if wanted is not None:
            await _fill(server, action, wanted)
        return action


async def _newest(server: Server, uri: str) -> SessionResult | None:
    session = server.of.get(uri)
    return None if session is None else await session.newest(uri)


async def _fill(server: Server, action: types.CodeAction, wanted: Wanted) -> bool:
    """Add the edit to an action, and return whether there is one; if not, show the user the reason."""
    session = server.of.get(wanted.uri)
    result = session.results.get(wanted.uri) if session else None
    if session is None or result is None:
        raise ModifiedError
    patch = await _repaired(server, session, result, wanted)
    if patch is None or patch.after == patch.before:
        for refusal in patch.refused if patch and server.resolves else ():
            text = visible(f"{refusal.finding.code} not fixed: {refusal.reason}")
            server.window_show_message(types.ShowMessageParams(types.MessageType.Warning, text))
        return False
    root, file = session.where.root, result.file

    def text_of(data: bytes) -> str:
        read = decode(data, file, root)
        return read.text if isinstance(read, Source) else data.decode("utf-8", "surrogatepass")

    action.edit = actions.workspace_edit(
        result.document, patch, text_of, server.wishes.encoding, versioned=server.versioned
    )
    return True


async def _repaired(server: Server, session: Session, result: SessionResult, wanted: Wanted) -> Patch | None:
    document = result.document

    def pulse() -> None:
        known = server.document(document.uri)
        if known is None or not known.version == document.version == wanted.version:
            raise SupersededError

    def job() -> Patch | None:
        pulse()
        if not session.analysis.holds(result.file, document.text):
            raise SupersededError
        chosen = wanted.chosen(session.analysis.judge(result.file, pulse))
        if chosen is None:
            raise SupersededError
        return session.analysis.repair(result.file, chosen, pulse, unsafe=wanted.unsafe)

    try:
        done: Patch | None = await session.do(job)
    except SupersededError:
        raise ModifiedError from None
    return done
