"""The language server, driven over its pipes by the client of pygls."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.lsp.client import LanguageClient

pytestmark = pytest.mark.slow
WRONG = """\
name: shop
sources:
  orders: {type: generat, fields: {id: {type: sequence}}, 😀: 1}
sinks:
  out:
    type: print
    from: ordes
"""
RIGHT = WRONG.replace("generat,", "generate,").replace("ordes", "orders").replace(", 😀: 1", "")


class Editor:
    """An editor with one text."""

    def __init__(self, directory: Path) -> None:
        self.client = LanguageClient("test", "1")
        self.uri = (directory / "shop.yaml").as_uri()
        self.version = 0
        self.published: asyncio.Queue[list[types.Diagnostic]] = asyncio.Queue()

        @self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)  # type: ignore[untyped-decorator]
        def published(params: types.PublishDiagnosticsParams) -> None:
            if params.uri == self.uri:
                self.published.put_nowait([*params.diagnostics])

    async def diagnostics(self) -> list[types.Diagnostic]:
        return await asyncio.wait_for(self.published.get(), 60)

    def open(self, text: str, language: str = "yaml") -> None:
        item = types.TextDocumentItem(self.uri, language, self.version, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def change(self, text: str) -> None:
        self.version += 1
        self.client.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(self.version, self.uri),
                [types.TextDocumentContentChangeWholeDocument(text)],
            )
        )

    async def complete(self, line: int, character: int) -> list[types.CompletionItem]:
        found = await self.client.text_document_completion_async(
            types.CompletionParams(self.document, types.Position(line, character))
        )
        assert isinstance(found, types.CompletionList)
        return [*found.items]

    async def fixes(self, at: types.Range) -> list[types.CodeAction]:
        context = types.CodeActionContext([])
        found = await self.client.text_document_code_action_async(
            types.CodeActionParams(self.document, at, context)
        )
        return [each for each in found or [] if isinstance(each, types.CodeAction)]

    @property
    def document(self) -> types.TextDocumentIdentifier:
        return types.TextDocumentIdentifier(self.uri)


@asynccontextmanager
async def editor(directory: Path) -> AsyncIterator[Editor]:
    opened = Editor(directory)
    client = opened.client
    await client.start_io(sys.executable, "-m", "penstock", "lsp", "--stdio")
    process = client._server
    assert process is not None
    try:
        await client.initialize_async(
            types.InitializeParams(types.ClientCapabilities(), root_uri=directory.as_uri())
        )
        client.initialized(types.InitializedParams())
        yield opened
        await client.shutdown_async(None)
        client.exit(None)
        assert await asyncio.wait_for(process.wait(), 20) == 0
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await client.stop()  # type: ignore[no-untyped-call]


def run(directory: Path, test: Callable[[Editor], Coroutine[Any, Any, None]]) -> None:
    async def body() -> None:
        async with editor(directory) as opened:
            await test(opened)

    asyncio.run(body())


def test_a_session(tmp_path: Path) -> None:
    """Errors, fixes, completion, hover, definition, symbols, and hostile texts, in one session."""

    async def session(editor: Editor) -> None:
        editor.open(WRONG)
        found = await editor.diagnostics()
        assert [each.code for each in found] == ["unknown-type", "unknown-input"]
        first, second = found
        assert first.range == types.Range(types.Position(2, 17), types.Position(2, 24))
        assert "did you mean" in first.message and first.source == "penstock"

        (fix,) = await editor.fixes(second.range)
        assert fix.title == "Change to orders" and fix.is_preferred
        assert fix.edit and fix.edit.changes
        (edit,) = fix.edit.changes[editor.uri]
        assert (edit.new_text, edit.range) == ("orders", second.range)
        assert not await editor.fixes(types.Range(types.Position(0, 0), types.Position(0, 1)))

        for count in range(20):
            editor.change(f"{WRONG}# {count}\n")
        editor.change(RIGHT)
        assert await editor.diagnostics() == []
        assert editor.published.empty(), "texts in between were checked, too"

        await _look(editor)
        await _survive(editor)

    run(tmp_path, session)


async def _look(editor: Editor) -> None:
    labels = [item.label for item in await editor.complete(6, 10)]
    assert labels == ["orders"]
    editor.change(RIGHT.replace("print\n", "print\n    \n"))
    items = await editor.complete(6, 4)
    assert "on_error" in [item.label for item in items]
    assert all(isinstance(item.text_edit, types.TextEdit) for item in items)
    editor.change(RIGHT)
    assert await editor.diagnostics() == []
    place = types.Position(6, 12)
    shown = await editor.client.text_document_hover_async(types.HoverParams(editor.document, place))
    assert shown and isinstance(shown.contents, types.MarkupContent)
    assert "id BIGINT" in shown.contents.value
    target = await editor.client.text_document_definition_async(
        types.DefinitionParams(editor.document, place)
    )
    assert isinstance(target, types.Location)
    assert (target.uri, target.range.start) == (editor.uri, types.Position(2, 2))
    symbols = await editor.client.text_document_document_symbol_async(
        types.DocumentSymbolParams(editor.document)
    )
    assert [each.name for each in symbols or []] == ["name", "sources", "sinks"]


async def _survive(editor: Editor) -> None:
    """Sends texts that are no pipelines, and hostile ones. The server answers afterwards."""
    editor.change("services:\n  web: {image: nginx}\n")
    assert await editor.diagnostics() == [], "a YAML file of another program"
    deep = "sources: " + "{a: " * 5000
    huge = "sources:\n" + "".join(f"  n{i}: {{type: files}}\n" for i in range(200))
    for text in (deep, "sources:\n\x00\x01", "sources: &a [*a]", "sources:\n\t- |", huge):
        editor.change(text)
        await editor.complete(0, 10_000)
        await editor.complete(10_000, 0)
        assert await editor.diagnostics(), text[:40]
    editor.change(WRONG)
    assert len(await editor.diagnostics()) == 2


def test_a_script_with_characters_of_two_units(tmp_path: Path) -> None:
    async def session(editor: Editor) -> None:
        editor.uri = (tmp_path / "shop.sql").as_uri()
        editor.open(
            "CREATE TABLE a (id INT) WITH (connector = 'generat');\n"
            "SELECT '😀😀' AS x, i FROM a;\n", "sql",
        )  # fmt: skip
        (found,) = await editor.diagnostics()
        assert (found.code, found.range.start.character) == ("unknown-type", 43)
        items = await editor.complete(1, 21)
        assert items[0].label == "id"
        edit = items[0].text_edit
        assert isinstance(edit, types.TextEdit)
        assert (edit.range.start.character, edit.range.end.character) == (20, 21)

    run(tmp_path, session)
