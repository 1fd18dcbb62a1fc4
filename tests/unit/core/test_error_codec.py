"""Errors as text: the report of a user of PySpark, and the error of Penstock within it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.core.error_codec import EncodedError, decode, encode, encode_errors
from penstock.core.errors import Permanent, Transient

FIRST = Transient("could not reach the server", code="unreachable", hint="Start it.")
LAST = Permanent("the server rejected the request", code="rejected", detail="line 1\nline 2")


def test_the_last_error_of_a_traceback() -> None:
    """A cause comes first in a traceback, the error that it has caused comes last."""
    text = f"Traceback\n  {encode(FIRST)}\nThe above exception was the cause\n{encode(LAST)}\n"
    found = decode(text)
    assert isinstance(found, Permanent)
    assert (found.message, found.code, found.detail) == (LAST.message, LAST.code, LAST.detail)


def test_a_text_that_is_cut_is_not_an_error() -> None:
    found = decode(f"{encode(FIRST)}\n{encode(LAST)[:40]}}}")
    assert isinstance(found, Transient) and found.hint == FIRST.hint
    assert decode("penstock: no error") is None


@encode_errors
def fail() -> None:
    raise FIRST


@encode_errors
def fail_after_an_item() -> Iterator[int]:
    yield 1
    raise LAST


def test_errors_of_functions_and_of_generators() -> None:
    with pytest.raises(EncodedError, match="could not reach the server") as caught:
        fail()
    assert isinstance(decode(str(caught.value)), Transient)
    items = fail_after_an_item()
    assert next(items) == 1
    with pytest.raises(EncodedError) as caught:
        next(items)
    assert isinstance(decode(str(caught.value)), Permanent)
