"""Messages by e-mail, by SMTP with STARTTLS or TLS."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Mapping
from contextlib import suppress
from email.message import EmailMessage
from typing import Any

from penstock.core.errors import Permanent, Transient
from penstock.server.store.alerts import Channel

SECONDS = 20.0


def send_mail(channel: Channel, content: Mapping[str, Any]) -> None:
    """Sends a message. Raises Transient, and Permanent for a rejected login or recipient."""
    options = channel.options
    message = EmailMessage()
    message["Subject"] = _subject(content)
    message["From"], message["To"] = options["from"], ", ".join(options["to"])
    message.set_content("".join(f"{name}: {value}\n" for name, value in content.items() if value))
    server = f"{options['host']}:{options['port']}"
    try:
        client = _client(options)
        try:
            if options.get("username"):
                client.login(options["username"], channel.secret or "")
            client.send_message(message)
        finally:
            with suppress(OSError, smtplib.SMTPException):  # the message was accepted or not
                client.quit()
            client.close()
    except (smtplib.SMTPAuthenticationError, smtplib.SMTPRecipientsRefused) as error:
        raise Permanent(f"the mail server {server} rejected the message: {error}") from error
    except (OSError, smtplib.SMTPException) as error:
        raise Transient(f"the mail server {server} failed: {error}", code="unreachable") from error


def _client(options: Mapping[str, Any]) -> smtplib.SMTP:
    host, port, tls = options["host"], options["port"], options["tls"]
    if tls == "tls":
        context = ssl.create_default_context()
        return smtplib.SMTP_SSL(host, port, timeout=SECONDS, context=context)
    client = smtplib.SMTP(host, port, timeout=SECONDS)
    if tls == "starttls":
        try:
            client.starttls(context=ssl.create_default_context())
        except BaseException:
            client.close()
            raise
    return client


def _subject(content: Mapping[str, Any]) -> str:
    """Returns one line: names of pipelines and messages may have line breaks."""
    subject = f"[Penstock] {content['event']}: {content.get('pipeline', '')} {content['message']}"
    return " ".join(subject.split())[:200]
