from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock.connectors.zeromq import ZeromqSink, ZeromqSource
from penstock.testing.contract import ReceivingContract, SinkContract
from servers.server import free_port
from servers.zeromq import End


class TestZeromqSourceThatPulls(ReceivingContract):
    component = ZeromqSource
    forgets = "what waits in the memory of a socket is lost with it"
    socket = "pull"

    @pytest.fixture
    def options(self) -> dict[str, Any]:
        return {"socket": self.socket, "bind": f"tcp://127.0.0.1:{free_port()}"}

    @pytest.fixture
    def send(self, options: dict[str, Any]) -> Callable[[list[bytes]], None]:
        kind = {"pull": "PUSH", "sub": "XPUB"}[self.socket]

        def send(payloads: list[bytes]) -> None:
            with End(kind, connect=options["bind"]) as end:
                end.send(*([payload] for payload in payloads))

        return send


class TestZeromqSourceThatSubscribes(TestZeromqSourceThatPulls):
    socket = "sub"


class TestZeromqSinkThatPushes(SinkContract):
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
        return lambda schema: self.decoded([parts[-1] for parts in end.taken()], schema)


class TestZeromqSinkThatPublishes(TestZeromqSinkThatPushes):
    socket, kind = "pub", "SUB"


class TestZeromqSinkThatBindsAndPushes(SinkContract):
    component = ZeromqSink
    variant = "bind: tcp://0.0.0.0:5555"
    listens = True
    socket, kind = "push", "PULL"

    @pytest.fixture
    def options(self) -> dict[str, Any]:
        return {"socket": self.socket, "bind": f"tcp://127.0.0.1:{free_port()}"}

    @pytest.fixture(autouse=True)
    def end(self, options: dict[str, Any]) -> Iterator[End]:
        with End(self.kind, connect=options["bind"]) as end:
            yield end

    @pytest.fixture
    def rows(self, end: End) -> Any:
        return lambda schema: self.decoded([parts[-1] for parts in end.taken()], schema)


class TestZeromqSinkThatBindsAndPublishes(TestZeromqSinkThatBindsAndPushes):
    socket, kind = "pub", "SUB"
