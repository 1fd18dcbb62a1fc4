"""The error of a batch that a handler cannot process."""

from __future__ import annotations

from typing import Self


class HandlerError(Exception):
    """An error with its kind, one of those of Arrow: its text is `Kind: message`."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message

    @classmethod
    def invalid(cls, message: str) -> Self:
        """Returns the error of an invalid option or batch."""
        return cls("Invalid", message)

    @classmethod
    def missing(cls, message: str) -> Self:
        """Returns the error of a missing column or key."""
        return cls("Key error", message)

    @classmethod
    def type(cls, message: str) -> Self:
        """Returns the error of a column whose type is not the expected one."""
        return cls("Type error", message)

    @classmethod
    def unsupported(cls, message: str) -> Self:
        """Returns the error of a type that a function does not support."""
        return cls("NotImplemented", message)
