"""Access to tables and their files with delta-rs."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import unquote

import pyarrow.fs as pafs

from penstock.connectors.delta.config import LocationConfig
from penstock.connectors.delta.errors import convert_errors
from penstock.core.errors import OptionError
from penstock.core.secret import revealed
from penstock.sdk import object_files
from penstock.sdk.lakes.local_files import probe_directory, sync_file
from penstock.sdk.object_client import check_url, open_client, store_settings
from penstock.sdk.object_reads import open_whole
from penstock.sdk.object_store import STORE_SCHEMES, StorageOptions, is_cloud

CONNECT_TIMEOUT, REQUEST_TIMEOUT, RETRY_TIMEOUT, RETRIES = "3s", "30s", "10s", "2"
LOG = "_delta_log"


_UNSUPPORTED = re.compile(r"[\\\x00-\x1f\x7f]")


@dataclass(frozen=True)
class Location:
    """The location of a table."""

    path: str
    storage: StorageOptions | None = None

    @classmethod
    def of(cls, config: LocationConfig) -> Location:
        """Returns the location that options name. Raises OptionError."""
        scheme, separator, rest = config.path.partition("://")
        is_file = bool(separator) and scheme.lower() == "file"
        path = unquote(rest) if is_file else config.path.rstrip("/")
        if unquote(path) != path:
            raise OptionError.of(
                "path", message=f'the name of a table cannot have an encoded character: "{path}"',
                hint="Rename the directory: delta-rs would use another one.",
            )  # fmt: skip
        if _UNSUPPORTED.search(path):
            raise OptionError.of(
                "path", code="invalid-name", hint="Choose another name.",
                message=f"the path of a table cannot have a backslash or a control character: "
                f"{path!r}",
            )  # fmt: skip
        if is_file:
            return cls(path)
        if config.storage is not None and scheme.lower() not in STORE_SCHEMES:
            raise OptionError.of(
                "storage", message="storage requires the URL of an object store in path"
            )
        check_url(path, config.storage)
        if config.storage is not None and config.storage.ca_file is not None:
            raise OptionError.of(
                "storage", "tls", message="ca is not supported for tables of Delta Lake",
                hint="Set the environment variable SSL_CERT_FILE to the file.",
            )  # fmt: skip
        return cls(path, config.storage)

    @property
    def is_local(self) -> bool:
        """Whether the table is in the local file system."""
        return "://" not in self.path

    @property
    def is_cloud(self) -> bool:
        """Whether the table is in Google Cloud Storage or Azure."""
        return is_cloud(self.path)

    def open(self, version: int | None = None) -> Any:
        """Returns the table at a version, by default the latest one; None if there is no table."""
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        with convert_errors("open", self.path):
            if self.is_local and not Path(self.path, LOG).is_dir():
                return None
            try:
                return DeltaTable(self.path, version, self.options)
            except TableNotFoundError:
                return None

    @cached_property
    def options(self) -> dict[str, str]:
        """The options of the client of an object store."""
        if self.is_local:
            return {}
        limits = {
            "timeout": REQUEST_TIMEOUT, "connect_timeout": CONNECT_TIMEOUT,
            "max_retries": RETRIES, "retry_timeout": RETRY_TIMEOUT,
        }  # fmt: skip
        scheme, _, rest = self.path.partition("://")
        if self.is_cloud:
            settings = store_settings(self.path, self.storage or StorageOptions())
            texts = {name: "true" if text is True else text for name, text in settings.items()}
            return {**limits, **texts, "allow_http": "true"}
        if scheme.lower() != "s3":
            return limits
        with convert_errors("reach", self.path):
            return {**limits, **_s3_options(self.storage or StorageOptions(), rest.split("/")[0])}

    def open_input(self, name: str) -> BinaryIO:
        """Opens a file of the table for reading. Raises FileNotFoundError."""
        if self.is_local:
            return Path(self.path, name).open("rb")
        if self.is_cloud:
            return object_files.open_reader(self._objects, name)
        return open_whole(lambda: self._files.open_input_file(name))

    def modified(self, name: str) -> datetime | None:
        """Returns the time of a file of the table in milliseconds; None if it does not exist."""
        try:
            if self.is_local:
                time: datetime | None = datetime.fromtimestamp(
                    Path(self.path, name).stat().st_mtime, UTC
                )
            elif self.is_cloud:
                time = object_files.modified(self._objects, name)
            else:
                time = self._files.get_file_info(name).mtime
        except FileNotFoundError:
            return None
        return time and time.replace(microsecond=time.microsecond // 1000 * 1000)

    def open_output(self, name: str) -> BinaryIO:
        """Creates a file of the table."""
        if self.is_cloud:
            return object_files.open_writer(self._objects, name)
        if not self.is_local:
            return cast(BinaryIO, self._files.open_output_stream(name, compression=None))
        path = Path(self.path, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("wb")

    def sync(self, name: str) -> None:
        """Writes a file of the table and its directories to disk; in object stores it is there."""
        if self.is_local:
            sync_file(Path(self.path, name), Path(self.path))

    def delete(self, name: str) -> None:
        """Deletes a file of the table, if it exists."""
        if self.is_local:
            Path(self.path, name).unlink(missing_ok=True)
        elif self.is_cloud:
            object_files.delete(self._objects, name)
        elif self._files.get_file_info(name).type == pafs.FileType.File:
            self._files.delete_file(name)

    def probe(self) -> None:
        """Checks that files can be created, without a trace. Raises OSError."""
        if not self.is_local:
            name = f".penstock-{uuid.uuid4().hex}"
            self.open_output(name).close()
            self.delete(name)
            return
        probe_directory(Path(self.path))

    @cached_property
    def _objects(self) -> Any:
        """The objects of a table in Google Cloud Storage or Azure."""
        with convert_errors("reach", self.path), object_files.os_errors():
            return open_client(self.path, self.storage or StorageOptions())

    @cached_property
    def _files(self) -> pafs.FileSystem:
        """The directory of a table in an object store."""
        scheme, _, rest = self.path.partition("://")
        if scheme.lower() == "s3":
            options = self.storage or StorageOptions()
            system: pafs.FileSystem = options.open_s3(options.region_of(rest.partition("/")[0]))
        else:
            system, rest = pafs.FileSystem.from_uri(self.path)
        return pafs.SubTreeFileSystem(rest, system)

    def __getstate__(self) -> Mapping[str, Any]:
        return {"path": self.path, "storage": self.storage}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)


def _s3_options(storage: StorageOptions, bucket: str) -> dict[str, str]:
    auth = storage.auth
    found = {
        "AWS_ENDPOINT_URL": storage.endpoint,
        "AWS_REGION": storage.region_of(bucket),
        "AWS_ACCESS_KEY_ID": auth.access_key if auth else None,
        "AWS_SECRET_ACCESS_KEY": revealed(auth.secret_key) if auth else None,
        "AWS_SESSION_TOKEN": revealed(auth.session_token) if auth else None,
        "AWS_SKIP_SIGNATURE": "true" if storage.anonymous else None,
        "AWS_ALLOW_HTTP": "true" if (storage.endpoint or "").startswith("http:") else None,
    }
    return {name: value for name, value in found.items() if value is not None}
