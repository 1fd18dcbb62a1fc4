"""Errors of the AWS SDK as Transient and Permanent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from penstock.core.errors import Permanent, Transient
from penstock.sdk.network.tls import certificate_hint, is_lost_connection

_NAMES = {"sqs": "SQS", "kinesis": "Kinesis"}
_AUTHENTICATION = (
    "InvalidClientTokenId", "SignatureDoesNotMatch", "UnrecognizedClientException",
    "InvalidAccessKeyId", "AuthFailure", "ExpiredToken", "ExpiredTokenException",
    "InvalidSignatureException", "MissingAuthenticationToken", "IncompleteSignature",
)  # fmt: skip
_AUTHORIZATION = ("AccessDenied", "AccessDeniedException", "NotAuthorized", "OptInRequired")
_THROTTLING = (
    "Throttling", "ThrottlingException", "RequestThrottled", "RequestLimitExceeded", "OverLimit",
    "ProvisionedThroughputExceededException", "LimitExceededException", "KMSThrottlingException",
    "ServiceUnavailable", "InternalFailure", "InternalError", "RequestTimeout",
)  # fmt: skip
_NOT_FOUND = (
    "AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist", "ResourceNotFoundException",
)  # fmt: skip
_HTTP_FORBIDDEN, _HTTP_SERVER_ERROR = 403, 500


@contextmanager
def translate_errors(service: str) -> Iterator[None]:
    """Raises errors of the AWS SDK as Transient or Permanent."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        raise _response_error(error.response, _NAMES[service]) from None
    except (BotoCoreError, ValueError) as error:
        raise _client_error(error, _NAMES[service]) from None


def _response_error(response: Any, service: str) -> Transient | Permanent:
    """Returns the error of a response with an error code."""
    error: dict[str, str] = response.get("Error", {})
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    code, reason = error.get("Code", ""), error.get("Message", "") or "no reason is reported"
    if code in _AUTHORIZATION:
        return Permanent(
            f"{service} denied access: {reason}", code="authorization",
            hint="Grant the permission to the user or role in IAM.",
        )  # fmt: skip
    if code in _AUTHENTICATION or status == _HTTP_FORBIDDEN:
        return Permanent(
            f"authentication to {service} failed: {reason}", code="authentication",
            hint="Check auth.access_key and auth.secret_key, and the clock of this machine.",
        )  # fmt: skip
    if code in _NOT_FOUND:
        return Permanent(
            f"{service} resource does not exist: {reason}", code="not-found",
            hint="Check the name, region and endpoint_url.",
        )  # fmt: skip
    if code in _THROTTLING or status >= _HTTP_SERVER_ERROR:
        return Transient(
            f"{service} is not available: {reason}", code="busy",
            hint="Check the quotas of the service.",
        )  # fmt: skip
    return Permanent(f"{service} rejected the request: {reason} ({code})", code="rejected")


def _client_error(error: Exception, service: str) -> Transient | Permanent:
    """Returns the error of a request without a response."""
    from botocore import exceptions as botocore

    if isinstance(error, botocore.SSLError) and not is_lost_connection(str(error)):
        return Permanent(
            f"TLS verification of {service} failed: {error}", code="tls",
            hint=certificate_hint(str(error)),
        )  # fmt: skip
    if isinstance(error, botocore.HTTPClientError | botocore.ConnectionError):
        return Transient(
            f"could not reach {service}: {error}", code="unreachable",
            hint="Check the network, region and endpoint_url.",
        )  # fmt: skip
    if isinstance(error, botocore.NoCredentialsError | botocore.PartialCredentialsError):
        return Permanent(
            f"credentials for {service} are missing: {error}", code="authentication",
            hint="Set auth.access_key and auth.secret_key, or configure the default credential "
            "chain of the AWS SDK.",
        )  # fmt: skip
    return Permanent(
        f"the request to {service} is invalid: {error}", code="invalid-option",
        hint="Check region and endpoint_url.",
    )  # fmt: skip
