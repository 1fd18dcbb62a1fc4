"""Errors of the Redis client as Transient, Permanent and Rejected."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from penstock.connectors.redis.config import ConnectionConfig
from penstock.sdk import Permanent, Rejected, Transient
from penstock.sdk.network.tls import certificate_hint

_TRANSIENT_PREFIXES = (
    "LOADING", "BUSY", "READONLY", "OOM", "MISCONF", "NOREPLICAS", "CLUSTERDOWN", "TRYAGAIN",
    "MASTERDOWN", "UNBLOCKED", "MOVED", "ASK",
)  # fmt: skip
_LOGIN_TEXTS = (
    "WRONGPASS", "NOAUTH", "invalid password", "invalid username", "called without any pass",
)  # fmt: skip


@contextmanager
def translate_errors(config: ConnectionConfig) -> Iterator[None]:
    """Raises errors of the client as Transient or Permanent."""
    from redis.exceptions import RedisClusterException, RedisError

    try:
        yield
    except (RedisError, RedisClusterException, OSError) as error:
        raise translate_error(error, config) from None


def translate_error(error: Exception, config: ConnectionConfig) -> Transient | Permanent:
    """Returns the Transient or Permanent error for an error of the client."""
    from redis import exceptions as redis

    reason = str(error) or "timed out"
    server = f"the Redis server {config.address}"
    if isinstance(error, redis.NoPermissionError | redis.AuthorizationError):
        return Permanent(
            f"cannot execute the command: {server} denied permission: {reason}",
            code="authorization", hint="Grant the user the permission (ACL).",
        )  # fmt: skip
    if isinstance(error, redis.AuthenticationError) or any(text in reason for text in _LOGIN_TEXTS):
        return Permanent(
            f"authentication to {server} failed: {reason}", code="authentication",
            hint="Check auth.username and auth.password.",
        )  # fmt: skip
    if "CERTIFICATE_VERIFY_FAILED" in reason:
        return Permanent(
            f"TLS verification of {server} failed: {reason}", code="tls",
            hint=certificate_hint(reason),
        )  # fmt: skip
    if isinstance(error, redis.MovedError) and not config.cluster:
        return Permanent(
            f"cannot access the key: {server} is a cluster node, and another node has the key",
            code="cluster-mode", hint="Set cluster: true.",
        )  # fmt: skip
    if _is_transient(error, reason):
        return Transient(
            f"could not execute the command: {server} returned: {reason}", code="busy",
            hint="Check memory, disk and replicas of the server.",
        )  # fmt: skip
    if isinstance(error, redis.ResponseError | redis.DataError):
        return Permanent(
            f"cannot execute the command: {server} returned: {reason}", code="rejected"
        )
    return Transient(
        f"could not reach {server}: {reason}", code="unreachable",
        hint="Check that the server is running, and the option url.",
    )  # fmt: skip


def row_error(error: Exception, config: ConnectionConfig, *, has_own_key: bool = False) -> Rejected:
    """Returns the error of a row whose command failed.

    With `has_own_key` the row determines the key or the channel. Raises Transient or Permanent for
    an error that affects other rows as well.
    """
    failure = translate_error(error, config)
    reason = str(error)
    if failure.code == "authorization" and has_own_key and _is_of_key(reason):
        return Rejected(f"{config.address} denied access: {reason}", code="authorization")
    if failure.code != "rejected" or reason.startswith(("unknown command", "wrong number")):
        raise failure
    return Rejected(f"{config.address} rejected the command: {reason}", code="rejected")


def _is_of_key(reason: str) -> bool:
    """Returns whether a permission is missing for a key or a channel, not for a command."""
    return "access one of the keys" in reason or "access a key" in reason or "channels" in reason


def _is_transient(error: Exception, reason: str) -> bool:
    from redis import exceptions as redis

    kinds = (redis.ReadOnlyError, redis.OutOfMemoryError, redis.ClusterDownError,
             redis.TryAgainError, redis.BusyLoadingError, redis.AskError)  # fmt: skip
    return isinstance(error, kinds) or reason.startswith(_TRANSIENT_PREFIXES)
