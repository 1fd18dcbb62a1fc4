"""Panics of libraries written in Rust, which are no subclass of Exception."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Panic(Exception):
    """A panic of a library."""


@contextmanager
def panics_as_exceptions() -> Iterator[None]:
    """Raises Panic in place of a panic."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise Panic(str(error)) from None
