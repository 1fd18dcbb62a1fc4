from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest

from penstock.connectors.http.websocket import WebsocketSink, WebsocketSource
from penstock.testing.contract import ReceivingContract, SinkContract
from servers.pushing import LOGIN, USER, Pushing


class OnHub:
    """Fixtures of both contracts."""

    wrong_credentials = {"auth": {"username": USER, "password": "wrong"}}

    @pytest.fixture
    def server(self, pushing: Pushing) -> Pushing:
        return pushing

    @pytest.fixture
    def name(self, pushing: Pushing) -> str:
        return pushing.new_name()

    @pytest.fixture
    def options(self, pushing: Pushing, name: str) -> dict[str, Any]:
        return {"url": f"{pushing.ws_url}/hub/{name}", "timeout": "10s", **LOGIN}


class TestWebsocketSource(OnHub, ReceivingContract):
    component = WebsocketSource
    lossy_reason = "a WebSocket server sends messages only to connected clients"

    @pytest.fixture
    def send(self, pushing: Pushing, name: str) -> Callable[[list[bytes]], None]:
        def send(payloads: list[bytes]) -> None:
            for payload in payloads:
                assert pushing.push(name, payload, frame(payload)) == 1

        return send


def frame(payload: bytes) -> str:
    """Returns the type of frame for a payload."""
    try:
        payload.decode()
    except UnicodeDecodeError:
        return "binary"
    return "text"


class TestWebsocketSourceThatDrops(TestWebsocketSource):
    @pytest.fixture
    def options(self, pushing: Pushing, name: str) -> dict[str, Any]:
        return {
            "url": f"{pushing.ws_url}/hub/{name}",
            "when_full": "drop",
            "timeout": "10s",
            **LOGIN,
        }


class TestWebsocketSink(OnHub, SinkContract):
    component = WebsocketSink
    payload_kind = "text"

    @pytest.fixture
    def rows(self, pushing: Pushing, name: str) -> Any:
        def rows(schema: Any) -> Any:
            frames = [each for each in pushing.kept(name) if each.get("frame") == "text"]
            return self.decode([base64.b64decode(each["body"]) for each in frames], schema)

        return rows
