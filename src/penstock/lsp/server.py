"""The requests of clients of the language server."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path

from penstock.core.errors import PenstockError
from penstock.core.version import __version__
from penstock.language.document import Document
from penstock.lsp.checking import Checking
from penstock.lsp.conversions import Converter
from penstock.lsp.texts import document_of, is_pipeline
from penstock.server.workers.pool import WorkerPool
from penstock.spec.front_end import is_test_file

WORKERS = 2
CHECK_SECONDS = 20.0
ANSWER_SECONDS = 5.0
_TRIGGERS = [".", ":", " ", "'", "{", "[", ","]
_SEVERITIES = (
    ("errors", types.DiagnosticSeverity.Error), ("warnings", types.DiagnosticSeverity.Warning),
)  # fmt: skip
AtPosition = types.CompletionParams | types.HoverParams | types.DefinitionParams
Fixes = list[tuple[types.Diagnostic, list[dict[str, Any]]]]
"""Diagnostics, each with its fixes."""


class PenstockServer(LanguageServer):
    """A language server with its open texts and worker processes."""

    def __init__(self) -> None:
        super().__init__(
            "penstock", __version__, text_document_sync_kind=types.TextDocumentSyncKind.Full
        )
        self.workers = WorkerPool(WORKERS, os.environ)
        self.checking = Checking(self.check, self.publish)
        self.fixes: dict[str, tuple[str, Fixes]] = {}
        """The text that was checked, and its diagnostics, by URI."""

    def document(self, uri: str) -> Document | None:
        """Returns an open text that is a pipeline; None for another one."""
        text = self.workspace.get_text_document(uri)
        document = document_of(text)
        return document if is_pipeline(text, document) else None

    def converter(self, document: Document) -> Converter:
        """Returns the converter of positions in a document."""
        return Converter(document, self.workspace.position_codec)

    async def check(self, uri: str) -> tuple[Document, dict[str, Any]] | None:
        """Checks a text; None for a text that is no pipeline."""
        document = self.document(uri)
        if document is None or is_test_file(document.path):
            return None
        try:
            return document, await self.call("check", document, CHECK_SECONDS)
        except PenstockError as error:
            facts: dict[str, Any] = {**error.fields(), "file": None, "line": None, "fixes": []}
            return document, {"errors": [facts], "warnings": []}

    def publish(self, uri: str, result: tuple[Document, dict[str, Any]] | None) -> None:
        """Sends the diagnostics of a check. A text that is no pipeline has none."""
        found: Fixes = []
        self.fixes.pop(uri, None)
        if result is not None:
            document, facts = result
            convert = self.converter(document)
            found = [
                (convert.diagnostic(each, severity), each["fixes"])
                for name, severity in _SEVERITIES
                for each in facts[name]
            ]
            self.fixes[uri] = document.text, found
        diagnostics = [diagnostic for diagnostic, _ in found]
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, diagnostics))

    async def call(
        self, operation: str, document: Document, timeout: float = ANSWER_SECONDS, **place: Any
    ) -> dict[str, Any]:
        """Performs an operation of a worker on a text."""
        return await asyncio.to_thread(
            self.workers.call, operation, document.path, text=document.text, timeout=timeout,
            **place,
        )  # fmt: skip

    async def ask(
        self, operation: str, params: AtPosition
    ) -> tuple[Document, dict[str, Any]] | None:
        """Performs an operation at a position. None without an answer in time."""
        document = self.document(params.text_document.uri)
        if document is None:
            return None
        position = self.converter(document).position(params.position)
        place = {"line": position.line, "column": position.column}
        try:
            return document, await self.call(operation, document, **place)
        except PenstockError:
            return None


def make_server() -> PenstockServer:
    """Returns a server with all requests that it answers."""
    server = PenstockServer()
    feature = server.feature

    @feature(types.INITIALIZED)
    async def initialized(params: types.InitializedParams) -> None:
        """Loads all components in one worker. The other one checks the first text meanwhile."""
        document = Document(Path.cwd() / "warm-up.yaml", "sources:\n  a: {type: }")
        with suppress(PenstockError):
            await server.call("complete", document, CHECK_SECONDS, line=2, column=13)

    @feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def opened(params: types.DidOpenTextDocumentParams) -> None:
        server.checking.changed(params.text_document.uri)

    @feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(params: types.DidChangeTextDocumentParams) -> None:
        server.checking.changed(params.text_document.uri)

    @feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def saved(params: types.DidSaveTextDocumentParams) -> None:
        """Checks all open texts again: they may include the saved file."""
        for uri in server.checking.open_uris():
            server.checking.changed(uri)

    @feature(types.TEXT_DOCUMENT_DID_CLOSE)
    async def closed(params: types.DidCloseTextDocumentParams) -> None:
        server.checking.closed(params.text_document.uri)
        server.publish(params.text_document.uri, None)

    @feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(_TRIGGERS))
    async def complete(params: types.CompletionParams) -> types.CompletionList | None:
        answer = await server.ask("complete", params)
        return answer and server.converter(answer[0]).completions(answer[1])

    @feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> types.Hover | None:
        answer = await server.ask("hover", params)
        if answer is None or answer[1]["hover"] is None:
            return None
        return server.converter(answer[0]).hover(answer[1]["hover"])

    @feature(types.TEXT_DOCUMENT_DEFINITION)
    async def define(params: types.DefinitionParams) -> types.Location | None:
        answer = await server.ask("find_definition", params)
        target = answer and answer[1]["target"]
        if answer is None or not target:
            return None
        uri = from_fs_path(target["file"])
        same = target["file"] == str(answer[0].path)
        start = types.Range(types.Position(0, 0), types.Position(0, 0))
        place = server.converter(answer[0]).range(target["range"]) if same else start
        return types.Location(uri or params.text_document.uri, place)

    @feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    async def symbols(params: types.DocumentSymbolParams) -> Sequence[types.DocumentSymbol]:
        document = server.document(params.text_document.uri)
        if document is None:
            return []
        try:
            found = await server.call("list_symbols", document)
        except PenstockError:
            return []
        return [server.converter(document).symbol(each) for each in found["symbols"]]

    @feature(
        types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions([types.CodeActionKind.QuickFix])
    )
    def fix(params: types.CodeActionParams) -> list[types.CodeAction]:
        uri = params.text_document.uri
        document = server.document(uri)
        checked, found = server.fixes.get(uri, ("", []))
        if document is None or document.text != checked:
            return []
        convert = server.converter(document)
        return [
            types.CodeAction(
                each["title"], types.CodeActionKind.QuickFix, [diagnostic],
                is_preferred=number == 0,
                edit=types.WorkspaceEdit({uri: convert.edits(each["edits"])}),
            )
            for diagnostic, fixes in found
            if _overlap(diagnostic.range, params.range)
            for number, each in enumerate(fixes)
        ]  # fmt: skip

    return server


def _overlap(first: types.Range, second: types.Range) -> bool:
    return first.start <= second.end and second.start <= first.end


def serve() -> None:
    """Answers the client on standard input and output until it ends the connection.

    Other output of this process goes to standard error.
    """
    server = make_server()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        server.start_io(stdout=answers)
    finally:
        server.workers.close()
