"""An editor for tests: the client of pygls, connected to the real server over standard input and output."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls import uris
from pygls.lsp.client import LanguageClient

from support import template

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence
    from pathlib import Path

PATIENCE = 60
START = types.Position(0, 0)
EVERYWHERE = types.Range(START, types.Position(10_000, 0))


def capabilities(
    *,
    encodings: Sequence[str] | None = None,
    resolve: bool = True,
    disabled: bool = True,
    pull: bool = False,
    watch: bool = True,
    versioned: bool = True,
) -> types.ClientCapabilities:
    """Return the capabilities of most editors."""
    return types.ClientCapabilities(
        general=types.GeneralClientCapabilities(position_encodings=encodings),
        text_document=types.TextDocumentClientCapabilities(
            publish_diagnostics=types.PublishDiagnosticsClientCapabilities(
                related_information=True,
                tag_support=types.ClientDiagnosticsTagOptions([types.DiagnosticTag.Unnecessary]),
                data_support=True,
            ),
            diagnostic=types.DiagnosticClientCapabilities(related_document_support=True) if pull else None,
            code_action=types.CodeActionClientCapabilities(
                resolve_support=types.ClientCodeActionResolveOptions(["edit"]) if resolve else None,
                disabled_support=disabled,
            ),
        ),
        workspace=types.WorkspaceClientCapabilities(
            workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=versioned),
            did_change_watched_files=types.DidChangeWatchedFilesClientCapabilities(
                dynamic_registration=watch
            ),
            diagnostics=types.DiagnosticWorkspaceClientCapabilities(refresh_support=True) if pull else None,
        ),
    )


class Editor:
    """A client, and the messages that it received from the server."""

    def __init__(self) -> None:
        self.client = LanguageClient("editor", "1")
        self.published: list[types.PublishDiagnosticsParams] = []
        self.messages: list[str] = []
        self.registered: list[types.Registration] = []
        self.refreshes = 0
        self.versions: dict[str, int] = {}
        self.news = asyncio.Event()
        self._listen()

    def _listen(self) -> None:
        def published(params: types.PublishDiagnosticsParams) -> None:
            self.published.append(params)
            self.news.set()

        def message(params: types.ShowMessageParams) -> None:
            self.messages.append(params.message)
            self.news.set()

        def register(params: types.RegistrationParams) -> None:
            self.registered += params.registrations
            self.news.set()

        def refresh(_: None) -> None:
            self.refreshes += 1
            self.news.set()

        self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(published)
        self.client.feature(types.WINDOW_SHOW_MESSAGE)(message)
        self.client.feature(types.CLIENT_REGISTER_CAPABILITY)(register)
        self.client.feature(types.WORKSPACE_DIAGNOSTIC_REFRESH)(refresh)

    async def start(self, folders: Sequence[Path], what: types.ClientCapabilities) -> types.InitializeResult:
        await self.client.start_io(*template.command("fsrace_lint"), "server", "--stdio")
        listed = [types.WorkspaceFolder(uri(folder), folder.name) for folder in folders]
        result = await self.client.initialize_async(
            types.InitializeParams(capabilities=what, workspace_folders=listed)
        )
        self.client.initialized(types.InitializedParams())
        return result

    async def stop(self) -> int:
        await self.client.shutdown_async(None)
        self.client.exit(None)
        return await self.exit_code()

    async def gone(self) -> None:
        """Close the rest of the connection."""
        stop: Callable[[], Awaitable[None]] = self.client.stop
        await stop()

    async def exit_code(self) -> int:
        server = self.client._server
        assert server is not None
        return await asyncio.wait_for(server.wait(), PATIENCE)

    async def until(self, received: Callable[[], Any]) -> Any:
        """Wait until `received` returns a true value, and return it."""
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while not (found := received()):
            self.news.clear()
            left = deadline - asyncio.get_running_loop().time()
            try:
                await asyncio.wait_for(self.news.wait(), left)
            except asyncio.TimeoutError:
                raise AssertionError(f"nothing came: {self.published} {self.messages}") from None
        return found

    def open(self, file: Path | str, text: str, language: str = "python") -> str:
        name = file if isinstance(file, str) else uri(file)
        self.versions[name] = 1
        item = types.TextDocumentItem(name, language, 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return name

    def change(self, name: str, text: str) -> None:
        self.versions[name] += 1
        self.client.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(version=self.versions[name], uri=name),
                [types.TextDocumentContentChangeWholeDocument(text)],
            )
        )

    def close(self, name: str) -> None:
        self.versions.pop(name)
        self.client.text_document_did_close(
            types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(name))
        )

    def changed_on_disk(
        self, *files: Path, kind: types.FileChangeType = types.FileChangeType.Changed
    ) -> None:
        events = [types.FileEvent(uri(file), kind) for file in files]
        self.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams(events))

    def forget(self) -> None:
        """Forget what was published so far."""
        self.published.clear()

    async def diagnostics(self, name: str) -> list[types.Diagnostic]:
        """Wait for the diagnostics of the newest version of a document, published since `forget`."""

        def received() -> list[types.PublishDiagnosticsParams]:
            version = self.versions.get(name)
            return [one for one in self.published if one.uri == name and one.version == version]

        found = (await self.until(received))[-1].diagnostics
        return list(found)

    async def codes(self, name: str) -> list[str]:
        """Wait for diagnostics, and return their lines (from 1) and codes."""
        return [f"{one.range.start.line + 1} {one.code}" for one in await self.diagnostics(name)]

    async def actions(
        self, name: str, where: types.Range = EVERYWHERE, only: Sequence[str] | None = None
    ) -> list[types.CodeAction]:
        found = await self.client.text_document_code_action_async(
            types.CodeActionParams(
                types.TextDocumentIdentifier(name), where, types.CodeActionContext([], only=only)
            )
        )
        assert all(isinstance(action, types.CodeAction) for action in found or ())
        return [action for action in found or () if isinstance(action, types.CodeAction)]

    async def resolve(self, action: types.CodeAction) -> types.CodeAction:
        return await self.client.code_action_resolve_async(action)


def uri(path: Path) -> str:
    """Return the URI of a path."""
    return str(uris.from_fs_path(str(path)))


def session(
    folders: Sequence[Path],
    story: Callable[[Editor], Coroutine[Any, Any, None] | Awaitable[None]],
    what: types.ClientCapabilities | None = None,
) -> None:
    """Start a server, run a story with it, and check that it exits as the protocol requires."""

    async def live() -> None:
        editor = Editor()
        await asyncio.wait_for(editor.start(folders, what or capabilities()), PATIENCE)
        try:
            await asyncio.wait_for(story(editor), 3 * PATIENCE)
            assert await editor.stop() == 0
        finally:
            server = editor.client._server
            if server is not None and server.returncode is None and server.stdin is not None:
                server.stdin.close()  # a kill would reach only the relay, and the server keeps the pipes open
            await asyncio.wait_for(editor.gone(), PATIENCE)

    asyncio.run(live())
