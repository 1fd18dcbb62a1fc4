"""The first words with a broker: whether it is there, is whom we trust, and lets us in."""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING

from penstock.core.errors import PenstockError, Permanent, Transient

if TYPE_CHECKING:
    from penstock.connectors.pulsar.connection import ConnectionConfig
    from penstock.connectors.pulsar.login import Login

_CONNECT = 2
_ERROR = 14
_PROTOCOL = 19
_LOGIN_ERRORS = (3, 4)
_LARGEST = 1 << 20


def greet(config: ConnectionConfig) -> None:
    """Returns when one of the brokers has answered. Raises Transient or Permanent."""
    problem: PenstockError | None = None
    for address in config.addresses:
        try:
            _greet(config, address)
            return
        except ssl.SSLCertVerificationError as error:
            problem = Permanent(
                f"the certificate of {config.shown} is not trusted: {error.verify_message}",
                code="tls",
                hint="tls: {ca: FILE} names those to trust",
            )
        except OSError as error:
            problem = unreachable(config, error)
        except PenstockError as error:
            problem = error
    if problem is not None:
        raise problem


def unreachable(config: ConnectionConfig, why: object) -> Transient:
    """There is no connection, or none any more, or no answer."""
    return Transient(
        f"could not reach {config.shown}: {str(why) or 'no answer in time'}",
        code="unreachable",
        hint="is the broker running, and is the url right?",
    )


def refused(config: ConnectionConfig, why: object) -> Permanent:
    """We are not whom the broker lets in."""
    return Permanent(
        f"{config.shown} refuses us: {why}",
        code="login",
        hint="look at token, username and password, oauth2, or tls: {certificate, key}",
    )


def _greet(config: ConnectionConfig, address: tuple[str, int]) -> None:
    with socket.create_connection(address, config.timeout) as plain:
        plain.settimeout(config.timeout)
        if config.encrypted:
            context = config.tls.context()
            with context.wrap_socket(plain, server_hostname=address[0]) as line:
                _say(config, line)
        else:
            _say(config, plain)


def _say(config: ConnectionConfig, line: socket.socket) -> None:
    login = config.login
    if login is None:
        return
    line.sendall(_framed(_connect(login)))
    answer = dict(_fields(_received(line)))
    error = answer.get(_ERROR)
    if answer.get(1) == _ERROR and isinstance(error, bytes):
        told = dict(_fields(error))
        said = told.get(3, b"")
        why = said.decode(errors="replace") if isinstance(said, bytes) else "no reason was given"
        raise refused(config, why) if told.get(2) in _LOGIN_ERRORS else unreachable(config, why)


def _connect(login: Login) -> bytes:
    command = (
        _field(1, b"penstock")
        + _field(3, login.data.encode())
        + _field(4, _PROTOCOL)
        + _field(5, login.method.encode())
    )
    return _field(1, _CONNECT) + _field(2, command)


def _framed(command: bytes) -> bytes:
    return struct.pack(">II", len(command) + 4, len(command)) + command


def _received(line: socket.socket) -> bytes:
    total, size = struct.unpack(">II", _exactly(line, 8))
    if not size <= total <= _LARGEST:
        raise ConnectionError("what answers is not Pulsar")
    return _exactly(line, total - 4)[:size]


def _exactly(line: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        part = line.recv(count - len(found))
        if not part:
            raise ConnectionError("the connection was closed")
        found += part
    return found


def _field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message of protobuf, which has numbers and what has a length only."""
    at = 0
    while at < len(message):
        key, at = _number(message, at)
        value, at = _number(message, at)
        if key & 7 == 2:
            yield key >> 3, message[at : at + value]
            at += value
        else:
            yield key >> 3, value


def _varint(value: int) -> bytes:
    low, rest = value & 0x7F, value >> 7
    return bytes([low]) if not rest else bytes([low | 0x80]) + _varint(rest)


def _number(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(message):
        byte = message[at]
        value |= (byte & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if not byte & 0x80:
            break
    return value, at
