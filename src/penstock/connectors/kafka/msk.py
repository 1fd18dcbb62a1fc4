"""Tokens of Amazon MSK with IAM access control, signed by the signer of AWS."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from penstock.connectors.kafka.auth import SaslAuth
from penstock.core.errors import MissingExtra, Permanent, Transient
from penstock.core.secret import revealed

_HINT = (
    "Set auth.access_key and auth.secret_key, or configure the default credential chain of the "
    "AWS SDK."
)


def require_library() -> None:
    """Raises MissingExtra if the signer is not installed."""
    try:
        import aws_msk_iam_sasl_signer  # noqa: F401
    except ImportError:
        raise MissingExtra.of("kafka", "aws-msk-iam-sasl-signer-python") from None


@dataclass
class TokenSigner:
    """Signs tokens for a client's OAUTHBEARER callback."""

    auth: SaslAuth

    def __call__(self) -> tuple[str, float]:
        """Returns a token and its expiry in seconds since 1970.

        Raises Permanent without credentials, Transient if the credential provider fails.
        """
        from aws_msk_iam_sasl_signer.MSKAuthTokenProvider import (
            generate_auth_token_from_credentials_provider,
        )

        with _translate_errors():
            token, expiry = generate_auth_token_from_credentials_provider(
                self.auth.region, self._provider
            )
        return token, expiry / 1000

    @cached_property
    def _provider(self) -> Any:
        from botocore.credentials import CredentialProvider

        credentials = self._credentials

        class Provider(CredentialProvider):  # type: ignore[misc]
            def load(self) -> Any:
                return credentials.get_frozen_credentials()

        return Provider()

    @cached_property
    def _credentials(self) -> Any:
        """The configured credentials, or those of the default chain, which refresh themselves."""
        import boto3
        from botocore.credentials import Credentials

        auth = self.auth
        if auth.access_key is not None:
            secrets = revealed(auth.secret_key), revealed(auth.session_token)
            return Credentials(auth.access_key, *secrets)
        credentials = boto3.Session().get_credentials()
        if credentials is None:
            raise Permanent(
                "credentials for AWS_MSK_IAM are missing", code="authentication", hint=_HINT
            )
        return credentials


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Raises errors of the credential chain as Transient or Permanent."""
    from botocore import exceptions as botocore

    try:
        yield
    except (
        botocore.CredentialRetrievalError, botocore.HTTPClientError, botocore.ConnectionError,
    ) as error:  # fmt: skip
        raise Transient(
            f"could not load credentials for AWS_MSK_IAM: {error}",
            code="unreachable",
            hint="Check the credential provider, or set auth.access_key and auth.secret_key.",
        ) from None
    except (botocore.BotoCoreError, botocore.ClientError) as error:
        raise Permanent(
            f"cannot load credentials for AWS_MSK_IAM: {error}", code="authentication", hint=_HINT
        ) from None
