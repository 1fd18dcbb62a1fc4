"""Documents of a search, decoded from its response. Searches import it when they run."""

from __future__ import annotations

from typing import Any

from msgspec import Raw, Struct, field, json


class Hit(Struct, frozen=True, gc=False):
    """A document that a search has found."""

    index: str = field(name="_index")
    id: str = field(name="_id")
    number: int = field(name="_seq_no", default=0)
    """The sequence number of the last change of the document, in its part of the index."""
    sort: list[Any] = []
    source: Raw = field(name="_source", default=Raw())

    @property
    def content(self) -> bytes | None:
        """The text of the document; None if the search has not returned it."""
        return bytes(self.source) or None


class _Hits(Struct):
    hits: list[Hit]


class _Response(Struct):
    hits: _Hits


def hits_of(response: bytes) -> list[Hit]:
    """Returns the documents of a response."""
    return json.decode(response, type=_Response).hits.hits
