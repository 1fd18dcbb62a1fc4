"""Writer of documents: bulk requests, whose rejected documents are failures of their rows."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from penstock.connectors.http.client import Response
from penstock.connectors.http.errors import status_error
from penstock.connectors.http.opensearch.api import SearchServer
from penstock.connectors.http.opensearch.config import DocumentSinkConfig
from penstock.connectors.http.opensearch.documents import Document, documents_of, rounds
from penstock.connectors.http.opensearch.errors import reason_of, response_error, unknown_index
from penstock.connectors.http.opensearch.indexes import Indexes
from penstock.connectors.http.opensearch.names import Parts
from penstock.sdk import (
    Failure,
    Receipt,
    Rejected,
    Transient,
    Writer,
    report_retry,
)

_DENIED, _NOT_FOUND, _CONFLICT, _TOO_LARGE = (401, 403), 404, 409, 413
_REJECTED = (400, _TOO_LARGE)
"""Status codes of a request with a document that the server rejects before it stores any."""
_FIRST_OF_SERVER = 500


class DocumentWriter(Writer):
    """Sends the documents of a call before `write` returns."""

    def __init__(
        self, server: SearchServer, config: DocumentSinkConfig, key: Parts | None,
        mapping: Mapping[str, Any],
    ) -> None:  # fmt: skip
        self._server, self._config, self._key = server, config, key
        self._indexes = Indexes(server, config, mapping)
        self._requests = 0

    def write(
        self, rows: pa.RecordBatch, payloads: Any = None, operations: pa.StringArray | None = None
    ) -> Sequence[Failure]:
        documents, failures = documents_of(
            self._config, self._key, rows, payloads.to_pylist(),
            None if operations is None else operations.to_pylist(),
        )  # fmt: skip
        documents, missing = self._with_indexes(documents)
        failures += missing
        for each in rounds(documents):
            for part, lines in self._parts(each):
                failures += self._send(part, lines)
        return sorted(failures, key=lambda failure: failure.index)

    def commit(self) -> Receipt:
        return {"requests": self._requests}

    def _with_indexes(self, documents: Sequence[Document]) -> tuple[list[Document], list[Failure]]:
        """Returns the documents whose index exists, and the failures of the others."""
        written = dict.fromkeys(each.index for each in documents if each.content is not None)
        errors = {name: error for name in written if (error := self._indexes.find(name))}
        failures = [
            Failure(each.row, errors[each.index]) for each in documents if each.index in errors
        ]
        return [each for each in documents if each.index not in errors], failures

    def _parts(self, documents: Sequence[Document]) -> Iterator[tuple[list[Document], bytes]]:
        """Yields documents in lists, each with a body of at most `max_request_size` bytes."""
        from penstock.connectors.http.opensearch.bulk import lines_of

        part: list[Document] = []
        texts: list[bytes] = []
        size = 0
        for document in documents:
            text = lines_of(document, self._config.action)
            if part and size + len(text) > self._config.max_request_size:
                yield part, b"".join(texts)
                part, texts, size = [], [], 0
            part.append(document)
            texts.append(text)
            size += len(text)
        if part:
            yield part, b"".join(texts)

    def _send(self, documents: Sequence[Document], lines: bytes) -> list[Failure]:
        """Sends documents until each is stored or rejected. Returns the rejected ones.

        `lines` is the body of the first request. Raises Transient if the attempts of a document
        are used up.
        """
        failures: list[Failure] = []
        retry = self._config.retry
        for attempt in range(1, retry.attempts + 1):
            response = self._request(lines)
            if response.status in _REJECTED:
                return failures + self._send_halves(documents, response)
            if not self._config.is_final(response.status):
                raise response_error(response, self._config)
            failed = self._outcomes(documents, response.body)
            failures += [Failure(each.row, error) for each, error in failed
                         if isinstance(error, Rejected)]  # fmt: skip
            again = [(each, error) for each, error in failed if isinstance(error, Transient)]
            if not again:
                return failures
            documents, errors = [each for each, _ in again], [error for _, error in again]
            if attempt == retry.attempts:
                raise errors[0]
            lines = self._lines(documents)
            report_retry(errors[0])
            time.sleep(retry.delay(attempt))
        raise AssertionError("retry requires at least one attempt")

    def _request(self, lines: bytes) -> Response:
        self._requests += 1
        return self._server.bulk(lines, self._config.compression == "gzip")

    def _lines(self, documents: Sequence[Document]) -> bytes:
        from penstock.connectors.http.opensearch.bulk import lines_of

        return b"".join(lines_of(each, self._config.action) for each in documents)

    def _send_halves(self, documents: Sequence[Document], response: Response) -> list[Failure]:
        """Sends the documents of a rejected request in two requests. One document is rejected."""
        if len(documents) == 1:
            code = "too-large" if response.status == _TOO_LARGE else f"http-{response.status}"
            text = f"{response.status}: {response.text}".removesuffix(": ")
            return [Failure(documents[0].row, Rejected(text, code=code))]
        middle = len(documents) // 2
        halves = (documents[:middle], documents[middle:])
        return [failure for each in halves for failure in self._send(each, self._lines(each))]

    def _outcomes(
        self, documents: Sequence[Document], body: bytes
    ) -> list[tuple[Document, Rejected | Transient]]:
        """Returns the documents that are not stored, each with its error.

        Raises Permanent if the error of a document is not one of its row.
        """
        from msgspec import json

        from penstock.connectors.http.opensearch.bulk import has_errors

        if not has_errors(body):
            return []
        answer = json.decode(body)
        found: list[tuple[Document, Rejected | Transient]] = []
        conflicts: list[tuple[Document, Rejected]] = []
        for document, item in zip(documents, answer["items"], strict=True):
            ((_, result),) = item.items()
            status = result["status"]
            if self._config.is_final(status) or (document.content is None and status == _NOT_FOUND):
                continue
            error = self._item_error(document, status, result.get("error"))
            if status == _CONFLICT and isinstance(error, Rejected):
                conflicts.append((document, error))
            else:
                found.append((document, error))
        return found + self._different(conflicts)

    def _item_error(self, document: Document, status: int, error: Any) -> Rejected | Transient:
        """Returns the error of a document. Raises Permanent for an error of the whole system."""
        reason = reason_of(error)
        known = status_error(self._config.url, status, reason, self._config.retry)
        if isinstance(known, Transient):
            return known
        if status == _CONFLICT and self._config.action == "update":
            return Transient(f"{status}: {reason}", code=f"http-{status}")
        if status == _NOT_FOUND and self._config.index.constant is not None:
            raise unknown_index(document.index)
        if status in _DENIED or status >= _FIRST_OF_SERVER:
            raise known
        return Rejected(f"{status}: {reason}", code=f"http-{status}")

    def _different(
        self, conflicts: Sequence[tuple[Document, Rejected]]
    ) -> list[tuple[Document, Rejected | Transient]]:
        """Returns the conflicts with documents of other content.

        Equal ones were written before: by this batch before a crash, or by a request whose response
        was lost.
        """
        from msgspec import Raw, json

        if not conflicts:
            return []
        names = [{"_index": each.index, "_id": each.id} for each, _ in conflicts]
        answer = self._server.call("POST", "/_mget", {"docs": names})
        stored = json.decode(answer, type=dict[str, list[dict[str, Raw]]])["docs"]
        return [
            (document, error)
            for (document, error), other in zip(conflicts, stored, strict=True)
            if bytes(other.get("_source", b"")) != document.content
        ]
