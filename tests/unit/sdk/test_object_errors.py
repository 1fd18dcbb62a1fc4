"""Errors of object stores when the client requests a token."""

from __future__ import annotations

import pytest

from penstock.core.errors import Permanent, Transient
from penstock.sdk.object_errors import convert_error

LOGIN = "Error performing token request: Error performing POST https://login.example in 1ms - "
METADATA = "Error performing GET http://metadata.google.internal/computeMetadata/v1 in 1ms - "
STATUS = "Server returned non-2xx status code: "


@pytest.mark.parametrize(
    ("detail", "kind", "code"),
    [
        (f"{LOGIN}{STATUS}401 Unauthorized: invalid_client", Permanent, "authentication"),
        (f"{LOGIN}{STATUS}400 Bad Request: invalid_grant", Permanent, "authentication"),
        (f"{LOGIN}{STATUS}503 Service Unavailable: ", Transient, "unavailable"),
        (f"{LOGIN}HTTP error: error sending request", Transient, "unavailable"),
        (f"{METADATA}{STATUS}429 Too Many Requests: ", Transient, "unavailable"),
        (f"{LOGIN}{METADATA}{STATUS}403 Forbidden: of a proxy", Transient, "unavailable"),
        (f"{METADATA}HTTP error: error sending request", Transient, "unavailable"),
    ],
)
def test_rejected_credentials_are_not_retried(detail: str, kind: type, code: str) -> None:
    error = convert_error(
        Exception(detail), "read", "gs://b/k", bucket="b", option="storage", source="path"
    )
    assert type(error) is kind and error.code == code and "storage.auth" in (error.hint or "")
