"""Files that DataFusion reads: JSON lines, CSV, Parquet, Avro and Arrow."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from glob import has_magic
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import urlopen

import pyarrow as pa

from penstock.core.errors import Permanent
from penstock.core.secret import revealed
from penstock.transforms.steps.input_config import FileQuery, Storage, StorageAuth
from penstock.transforms.steps.paths import locate
from penstock.transforms.steps.sql_query import error_text, new_context, plan_query, without_views

if TYPE_CHECKING:
    from datafusion import SessionContext

_TIMEOUT = 60.0
"""The maximum seconds of waiting for a web server."""


def read_files(config: FileQuery, base: Path) -> Iterator[pa.RecordBatch]:
    """Yields the rows of files, or of the query over them. Raises Permanent, or DecodeError."""
    context = new_context()
    path = _locate(config.path, base)
    with TemporaryDirectory() as directory:
        try:
            if path.startswith("http://"):
                path = _download(path, Path(directory))
            elif config.storage is not None:
                _register_store(context, path, config.storage)
            _register(context, config, path)
            frame = plan_query(context, config.query or f'SELECT * FROM "{config.table}"')
            for part in frame.execute_stream():
                batch = without_views(part.to_pyarrow())
                if batch.num_rows:
                    yield batch
        except Exception as error:
            raise Permanent(
                f"cannot read {config.path}: {error_text(error)}", code="unreadable-file"
            ) from error


def _download(url: str, directory: Path) -> str:
    """Returns the path of a copy of a file: DataFusion has no HTTP without TLS."""
    copy = directory / Path(urlsplit(url).path).name
    with urlopen(url, timeout=_TIMEOUT) as response, copy.open("wb") as file:
        shutil.copyfileobj(response, file)
    return str(copy)


def _locate(path: str, base: Path) -> str:
    """Returns the path from the working directory if it exists there, else from `base`."""
    if "://" in path:
        return path
    if has_magic(path):
        is_here = Path(path).is_absolute() or any(Path.cwd().glob(path))
        return str((Path.cwd() if is_here else base) / path)
    located = locate(path, base)
    if located.exists():
        return str(located)
    raise Permanent(f"there is no file {path}", code="missing-file")


def _register(context: SessionContext, config: FileQuery, path: str) -> None:
    suffix = Path(urlsplit(path).path).suffix
    table = config.table
    if config.format == "json":
        context.register_json(table, path, file_extension=suffix or ".json")
    elif config.format == "csv":
        context.register_csv(table, path, has_header=True, file_extension=suffix or ".csv")
    elif config.format == "parquet":
        context.register_parquet(table, path, file_extension=suffix or ".parquet")
    elif config.format == "avro":
        context.register_avro(table, path, file_extension=suffix or ".avro")
    else:
        context.register_arrow(table, path, file_extension=suffix or ".arrow")


def _register_store(context: SessionContext, path: str, storage: Storage) -> None:
    from datafusion import object_store

    url, auth = urlsplit(path), storage.auth or StorageAuth.model_construct()
    bucket = storage.bucket or url.netloc
    if storage.type == "s3":
        store: Any = object_store.AmazonS3(
            bucket, storage.region, auth.access_key, revealed(auth.secret_key), None,
            storage.endpoint_url, storage.allow_http,
        )  # fmt: skip
    elif storage.type == "gs":
        store = object_store.GoogleCloud(bucket, auth.service_account)
    elif storage.type == "az":
        store = object_store.MicrosoftAzure(
            bucket, account=storage.account, access_key=revealed(auth.account_key),
            allow_http=storage.allow_http,
        )  # fmt: skip
    else:
        store = object_store.Http(f"{url.scheme}://{url.netloc}")
    context.register_object_store(f"{url.scheme}://", store, url.netloc)
