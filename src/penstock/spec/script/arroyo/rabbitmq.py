"""The host and TLS of the RabbitMQ source of Arroyo: a URL of Penstock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.spec.script.arroyo.keys import is_true
from penstock.spec.script.options import Option
from penstock.spec.tree.nodes import ScalarNode

_STREAM_PORTS = ("5552", "5551")
"""The ports of the stream protocol. The ports of AMQP are those of the URL's scheme."""
_TLS = "tls_config."


def combine_url(options: Sequence[Option], table: str) -> list[Option]:
    """Returns the options with a URL in place of the host, the default port and TLS."""
    named = {option.name: option for option in options if isinstance(option.value, ScalarNode)}
    host, port, enabled = (named.get(name) for name in ("host", "port", f"{_TLS}enabled"))
    first = host or port or enabled or named.get("stream")
    if named.keys() & {"url", "connection"} or first is None:
        return list(options)
    is_secure = enabled is not None and is_true(_written(enabled))
    value = f"{'amqps' if is_secure else 'amqp'}://{_written(host) if host else 'localhost'}"
    assert isinstance(first.value, ScalarNode)
    node = replace(first.value, value=value, written=value, text=value, plain=False, span=None)
    kept = [
        option
        for option in options
        if option is not host
        and option is not enabled
        and not (option is port and _written(option) in _STREAM_PORTS)
        and (is_secure or not option.name.startswith(_TLS))
    ]
    return [Option([first.path[0]._replace(value="url")], node), *kept]


def _written(option: Option) -> str:
    assert isinstance(option.value, ScalarNode)
    return option.value.written.strip()
