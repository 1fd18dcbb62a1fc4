"""Paging: the URL of the first page, and of the page after a response."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

from penstock.connectors.http.client import Response
from penstock.connectors.http.framing import resolve_pointer
from penstock.connectors.http.poll.config import CursorPaging, LinkPaging, NumberPaging, Paging
from penstock.sdk import Permanent

_NEXT_LINK = re.compile(r'<([^>]*)>\s*;[^,<]*\brel="?[^",;<]*\bnext\b')


def first_url(url: str, paging: Paging | None) -> str:
    """Returns the URL of the first page."""
    if isinstance(paging, NumberPaging):
        return set_query_parameter(url, paging.parameter, str(paging.first))
    if isinstance(paging, CursorPaging) and paging.first is not None:
        return set_query_parameter(url, paging.parameter, paging.first)
    return url


def next_url(url: str, paging: Paging, response: Response, count: int) -> str | None:
    """Returns the URL of the page after a response with `count` messages; None after the last.

    Raises Permanent if the response has no valid link or cursor.
    """
    if isinstance(paging, LinkPaging):
        link = _next_link(paging, response)
        return None if link is None else _check_same_server(url, urljoin(url, link))
    if isinstance(paging, NumberPaging):
        number = int(dict(parse_qsl(urlsplit(url).query))[paging.parameter])
        return set_query_parameter(url, paging.parameter, str(number + 1)) if count else None
    cursor = _next_cursor(paging, response)
    return set_query_parameter(url, paging.parameter, cursor) if cursor else None


def set_query_parameter(url: str, name: str, value: str) -> str:
    """Returns the URL with a query parameter set. Other parameters of that name are removed."""
    parts = urlsplit(url)
    query = parse_qsl(parts.query, keep_blank_values=True)
    parameters = [parameter for parameter in query if parameter[0] != name]
    return parts._replace(query=urlencode([*parameters, (name, value)])).geturl()


def _next_link(paging: LinkPaging, response: Response) -> str | None:
    if paging.pointer is not None:
        return _text_at(response.body, paging.pointer)
    match = _NEXT_LINK.search(response.headers.get("Link", ""))
    return match[1] if match else None


def _next_cursor(paging: CursorPaging, response: Response) -> str | None:
    if paging.header is not None:
        return response.headers.get(paging.header)
    assert paging.pointer is not None
    return _text_at(response.body, paging.pointer)


def _text_at(body: bytes, pointer: str) -> str | None:
    """Returns the text or number at a JSON pointer; None if it is missing, null or false."""
    if not body:
        return None
    try:
        part = resolve_pointer(body, pointer)
        value: Any = json.loads(bytes(part)) if part is not None else None
    except ValueError as error:
        raise Permanent(
            "the response body is not valid JSON", code="undecodable", detail=str(error)
        ) from None
    if isinstance(value, dict | list):
        kind = "an object" if isinstance(value, dict) else "an array"
        raise Permanent(
            f"expected text or a number at {pointer}, found {kind}",
            code="paging",
            hint="Correct the pointer of the option paging.",
        )
    return None if value is None or value is False else str(value)


def _check_same_server(url: str, link: str) -> str:
    expected, actual = urlsplit(url), urlsplit(link)
    if (expected.scheme, expected.netloc) != (actual.scheme, actual.netloc):
        raise Permanent(
            f"the link to the next page names another server: {actual.scheme}://{actual.netloc}",
            code="paging",
            hint="Set url to the scheme and host of the links. "
            "Credentials are sent to the server of url only.",
        )
    return link
