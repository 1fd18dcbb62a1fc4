"""Responses of HTTP whose connection was closed before their end."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from penstock.sdk.network.cut_responses import check_whole


@pytest.mark.parametrize(
    ("headers", "size"),
    [
        ({"Content-Length": "12"}, 12),
        ({"content-length": "0"}, None),
        ({"Transfer-Encoding": "chunked"}, 7),
    ],
)
def test_whole_responses(headers: Mapping[str, str], size: int | None) -> None:
    check_whole(headers, size)


@pytest.mark.parametrize(
    ("headers", "size"),
    [
        ({}, None),
        ({"Connection": "close"}, None),
        ({"Content-Length": ""}, None),
        ({"Transfer-Encoding": "chun"}, None),
        ({"Content-Length": "12"}, 11),
    ],
)
def test_cut_responses(headers: Mapping[str, str], size: int | None) -> None:
    with pytest.raises(OSError, match="the connection was closed"):
        check_whole(headers, size)
