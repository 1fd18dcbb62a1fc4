"""Static tables of updating queries: kept with the state that was computed from them.

A row that is retracted must be joined with the row of the table that it was joined with before.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pyarrow as pa

from penstock.core.errors import StateError
from penstock.core.files.durable import create_directory_durably, rename_durably
from penstock.core.files.private_files import open_private
from penstock.engine.checkpoints.state_schema import Columns, OperatorSchema, different_state

TABLES = "tables"
"""The directory of the tables of a query, below its checkpoint."""
_DIGEST = b"digest"


def keep_table(checkpoint: Path, name: str, table: pa.Table) -> None:
    """Stores the rows of a table, atomically and durably."""
    path = _path(checkpoint, name)
    create_directory_durably(path.parent)
    hidden = path.with_name(f".{path.name}")
    schema = table.schema.with_metadata({_DIGEST: _digest(table)})
    with open_private(hidden, "wb") as file, pa.ipc.new_file(file, schema) as writer:
        writer.write_table(table.cast(schema))
    rename_durably(hidden, path)


def kept_table(checkpoint: Path, name: str, columns: pa.Schema) -> pa.Table | None:
    """Returns the kept rows of a table with these columns; None if none are kept.

    Columns are found by name. Raises StateError if the kept table has others, or is damaged.
    """
    table = _read(_path(checkpoint, name))
    if table is None:
        return None
    kept, current = _columns(table.schema), _columns(columns)
    if not set(current) <= set(kept):
        stored, computed = (OperatorSchema("rows", (part,)) for part in (kept, current))
        raise different_state(f'static table "{name}"', stored, computed)
    return table.select(columns.names).cast(columns)


def is_kept(checkpoint: Path, name: str) -> bool:
    """Returns whether the rows of a table are kept."""
    return _path(checkpoint, name).exists()


def has_changed(checkpoint: Path, name: str, table: pa.Table) -> bool:
    """Returns whether the rows of a table are not the kept ones."""
    kept = _read(_path(checkpoint, name))
    return kept is not None and (kept.schema.metadata or {}).get(_DIGEST) != _digest(table)


def _path(checkpoint: Path, name: str) -> Path:
    return checkpoint / TABLES / f"{name}.arrow"


def _read(path: Path) -> pa.Table | None:
    try:
        with pa.memory_map(str(path)) as file:
            return pa.ipc.open_file(file).read_all()
    except FileNotFoundError:
        return None
    except (OSError, pa.ArrowException) as error:
        raise StateError(
            f"the state of an updating query is damaged: {path} cannot be read: {error}",
            code="corrupt-state",
            hint="Restore the state directory from a backup, or reset the state with --fresh.",
        ) from error


def _columns(schema: pa.Schema) -> Columns:
    return tuple((field.name, str(field.type)) for field in schema)


def _digest(table: pa.Table) -> bytes:
    """Returns a digest of the rows and columns of a table."""
    sink = pa.BufferOutputStream()
    plain = table.replace_schema_metadata(None).combine_chunks()
    with pa.ipc.new_stream(sink, plain.schema) as writer:
        writer.write_table(plain)
    return hashlib.blake2b(sink.getvalue(), digest_size=16).hexdigest().encode()
