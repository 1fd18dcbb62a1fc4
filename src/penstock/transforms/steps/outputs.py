"""The rows that are written for a batch."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from penstock.core.errors import EncodeError
from penstock.transforms.steps.codecs import make_codec
from penstock.transforms.steps.config import StepsOutput
from penstock.transforms.steps.expressions import Expression
from penstock.transforms.steps.input_config import VALUE
from penstock.transforms.steps.json_rows import encode_json

PAYLOAD = "__payload__"
"""The column with the payload."""
FAILED = "__failed__"
"""The column that is true for the input of a batch on which a step has failed."""


class OutputRows:
    """Makes the rows that are written of the rows of a batch."""

    def __init__(self, config: StepsOutput, base: Path) -> None:
        self.config = config
        self._codec = make_codec(config.encode, base) if config.encode is not None else None
        self.expressions = {name: Expression(each) for name, each in config.columns.items()}

    def rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Returns the rows to write. Raises EncodeError, or Rejected."""
        arrays = {
            name: pa.array(each.evaluate(batch), pa.string())
            for name, each in self.expressions.items()
        }
        if self.config.infer or self.config.rows is not None or self.config.target is not None:
            names = list(dict.fromkeys(batch.schema.names))
            arrays |= {name: batch.column(batch.schema.names.index(name)) for name in names}
        else:
            arrays[PAYLOAD] = pa.array(self._payloads(batch), pa.binary())
        return pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))

    def _payloads(self, batch: pa.RecordBatch) -> list[bytes]:
        if self._codec is not None:
            return self._codec.encode(batch)
        name = self.config.value or VALUE
        if name not in batch.schema.names:
            if self.config.value is not None and VALUE in batch.schema.names:
                name = VALUE
            else:
                return encode_json(batch)
        values = batch.column(batch.schema.names.index(name)).to_pylist()
        if None in values:
            raise EncodeError(f'the column "{name}" is null in a row', code="missing-value")
        return [_bytes(value) for value in values]


def _bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()
