"""What the client raises, as errors of ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from penstock.sdk import Permanent, Transient

_NAMES = {"sqs": "SQS", "kinesis": "Kinesis"}
_LOGIN = (
    "InvalidClientTokenId", "SignatureDoesNotMatch", "UnrecognizedClientException",
    "InvalidAccessKeyId", "AuthFailure", "ExpiredToken", "ExpiredTokenException",
    "InvalidSignatureException", "MissingAuthenticationToken", "IncompleteSignature",
)  # fmt: skip
_DENIED = ("AccessDenied", "AccessDeniedException", "NotAuthorized", "OptInRequired")
_BUSY = (
    "Throttling", "ThrottlingException", "RequestThrottled", "RequestLimitExceeded", "OverLimit",
    "ProvisionedThroughputExceededException", "LimitExceededException", "KMSThrottlingException",
    "ServiceUnavailable", "InternalFailure", "InternalError", "RequestTimeout",
)  # fmt: skip
_MISSING = (
    "AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist", "ResourceNotFoundException",
)  # fmt: skip
_FORBIDDEN, _SERVERS_FAULT = 403, 500


@contextmanager
def faults(service: str) -> Iterator[None]:
    """Raises what the client raises within as Transient or Permanent."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        raise _answer(error.response, _NAMES[service]) from None
    except (BotoCoreError, ValueError) as error:
        raise _failure(error, _NAMES[service]) from None


def _answer(response: dict[str, object], name: str) -> Transient | Permanent:
    """The service answered, and said no."""
    error: dict[str, str] = response.get("Error", {})  # type: ignore[assignment]
    about: dict[str, int] = response.get("ResponseMetadata", {})  # type: ignore[assignment]
    status = about.get("HTTPStatusCode", 0)
    code, said = error.get("Code", ""), error.get("Message", "") or "no reason is given"
    if code in _DENIED:
        return Permanent(
            f"{name} does not allow it: {said}", code="not-authorized",
            hint="the user needs the right to it (IAM)",
        )  # fmt: skip
    if code in _LOGIN or status == _FORBIDDEN:
        return Permanent(
            f"{name} refuses the credentials: {said}", code="login",
            hint="look at access_key and secret_key, and at the clock of this machine",
        )  # fmt: skip
    if code in _MISSING:
        return Permanent(
            f"{name} has nothing of that name: {said}", code="missing",
            hint="look at the name, at region and at endpoint",
        )  # fmt: skip
    if code in _BUSY or status >= _SERVERS_FAULT:
        return Transient(
            f"{name} cannot do it now: {said}", code="busy",
            hint="it may say yes later; look at the service's limits",
        )  # fmt: skip
    return Permanent(f"{name} refuses it: {said} ({code})", code="refused")


def _failure(error: Exception, name: str) -> Transient | Permanent:
    """There was no answer, or nothing could be asked."""
    from botocore import exceptions as botocore

    if isinstance(error, botocore.SSLError):
        return Permanent(
            f"the certificate of {name} is not trusted: {error}", code="tls",
            hint="AWS_CA_BUNDLE names those to trust",
        )  # fmt: skip
    if isinstance(error, botocore.HTTPClientError | botocore.ConnectionError):
        return Transient(
            f"could not reach {name}: {error}", code="unreachable",
            hint="is there a way to it, and are region and endpoint right?",
        )  # fmt: skip
    if isinstance(error, botocore.NoCredentialsError | botocore.PartialCredentialsError):
        return Permanent(
            f"there are no credentials for {name}: {error}", code="login",
            hint="give access_key and secret_key, or what Amazon's own tools look for",
        )  # fmt: skip
    return Permanent(
        f"{name} cannot be asked: {error}", code="options", hint="look at region and endpoint"
    )
