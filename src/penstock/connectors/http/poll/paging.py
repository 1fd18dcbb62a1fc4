"""How an answer leads to the next page."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, Literal, Self
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

from pydantic import Field, model_validator

from penstock.connectors.http.asking import Answer
from penstock.connectors.http.jsontext import Pointer, part
from penstock.sdk import Config, Permanent

_NEXT = re.compile(r'<([^>]*)>\s*;[^,<]*\brel="?[^",;<]*\bnext\b')

AtEnd = Literal["restart", "stay"]


class ByLink(Config):
    """An answer has the URL of the next page."""

    by: Literal["link"]
    """The kind of paging."""
    pointer: Pointer | None = None
    """Where the URL is in the body, as in `/links/next`; the header `Link` if left out."""
    at_end: AtEnd = "restart"
    """After the last page: `restart` with the first, or `stay` at the last that had messages."""

    def first(self, url: str) -> str:
        return url

    def following(self, url: str, answer: Answer, count: int) -> str | None:
        if self.pointer is None:
            found = _NEXT.search(answer.headers.get("Link", ""))
            link = found[1] if found else None
        else:
            link = _value(answer.body, self.pointer)
        return None if link is None else _same_server(url, urljoin(url, link))


class ByPage(Config):
    """Pages are numbered; one without messages is after the last."""

    by: Literal["page"]
    """The kind of paging."""
    parameter: str = "page"
    """The parameter of the query with the number."""
    begin: int = 1
    """The number of the first page."""
    at_end: AtEnd = "restart"
    """After the last page: `restart` with the first, or `stay` at the last that had messages."""

    def first(self, url: str) -> str:
        return with_parameter(url, self.parameter, str(self.begin))

    def following(self, url: str, answer: Answer, count: int) -> str | None:
        number = int(dict(parse_qsl(urlsplit(url).query))[self.parameter])
        return with_parameter(url, self.parameter, str(number + 1)) if count else None


class ByCursor(Config):
    """An answer has a word that asks for what comes after it."""

    by: Literal["cursor"]
    """The kind of paging."""
    parameter: str = "cursor"
    """The parameter of the query with the cursor."""
    pointer: Pointer | None = None
    """Where the next cursor is in the body, as in `/meta/next`."""
    header: str | None = None
    """The header with the next cursor."""
    begin: str | None = None
    """The cursor to begin with; without one if left out."""
    at_end: AtEnd = "stay"
    """After an answer without a cursor: `stay` at the last page that had messages, or `restart`
    without a cursor. An answer with the cursor that was sent is asked for again in any case."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.pointer is None) == (self.header is None):
            raise ValueError("give pointer or header")
        return self

    def first(self, url: str) -> str:
        return url if self.begin is None else with_parameter(url, self.parameter, self.begin)

    def following(self, url: str, answer: Answer, count: int) -> str | None:
        if self.header is not None:
            cursor = answer.headers.get(self.header)
        else:
            assert self.pointer is not None
            cursor = _value(answer.body, self.pointer)
        return with_parameter(url, self.parameter, cursor) if cursor else None


Paging = Annotated[ByLink | ByPage | ByCursor, Field(discriminator="by")]


def with_parameter(url: str, name: str, value: str) -> str:
    """The URL with this parameter instead of the one of that name, if it has one."""
    parts = urlsplit(url)
    query = [each for each in parse_qsl(parts.query, keep_blank_values=True) if each[0] != name]
    return parts._replace(query=urlencode([*query, (name, value)])).geturl()


def _value(body: bytes, pointer: str) -> str | None:
    """The text or number at a place in a body; None where there is none, null or false."""
    if not body:
        return None
    try:
        text = part(body.decode(), pointer)
        value: Any = json.loads(text) if text is not None else None
    except ValueError as error:
        raise Permanent(
            "the body of the answer is no JSON", code="undecodable", detail=str(error)
        ) from None
    if isinstance(value, dict | list):
        raise Permanent(
            f"at {pointer} is neither text nor a number", code="paging", hint="look at paging"
        )
    return None if value is None or value is False else str(value)


def _same_server(url: str, link: str) -> str:
    ours, theirs = urlsplit(url), urlsplit(link)
    if (ours.scheme, ours.netloc) != (theirs.scheme, theirs.netloc):
        raise Permanent(
            f"the next page is said to be at another server: {theirs.scheme}://{theirs.netloc}",
            code="paging",
            hint="our credentials are not for that; is the scheme of url right?",
        )
    return link
