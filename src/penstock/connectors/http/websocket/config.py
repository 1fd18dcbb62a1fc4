"""Options of the WebSocket source and sink."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from penstock.connectors.http.config import AUTH_EXAMPLE, StaticClientConfig
from penstock.sdk import ByteSize, PositiveDuration, ReceivingConfig, Secret
from penstock.sdk.network.address import url_validator


class WebsocketConfig(StaticClientConfig):
    url: Annotated[str, AfterValidator(url_validator("ws", "wss", user=AUTH_EXAMPLE))]
    """The URL of the server, as `ws://host:port/path`, or `wss://host/path` for TLS."""
    messages: list[Secret] = []
    """Text messages to send after each connect, such as logins and subscriptions."""
    protocols: list[str] = []
    """The accepted subprotocols. The server selects one of them."""
    keep_alive: PositiveDuration = 30.0
    """The interval of pings (WebSocket: ping interval). A connection without data for two
    intervals is closed."""
    max_message_size: ByteSize = Field(default=16 << 20, ge=1)
    """The maximum size of a message."""


class WebsocketSourceConfig(WebsocketConfig, ReceivingConfig):
    when_full: Literal["wait", "drop"] = "wait"
    """While the journal is full: `wait` stops reading, so that TCP flow control stops the server;
    `drop` discards and counts messages, for servers that close slow connections."""


class WebsocketSinkConfig(WebsocketConfig):
    frame: Literal["text", "binary"] = "text"
    """The type of data frame that rows are sent as."""
