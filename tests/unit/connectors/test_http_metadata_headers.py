"""Headers of HTTP messages in metadata."""

from __future__ import annotations

import pytest

from penstock.connectors.http.metadata_headers import without_credentials


@pytest.mark.parametrize(
    "name",
    [
        "Authorization", "Proxy-Authorization", "Cookie", "Set-Cookie", "X-Api-Key", "apikey",
        "X-Auth-Token", "X-Amz-Security-Token", "X-CSRF-Token", "X-Functions-Key",
        "Ocp-Apim-Subscription-Key", "X-Client-Secret", "X-Password",
    ],
)  # fmt: skip
def test_credentials_are_left_out(name: str) -> None:
    assert without_credentials({name: "sesame", "X-Kind": "k"}) == [("x-kind", "k")]


@pytest.mark.parametrize("name", ["content-type", "idempotency-key", "x-hub-signature", "etag"])
def test_other_headers_are_kept(name: str) -> None:
    assert without_credentials({name: "1"}) == [(name, "1")]
