"""Files of databases that are attached for the time of a transaction.

A new instance of DuckDB costs 25 ms of CPU, and a new attachment in an instance 3 ms. So a process
keeps an instance without data for each file, and attaches the file to it.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from penstock.connectors.duckdb.config import FileConfig
from penstock.connectors.duckdb.errors import is_in_use, translate_error
from penstock.core.names import quote_standard_name, standard_literal
from penstock.core.path_permission import check_path, paths_confined

_ATTEMPT_SECONDS = 0.02
_RESERVED = {"memory", "temp", "system", "main", "information_schema", "pg_catalog"}
"""Names of catalogs and schemas, which a file may have, too."""
_SUFFIXES = ("", ".wal", ".wal.checkpoint", ".wal.recovery", ".tmp")
"""Ends of the names of the files that DuckDB makes for a database."""
_instances: dict[tuple[int, str], Any] = {}
"""Instances by the process, since a forked process cannot use them, and the path."""


class Attachment:
    """A file that is attached to the instance of its path, with a connection that uses it."""

    def __init__(self, config: FileConfig, *, read_only: bool) -> None:
        self._path = str(Path(config.path).absolute())
        self._key = (os.getpid(), self._path)
        stem = Path(self._path).stem
        self._name = quote_standard_name(f"{stem}_db" if stem.lower() in _RESERVED else stem)
        self.client = self._attach(config, read_only=read_only)

    def cursor(self) -> Any:
        """Returns another connection that uses the file, with transactions of its own."""
        cursor = self.client.cursor()
        self._use(cursor)
        return cursor

    def detach(self) -> None:
        """Discards the transaction and closes the file."""
        for statement in ("ROLLBACK", "USE memory"):
            with suppress(Exception):
                self.client.execute(statement)
        try:
            self.client.execute(f"DETACH {self._name}")
        except Exception:
            # The instance closes the file when its last connection is closed.
            instance = _instances.pop(self._key, None)
            if instance is not None:
                instance.close()
        self.client.close()

    def _attach(self, config: FileConfig, *, read_only: bool) -> Any:
        """Attaches the file. Waits while another process, or another transaction, uses it."""
        import duckdb

        check_path(self._path)
        if self._key not in _instances:
            _instances[self._key] = _new_instance(self._path)
        options = "TYPE duckdb, READ_ONLY" if read_only else "TYPE duckdb"
        deadline = time.monotonic() + config.timeout
        while True:
            client = _instances[self._key].cursor()
            try:
                client.execute(f"ATTACH {standard_literal(self._path)} AS {self._name} ({options})")
                self._use(client)
                return client
            except duckdb.Error as error:
                client.close()
                if not is_in_use(error) or time.monotonic() > deadline:
                    translated = translate_error(error, config.path)
                    raise error if translated is None else translated from error
            time.sleep(_ATTEMPT_SECONDS)

    def _use(self, client: Any) -> None:
        client.execute(f"USE {self._name}")
        client.execute("SET TimeZone = 'UTC'")


def _new_instance(path: str) -> Any:
    """Returns an instance without data. Where paths are confined it opens no file but that one."""
    import duckdb

    instance = duckdb.connect(":memory:")
    if paths_confined():
        files = ", ".join(standard_literal(f"{path}{suffix}") for suffix in _SUFFIXES)
        instance.execute(f"SET allowed_paths = [{files}]")
        instance.execute("SET enable_external_access = false")
    return instance
