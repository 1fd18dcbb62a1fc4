"""Clients of a Pulsar cluster, and the handshake that precedes them.

The client library reports rejected credentials and failed TLS verification as a timeout. The
handshake opens a connection, sends a CONNECT command and reports the error of the broker.
"""

from __future__ import annotations

import json
import socket
import ssl
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.connectors.pulsar.config import ConnectionConfig, OAuth2
from penstock.connectors.pulsar.errors import authentication_failed, translate_errors, unreachable
from penstock.core.errors import PenstockError, Permanent
from penstock.core.secret import revealed
from penstock.sdk import ClientPool
from penstock.sdk.network.tls import Tls, certificate_hint

if TYPE_CHECKING:
    from pulsar import Authentication, Client

_CONNECT, _ERROR = 2, 14
_PROTOCOL_VERSION = 19
_AUTHENTICATION_ERRORS = (3, 4)
_MAX_FRAME = 1 << 20


def connect(config: ConnectionConfig) -> Client:
    """Returns a client after a successful handshake. Raises Transient or Permanent."""
    import pulsar

    _handshake(config)
    tls = config.resolved_tls or Tls()
    return pulsar.Client(
        config.service_url, authentication=_authentication(config),
        operation_timeout_seconds=max(1, round(config.timeout)),
        connection_timeout_ms=round(config.timeout * 1000),
        logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, "/dev/null"),
        stats_interval_in_seconds=0, listener_name=config.listener_name,
        tls_trust_certs_file_path=tls.ca, tls_allow_insecure_connection=not tls.verify,
        tls_validate_hostname=tls.verify and tls.verify_hostname,
        tls_private_key_file_path=tls.key, tls_certificate_file_path=tls.certificate,
    )  # fmt: skip


def close_client(client: Client) -> None:
    """Closes a client; pending acknowledgements are sent first.

    A client that is garbage collected without `close` blocks the interpreter for ten seconds.
    """
    from pulsar import PulsarException

    with suppress(PulsarException):
        client.close()


_pool: ClientPool[ConnectionConfig, Client] = ClientPool(connect, close_client)


@contextmanager
def use_client(config: ConnectionConfig, action: str) -> Iterator[Client]:
    """Yields the process's client of a cluster. Raises Transient or Permanent."""
    options = {name: getattr(config, name) for name in ConnectionConfig.model_fields}
    connection = ConnectionConfig.model_construct(**options)
    with _pool.using(connection) as client, translate_errors(config, action):
        yield client


def _authentication(config: ConnectionConfig) -> Authentication | None:
    import pulsar

    auth, tls = config.auth, config.resolved_tls
    if auth is not None and auth.token is not None:
        return pulsar.AuthenticationToken(auth.token.reveal())
    if auth is not None and auth.username is not None:
        return pulsar.AuthenticationBasic(auth.username, revealed(auth.password))
    if auth is not None and auth.oauth2 is not None:
        return pulsar.AuthenticationOauth2(json.dumps(_oauth2_parameters(auth.oauth2)))
    if tls is not None and tls.certificate is not None:
        return pulsar.AuthenticationTLS(tls.certificate, tls.key)
    return None


def _oauth2_parameters(oauth2: OAuth2) -> dict[str, Any]:
    if oauth2.key_file is not None and not Path(oauth2.key_file).is_file():
        raise Permanent(
            f"cannot read the file of auth.oauth2.key_file: {oauth2.key_file} does not exist",
            code="authentication",
            hint="Check the path. A relative path starts at the pipeline file; every machine of a "
            "cluster needs the file.",
        )
    parameters = {
        "issuer_url": oauth2.issuer_url,
        "private_key": oauth2.key_file,
        "client_id": oauth2.client_id,
        "client_secret": revealed(oauth2.client_secret),
        "audience": oauth2.audience,
        "scope": oauth2.scope,
    }
    return {name: value for name, value in parameters.items() if value is not None}


def _handshake(config: ConnectionConfig) -> None:
    """Connects to the first broker that is available. Raises Transient or Permanent."""
    failure: PenstockError | None = None
    for address in config.addresses:
        try:
            _connect_to(config, address)
            return
        except ssl.SSLCertVerificationError as error:
            failure = Permanent(
                f"TLS verification of {config.broker} failed: {error.verify_message}",
                code="tls",
                hint=certificate_hint(error.verify_message),
            )
        except OSError as error:
            failure = unreachable(config, error)
        except PenstockError as error:
            failure = error
    if failure is not None:
        raise failure


def _connect_to(config: ConnectionConfig, address: tuple[str, int]) -> None:
    tls = config.resolved_tls
    with socket.create_connection(address, config.timeout) as plain:
        plain.settimeout(config.timeout)
        if tls is None:
            _authenticate(config, plain)
            return
        with tls.context().wrap_socket(plain, server_hostname=address[0]) as encrypted:
            _authenticate(config, encrypted)


def _authenticate(config: ConnectionConfig, connection: socket.socket) -> None:
    """Sends CONNECT. Raises the error of the broker as Transient or Permanent."""
    credentials = _credentials(config)
    if credentials is None:
        return
    method, data = credentials
    command = _command_type()()
    command.type = _CONNECT
    command.connect.client_version = "penstock"
    command.connect.auth_method_name = method
    command.connect.auth_data = data.encode()
    command.connect.protocol_version = _PROTOCOL_VERSION
    encoded = command.SerializeToString()
    connection.sendall(struct.pack(">II", len(encoded) + 4, len(encoded)) + encoded)
    response = _receive(connection)
    if response.type == _ERROR:
        reason = response.error.message or "no reason is reported"
        if response.error.error in _AUTHENTICATION_ERRORS:
            raise authentication_failed(config, reason)
        raise unreachable(config, reason)


def _credentials(config: ConnectionConfig) -> tuple[str, str] | None:
    """Returns the method and data of CONNECT; None for OAuth 2.0, a task of the client library."""
    auth, tls = config.auth, config.resolved_tls
    if auth is not None and auth.oauth2 is not None:
        return None
    if auth is not None and auth.token is not None:
        return "token", auth.token.reveal()
    if auth is not None:
        return "basic", f"{auth.username}:{revealed(auth.password)}"
    return ("tls" if tls is not None and tls.certificate else "none"), ""


def _receive(connection: socket.socket) -> Any:
    from google.protobuf.message import DecodeError

    with connection.makefile("rb") as stream:
        header = stream.read(8)
        if len(header) < 8:
            raise ConnectionError("the connection was closed")
        total, size = struct.unpack(">II", header)
        if not size <= total <= _MAX_FRAME:
            raise ConnectionError("expected a response of the Pulsar protocol")
        frame = stream.read(total - 4)
    if len(frame) < size:
        raise ConnectionError("the connection was closed")
    try:
        return _command_type().FromString(frame[:size])
    except DecodeError:
        raise ConnectionError("expected a response of the Pulsar protocol") from None


_MESSAGES: dict[str, list[tuple[str, int, str]]] = {
    "Connect": [
        ("client_version", 1, "STRING"), ("auth_data", 3, "BYTES"),
        ("protocol_version", 4, "INT32"), ("auth_method_name", 5, "STRING"),
    ],
    "Error": [("request_id", 1, "UINT64"), ("error", 2, "INT32"), ("message", 3, "STRING")],
    "Command": [("type", 1, "INT32"), ("connect", 2, "Connect"), ("error", 14, "Error")],
}  # fmt: skip
"""The messages of the handshake: name, number and type of each field."""


@cache
def _command_type() -> Any:
    """Returns the protobuf message type of commands."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="handshake.proto", package="handshake")
    kinds = descriptor_pb2.FieldDescriptorProto
    for message_name, fields in _MESSAGES.items():
        message = file.message_type.add(name=message_name)
        for name, number, kind in fields:
            field = message.field.add(name=name, number=number, label=kinds.LABEL_OPTIONAL)
            if kind in _MESSAGES:
                field.type, field.type_name = kinds.TYPE_MESSAGE, f".handshake.{kind}"
            else:
                field.type = kinds.Type.Value(f"TYPE_{kind}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("handshake.Command"))
