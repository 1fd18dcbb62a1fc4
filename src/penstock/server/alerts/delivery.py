"""Delivery of messages about alerts: each is sent until it succeeds, or was tried eight times."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from penstock.core.errors import PenstockError, Permanent
from penstock.core.known_secrets import conceal
from penstock.server.alerts.mail import send_mail
from penstock.server.alerts.webhook import send_webhook
from penstock.server.store.alerts import Alerts, Channel, Message


class Delivery:
    """The delivery of the messages of a store. `url` is the address of the console in them."""

    def __init__(self, alerts: Alerts, url: str) -> None:
        self._alerts, self._url = alerts, url
        self._sending = threading.Lock()

    def send_due(self) -> None:
        """Sends the messages that are due. A failure delays only its own message."""
        with self._sending:
            for message in self._alerts.due():
                self._send_message(message)

    def _send_message(self, message: Message) -> None:
        channel = self._alerts.channel(message.channel)
        if channel is None:
            self._alerts.not_sent(message, "the channel was deleted", final=True)
            return
        try:
            self._send(channel, self._content(message.event, message.alert))
        except PenstockError as error:
            final = isinstance(error, Permanent)
            self._alerts.not_sent(message, conceal(error.message), final=final)
        else:
            self._alerts.sent(message)

    def test(self, channel: Channel) -> None:
        """Sends a message of a test. Raises Transient or Permanent."""
        self._send(channel, {"event": "test", "message": "a test of the channel", "url": self._url})

    def _send(self, channel: Channel, content: Mapping[str, Any]) -> None:
        if channel.kind == "webhook":
            send_webhook(channel, content)
        else:
            send_mail(channel, content)

    def _content(self, event: str, alert: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "event": event, "alert": alert["number"], "rule": alert["rule"],
            "pipeline": alert["name"], "message": alert["message"], "opened": alert["opened"],
            "resolved": alert["resolved"], "url": f"{self._url}/pipelines/{alert['pipeline']}",
        }  # fmt: skip
