from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock.connectors.zeromq import ZeromqSink, ZeromqSource
from penstock.testing.contract import ReceivingContract, SinkContract
from servers.server import free_port
from servers.zeromq import End


class TestZeromqPullSource(ReceivingContract):
    component = ZeromqSource
    lossy_reason = "messages in the buffer of a socket are lost when its process ends"
    socket = "pull"

    @pytest.fixture
    def options(self) -> dict[str, Any]:
        return {"socket": self.socket, "listen": f"tcp://127.0.0.1:{free_port()}"}

    @pytest.fixture
    def send(self, options: dict[str, Any]) -> Callable[[list[bytes]], None]:
        kind = {"pull": "PUSH", "sub": "XPUB"}[self.socket]

        def send(payloads: list[bytes]) -> None:
            with End(kind, connect=options["listen"]) as end:
                end.send(*([payload] for payload in payloads))

        return send


class TestZeromqSubSource(TestZeromqPullSource):
    socket = "sub"


class TestZeromqPushSink(SinkContract):
    component = ZeromqSink
    variant = "connect: tcp://collector.example.com:5555"
    socket, kind = "push", "PULL"

    @pytest.fixture
    def end(self) -> Iterator[End]:
        with End(self.kind, bind=f"tcp://127.0.0.1:{free_port()}") as end:
            yield end

    @pytest.fixture
    def options(self, end: End) -> dict[str, Any]:
        return {"socket": self.socket, "connect": end.endpoint}

    @pytest.fixture
    def rows(self, end: End) -> Any:
        return lambda schema: self.decode([parts[-1] for parts in end.taken()], schema)


class TestZeromqPubSink(TestZeromqPushSink):
    socket, kind = "pub", "SUB"


class TestZeromqListeningPushSink(SinkContract):
    component = ZeromqSink
    variant = "listen: tcp://0.0.0.0:5555"
    single_instance = True
    socket, kind = "push", "PULL"

    @pytest.fixture
    def options(self) -> dict[str, Any]:
        return {"socket": self.socket, "listen": f"tcp://127.0.0.1:{free_port()}"}

    @pytest.fixture(autouse=True)
    def end(self, options: dict[str, Any]) -> Iterator[End]:
        with End(self.kind, connect=options["listen"]) as end:
            yield end

    @pytest.fixture
    def rows(self, end: End) -> Any:
        return lambda schema: self.decode([parts[-1] for parts in end.taken()], schema)


class TestZeromqListeningPubSink(TestZeromqListeningPushSink):
    socket, kind = "pub", "SUB"
