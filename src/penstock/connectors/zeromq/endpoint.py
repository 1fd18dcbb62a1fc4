"""A socket's options and its life, from when others can reach it until they cannot."""

from __future__ import annotations

import time
import weakref
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, model_validator

from penstock.core.secret import revealed
from penstock.sdk import Config, Duration, Permanent, Secret, Transient


def _endpoint(text: str) -> str:
    if not text.startswith(("tcp://", "ipc://")):
        raise ValueError("expected tcp://HOST:PORT or ipc://FILE")
    return text


def _key(text: str) -> str:
    if len(text) != 40:
        raise ValueError("a key has 40 characters")
    return text


Endpoint = Annotated[str, AfterValidator(_endpoint)]
Key = Annotated[str, AfterValidator(_key)]


class Curve(Config):
    """Keys for encryption, each as 40 characters."""

    public_key: Key
    """Our public key."""
    secret_key: Secret
    """Our secret key."""
    server_key: Key | None = None
    """The public key of the other side, which who connects needs."""


class EndpointConfig(Config):
    bind: Endpoint | None = None
    """The endpoint that others connect to, as `tcp://0.0.0.0:5555` or `ipc:///run/file`."""
    connect: Endpoint | list[Endpoint] | None = None
    """The endpoint that we connect to, or several, instead of `bind`."""
    high_water_mark: int = Field(default=1000, ge=1)
    """How many messages wait in memory for each of the others."""
    curve: Curve | None = None
    """Encrypt."""
    timeout: Duration = 10.0
    """How long it may take until the others are there."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.bind is None) == (not self.connect):
            raise ValueError("give either bind or connect")
        if self.connect and self.curve is not None and self.curve.server_key is None:
            raise ValueError("who connects with curve needs server_key")
        return self

    @property
    def others(self) -> list[str]:
        """The endpoints to connect to."""
        return [self.connect] if isinstance(self.connect, str) else self.connect or []


class Opened:
    """A socket of a kind (`SUB`, `PUSH` ...), bound or connected, with options of that kind.

    Raises Transient or Permanent.
    """

    def __init__(self, config: EndpointConfig, kind: str, **options: Any) -> None:
        import zmq

        self._config = config
        self._context = zmq.Context()
        self.socket = self._context.socket(getattr(zmq, kind))
        self.socket.linger = 0
        self._events = self.socket.get_monitor_socket()
        weakref.finalize(self, _dropped, self._context, self.socket, self._events)
        self.socket.set_hwm(config.high_water_mark)
        for name, value in options.items():
            setattr(self.socket, name, value)
        self._lost: str | None = None
        self._there = 0
        try:
            if config.curve is not None:
                self._encrypt(config.curve)
            if config.bind is not None:
                self.socket.bind(config.bind)
            for other in config.others:
                self.socket.connect(other)
        except zmq.ZMQError as error:
            self.close()
            raise self._not_opened(error) from None

    def await_others(self) -> None:
        """Returns when all are there that we connect to."""
        until = time.monotonic() + self._config.timeout
        while self._there < len(self._config.others):
            self.look(20)
            if time.monotonic() > until:
                raise Transient(
                    f"could not reach {', '.join(self._config.others)}: no answer in time",
                    code="unreachable",
                    hint="does a program bind a socket there, with the same curve?",
                )

    def look(self, milliseconds: int = 0) -> None:
        """Notices what happened to the connections. Raises Transient if one is lost that we made.

        Raises Permanent where we are refused.
        """
        import zmq
        from zmq.utils.monitor import recv_monitor_message

        while self._events.poll(milliseconds):
            event = recv_monitor_message(self._events)["event"]
            milliseconds = 0
            if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                self._there += 1
            elif event == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
                raise Permanent("we are refused", code="login", hint="look at curve")
            elif event == zmq.EVENT_DISCONNECTED and self._config.others and self._there:
                raise Transient(
                    f"the connection to {', '.join(self._config.others)} was lost",
                    code="connection-lost",
                    hint="the program there may have been stopped",
                )

    def close(self, linger: float = 0.0) -> bool:
        """Lets go of it, and tells whether all was sent that waited, in as many seconds."""
        began = time.monotonic()
        _dropped(self._context, self.socket, self._events, linger)
        return time.monotonic() - began < linger

    def _encrypt(self, curve: Curve) -> None:
        self.socket.curve_publickey = curve.public_key.encode()
        self.socket.curve_secretkey = (revealed(curve.secret_key) or "").encode()
        if self._config.bind is not None:
            self.socket.curve_server = True
        else:
            self.socket.curve_serverkey = (curve.server_key or "").encode()

    def _not_opened(self, error: Exception) -> Transient:
        where = self._config.bind or ", ".join(self._config.others)
        return Transient(
            f"cannot use {where}: {error}",
            code="listen" if self._config.bind else "unreachable",
            hint="another program may have it already, or the address is wrong",
        )


def _dropped(context: Any, socket: Any, events: Any, linger: float = 0.0) -> None:
    """Left to the collector of garbage, a context waits for ever for sockets that go with it."""
    if not socket.closed:
        socket.disable_monitor()
        events.close(0)
        socket.close(round(linger * 1000))
        context.term()
