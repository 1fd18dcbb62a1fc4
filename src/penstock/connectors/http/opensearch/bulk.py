"""Bulk requests as JSON: the lines of a document, and the answer of the server."""

from __future__ import annotations

from msgspec import Struct, json

from penstock.connectors.http.opensearch.documents import Document

_CONFLICTS = 3
"""The times for which the server repeats an update that conflicts with another one."""


class _Answer(Struct):
    errors: bool


def lines_of(document: Document, action: str) -> bytes:
    """Returns the action and the content of a document, as lines of a bulk request."""
    target = {"_index": document.index}
    if document.id is not None:
        target["_id"] = document.id
    if document.content is None:
        return json.encode({"delete": target}) + b"\n"
    if action == "update":
        head = json.encode({"update": {**target, "retry_on_conflict": _CONFLICTS}})
        return b'%b\n{"doc":%b,"doc_as_upsert":true}\n' % (head, document.content)
    return b"%b\n%b\n" % (json.encode({action: target}), document.content)


def has_errors(body: bytes) -> bool:
    """Returns whether the server has not stored a document. Does not decode the outcome of each."""
    return json.decode(body, type=_Answer).errors
