"""Options of the ZeroMQ source and sink."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from penstock.core.paths import require_permitted
from penstock.sdk import Config, PositiveDuration, ReceivingConfig, Secret
from penstock.sdk.columns.template import Template
from penstock.sdk.network.auth import Auth

_KEY_LENGTH = 40


def _check_endpoint(text: str) -> str:
    if not text.startswith(("tcp://", "ipc://")):
        raise ValueError("expected tcp://HOST:PORT or ipc://FILE")
    return text


def _check_key(text: str) -> str:
    if len(text) != _KEY_LENGTH:
        raise ValueError(f"expected a key of {_KEY_LENGTH} characters")
    return text


Endpoint = Annotated[str, BeforeValidator(require_permitted), AfterValidator(_check_endpoint)]
Key = Annotated[str, AfterValidator(_check_key)]


class CurveAuth(Auth):
    """CURVE keys, each of 40 characters (Z85). They authenticate and encrypt connections."""

    alternatives = (("public_key", "secret_key"),)
    requires = {"server_key": "public_key"}

    public_key: Key | None = None
    """The public key of this socket."""
    secret_key: Secret | None = None
    """The secret key of this socket."""
    server_key: Key | None = None
    """The public key of the listening socket. Required with `connect`."""


class SocketConfig(Config):
    listen: Endpoint | None = None
    """The endpoint to accept connections at, as `tcp://0.0.0.0:5555` or `ipc:///run/file` (ZeroMQ:
    bind)."""
    connect: Endpoint | list[Endpoint] | None = None
    """The endpoint to connect to, or several, instead of `listen`."""
    high_water_mark: int = Field(default=1000, ge=1)
    """The maximum number of messages in memory for each peer."""
    auth: CurveAuth | None = None
    """CURVE keys. No authentication and no encryption by default."""
    timeout: PositiveDuration = 10.0
    """The timeout of connecting, and of waiting for subscribers."""

    @model_validator(mode="after")
    def _check_endpoints(self) -> Self:
        if (self.listen is None) == (not self.connect):
            raise ValueError("expected either listen or connect")
        if self.connect and self.auth is not None and self.auth.server_key is None:
            raise ValueError("connect with auth requires auth.server_key")
        return self

    @property
    def peers(self) -> list[str]:
        """The endpoints to connect to."""
        return [self.connect] if isinstance(self.connect, str) else self.connect or []

    def with_endpoint(self, *, listen: str | None = None, connect: str | None = None) -> Self:
        """Returns the options with another endpoint."""
        return self.model_copy(update={"listen": listen, "connect": connect})


class ZeromqSourceConfig(SocketConfig, ReceivingConfig):
    socket: Literal["sub", "pull"] = "sub"
    """The socket type: `sub` receives from PUB sockets, `pull` from PUSH sockets."""
    topic: str | list[str] = ""
    """The topic prefixes to subscribe to (`sub`). All topics by default."""
    sync: Endpoint | None = None
    """Synchronize the start with a program of stream_data_processor: the endpoint (REP) to send
    the request to. Requires `socket: sub` and one `connect` endpoint."""

    @model_validator(mode="after")
    def _check_sync(self) -> Self:
        if self.sync is None:
            return self
        if self.socket != "sub" or len(self.peers) != 1:
            raise ValueError("sync requires socket: sub and one endpoint in connect")
        if self.topics != [""]:
            raise ValueError("sync excludes topic: messages have one part")
        if self.sync in self.peers:
            raise ValueError("sync requires another endpoint than connect")
        return self

    @property
    def topics(self) -> list[str]:
        """The topic prefixes."""
        return [self.topic] if isinstance(self.topic, str) else self.topic


class ZeromqSinkConfig(SocketConfig):
    socket: Literal["pub", "push"] = "pub"
    """The socket type: `pub` sends to SUB sockets, `push` to PULL sockets."""
    topic: Template | None = None
    """The first part of messages, a template such as `flights.{carrier}`. No topic by default."""
    min_subscribers: int = Field(default=1, ge=0)
    """The number of subscriptions that a batch waits for (`pub`). A program with two subscriptions
    counts twice."""
    write_timeout: PositiveDuration = 60.0
    """The longest wait for peers while `high_water_mark` messages are queued."""
    sync: Endpoint | list[Endpoint] | None = None
    """Synchronize the start with programs of stream_data_processor: one endpoint (REP) for each,
    which receives its request. Requires `socket: pub` and `listen`, and replaces
    `min_subscribers`."""

    @model_validator(mode="after")
    def _check_sync(self) -> Self:
        if self.sync is None:
            return self
        if self.socket != "pub" or self.listen is None:
            raise ValueError("sync requires socket: pub and listen")
        if self.topic is not None:
            raise ValueError("sync excludes topic: messages have one part")
        if "min_subscribers" in self.model_fields_set:
            raise ValueError("sync excludes min_subscribers: each endpoint is a subscriber")
        endpoints = self.sync_endpoints
        if not endpoints or len({self.listen, *endpoints}) <= len(endpoints):
            raise ValueError("sync requires a distinct endpoint for each subscriber")
        return self

    @property
    def sync_endpoints(self) -> list[str]:
        """The endpoints of `sync`."""
        return [self.sync] if isinstance(self.sync, str) else self.sync or []
