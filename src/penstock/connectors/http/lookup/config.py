"""Options of HTTP lookups."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from penstock.connectors.http.config import (
    RequestUrl,
    SendingConfig,
    StaticClientConfig,
    Status,
    matches_status,
)
from penstock.connectors.http.framing import Pointer
from penstock.sdk import ByteSize


class HttpLookupSourceConfig(StaticClientConfig, SendingConfig):
    url: RequestUrl
    """The request URL. `{column}` is replaced by the percent-encoded value of a column of the
    primary key, or by the values of several keys, separated by commas. A key without a value for a
    segment of the path becomes a dead letter; so does a key whose segment is `.` or `..`."""
    method: Literal["GET", "POST"] = "GET"
    """The request method. The body of a POST request is the key as a JSON object, or with several
    keys in a request a JSON array of keys."""
    pointer: Pointer = ""
    """The JSON pointer of the row in the body, such as `/data`, or of the array of rows. The body
    itself by default."""
    max_keys: int = Field(default=1, ge=1, le=1000)
    """The maximum number of keys of a request. If it is above 1, responses are JSON arrays of rows,
    and each row has the columns of the primary key."""
    concurrency: int = Field(default=8, ge=1)
    """The maximum number of parallel requests of a task."""
    missing: list[Status] = [404, 410]
    """Status codes of keys without a row, each as 404 or as 4xx. By default 404 and 410."""
    reject: list[Status] = [400, 414, 422]
    """Status codes that reject a key, which becomes a dead letter. The keys of a rejected request
    with several keys are first requested one by one. By default 400, 414 and 422."""
    max_message_size: ByteSize = Field(default=16 << 20, ge=1)
    """The maximum size of a response body."""

    @model_validator(mode="after")
    def _check_several_keys(self) -> Self:
        if self.max_keys > 1 and self.method == "POST" and self.url.columns:
            raise ValueError("url has no columns with method: POST and several keys in a request")
        return self

    def is_missing(self, status: int) -> bool:
        """Returns whether a status code means that there is no row."""
        return matches_status(status, self.missing)

    def is_rejection(self, status: int) -> bool:
        """Returns whether a status code rejects the keys of a request."""
        return matches_status(status, self.reject)

    def is_final(self, status: int) -> bool:
        return self.is_missing(status) or self.is_rejection(status)
