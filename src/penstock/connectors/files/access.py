"""How the storage of a path or URL is reached."""

from __future__ import annotations

import os
import re
from functools import cache
from typing import Annotated
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.fs as pafs
from pydantic import AfterValidator, model_validator

from penstock.connectors.files.local import LocalStorage
from penstock.connectors.files.objects import ArrowStorage
from penstock.connectors.files.storage import Storage
from penstock.core.errors import PlanError
from penstock.core.secret import Secret, revealed
from penstock.core.text import did_you_mean
from penstock.sdk import Config, UserPath
from penstock.sdk.kit.accesskeys import need_whole

SCHEMES = ("file", "s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs")
PATIENCE = {"gs": "retry_limit_seconds=15", "gcs": "retry_limit_seconds=15"}
"""What keeps a client library from trying for a quarter of an hour."""
CONNECT_SECONDS, ANSWER_SECONDS = 3, 5
_CREDENTIALS = re.compile(r"\w+://[^/?]*:[^/?]*@|s3://[^/?]*@", re.IGNORECASE)


def _bare(path: str) -> str:
    if _CREDENTIALS.match(path):
        raise ValueError(
            "credentials do not belong in a URL, which is shown in messages: "
            "write them in storage, or give them in the environment"
        )
    return path


Place = Annotated[UserPath, AfterValidator(_bare)]
"""A path, or a URL without credentials."""


class ObjectStore(Config):
    """How an object store is reached. What is left out is found as the store's own tools do."""

    endpoint: str | None = None
    """The address of the server, as in `http://localhost:9000`, if it is not Amazon's."""
    region: str | None = None
    """The region; by default that of the bucket, or `us-east-1` at an `endpoint`."""
    access_key: str | None = None
    """The id of the access key."""
    secret_key: Secret | None = None
    """The secret that belongs to the access key."""
    session_token: Secret | None = None
    """The token of temporary credentials."""
    anonymous: bool = False
    """Use no credentials, for buckets that are public."""

    @model_validator(mode="after")
    def _whole(self) -> ObjectStore:
        need_whole(self.access_key, self.secret_key, self.session_token)
        if self.anonymous and self.access_key is not None:
            raise ValueError("anonymous uses no access_key")
        return self


def storage_of(location: str, store: ObjectStore | None = None) -> tuple[Storage, str]:
    """The storage of a path or URL, and the path in it. Raises PlanError, OSError."""
    if "://" not in location:
        return LocalStorage(), os.path.normpath(location)
    return _remote(location, store)


@cache
def _remote(location: str, store: ObjectStore | None) -> tuple[Storage, str]:
    bare, _, query = location.partition("?")
    scheme, _, rest = bare.partition("://")
    scheme = scheme.lower()
    if scheme not in SCHEMES:
        hint = did_you_mean(scheme, SCHEMES)
        raise PlanError(f'cannot read or write files at "{scheme}://"', code="scheme", hint=hint)
    if scheme == "file":
        return LocalStorage(), os.path.normpath(unquote(rest))
    if scheme == "s3" and not query:
        return _s3(rest.partition("/")[0], store or ObjectStore()), rest.rstrip("/")
    if store is not None:
        what = f"?{query.partition('=')[0]}=" if scheme == "s3" else f"{scheme}://"
        raise PlanError(
            f"the option storage does not go with {what} in the URL",
            hint="storage is for s3:// URLs, and says all that their ?... would",
        )
    if patience := PATIENCE.get(scheme):
        query = "&".join(filter(None, (query, patience)))
    try:
        url = quote(bare, safe="/:%@,;+~!*'()$[]{}") + "?" * bool(query) + query
        system, path = pafs.FileSystem.from_uri(url)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        detail = str(error).replace(f"?{query}", "")
        raise PlanError(f'"{bare}" is not a valid URL', detail=detail) from error
    prefix = bare[: len(bare) - len(path)] if bare.endswith(path) else f"{scheme}://"
    return ArrowStorage(system, prefix), path.rstrip("/")


def _s3(bucket: str, store: ObjectStore) -> ArrowStorage:
    env = os.environ
    endpoint = store.endpoint or env.get("AWS_ENDPOINT_URL_S3") or env.get("AWS_ENDPOINT_URL")
    region = store.region
    if region is None and endpoint:
        region = env.get("AWS_REGION") or env.get("AWS_DEFAULT_REGION") or "us-east-1"
    if region is None:
        try:
            region = pafs.resolve_s3_region(bucket)
        except OSError as error:
            raise ArrowStorage(None, "s3://").outside(error, "reach", f"s3://{bucket}") from error
    system = pafs.S3FileSystem(
        endpoint_override=endpoint,
        region=region,
        access_key=store.access_key,
        secret_key=revealed(store.secret_key),
        session_token=revealed(store.session_token),
        anonymous=store.anonymous,
        connect_timeout=CONNECT_SECONDS,
        request_timeout=ANSWER_SECONDS,
    )
    return ArrowStorage(system, "s3://", endpoint)
