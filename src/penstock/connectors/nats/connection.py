"""How a server is reached, who we are, and what its refusals mean."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from penstock.core.secret import revealed
from penstock.sdk import (
    Config,
    Duration,
    Permanent,
    Secret,
    Transient,
    UserPath,
)
from penstock.sdk.kit.address import url_of
from penstock.sdk.kit.tls import Tls

if TYPE_CHECKING:
    from nats.aio.client import Client

_LOGIN = ("authorization", "authentication", "credentials", "expired", "revoked", "nkeys")
_ITS_OWN = 500
_TO_LEAVE = 1.0
"""How long is waited for what does not come where TLS has failed: the end of the connection."""


class ConnectionConfig(Config):
    url: str | list[str]
    """The server, as `nats://host:port`, or several of a cluster; `tls://` insists on TLS."""
    username: str | None = None
    """The user."""
    password: Secret | None = None
    """The user's password."""
    token: Secret | None = None
    """A token, where the server wants one instead of a user."""
    nkey: Secret | None = None
    """The seed of an nkey (`SU...`), which proves who we are without being sent."""
    jwt: Secret | None = None
    """The user's JWT, where the server wants one; `nkey` is the seed that it was made for."""
    creds: UserPath | None = None
    """A credentials file (`.creds`): a user's JWT, and the seed of its nkey."""
    tls: Tls = Tls()
    """Whom to trust where the server wants TLS, and who we are."""
    timeout: Duration = Field(default=10.0, gt=0)
    """How long the server may take to answer."""

    @field_validator("url")
    @classmethod
    def _urls(cls, url: str | list[str]) -> str | list[str]:
        for each in [url] if isinstance(url, str) else url:
            url_of("nats", "tls")(each)
        if not url:
            raise ValueError("give at least one")
        return url

    @model_validator(mode="after")
    def _login(self) -> Self:
        if (self.username is None) != (self.password is None):
            raise ValueError("username and password need each other")
        ways = [self.username, self.token, self.nkey, self.creds]
        if sum(way is not None for way in ways) > 1:
            raise ValueError("give one of username, token, nkey and creds")
        if self.jwt is not None and self.nkey is None:
            raise ValueError("jwt needs nkey, the seed of the user's key; a file goes to creds")
        return self

    @property
    def servers(self) -> list[str]:
        return [self.url] if isinstance(self.url, str) else self.url

    @property
    def shown(self) -> str:
        """The servers, for messages."""
        return f"the NATS server {', '.join(urlsplit(each).netloc for each in self.servers)}"

    def unreachable(self, why: object) -> Transient:
        """There is no connection, or none any more, or no answer."""
        return Transient(
            f"could not reach {self.shown}: {str(why) or 'no answer in time'}",
            code="unreachable",
            hint="is the server running, and is the url right?",
        )


async def connected(
    config: ConnectionConfig, heard: list[Exception] | None = None, **callbacks: Any
) -> Client:
    """A connection that is not made anew when it is lost. Raises Transient or Permanent.

    What the server complains of without being asked is put into `heard`.
    """
    from nats.aio.client import Client

    if config.creds is not None and not Path(config.creds).is_file():
        raise Permanent(
            f"cannot read the file of creds: there is no {config.creds}",
            code="login",
            hint="a relative path begins at the pipeline file; every machine needs the file",
        )
    client = Client()
    told: list[Exception] = [] if heard is None else heard
    jwt = (revealed(config.jwt) or "").strip().encode()

    async def hear(error: Exception) -> None:
        told.append(error)

    connecting = client.connect(
        servers=config.servers, user=config.username, password=revealed(config.password),
        token=revealed(config.token), nkeys_seed_str=revealed(config.nkey),
        user_jwt_cb=(lambda: jwt) if jwt else None, user_credentials=config.creds,
        tls=config.tls.context(), name="penstock", allow_reconnect=False,
        max_reconnect_attempts=1, reconnect_time_wait=0, ping_interval=20,
        **{"error_cb": hear, **callbacks},
    )  # fmt: skip
    try:
        with faults(config, "connect", told):
            await asyncio.wait_for(connecting, config.timeout)
        if any(each.startswith("tls") for each in config.servers):
            _need_encryption(client, config)
    except BaseException:
        with suppress(Exception):
            await asyncio.wait_for(client.close(), _TO_LEAVE)
        raise
    return client


async def flushed(client: Client, config: ConnectionConfig) -> None:
    """Returns when the server has handled all that was sent. Raises what the client raises.

    The client's question overtakes what is still in its buffer (nats-py 2.16); when the first is
    answered the buffer has been written, and so the second comes after it.
    """
    for _ in range(2):
        await client.flush(max(1, round(config.timeout)))


def _need_encryption(client: Client, config: ConnectionConfig) -> None:
    if not client._server_info.get("tls_required"):
        raise Permanent(f"{config.shown} does not encrypt", code="tls", hint="nats:// goes without")


@contextmanager
def faults(
    config: ConnectionConfig, doing: str, heard: list[Exception] | None = None
) -> Iterator[None]:
    """Turns what the client raises into Transient and Permanent; `heard` may know more."""
    import nats.errors
    import nats.js.errors
    from nkeys import NkeysError

    try:
        yield
    except nats.js.errors.APIError as error:
        raise refused(doing, error.code, error.description) from None
    except ssl.SSLCertVerificationError as error:
        raise Permanent(
            f"the certificate of {config.shown} is not trusted: {error.verify_message}",
            code="tls",
            hint="tls: {ca: FILE} names those to trust",
        ) from None
    except (nats.errors.Error, NkeysError, OSError, TimeoutError) as error:
        said = f"{error} {' '.join(map(str, heard or ()))}".casefold()
        if any(word in said for word in _LOGIN):
            raise Permanent(
                f"{config.shown} refuses us: {error}",
                code="login",
                hint="look at username and password, token, nkey, jwt or creds",
            ) from None
        raise config.unreachable((heard or [error])[0]) from None


def refused(doing: str, code: int | None, said: str | None) -> Transient | Permanent:
    """What JetStream said no to."""
    if code is None or code >= _ITS_OWN:
        return Transient(
            f"could not {doing}: {said or 'JetStream does not answer'}",
            code="jetstream",
            hint="is JetStream enabled, has it room, and has the cluster a leader?",
        )
    return Permanent(f"cannot {doing}: {said}", code="jetstream", hint="does it exist as named?")
