"""URLs of servers as options."""

from __future__ import annotations

import pytest

from penstock.sdk.kit.address import url_of


@pytest.mark.parametrize("url", ["mqtt://h", "mqtts://h:8883", "mqtt://[::1]:1883/"])
def test_good_ones(url: str) -> None:
    assert url_of("mqtt", "mqtts")(url) == url


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("h:1883", "expected mqtt://HOST or mqtts://HOST, with :PORT"),
        ("http://h", "expected mqtt://HOST"),
        ("mqtt://", "expected mqtt://HOST"),
        ("mqtt://:1883", "expected mqtt://HOST"),
        ("mqtt://h:x", "the port is a number"),
        ("mqtt://h:65536", "the port is a number"),
        ("mqtt://mila@h", "write the user as the options username and password"),
        ("mqtt://mila:secret@h", "write the user as the options username and password"),
    ],
)
def test_bad_ones(url: str, said: str) -> None:
    with pytest.raises(ValueError, match=said) as failed:
        url_of("mqtt", "mqtts")(url)
    assert "secret" not in str(failed.value)
