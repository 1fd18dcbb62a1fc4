"""Resolution of paths and URLs to storages."""

from __future__ import annotations

import os
from functools import cache
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.fs as pafs

from penstock.connectors.files.local import LocalStorage
from penstock.connectors.files.object_store import ArrowStorage
from penstock.connectors.files.storage import Storage
from penstock.core.errors import PlanError
from penstock.core.text import did_you_mean
from penstock.sdk.object_store import StorageOptions

SCHEMES = ("file", "s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs")
RETRY_LIMITS = {"gs": "retry_limit_seconds=15", "gcs": "retry_limit_seconds=15"}
"""URL parameters that limit retries. The default of Google Cloud Storage is 15 minutes."""


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
    if scheme == "s3" and not query:
        return _open_s3(path.partition("/")[0], options or StorageOptions()), path.rstrip("/")
    if options is not None:
        part = f"?{query.partition('=')[0]}=" if scheme == "s3" else f"{scheme}://"
        raise PlanError(
            f"the option storage excludes {part} in the URL",
            hint="Use storage with s3:// URLs, and its options instead of URL parameters.",
        )
    if retry_limit := RETRY_LIMITS.get(scheme):
        query = "&".join(filter(None, (query, retry_limit)))
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
