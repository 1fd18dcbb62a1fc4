"""Connections to object stores by obstore: S3, Google Cloud Storage and Azure."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from penstock.core.errors import MissingExtra, OptionError, Permanent
from penstock.core.secret import revealed
from penstock.sdk.network.tls import Tls
from penstock.sdk.object_store import (
    AZURE_SCHEMES,
    CLOUD_SCHEMES,
    CONNECT_TIMEOUT_SECONDS,
    GOOGLE_SCHEMES,
    STORE_SCHEMES,
    StorageOptions,
)

EXTRA = "object_store"
_REQUEST_SECONDS = 60
"""The longest time of a request, which may send a large file."""
RETRIES: Any = {"max_retries": 5, "retry_timeout": timedelta(seconds=20)}
_PARAMETERS = re.compile(r"\?[a-z_]+=[^/]*\Z")
_AZURE_DOMAINS = ("dfs.core.windows.net", "blob.core.windows.net")
_FABRIC_DOMAINS = ("dfs.fabric.microsoft.com", "blob.fabric.microsoft.com")


@dataclass(frozen=True)
class StoreUrl:
    """The parts of a URL. `bucket` is also the container of Azure, and `key` a prefix of keys."""

    scheme: str
    bucket: str
    key: str
    account: str | None = None
    is_fabric: bool = False
    """Whether the account is one of Microsoft Fabric (OneLake)."""

    @classmethod
    def parse(cls, url: str, options: StorageOptions) -> StoreUrl:
        """Returns the parts of a URL. Raises Permanent if it names no bucket or no account."""
        scheme, _, rest = url.partition("://")
        scheme = scheme.lower()
        bucket, _, key = rest.partition("/")
        account, domain = None, ""
        if scheme in AZURE_SCHEMES:
            bucket, _, host = bucket.partition("@")
            account, _, domain = host.partition(".")
            if host and domain not in (*_AZURE_DOMAINS, *_FABRIC_DOMAINS):
                raise _invalid(
                    url, f"{scheme}://container@account.{_AZURE_DOMAINS[0]}/path",
                    "Set storage.endpoint_url and storage.account for another host, in a URL such "
                    "as az://container/path.",
                )  # fmt: skip
            account = account or options.account or os.environ.get("AZURE_STORAGE_ACCOUNT_NAME")
            if not account:
                raise _invalid(
                    url, "a URL with the account of Azure",
                    f"Set storage.account, or write {scheme}://container@account."
                    f"{_AZURE_DOMAINS[0]}/path.",
                )  # fmt: skip
        if not bucket or "@" in bucket:
            raise _invalid(url, f"{scheme}://bucket/path", "Set storage for the connection.")
        return cls(scheme, bucket, key.strip("/"), account, domain in _FABRIC_DOMAINS)


def check_url(
    url: str, options: StorageOptions | None, option: str = "path", extra: str | None = EXTRA
) -> None:
    """Checks the URL of an option, and that its store has the options of `storage`.

    Raises OptionError, or MissingExtra without the client of Google Cloud and Azure.
    """
    scheme = url.partition("://")[0].lower() if "://" in url else "file"
    foreign = options.foreign_option(scheme) if options and scheme in STORE_SCHEMES else None
    if foreign:
        raise OptionError.of(
            "storage", *foreign.split("."), message=f"storage.{foreign} excludes {scheme}:// URLs",
            hint=f"Remove {foreign}: another kind of store has it.",
        )  # fmt: skip
    if scheme not in CLOUD_SCHEMES:
        return
    try:
        StoreUrl.parse(url, options or StorageOptions())
    except Permanent as error:
        raise OptionError.of(option, message=error.message, hint=error.hint) from error
    if _PARAMETERS.search(url):
        raise OptionError.of(
            option, message=f'"{url.partition("?")[0]}" cannot have parameters',
            hint="Use the option storage instead of URL parameters.",
        )  # fmt: skip
    if extra is not None and find_spec("obstore") is None:
        raise MissingExtra.of(extra, "obstore")


def _invalid(url: str, expected: str, hint: str) -> Permanent:
    return Permanent(f"expected {expected}, found {url}", code="invalid-url", hint=hint)


def store_settings(url: str, options: StorageOptions) -> dict[str, Any]:
    """Returns the settings of a store of Google Cloud or Azure, by their names in object_store."""
    parts, auth = StoreUrl.parse(url, options), options.auth
    found: dict[str, Any] = {}
    if parts.scheme in GOOGLE_SCHEMES:
        found["base_url"] = options.endpoint_url
        found["service_account"] = auth.service_account if auth else None
    else:
        found["account_name"], found["endpoint"] = parts.account, options.endpoint_url
        found["use_fabric_endpoint"] = parts.is_fabric or None
        found["account_key"] = revealed(auth.account_key) if auth else None
        found["sas_key"] = (revealed(auth.sas_token) or "").lstrip("?") or None if auth else None
    if options.anonymous:
        found["skip_signature"] = True
    return {name: value for name, value in found.items() if value is not None}


def open_client(
    url: str, options: StorageOptions, *, extra: str = EXTRA, whole: bool = False,
    retries: Any = RETRIES, stall_seconds: float = _REQUEST_SECONDS,
) -> Any:  # fmt: skip
    """Returns the objects below a URL, with `whole` those of its bucket.

    `stall_seconds` is the longest time in which the server sends nothing. Raises MissingExtra,
    Permanent or an error of obstore.
    """
    try:
        from obstore.store import AzureStore, GCSStore, S3Store
    except ImportError:
        raise MissingExtra.of(extra, "obstore") from None
    parts = StoreUrl.parse(url, options)
    common: Any = {
        "prefix": None if whole else parts.key or None,
        "client_options": _client_options(options, stall_seconds), "retry_config": retries,
    }  # fmt: skip
    if parts.scheme in GOOGLE_SCHEMES:
        return GCSStore(parts.bucket, **common, **store_settings(url, options))
    if parts.scheme in AZURE_SCHEMES:
        return AzureStore(parts.bucket, **common, **store_settings(url, options))
    settings: Any = {"region": options.region_of(parts.bucket), **_aws_credentials(url, options)}
    if options.endpoint:
        settings["endpoint"] = options.endpoint
    return S3Store(parts.bucket, **common, **settings)


def _client_options(options: StorageOptions, stall_seconds: float) -> dict[str, Any]:
    found: dict[str, Any] = {
        "connect_timeout": timedelta(seconds=CONNECT_TIMEOUT_SECONDS),
        "read_timeout": timedelta(seconds=stall_seconds),
        "timeout": timedelta(seconds=_REQUEST_SECONDS),
        "allow_http": True,
    }
    if isinstance(options.tls, Tls) and options.tls.ca:
        options.tls.check_files()
        found["root_certificate"] = Path(options.tls.ca).read_bytes()
    return found


def _aws_credentials(url: str, options: StorageOptions) -> dict[str, Any]:
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
