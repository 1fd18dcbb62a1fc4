"""URLs of servers as options."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter

from penstock.sdk.network.address import Address, host_and_port, url_validator


@pytest.mark.parametrize("url", ["mqtt://h", "mqtts://h:8883", "mqtt://[::1]:1883/"])
def test_good_ones(url: str) -> None:
    assert url_validator("mqtt", "mqtts")(url) == url


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("h:1883", "expected mqtt://HOST or mqtts://HOST"),
        ("http://h", "expected mqtt://HOST"),
        ("mqtt://", "expected mqtt://HOST"),
        ("mqtt://:1883", "expected mqtt://HOST"),
        ("mqtt://h:x", "expected a port up to 65535"),
        ("mqtt://h:65536", "expected a port up to 65535"),
        ("mqtt://mila@h", "expected the user in auth, not in the URL"),
        ("mqtt://mila:secret@h", "expected the user in auth, not in the URL"),
    ],
)
def test_bad_ones(url: str, said: str) -> None:
    with pytest.raises(ValueError, match=said) as failed:
        url_validator("mqtt", "mqtts")(url)
    assert "secret" not in str(failed.value)


@pytest.mark.parametrize(
    ("address", "parts"),
    [("h:0", ("h", 0)), ("0.0.0.0:65535", ("0.0.0.0", 65535)), ("[::1]:80", ("::1", 80))],
)
def test_addresses(address: str, parts: tuple[str, int]) -> None:
    assert host_and_port(TypeAdapter(Address).validate_python(address)) == parts


@pytest.mark.parametrize("address", ["h", "h:", ":80", "h:65536", "h:-1", "h:x", "h:8²"])
def test_invalid_addresses(address: str) -> None:
    with pytest.raises(ValueError, match="expected host:port"):
        TypeAdapter(Address).validate_python(address)
