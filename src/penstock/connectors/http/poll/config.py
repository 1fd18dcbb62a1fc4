"""Options of the HTTP poll source."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from penstock.connectors.http.config import Framing, HttpRetry, HttpUrl, StaticClientConfig
from penstock.connectors.http.framing import Pointer
from penstock.sdk import ByteSize, Config, PositiveDuration, ReceivingConfig
from penstock.sdk.messages.repeated_keys import RepeatedKeys

AtEnd = Literal["restart", "stay"]


class LinkPaging(Config):
    """Each response has the URL of the next page."""

    by: Literal["link"]
    """The kind of paging."""
    pointer: Pointer | None = None
    """The JSON pointer of the URL in the body, such as `/links/next`. The `Link` header by
    default."""
    at_end: AtEnd = "restart"
    """After the last page: `restart` at the first page, or `stay` at the last page. Messages that
    this page had before are not delivered again."""


class NumberPaging(Config):
    """Pages are numbered. A page without messages ends the round."""

    by: Literal["page"]
    """The kind of paging."""
    parameter: str = "page"
    """The query parameter of the page number."""
    first: int = 1
    """The number of the first page."""
    at_end: AtEnd = "restart"
    """After the last page: `restart` at the first page, or `stay` at the last page that had
    messages. Messages that this page had before are not delivered again."""


class CursorPaging(Config):
    """Each response has a cursor, which the next request sends."""

    by: Literal["cursor"]
    """The kind of paging."""
    parameter: str = "cursor"
    """The query parameter of the cursor."""
    pointer: Pointer | None = None
    """The JSON pointer of the next cursor in the body, such as `/meta/next`."""
    header: str | None = None
    """The response header with the next cursor."""
    first: str | None = None
    """The cursor of the first request. By default the first request has no cursor."""
    at_end: AtEnd = "stay"
    """After a response without a cursor: `stay` at its page, or `restart` with the first request. A
    cursor that does not change always ends the round and is sent again. Messages that a page had
    before are not delivered again if it is requested again."""

    @model_validator(mode="after")
    def _check_one_origin(self) -> Self:
        if (self.pointer is None) == (self.header is None):
            raise ValueError("expected pointer or header")
        return self


Paging = Annotated[LinkPaging | NumberPaging | CursorPaging, Field(discriminator="by")]


class HttpPollSourceConfig(StaticClientConfig, RepeatedKeys, ReceivingConfig):
    url: HttpUrl
    """The request URL."""
    interval: PositiveDuration = 10.0
    """The time between the end of a round and the next."""
    method: Literal["GET", "POST", "PUT", "PATCH"] = "GET"
    """The request method."""
    body: str | None = None
    """The request body."""
    framing: Framing = "single"
    """The messages of a response body: `single` (the body is one message), `lines` (one message a
    line) or `array` (the elements of a JSON array)."""
    pointer: Pointer = ""
    """The JSON pointer of the array in the body, such as `/data/items`. The body itself by
    default."""
    paging: Paging | None = None
    """The rule for the URL of the next page, which is requested immediately."""
    emit: Literal["all", "changed"] = "all"
    """The messages of a round that become records: `all`, or only those that the previous round
    did not have (`changed`). With `changed` requests are conditional where the server sends
    ETags."""
    retry: HttpRetry = HttpRetry()
    """Retry of requests that fail with a transient error."""
    max_message_size: ByteSize = Field(default=64 << 20, ge=1)
    """The maximum size of a response body."""

    @model_validator(mode="after")
    def _check_framing(self) -> Self:
        if self.pointer and self.framing != "array":
            raise ValueError("pointer requires framing: array")
        if self.paging is not None and self.paging.by == "page" and self.framing == "single":
            raise ValueError("paging by page requires framing: lines or framing: array")
        return self
