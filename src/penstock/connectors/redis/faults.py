"""What the client raises, as errors of ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from penstock.sdk import Permanent, Rejected, Transient

if TYPE_CHECKING:
    from penstock.connectors.redis.connection import ConnectionConfig

_PASSES = ("LOADING", "BUSY", "READONLY", "OOM", "MISCONF", "NOREPLICAS", "CLUSTERDOWN", "TRYAGAIN",
           "MASTERDOWN", "UNBLOCKED", "MOVED", "ASK")  # fmt: skip
_LOGIN = ("WRONGPASS", "NOAUTH", "invalid password", "invalid username", "called without any pass")


@contextmanager
def faults(config: ConnectionConfig) -> Iterator[None]:
    """Raises what the client raises within as Transient or Permanent."""
    from redis.exceptions import RedisClusterException, RedisError

    try:
        yield
    except (RedisError, RedisClusterException, OSError) as error:
        raise fault(error, config) from None


def fault(error: Exception, config: ConnectionConfig) -> Transient | Permanent:
    """What an error of the client means for a run."""
    from redis import exceptions as redis

    said = str(error) or "no answer in time"
    if isinstance(error, redis.NoPermissionError | redis.AuthorizationError):
        return Permanent(
            f"{config.shown} does not allow it: {said}", code="not-authorized",
            hint="the user needs the right to it (ACL)",
        )  # fmt: skip
    if isinstance(error, redis.AuthenticationError) or any(each in said for each in _LOGIN):
        return Permanent(
            f"{config.shown} refuses the login: {said}", code="login",
            hint="look at username and password",
        )  # fmt: skip
    if "CERTIFICATE_VERIFY_FAILED" in said:
        return Permanent(
            f"the certificate of {config.shown} is not trusted: {said}", code="tls",
            hint="tls: {ca: FILE} names those to trust",
        )  # fmt: skip
    if isinstance(error, redis.MovedError) and not config.cluster:
        return Permanent(
            f"{config.shown} is one of a cluster, and another has the key", code="cluster",
            hint="cluster: true",
        )  # fmt: skip
    if _passes(error, said):
        return Transient(
            f"{config.shown} cannot do it now: {said}", code="busy",
            hint="the server may say yes later; look at its memory, its disk and its replicas",
        )  # fmt: skip
    if isinstance(error, redis.ResponseError | redis.DataError):
        return Permanent(f"{config.shown} refuses it: {said}", code="refused")
    return Transient(
        f"could not reach the Redis server {config.shown}: {said}", code="unreachable",
        hint="is the server running, and is the url right?",
    )  # fmt: skip


def refusal(error: Exception, config: ConnectionConfig) -> Rejected:
    """Why one row is refused for good. Raises Transient or Permanent if others are, too."""
    found = fault(error, config)
    said = str(error)
    if found.code != "refused" or said.startswith(("unknown command", "wrong number")):
        raise found
    return Rejected(f"{config.shown} refuses it: {said}", code="refused")


def _passes(error: Exception, said: str) -> bool:
    from redis import exceptions as redis

    kinds = (redis.ReadOnlyError, redis.OutOfMemoryError, redis.ClusterDownError,
             redis.TryAgainError, redis.BusyLoadingError, redis.AskError)  # fmt: skip
    return isinstance(error, kinds) or said.startswith(_PASSES)
