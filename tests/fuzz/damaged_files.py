"""Files with changed, cut or moved bytes: their content is rows and bad records.

.venv/bin/python tests/fuzz/damaged_files.py --seed 1 --count 1000
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from fuzzing import main, mutant

from penstock.connectors.files import FilesSource, FilesSourceConfig
from penstock.connectors.files.compression import SUFFIX, compressed_stream
from penstock.core.errors import Permanent, PlanError
from penstock.formats.arrow import Arrow, ArrowConfig
from penstock.formats.avro import Avro, AvroConfig
from penstock.formats.csv import Csv, CsvConfig
from penstock.formats.json import Json, JsonConfig
from penstock.formats.parquet import Parquet, ParquetConfig
from penstock.formats.raw import Raw, RawConfig
from penstock.formats.text import Text, TextConfig
from penstock.sdk import FileFormat, Read

COLUMNS = pa.schema(
    [
        ("id", pa.int64()), ("name", pa.string()), ("price", pa.float64()),
        ("at", pa.timestamp("us", "UTC")),
    ]
)  # fmt: skip
NESTED = pa.schema(
    [
        *COLUMNS, ("list", pa.list_(pa.field("element", pa.string()))),
        ("inner", pa.struct([("q", pa.int32())])), ("tags", pa.map_(pa.string(), pa.int64())),
    ]
)  # fmt: skip
TEXT = pa.schema([("value", pa.string())])
FORMATS: list[tuple[FileFormat[Any], pa.Schema]] = [
    (Arrow(ArrowConfig()), NESTED),
    (Arrow(ArrowConfig(layout="stream", compression="lz4")), NESTED),
    (Arrow(ArrowConfig(compression="none")), NESTED),
    (Avro(AvroConfig()), NESTED), (Avro(AvroConfig(compression="none")), NESTED),
    (Csv(CsvConfig()), COLUMNS), (Json(JsonConfig()), NESTED), (Text(TextConfig()), TEXT),
    (Raw(RawConfig()), TEXT),
    *((Parquet(ParquetConfig(compression=compression)), NESTED)
      for compression in ("zstd", "snappy", "gzip", "lz4", "none")),
]  # fmt: skip
HEADER_ERRORS = ("wrong-header", "missing-column", "ambiguous-column")
CODECS: list[str | None] = [None, *SUFFIX]


def run(seed: int, count: int) -> Iterator[str]:
    """Reads `count` damaged files. Yields exceptions other than an error of the inference."""
    random = Random(seed)
    with tempfile.TemporaryDirectory() as directory:
        for number in range(count):
            format_, columns = FORMATS[number % len(FORMATS)]
            codec = random.choice(CODECS) if random.random() < 0.5 else None
            content = _compress(mutant(random, _content(number % len(FORMATS))), codec)
            if codec is not None:
                content = mutant(random, content)
            path = Path(directory) / f"file{SUFFIX.get(codec or '', '')}"
            path.write_bytes(content)
            problem = _read(path, format_, columns)
            path.unlink()
            if problem is not None:
                yield (
                    f"seed {seed}, number {number}, {type(format_).__name__} "
                    f"{format_.config!r}, {codec}: {problem}\n{content!r}"
                )


@cache
def _content(number: int) -> bytes:
    """Returns an undamaged file of a format."""
    format_, columns = FORMATS[number]
    rows = [{"id": n, "name": "☂" * n, "list": ["x"] * n, "inner": {"q": n}} for n in range(30)]
    if columns == TEXT:
        rows = [{"value": "x" * n} for n in range(30)]
    out = io.BytesIO()
    writer = format_.file_writer(out, columns)
    writer.write(pa.RecordBatch.from_pylist(rows, columns))
    writer.close()
    return out.getvalue()


def _compress(content: bytes, codec: str | None) -> bytes:
    out = io.BytesIO()
    stream = compressed_stream(out, codec)  # type: ignore[arg-type]
    stream.write(content)
    if codec is not None:
        stream.close()
    return out.getvalue()


def _read(path: Path, format_: FileFormat[Any], columns: pa.Schema) -> str | None:
    """Returns the problem of reading a file; None for rows, bad records and a wrong header."""
    source = FilesSource(FilesSourceConfig(path=str(path)))
    source.format, source.columns = format_, columns
    try:
        for partition in source.partitions({"files": 0}, source.latest_offset({"files": 0})):
            for batch in source.read(partition, Read()):
                batch.validate(full=True)
        source.infer_schema()
    except PlanError:
        return None
    except Permanent as error:
        return None if error.code in HEADER_ERRORS else f"{type(error).__name__}: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


if __name__ == "__main__":
    main(run)
