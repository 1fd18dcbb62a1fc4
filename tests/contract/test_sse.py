from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from penstock.connectors.http.sse import SseSource
from penstock.testing.contract import ReceivingContract
from servers.pushing import LOGIN, USER, Pushing


class TestSseSource(ReceivingContract):
    component = SseSource
    payload_kind = "lines"
    wrong_credentials = {"auth": {"username": USER, "password": "wrong"}}

    @pytest.fixture
    def server(self, pushing: Pushing) -> Pushing:
        return pushing

    @pytest.fixture
    def name(self, pushing: Pushing) -> str:
        return pushing.new_name()

    @pytest.fixture
    def options(self, pushing: Pushing, name: str) -> dict[str, Any]:
        return {"url": f"{pushing.url}/events/{name}", "timeout": "10s", **LOGIN}

    @pytest.fixture
    def send(self, pushing: Pushing, name: str) -> Callable[[list[bytes]], None]:
        def send(payloads: list[bytes]) -> None:
            for payload in payloads:
                pushing.append(name, payload)

        return send
