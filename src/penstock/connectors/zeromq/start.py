"""A start in step, as programs of stream_data_processor make it: `sync`.

Who publishes calls until every subscriber has asked once at an endpoint of its own, and says when
nothing more comes. The words for that are messages like all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from penstock.connectors.zeromq.endpoint import EndpointConfig, Opened
from penstock.sdk import Message
from penstock.sdk.kit.kept import Kept

CALL, END = b"connect", b"end"
WORDS = (CALL, END)


class Asked:
    """The publisher's part: the endpoints of `sync`, and which of them were asked.

    Those that were asked are kept in `state`, until the end: a subscriber asks only once, whatever
    becomes of the publisher.
    """

    def __init__(self, config: EndpointConfig, sync: Sequence[str], state: Path | None) -> None:
        self._kept = None
        if state is not None:
            state.mkdir(parents=True, exist_ok=True)
            self._kept = Kept(state / "sync.json", config.bind or "")
        before = self._kept.load().get("asked", []) if self._kept is not None else []
        self.missing = [each for each in sync if each not in before]
        self._sync = sync
        self._opened: dict[str, Opened] = {}
        try:
            for each in sync:
                self._opened[each] = Opened(_at(config, bind=each), "REP")
        except BaseException:
            self.close()
            raise

    def answer(self, milliseconds: int = 0) -> None:
        """Answers those who ask, waiting so long for one."""
        for endpoint, opened in self._opened.items():
            while opened.socket.poll(milliseconds):
                opened.socket.recv_multipart()
                opened.socket.send(b"")
                milliseconds = 0
                if endpoint in self.missing:
                    self.missing.remove(endpoint)
                    self._keep([each for each in self._sync if each not in self.missing])

    def forget(self) -> None:
        """The end: everybody has to ask again."""
        self.missing = [*self._sync]
        self._keep([])

    def close(self, linger: float = 0.0) -> None:
        """Lets go of the endpoints; answers have so many seconds to get away."""
        for opened in self._opened.values():
            opened.close(linger)

    def _keep(self, asked: list[str]) -> None:
        if self._kept is not None:
            self._kept.save({"asked": asked})


class Following:
    """The subscriber's part: it asks when it is called, once until the end."""

    def __init__(self, config: EndpointConfig, sync: str | None) -> None:
        self._config, self._sync = config, sync
        self._asking: Opened | None = None
        self.called = False
        """Whether we were, and have to answer."""
        self.ended = False
        """Whether the last that came was the end, so that the publisher may leave."""

    def rows(self, messages: Iterable[Message]) -> list[Message]:
        """Those that are no words of the publisher."""
        if self._sync is None:
            return [*messages]
        found = []
        for message in messages:
            alone = not message.metadata["parts"]
            self.ended = alone and message.payload == END
            if self.ended:
                self.close()
            elif alone and message.payload == CALL:
                self.called = self._asking is None
            else:
                found.append(message)
        return found

    def answer(self) -> None:
        """Asks. Raises Transient if nobody is there."""
        self.called = False
        self._asking = Opened(_at(self._config, connect=self._sync), "REQ")
        self._asking.await_others()
        self._asking.socket.send(b"")

    def close(self) -> None:
        """Waits for the next call."""
        self.called = False
        if self._asking is not None:
            self._asking.close()
            self._asking = None


def _at(
    config: EndpointConfig, *, bind: str | None = None, connect: str | None = None
) -> EndpointConfig:
    """The same options for another endpoint."""
    return config.model_copy(update={"bind": bind, "connect": connect})
