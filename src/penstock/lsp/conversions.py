"""Answers of the language service in the terms of the Language Server Protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.workspace import PositionCodec

from penstock.language.document import Document
from penstock.language.model import Position

Facts = Mapping[str, Any]
_COMPLETION_KINDS = {
    "option": types.CompletionItemKind.Property, "value": types.CompletionItemKind.EnumMember,
    "type": types.CompletionItemKind.Class, "node": types.CompletionItemKind.Module,
    "column": types.CompletionItemKind.Field, "function": types.CompletionItemKind.Function,
    "keyword": types.CompletionItemKind.Keyword, "snippet": types.CompletionItemKind.Snippet,
}  # fmt: skip
_SYMBOL_KINDS = {
    "section": types.SymbolKind.Namespace, "source": types.SymbolKind.Interface,
    "transform": types.SymbolKind.Method, "sink": types.SymbolKind.Event,
    "function": types.SymbolKind.Function, "node": types.SymbolKind.Object,
    "setting": types.SymbolKind.Property,
}  # fmt: skip


class Converter:
    """A converter of positions in one document, which clients count in units of an encoding."""

    def __init__(self, document: Document, codec: PositionCodec) -> None:
        self._document, self._codec = document, codec
        self._lines = [document.line(number) for number in range(len(document.starts))]

    def position(self, position: types.Position) -> Position:
        """Returns the position of a client, which may be beyond the text."""
        line = min(position.line, len(self._lines) - 1)
        found = self._codec.position_from_client_units(
            self._lines, types.Position(line, position.character)
        )
        return Position(line + 1, found.character + 1)

    def range(self, facts: Facts) -> types.Range:
        """Returns a range of the service for the client."""
        return types.Range(self._position(facts["start"]), self._position(facts["end"]))

    def _position(self, facts: Facts) -> types.Position:
        line = min(facts["line"], len(self._lines)) - 1
        before = self._lines[line][: facts["column"] - 1]
        return types.Position(line, self._codec.client_num_units(before))

    def diagnostic(
        self, facts: Facts, severity: types.DiagnosticSeverity
    ) -> types.Diagnostic:  # fmt: skip
        """Returns an error. One of another file is at the first line, with its place."""
        message = facts["message"] + (f"\n{facts['hint']}" if facts.get("hint") else "")
        is_own = facts["file"] == str(self._document.path)
        if facts["line"] and not is_own:
            message = f"{Path(facts['file']).name}:{facts['line']}: {message}"
        where = facts if facts["line"] and is_own else {"line": 1, "column": 1, "length": 0}
        start = {"line": where["line"], "column": where["column"]}
        end = {"line": where["line"], "column": where["column"] + where["length"]}
        return types.Diagnostic(
            self.range({"start": start, "end": end}), message, severity, facts["code"],
            source="penstock",
        )  # fmt: skip

    def edits(self, facts: Sequence[Facts]) -> list[types.TextEdit]:
        """Returns the edits of a fix."""
        return [types.TextEdit(self.range(each["range"]), each["text"]) for each in facts]

    def completions(self, facts: Facts) -> types.CompletionList:
        """Returns proposals in their order. A client asks again after each character."""
        place = self.range(facts["range"])
        items = [self._item(each, place, order) for order, each in enumerate(facts["items"])]
        return types.CompletionList(is_incomplete=True, items=items)

    @staticmethod
    def _item(facts: Facts, place: types.Range, order: int) -> types.CompletionItem:
        formats = types.InsertTextFormat
        documentation = facts["documentation"] and types.MarkupContent(
            types.MarkupKind.Markdown, facts["documentation"]
        )
        return types.CompletionItem(
            facts["label"], kind=_COMPLETION_KINDS[facts["kind"]], detail=facts["detail"] or None,
            documentation=documentation or None, sort_text=f"{order:04}",
            insert_text_format=formats.Snippet if facts["snippet"] else formats.PlainText,
            insert_text_mode=types.InsertTextMode.AdjustIndentation,
            text_edit=types.TextEdit(place, facts["text"]),
        )  # fmt: skip

    def hover(self, facts: Facts) -> types.Hover:
        """Returns documentation as Markdown."""
        content = types.MarkupContent(types.MarkupKind.Markdown, facts["text"])
        return types.Hover(content, self.range(facts["range"]))

    def symbol(self, facts: Facts) -> types.DocumentSymbol:
        """Returns a symbol with those within it."""
        return types.DocumentSymbol(
            facts["name"] or "-", _SYMBOL_KINDS[facts["kind"]], self.range(facts["range"]),
            self.range(facts["name_range"]), facts["detail"],
            children=[self.symbol(each) for each in facts["children"]],
        )  # fmt: skip
