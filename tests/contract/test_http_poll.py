from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from penstock.connectors.http.poll import HttpPollSource
from penstock.testing.contract import ReceivingContract
from servers.pushing import LOGIN, USER, Pushing


class TestHttpPollSource(ReceivingContract):
    component = HttpPollSource
    payload_kind: Any = "lines"
    wrong_credentials = {"auth": {"username": USER, "password": "wrong"}}

    @pytest.fixture
    def server(self, pushing: Pushing) -> Pushing:
        return pushing

    @pytest.fixture
    def name(self, pushing: Pushing) -> str:
        return pushing.new_name()

    @pytest.fixture
    def options(self, pushing: Pushing, name: str) -> dict[str, Any]:
        return {
            "url": f"{pushing.url}/log/{name}",
            "framing": "lines",
            "paging": {"by": "cursor", "parameter": "after", "header": "X-Next"},
            "interval": "50ms",
            "timeout": "10s",
            "retry": {"attempts": 1},
            **LOGIN,
        }

    @pytest.fixture
    def send(self, pushing: Pushing, name: str) -> Callable[[list[bytes]], None]:
        def send(payloads: list[bytes]) -> None:
            for payload in payloads:
                pushing.append(name, payload)

        return send


class TestHttpPollSourceArray(TestHttpPollSource):
    payload_kind = "rows"

    @pytest.fixture
    def options(self, pushing: Pushing, name: str) -> dict[str, Any]:
        return {
            "url": f"{pushing.url}/log/{name}?as=array",
            "framing": "array",
            "pointer": "/data/items",
            "paging": {"by": "cursor", "parameter": "after", "pointer": "/next"},
            "interval": "50ms",
            "timeout": "10s",
            "retry": {"attempts": 1},
            **LOGIN,
        }

    @pytest.fixture
    def send(self, pushing: Pushing, name: str) -> Callable[[list[bytes]], None]:
        def send(payloads: list[bytes]) -> None:
            for payload in payloads:
                json = payload.startswith(b"{")
                pushing.append(name, payload if json else b'"%s"' % payload)

        return send
