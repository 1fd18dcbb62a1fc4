"""Resolution of paths and URLs to storages."""

from __future__ import annotations

import os
from functools import cache
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.fs as pafs

from penstock.connectors.files.cloud_store import CloudStorage
from penstock.connectors.files.local import LocalStorage
from penstock.connectors.files.object_store import ArrowStorage
from penstock.connectors.files.storage import Storage
from penstock.core.errors import Permanent, PlanError
from penstock.core.text import did_you_mean
from penstock.sdk.object_client import check_url
from penstock.sdk.object_store import CLOUD_SCHEMES, STORE_SCHEMES, StorageOptions

SCHEMES = ("file", *STORE_SCHEMES, "hdfs", "viewfs")


def open_storage(location: str, options: StorageOptions | None = None) -> tuple[Storage, str]:
    """Returns the storage of a path or URL, and the path in it. Raises PlanError or OSError."""
    if "://" not in location:
        return LocalStorage(), os.path.normpath(location)
    return _open_remote(location, options)


@cache
def _open_remote(location: str, options: StorageOptions | None) -> tuple[Storage, str]:
    url, _, query = location.partition("?")
    scheme, _, path = url.partition("://")
    scheme = scheme.lower()
    if scheme not in SCHEMES:
        hint = did_you_mean(scheme, SCHEMES)
        raise PlanError(
            f'unsupported URL scheme "{scheme}://"', code="unsupported-scheme", hint=hint
        )
    if scheme == "file":
        return LocalStorage(), os.path.normpath(unquote(path))
    check_url(location, options)
    if scheme in CLOUD_SCHEMES:
        key = path.partition("/")[2].strip("/")
        return _open_cloud(url, options or StorageOptions()), f"/{key}"
    if scheme == "s3" and not query:
        return _open_s3(path.partition("/")[0], options or StorageOptions()), path.rstrip("/")
    if options is not None:
        part = f"?{query.partition('=')[0]}=" if scheme == "s3" else f"{scheme}://"
        raise PlanError(
            f"the option storage excludes {part} in the URL",
            hint="Use storage with URLs of object stores, and its options instead of URL "
            "parameters.",
        )
    try:
        encoded = quote(url, safe="/:%@,;+~!*'()$[]{}") + "?" * bool(query) + query
        system, path = pafs.FileSystem.from_uri(encoded)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        detail = str(error).replace(f"?{query}", "")
        raise PlanError(f'"{url}" is not a valid URL', detail=detail) from error
    prefix = url[: len(url) - len(path)] if url.endswith(path) else f"{scheme}://"
    return ArrowStorage(system, prefix), path.rstrip("/")


def _open_s3(bucket: str, options: StorageOptions) -> ArrowStorage:
    try:
        region = options.region_of(bucket)
    except OSError as error:
        raise ArrowStorage(None, "s3://").convert_error(error, "reach", f"s3://{bucket}") from error
    system = options.open_s3(region)
    return ArrowStorage(system, "s3://", options.endpoint)


def _open_cloud(url: str, options: StorageOptions) -> CloudStorage:
    try:
        return CloudStorage(url, options)
    except Permanent as error:
        raise PlanError(
            error.message, code=error.code, hint=error.hint, detail=error.detail
        ) from error
