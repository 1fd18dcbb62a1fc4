"""Files of dead letters: the letters of a batch, and the places that were found for them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from penstock.core.files.durable import replace_durably
from penstock.engine.tasks.dead_letter_writer import DEAD_LETTER, assign_unique_ids

_PLACES = ".places.json"
"""The file in the folder of a batch with the places that were found for its letters, by ID."""


class Place(NamedTuple):
    """The origin of a record and its position there."""

    origin: str
    position: int


def read_dead_letters(path: Path) -> pa.Table:
    """Returns the letters of a file. Files of earlier versions lack the last columns.

    Raises OSError, and ArrowInvalid for a damaged file.
    """
    with pa.memory_map(str(path)) as source:
        table: pa.Table = pa.ipc.open_file(source).read_all()
    for column in DEAD_LETTER:
        if column.name not in table.column_names:
            table = table.append_column(column, pa.nulls(len(table), column.type))
    return table.cast(DEAD_LETTER)


def first_of_each_id(dead_letters: pa.Table) -> pa.Table:
    """Returns the first letter of each ID."""
    first: dict[str, int] = {}
    for index, identity in enumerate(dead_letters.column("id").to_pylist()):
        first.setdefault(identity, index)
    return dead_letters.take(pa.array(list(first.values()), pa.int64()))


def read_batch(folder: Path, read: Callable[[Path], pa.Table] = read_dead_letters) -> pa.Table:
    """Returns the letters in the folder of a batch, each ID once, with the places that are known.

    The order is equal in all computations of the batch. `read` reads a file.
    """
    by_folder: dict[Path, list[pa.Table]] = {}
    for path in sorted(folder.rglob("*.arrow")):
        if not path.name.startswith("."):
            by_folder.setdefault(path.parent, []).append(read(path))
    tables = [assign_unique_ids(pa.concat_tables(parts)) for parts in by_folder.values()]
    dead_letters = first_of_each_id(pa.concat_tables([DEAD_LETTER.empty_table(), *tables]))
    return _with_places(dead_letters, _read_places(folder))


def write_places(folder: Path, places: Mapping[str, Place]) -> None:
    """Stores the places of letters of a batch by ID, durably, for `read_batch`."""
    replace_durably(folder / _PLACES, json.dumps(places))


def _read_places(folder: Path) -> dict[str, Place]:
    path = folder / _PLACES
    if not path.exists():
        return {}
    return {identity: Place(*place) for identity, place in json.loads(path.read_text()).items()}


def _with_places(dead_letters: pa.Table, places: Mapping[str, Place]) -> pa.Table:
    """Returns letters with the places that are known by ID."""
    if not places:
        return dead_letters
    rows = dead_letters.to_pylist()
    for row in rows:
        if row["origin"] is None and row["id"] in places:
            row["origin"], row["position"] = places[row["id"]]
    return pa.Table.from_pylist(rows, schema=DEAD_LETTER)
