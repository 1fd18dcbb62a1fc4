"""Options of object stores: URLs without credentials, connections, and file systems of S3."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Annotated, ClassVar, Self

import pyarrow.fs as pafs
from pydantic import AfterValidator, model_validator

from penstock.core.secret import Secret, revealed
from penstock.sdk.config import Config, UserFile, UserPath
from penstock.sdk.network.auth import AwsAuth
from penstock.sdk.network.tls import Tls, TlsOption, resolve_tls

CONNECT_TIMEOUT_SECONDS, REQUEST_TIMEOUT_SECONDS = 3, 5
GOOGLE_SCHEMES, AZURE_SCHEMES = ("gs", "gcs"), ("abfs", "abfss", "az")
CLOUD_SCHEMES = (*GOOGLE_SCHEMES, *AZURE_SCHEMES)
"""The schemes of stores that obstore reads and writes."""
STORE_SCHEMES = ("s3", *CLOUD_SCHEMES)
_CREDENTIALS = re.compile(r"\w+://[^/?]*:[^/?]*@|s3://[^/?]*@", re.IGNORECASE)


_UNTRUSTED = re.compile(r"invalid peer certificate|SSL peer certificate|curlCode: (51|60|77)\b")


def is_untrusted(detail: str) -> bool:
    """Returns whether an error of a client is that of the certificate of a server."""
    return _UNTRUSTED.search(detail) is not None


def is_cloud(url: str) -> bool:
    """Returns whether a URL is one of Google Cloud Storage or Azure."""
    scheme, separator, _ = url.partition("://")
    return bool(separator) and scheme.lower() in CLOUD_SCHEMES


def has_credentials(url: str) -> bool:
    """Returns whether a URL has a user with a password, or a user of S3."""
    return _CREDENTIALS.match(url) is not None


def _reject_credentials(path: str) -> str:
    if has_credentials(path):
        raise ValueError(
            "expected a URL without credentials, because URLs appear in messages: "
            "set storage.auth, or the environment variables of the object store"
        )
    return path


StoragePath = Annotated[UserPath, AfterValidator(_reject_credentials)]
"""A path, or a URL without credentials."""


class StorageAuth(AwsAuth):
    """The credentials of an object store: of S3, Google Cloud Storage or Azure."""

    alternatives = (
        ("access_key", "secret_key"), ("service_account",), ("account_key",), ("sas_token",),
    )  # fmt: skip
    service_account: UserFile | None = None
    """The key file (JSON) of a service account of Google Cloud."""
    account_key: Secret | None = None
    """The key of the storage account of Azure."""
    sas_token: Secret | None = None
    """A shared access signature of Azure."""


class StorageOptions(Config):
    """The connection to an object store."""

    owners: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "region": ("s3",), "account": AZURE_SCHEMES, "auth.access_key": ("s3",),
        "auth.service_account": GOOGLE_SCHEMES, "auth.account_key": AZURE_SCHEMES,
        "auth.sas_token": AZURE_SCHEMES,
    }  # fmt: skip
    """The schemes of the options that not all stores have."""

    endpoint_url: str | None = None
    """The URL of the server, such as `http://localhost:9000`. By default that of Amazon S3, Google
    Cloud Storage or the account of Azure."""
    region: str | None = None
    """The region of S3. By default that of the bucket, or `us-east-1` with `endpoint_url`."""
    account: str | None = None
    """The storage account of Azure, for URLs that do not name it. By default
    `AZURE_STORAGE_ACCOUNT_NAME`."""
    auth: StorageAuth | None = None
    """The credentials. By default those of the environment: the default credential chain of AWS,
    the application default credentials of Google Cloud, or the variables or the managed identity of
    Azure."""
    anonymous: bool = False
    """Send unsigned requests, for public buckets."""
    tls: TlsOption = None
    """TLS settings, of which only `ca` is supported. By default the scheme of `endpoint_url`
    decides."""

    @model_validator(mode="after")
    def _check_anonymous_and_tls(self) -> Self:
        if self.anonymous and self.auth is not None:
            raise ValueError("anonymous excludes auth")
        scheme = (self.endpoint_url or "https://").partition("://")[0]
        tls = resolve_tls(self.tls, scheme == "https")
        if tls is not None and tls != Tls(ca=tls.ca):
            raise ValueError("tls supports only ca for object stores")
        return self

    def foreign_option(self, scheme: str) -> str | None:
        """Returns an option that the store of a URL scheme lacks; None if it has all options."""
        for name, schemes in self.owners.items():
            holder = self.auth if name.startswith("auth.") else self
            is_set = getattr(holder, name.removeprefix("auth."), None) is not None
            if is_set and scheme not in schemes:
                return name
        return None

    @property
    def ca_file(self) -> str | None:
        """The CA certificate file; None for those of the system."""
        return self.tls.ca if isinstance(self.tls, Tls) else None

    @property
    def endpoint(self) -> str | None:
        """The URL of the server, also from the environment; None for Amazon S3."""
        env = os.environ
        return self.endpoint_url or env.get("AWS_ENDPOINT_URL_S3") or env.get("AWS_ENDPOINT_URL")

    def region_of(self, bucket: str) -> str:
        """Returns the region of a bucket, which is looked up if no option has it.

        Raises OSError.
        """
        if self.region is not None:
            return self.region
        if self.endpoint:
            env = os.environ
            return env.get("AWS_REGION") or env.get("AWS_DEFAULT_REGION") or "us-east-1"
        return str(pafs.resolve_s3_region(bucket))

    def open_s3(self, region: str) -> pafs.S3FileSystem:
        """Returns the object store as a file system."""
        auth = self.auth
        return pafs.S3FileSystem(
            endpoint_override=self.endpoint,
            region=region,
            access_key=auth.access_key if auth else None,
            secret_key=revealed(auth.secret_key) if auth else None,
            session_token=revealed(auth.session_token) if auth else None,
            anonymous=self.anonymous,
            connect_timeout=CONNECT_TIMEOUT_SECONDS,
            request_timeout=REQUEST_TIMEOUT_SECONDS,
            allow_delayed_open=True,  # A small object is written by one request.
            **({"tls_ca_file_path": self.ca_file} if self.ca_file else {}),
        )
