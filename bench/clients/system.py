"""What every system is to the bench: a place for messages, and the loops of its own client."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar, Literal

from penstock.sdk import Component

Ready = Callable[[], None]
How = Literal["keeps", "drops", "listens", "serves"]


class System(ABC):
    """One connector in one mode. An instance is a new place (a topic, a queue, a port).

    It is sent to other processes, so it keeps no client and no server.
    """

    name: ClassVar[str]
    source: ClassVar[type[Component[Any]] | None] = None
    sink: ClassVar[type[Component[Any]] | None] = None
    messages: ClassVar[int] = 50_000
    """How many are measured."""
    how: ClassVar[How] = "keeps"
    """`keeps`: messages wait until they are received. `drops`: only connected receivers get them.

    `listens`: the receiver is the server, and must run before. `serves`: the sender is the server,
    and sends all messages to each client.
    """

    @classmethod
    def server(cls) -> AbstractContextManager[Any]:
        """The real server, on loopback; it is given to `__init__`."""
        return nullcontext()

    @abstractmethod
    def __init__(self, server: Any) -> None:
        """A new place on a server."""

    @abstractmethod
    def options(self) -> dict[str, Any]:
        """What reaches the place: the options of the source, and of a sink without its own."""

    def sink_options(self) -> dict[str, Any]:
        """The options of the sink."""
        return self.options()

    @abstractmethod
    def send(self, payloads: list[bytes]) -> None:
        """Sends them, and returns when the system has them."""

    @abstractmethod
    def take(self, count: int, ready: Ready) -> int:
        """Takes so many messages, or those that come until it is silent for a second.

        Calls `ready` when messages may be sent.
        """
