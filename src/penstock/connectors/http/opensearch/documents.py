"""Rows as documents: the index, the ID and the content of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.connectors.http.opensearch.config import DocumentSinkConfig
from penstock.connectors.http.opensearch.names import Parts, index_error, render_ids
from penstock.connectors.http.opensearch.numbers import not_finite
from penstock.core.errors import RecordError, Rejected
from penstock.sdk import Failure, Operation

_MAX_ID_BYTES = 512


@dataclass(frozen=True)
class Document:
    """A document of a row. Without content it is deleted; without ID the server creates one."""

    row: int
    index: str
    id: str | None
    content: bytes | None


def documents_of(
    config: DocumentSinkConfig, key: Parts | None, rows: pa.RecordBatch,
    payloads: Sequence[bytes | None], operations: Sequence[str] | None,
) -> tuple[list[Document], list[Failure]]:  # fmt: skip
    """Returns the documents of rows, and the failures of rows that have none."""
    ids: Sequence[str | None] = [None] * rows.num_rows if key is None else render_ids(key, rows)
    numbers = not_finite(rows)
    indexes = config.index.render(rows)
    index_errors = {index: index_error(index) for index in {*indexes}}
    documents: list[Document] = []
    failures: list[Failure] = []
    for row, index in enumerate(indexes):
        is_deleted = operations is not None and operations[row] == Operation.DELETE
        error = _error(index_errors[index], ids[row], key is not None)
        if error is None and not is_deleted:
            error = numbers.get(row)
        if error is not None:
            failures.append(Failure(row, error))
        else:
            content = None if is_deleted else payloads[row]
            documents.append(Document(row, str(index), ids[row], content))
    return documents, failures


def _error(of_index: str | None, id_: str | None, has_key: bool) -> RecordError | None:
    if of_index is not None:
        return Rejected(of_index, code="invalid-index")
    if has_key and not id_:
        return Rejected("the ID of the document is null or empty", code="invalid-key")
    if id_ is not None and (size := len(id_.encode())) > _MAX_ID_BYTES:
        message = f"the ID of the document has {size} bytes, more than {_MAX_ID_BYTES}"
        return Rejected(message, code="invalid-key")
    return None


def rounds(documents: Sequence[Document]) -> Iterator[list[Document]]:
    """Yields documents in lists in which each ID of an index occurs once, in order.

    The lists are sent one after another, so that a document that is sent again does not replace a
    later one.
    """
    remaining: Sequence[Document] = documents
    while remaining:
        seen: set[Any] = set()
        first: list[Document] = []
        later: list[Document] = []
        for document in remaining:
            key = (document.index, document.id)
            if document.id is not None and key in seen:
                later.append(document)
            else:
                seen.add(key)
                first.append(document)
        yield first
        remaining = later
