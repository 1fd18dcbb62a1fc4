"""Responses of HTTP whose connection was closed before their end.

The parser of Python takes the end of a connection for the end of the headers, and botocore that for
the end of the body. The servers of these clients always state how the body ends.
"""

from __future__ import annotations

from collections.abc import Mapping


def check_whole(headers: Mapping[str, str], size: int | None = None) -> None:
    """Raises OSError if headers lack the end of the body, or the body has not `size` bytes."""
    values = {name.lower(): value.strip() for name, value in headers.items()}
    length = values.get("content-length", "")
    if not (length.isdigit() or values.get("transfer-encoding") == "chunked"):
        raise OSError("the connection was closed between the headers of a response")
    if length and size not in (None, int(length)):
        raise OSError(f"the connection was closed before the {length} bytes of a response")
