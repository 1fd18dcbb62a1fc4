"""Who we are to Amazon MSK with IAM: a token is the address of a call that our keys have signed."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from penstock.connectors.kafka.connection import Sasl
from penstock.core.errors import MissingExtra, Permanent, Transient
from penstock.core.secret import revealed

_SECONDS = 900
"""How long a token is good; librdkafka asks for the next one when four fifths are over."""
_HINT = "give access_key and secret_key of sasl, or what Amazon's own tools look for"


def require() -> None:
    """Raises MissingExtra if the library that signs is not installed."""
    try:
        import boto3  # noqa: F401
    except ImportError:
        raise MissingExtra.of("aws", "boto3") from None


@dataclass
class Signer:
    """Makes the tokens of a client, by librdkafka's OAUTHBEARER."""

    sasl: Sasl

    def __call__(self) -> tuple[str, float]:
        """A token, and when it ends, in seconds since 1970.

        Raises Permanent where there are no credentials, Transient where they cannot be had now.
        """
        from botocore.auth import SigV4QueryAuth
        from botocore.awsrequest import AWSRequest

        region = self.sasl.region
        action = {"Action": "kafka-cluster:Connect"}
        call = AWSRequest("GET", f"https://kafka.{region}.amazonaws.com/", params=action)
        with _told():
            keys = self._credentials.get_frozen_credentials()
            SigV4QueryAuth(keys, "kafka-cluster", region, expires=_SECONDS).add_auth(call)
        signed = datetime.strptime(call.context["timestamp"], "%Y%m%dT%H%M%SZ")
        token = urlsafe_b64encode(f"{call.url}&User-Agent=penstock".encode()).rstrip(b"=")
        return token.decode(), signed.replace(tzinfo=UTC).timestamp() + _SECONDS

    @cached_property
    def _credentials(self) -> Any:
        """Those given or found; they renew themselves."""
        import boto3
        from botocore.credentials import Credentials

        sasl = self.sasl
        if sasl.access_key is not None:
            secrets = revealed(sasl.secret_key), revealed(sasl.session_token)
            return Credentials(sasl.access_key, *secrets)
        found = boto3.Session().get_credentials()
        if found is None:
            raise Permanent(
                "there are no credentials for AWS_MSK_IAM", code="authentication", hint=_HINT
            )
        return found


@contextmanager
def _told() -> Iterator[None]:
    """Errors of the search for credentials, in our words."""
    from botocore import exceptions as botocore

    try:
        yield
    except (
        botocore.CredentialRetrievalError, botocore.HTTPClientError, botocore.ConnectionError,
    ) as error:  # fmt: skip
        raise Transient(
            f"could not get credentials for AWS_MSK_IAM: {error}",
            code="unreachable",
            hint="who keeps them did not answer; access_key and secret_key of sasl need nobody",
        ) from None
    except (botocore.BotoCoreError, botocore.ClientError) as error:
        raise Permanent(
            f"cannot get credentials for AWS_MSK_IAM: {error}", code="authentication", hint=_HINT
        ) from None
