"""URLs and headers of requests: templates filled with the values of rows, then validated."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from urllib.parse import quote, unquote, urlsplit

import pyarrow as pa

from penstock.core.errors import Rejected
from penstock.sdk.columns.template import Template, as_text

_EXAMPLE = "https://example.com/{id}"
_DOT_SEGMENTS = (".", "..")
_HOST = re.compile(r"[^.%\s]+(\.[^.%\s]+)*\.?", re.ASCII)
_COLUMN_MARK = "\0"
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class UrlTemplate:
    """The template of a URL. The value of a column is percent-encoded: it stays in its part.

    A path segment with columns must not be empty, `.` or `..`, which would address another path.
    """

    def __init__(self, template: Template) -> None:
        self._template = template
        pattern = "".join(
            text + (_COLUMN_MARK if column is not None else "") for text, column in template.parts
        )
        scheme, _, rest = pattern.partition("://")
        authority, _, path = re.split(r"[?#]", rest, maxsplit=1)[0].partition("/")
        self._has_columns_in_address = _COLUMN_MARK in scheme + authority
        self._segments = [
            index for index, segment in enumerate(path.split("/")) if _COLUMN_MARK in segment
        ]

    def render(self, rows: pa.RecordBatch) -> Iterator[str | Rejected]:
        """Yields the URL or the rejection of each row."""
        for name in self._template.columns:
            rows = percent_encode(rows, name)
        yield from self.render_encoded(rows)

    def render_encoded(self, rows: pa.RecordBatch) -> Iterator[str | Rejected]:
        """Yields the URL or the rejection of each row. The values are percent-encoded."""
        for url in self._template.render(rows):
            if url is None:
                yield Rejected("a column of the URL is null", code="invalid-url")
            else:
                error = self._error(url)
                yield url if error is None else Rejected(error, code="invalid-url")

    def check(self) -> str | None:
        """Returns the error of a template that cannot form a URL; None otherwise."""
        constant = self._template.constant
        if constant is not None:
            is_wrong = address_error(constant) is not None
        else:
            is_wrong = "://" not in "".join(text for text, _ in self._template.parts)
        return f"expected a URL with a scheme and a host, such as {_EXAMPLE}" if is_wrong else None

    def _error(self, url: str) -> str | None:
        _, _, rest = re.split(r"[?#]", url, maxsplit=1)[0].partition("://")
        segments = rest.partition("/")[2].split("/")
        for index in self._segments:
            text = segments[index]
            if not text or unquote(text) in _DOT_SEGMENTS:
                return f'expected a value for a segment of the path, found "{text}"'
        return address_error(url) if self._has_columns_in_address else None


def address_error(url: str) -> str | None:
    """Returns the error of the scheme, the host and the port of a URL; None if they are valid."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        return f"invalid URL: {error}"
    if parts.scheme not in ("http", "https"):
        return f'expected a URL with the scheme http or https, found "{url}"'
    if not host or (":" not in host and not _HOST.fullmatch(host)):
        return f'expected a URL with a host, found "{host or ""}"'
    return None


def header_name_error(name: str) -> str | None:
    """Returns the error of a header's name (RFC 9110, section 5.1); None for a valid name."""
    if _HEADER_NAME.fullmatch(name):
        return None
    return f'expected the name of a header, such as X-Id, found "{name}"'


def header_value_error(name: str, value: str) -> str | None:
    """Returns the error of a header's value (RFC 9110, section 5.5); None for a valid value."""
    if _CONTROL.search(value):
        return f'expected a header "{name}" without line breaks and control characters'
    return None


def render_headers(
    templates: Mapping[str, Template], rows: pa.RecordBatch
) -> Iterator[dict[str, str] | Rejected]:
    """Yields the headers or the rejection of each row. A null value omits its header."""
    columns = {name: template.render(rows) for name, template in templates.items()}
    for index in range(rows.num_rows):
        headers = {
            name: value for name, values in columns.items() if (value := values[index]) is not None
        }
        errors = [error for item in headers.items() if (error := header_value_error(*item))]
        yield Rejected(errors[0], code="invalid-header") if errors else headers


def percent_encode(rows: pa.RecordBatch, name: str) -> pa.RecordBatch:
    """Returns rows with the percent-encoded text of a column, with times as in JSON."""
    texts = as_text(rows.column(name)).to_pylist()
    encoded = [None if text is None else quote(text, safe="") for text in texts]
    index = rows.schema.get_field_index(name)
    return rows.set_column(index, name, pa.array(encoded, pa.string()))
