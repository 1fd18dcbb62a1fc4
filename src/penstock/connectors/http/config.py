"""Options of the HTTP source and sink, and those shared by all HTTP clients."""

from __future__ import annotations

import base64
import hmac
from abc import abstractmethod
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from penstock.connectors.http.request_lines import (
    UrlTemplate,
    header_name_error,
    header_value_error,
)
from penstock.sdk import (
    ByteSize,
    Config,
    PositiveDuration,
    ReceivingConfig,
    Retry,
    Secret,
)
from penstock.sdk.columns.template import Template
from penstock.sdk.messages.repeated_keys import RepeatedKeys
from penstock.sdk.network.address import Address, url_validator
from penstock.sdk.network.auth import Auth
from penstock.sdk.network.connection_limits import ConnectionLimits
from penstock.sdk.network.tls import Tls, TlsOption, resolve_tls

_OF_ROW = frozenset([404, 410, 414, 431])
"""Status codes that concern the URL and the headers of one request."""
_STATUS_CLASSES = {f"{digit}xx": range(digit * 100, digit * 100 + 100) for digit in range(1, 6)}

Framing = Literal["single", "lines", "array"]
"""The messages of a body: one message, lines, or the elements of a JSON array."""


def _validate_status(status: int | str) -> int | str:
    if isinstance(status, str) and status not in _STATUS_CLASSES:
        raise ValueError("expected a status such as 200, or a class of statuses such as 2xx")
    return status


Status = Annotated[int | str, AfterValidator(_validate_status)]
"""A status code, such as 503, or a class of status codes, such as 5xx."""


def matches_status(status: int, patterns: Sequence[int | str]) -> bool:
    """Returns whether a status code is listed, itself or by its class."""
    return any(
        status == pattern if isinstance(pattern, int) else status in _STATUS_CLASSES[pattern]
        for pattern in patterns
    )


class HttpAuth(Auth):
    """Basic authentication (user name and password) or bearer authentication (token)."""

    alternatives: ClassVar[tuple[tuple[str, ...], ...]] = (("username", "password"), ("token",))

    username: str | None = None
    """The user name of basic authentication."""
    password: Secret | None = None
    """The password of basic authentication."""
    token: Secret | None = None
    """The token of bearer authentication."""

    @property
    def scheme(self) -> str:
        """The authentication scheme: `Basic` or `Bearer`."""
        return "Basic" if self.token is None else "Bearer"

    @property
    def header(self) -> str:
        """The value of the `Authorization` header."""
        if self.token is not None:
            return f"Bearer {self.token.reveal()}"
        assert self.password is not None
        login = f"{self.username}:{self.password.reveal()}"
        return f"Basic {base64.b64encode(login.encode()).decode()}"

    def is_authorized(self, header: str) -> bool:
        """Returns whether an `Authorization` header has these credentials, in constant time."""
        scheme, _, credentials = header.partition(" ")
        expected = self.header.partition(" ")[2]
        equal = hmac.compare_digest(credentials.strip().encode(), expected.encode())
        return scheme.lower() == self.scheme.lower() and equal


class HttpRetry(Retry):
    """Retry of requests that fail with a transient error.

    A `Retry-After` header of up to an hour replaces the backoff.
    """

    statuses: list[Status] = [408, 425, 429, 500, 502, 503, 504]
    """Status codes that are retried, each as 503 or as 5xx. Any other error status fails at
    once. The default is 408, 425, 429, 500, 502, 503 and 504."""

    def is_retryable(self, status: int) -> bool:
        """Returns whether a response with this status code is retried."""
        return matches_status(status, self.statuses)


class ClientConfig(Config):
    """Options of HTTP clients. A subclass adds `url`."""

    auth: HttpAuth | None = None
    """The credentials of the client."""
    tls: TlsOption = None
    """TLS settings. By default the scheme of `url` decides."""
    timeout: PositiveDuration = 30.0
    """The maximum duration of a request, from the connection to the end of the response."""

    @model_validator(mode="after")
    def _check_tls(self) -> Self:
        resolve_tls(self.tls, self._scheme_uses_tls())
        return self

    @property
    def tls_settings(self) -> Tls | None:
        """The TLS settings of connections; None where the scheme of `url` has no TLS."""
        return resolve_tls(self.tls, self._scheme_uses_tls())

    def _scheme_uses_tls(self) -> bool | None:
        """Returns whether the scheme is one of TLS; None where it comes from a column."""
        url: Any = getattr(self, "url", "")
        scheme, separator, _ = url.partition("://")
        if not separator or "{" in scheme:
            return None
        return scheme in ("https", "wss")


class StaticClientConfig(ClientConfig):
    """Options of clients whose requests do not depend on rows."""

    headers: dict[str, Secret] = {}
    """Request headers."""
    timeout: PositiveDuration = 30.0
    """The maximum duration of a request, or of a connect."""

    def revealed_headers(self) -> dict[str, str]:
        """Returns the request headers in plain text."""
        return {name: value.reveal() for name, value in self.headers.items()}


AUTH_EXAMPLE = "auth: {username: ..., password: ...}"
HttpUrl = Annotated[str, AfterValidator(url_validator("http", "https", user=AUTH_EXAMPLE))]
"""A URL with the scheme http or https."""


def _validate_path(text: str) -> str:
    if not text.startswith("/"):
        raise ValueError(f'expected a path that starts with a slash: "/{text}"')
    return text


UrlPath = Annotated[str, AfterValidator(_validate_path)]


class HttpSourceConfig(ConnectionLimits, RepeatedKeys, ReceivingConfig):
    listen: Address
    """The address to listen on, as `host:port`. The host 0.0.0.0 stands for all interfaces."""
    path: UrlPath | list[UrlPath] = "/"
    """The path of requests, or a list of paths. `{name}` matches one segment, as in
    `/rooms/{room}`."""
    methods: list[Literal["POST", "PUT", "PATCH", "GET", "DELETE"]] = ["POST"]
    """The accepted request methods."""
    framing: Framing = "single"
    """The messages of a body: `single` (the body is one message), `lines` (one message a line) or
    `array` (the elements of a JSON array)."""
    auth: HttpAuth | None = None
    """The credentials that clients must present."""
    tls: TlsOption = None
    """Listen with TLS. `tls.certificate` and `tls.key` are required; with `tls.ca` clients must
    present a certificate, too."""
    max_message_size: ByteSize = Field(default=16 << 20, ge=1)
    """The maximum size of a request body, after decompression, and never more than half of the
    journal."""
    timeout: PositiveDuration = 60.0
    """The maximum time for the body of a request. After that time the response is 408. A client
    that reads no responses for this time is disconnected."""
    idle_timeout: PositiveDuration = 75.0
    """The maximum time for the headers of a request, from the connection or from the last response
    of a connection that is kept open."""
    cors: bool = False
    """Accept requests from browser pages of other origins (CORS)."""

    @model_validator(mode="after")
    def _check_paths_and_certificate(self) -> Self:
        if not self.path or not self.methods:
            raise ValueError("expected at least one path and one method")
        if self.tls_settings is not None and self.tls_settings.certificate is None:
            raise ValueError("tls requires certificate and key for a server")
        return self

    @property
    def paths(self) -> list[str]:
        """The paths of requests."""
        return [self.path] if isinstance(self.path, str) else self.path

    @property
    def tls_settings(self) -> Tls | None:
        """The TLS settings of the server; None without TLS."""
        return resolve_tls(self.tls)


class SendingConfig(ClientConfig):
    """Options of clients that send requests with retry."""

    retry: HttpRetry = HttpRetry()
    """Retry of requests that fail with a transient error."""

    @abstractmethod
    def is_final(self, status: int) -> bool:
        """Returns whether a status code acknowledges or rejects the rows, so no retry follows."""


def _validate_url_template(url: Template) -> Template:
    if (error := UrlTemplate(url).check()) is not None:
        raise ValueError(error)
    return url


RequestUrl = Annotated[Template, AfterValidator(_validate_url_template)]
"""The URL of a request with columns, see `request_lines.UrlTemplate`."""


class RowRequestConfig(SendingConfig):
    """Options of requests with the values of rows."""

    url: RequestUrl
    """The request URL. `{column}` is replaced by the percent-encoded value of the row. A row with a
    null in the URL, or without a value for a segment of the path, becomes a dead letter; so does a
    row whose segment is `.` or `..`."""
    method: Literal["POST", "PUT", "PATCH", "DELETE", "GET"] = "POST"
    """The request method. GET and DELETE requests have no body."""
    headers: dict[str, Template] = {}
    """Request headers. `{column}` is replaced by the value of the row; a null omits the header. A
    row whose header has line breaks or control characters becomes a dead letter."""
    framing: Framing = "single"
    """The rows of a body: a `single` row, or several as `lines` or as the elements of a JSON
    `array`."""
    concurrency: int = Field(default=8, ge=1)
    """The maximum number of parallel requests."""
    success: list[Status] = ["2xx"]
    """Status codes that acknowledge the rows of a request, each as 200 or as 2xx."""
    reject: list[Status] = [400, 409, 413, 415, 422]
    """Status codes that reject the rows of a request. Rejected rows become dead letters without
    a retry. If `url` or `headers` contain columns, 404, 410, 414 and 431 reject rows as well."""

    @field_validator("headers")
    @classmethod
    def _check_headers(cls, headers: dict[str, Template]) -> dict[str, Template]:
        for name, template in headers.items():
            literal = "".join(text for text, _ in template.parts)
            error = header_name_error(name) or header_value_error(name, literal)
            if error is not None:
                raise ValueError(error)
        return headers

    @model_validator(mode="after")
    def _check_method_and_framing(self) -> Self:
        if self.framing != "single" and self.method in ("GET", "DELETE"):
            raise ValueError(f"method {self.method} requires framing: single")
        return self

    def is_success(self, status: int) -> bool:
        """Returns whether a status code acknowledges the rows."""
        return matches_status(status, self.success)

    def is_rejection(self, status: int) -> bool:
        """Returns whether a status code rejects the rows."""
        of_row = self._has_columns and status in _OF_ROW
        return of_row or matches_status(status, self.reject)

    @property
    def _has_columns(self) -> bool:
        templates = (self.url, *self.headers.values())
        return any(template.columns for template in templates)

    def is_final(self, status: int) -> bool:
        return self.is_success(status) or self.is_rejection(status)


class HttpSinkConfig(RowRequestConfig):
    framing: Framing = "single"
    """The rows of a body: a `single` row, or as many as the node's `batch` allows (500 by default)
    as `lines` or as the elements of a JSON `array`."""
    concurrency: int = Field(default=8, ge=1)
    """The maximum number of parallel requests of a writer; 1 keeps the order of rows."""
