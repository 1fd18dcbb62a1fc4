"""Object stores to which requests are signed with the identity of the machine."""

from __future__ import annotations

import pytest

from cloud_metadata import ACCESS_KEY, Metadata, metadata
from penstock.sdk.object_client import open_client
from penstock.sdk.object_store import StorageOptions

__all__ = ["metadata"]


@pytest.mark.parametrize("scheme", ["s3", "gs", "az"])
def test_requests_have_the_identity(
    scheme: str, metadata: Metadata, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without `auth`, as on a machine of AWS, Google Cloud or Azure."""
    monkeypatch.setenv("IDENTITY_ENDPOINT", f"{metadata.url}/app-service")
    monkeypatch.setenv("IDENTITY_HEADER", "h")
    for name in ("ACCOUNT_KEY", "CLIENT_ID", "FEDERATED_TOKEN_FILE"):
        monkeypatch.delenv(f"AZURE_{name}", raising=False)
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    options = StorageOptions(endpoint_url=metadata.url, account="madeup")
    found = open_client(f"{scheme}://bucket/rows", options).get("part.json").bytes()
    assert bytes(found) == b"made-up content"
    (sent,) = metadata.authorizations
    expected = {"s3": f"AWS4-HMAC-SHA256 Credential={ACCESS_KEY}/", "gs": "Bearer made-up-token-1",
                "az": "Bearer made-up-token-1-system"}  # fmt: skip
    assert sent.startswith(expected[scheme])


def test_files_of_s3_have_the_identity(metadata: Metadata) -> None:
    store = StorageOptions(endpoint_url=metadata.url).open_s3("eu-west-1")
    with store.open_input_stream("bucket/part.json") as file:
        assert file.read() == b"made-up content"
    assert all(f"Credential={ACCESS_KEY}/" in sent for sent in metadata.authorizations)
