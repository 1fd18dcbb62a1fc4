"""Connections to object stores by obstore, with the options of the files connector."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from penstock.core.errors import MissingExtra, Permanent
from penstock.core.secret import revealed
from penstock.sdk.network.tls import Tls
from penstock.sdk.object_store import CONNECT_TIMEOUT_SECONDS, StorageOptions

_REQUEST_SECONDS = 60
"""The longest time of a request, which may send a large file."""
_RETRIES: Any = {"max_retries": 5, "retry_timeout": timedelta(seconds=20)}


def open_store(url: str, options: StorageOptions) -> Any:
    """Returns the objects below a URL. Raises MissingExtra, Permanent or an error of the client."""
    try:
        from obstore.store import S3Store, from_url
    except ImportError:
        raise MissingExtra.of("object_state", "obstore") from None
    client: Any = {
        "connect_timeout": timedelta(seconds=CONNECT_TIMEOUT_SECONDS),
        "timeout": timedelta(seconds=_REQUEST_SECONDS),
        "allow_http": True,
    }
    if isinstance(options.tls, Tls) and options.tls.ca:
        options.tls.check_files()
        client["root_certificate"] = Path(options.tls.ca).read_bytes()
    if not url.startswith("s3://"):
        return from_url(
            url.replace("gcs://", "gs://", 1), client_options=client, retry_config=_RETRIES
        )
    parts = urlsplit(url)
    settings: Any = {"region": options.region_of(parts.netloc), **_credentials(url, options)}
    if options.endpoint:
        settings["endpoint"] = options.endpoint
    return S3Store(
        parts.netloc, prefix=parts.path.strip("/"), client_options=client, retry_config=_RETRIES,
        **settings,
    )  # fmt: skip


def _credentials(url: str, options: StorageOptions) -> dict[str, Any]:
    """Returns the credentials of the options, or those of the default chain of the AWS SDK."""
    if options.anonymous:
        return {"skip_signature": True}
    if options.auth is not None:
        found = {
            "access_key_id": options.auth.access_key,
            "secret_access_key": revealed(options.auth.secret_key),
            "session_token": revealed(options.auth.session_token),
        }
        return {name: value for name, value in found.items() if value is not None}
    try:
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ImportError:
        raise MissingExtra.of("object_state", "boto3") from None
    try:
        return {"credential_provider": Boto3CredentialProvider()}
    except ValueError:
        profile = os.environ.get("AWS_PROFILE")
        raise Permanent(
            f"cannot reach {url}: no credentials"
            + (f' in the profile "{profile}"' if profile else " in the environment"),
            code="authentication",
            hint="Set runtime.storage.auth, or the environment variables AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY.",
        ) from None
