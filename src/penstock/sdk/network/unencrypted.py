"""Credentials on connections without TLS."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from ipaddress import ip_address
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from penstock.core.errors import OptionError
from penstock.core.secret import Secret
from penstock.sdk.config import Config

_WITH_TLS = {
    "amqp": "amqps",
    "http": "https",
    "mqtt": "mqtts",
    "pulsar": "pulsar+ssl",
    "redis": "rediss",
    "ws": "wss",
}
"""The scheme with TLS of each scheme without it. Other schemes leave TLS to the option `tls`."""
_BETWEEN_URLS = re.compile(r",(?=[\w+]+://)")
_ENCRYPTED = {*_WITH_TLS.values(), "mongodb+srv", "tls"}


def unencrypted_credentials(
    config: Config, *route: str | int, outer_auth: Any = None
) -> Iterator[OptionError]:
    """Yields a warning for each connection with credentials, without TLS, to another machine.

    A connection is `config`, or a map of options in it, with `auth`, `tls`, and `url` or `brokers`.
    `route` is the place of `config` in the options of its component. A map with `uses_outer_auth`
    has `outer_auth`, and the scheme of its `url` is that of its TLS.
    """
    auth = outer_auth if config.uses_outer_auth else getattr(config, "auth", None)
    if _has_secret(auth) and (config.uses_outer_auth or not getattr(config, "tls", True)):
        for address in _addresses(config):
            parts = urlsplit(address)
            scheme, host = parts.scheme, parts.hostname or ""
            if scheme not in _ENCRYPTED and not is_local(host):
                option = "url" if config.uses_outer_auth else "auth"
                yield _warning(scheme, host, *route, option)
                break
    for name in type(config).model_fields:
        for place, part in _parts(getattr(config, name)):
            yield from unencrypted_credentials(part, *route, name, *place, outer_auth=auth)


def is_local(host: str) -> bool:
    """Returns whether a host is this machine: a loopback address, or a path of a Unix socket."""
    if host in ("", "localhost") or host.endswith(".localhost") or unquote(host).startswith("/"):
        return True
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return False


def _warning(scheme: str, host: str, *route: str | int) -> OptionError:
    remedy = f"Use {_WITH_TLS[scheme]}:// in url" if scheme in _WITH_TLS else "Set tls: true"
    return OptionError.of(
        *route, message=f"the connection to {host} has credentials and no TLS",
        code="unencrypted-credentials",
        hint=f"{remedy}. Without TLS, programs in the network can read the credentials and the "
        "rows.",
    )  # fmt: skip


def _has_secret(auth: Any) -> bool:
    """Returns whether credentials are sent: a secret, or a token of the identity of the machine."""
    return isinstance(auth, Config) and (
        getattr(auth, "identity", None) is not None
        or any(isinstance(getattr(auth, name), Secret) for name in type(auth).model_fields)
    )


def _addresses(config: Config) -> Iterator[str]:
    """Yields a URL for each host of a connection."""
    for option in ("url", "brokers"):
        value = getattr(config, option, None) or ()
        for text in [value] if isinstance(value, str) else value:
            for address in _BETWEEN_URLS.split(text):
                parts = urlsplit(address if "://" in address else f"//{address.strip()}")
                for host in parts.netloc.rpartition("@")[2].split(","):
                    yield urlunsplit((parts.scheme, host.strip(), "", "", ""))


def _parts(value: Any) -> Iterator[tuple[tuple[str | int, ...], Config]]:
    """Yields the maps of options in a value, each with its route."""
    if isinstance(value, Config):
        yield (), value
    items: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list | tuple):
        items = enumerate(value)
    for key, item in items:
        for route, part in _parts(item):
            yield (key, *route), part
