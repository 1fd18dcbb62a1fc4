"""Data files as JSON: the facts that a task returns for the commit of the driver."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Any

_COUNTS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts")
_BOUNDS = ("lower_bounds", "upper_bounds")


def to_json(file: Any, spec: Any, schema: Any) -> Mapping[str, Any]:
    """Returns a data file as JSON."""
    from pyiceberg.conversions import to_bytes

    types = _partition_types(spec, schema)
    return {
        "path": file.file_path,
        "size": file.file_size_in_bytes,
        "rows": file.record_count,
        "partition": [
            None if value is None else b64encode(to_bytes(type_, value)).decode()
            for value, type_ in zip(_values(file, types), types, strict=True)
        ],
        "split_offsets": file.split_offsets,
        **{name: dict(getattr(file, name)) for name in _COUNTS},
        **{
            name: {key: b64encode(each).decode() for key, each in getattr(file, name).items()}
            for name in _BOUNDS
        },
    }


def from_json(facts: Mapping[str, Any], spec: Any, schema: Any) -> Any:
    """Returns the data file of `to_json`."""
    from pyiceberg.conversions import from_bytes

    types = _partition_types(spec, schema)
    values = [
        None if text is None else from_bytes(type_, b64decode(text))
        for text, type_ in zip(facts["partition"], types, strict=True)
    ]
    return data_file(
        facts["path"], facts["size"], values, spec,
        record_count=facts["rows"],
        split_offsets=facts["split_offsets"],
        **{name: {int(key): each for key, each in facts[name].items()} for name in _COUNTS},
        **{
            name: {int(key): b64decode(each) for key, each in facts[name].items()}
            for name in _BOUNDS
        },
    )  # fmt: skip


def data_file(path: str, size: int, values: Sequence[Any], spec: Any, **statistics: Any) -> Any:
    """Returns a data file of a partition."""
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    file = DataFile.from_args(
        content=DataFileContent.DATA, file_path=path, file_format=FileFormat.PARQUET,
        partition=Record(*values), file_size_in_bytes=size, sort_order_id=None,
        equality_ids=None, key_metadata=None, **statistics,
    )  # fmt: skip
    file.spec_id = spec.spec_id
    return file


def _partition_types(spec: Any, schema: Any) -> list[Any]:
    return [field.field_type for field in spec.partition_type(schema).fields]


def _values(file: Any, types: Sequence[Any]) -> list[Any]:
    return [file.partition[index] for index in range(len(types))]
