"""The format of the files source: by the extension of its paths, checked with its options."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Any

from penstock.connectors.files.compression import strip_compression_extension
from penstock.connectors.files.config import FilesSourceConfig
from penstock.core.errors import OptionError, PlanError
from penstock.sdk import FileFormat, Format

FORMATS = {
    "csv": "csv", "json": "json", "jsonl": "json", "ndjson": "json", "parquet": "parquet",
    "avro": "avro", "arrow": "arrow", "ipc": "arrow", "feather": "arrow",
    "txt": "text", "log": "text",
}  # fmt: skip


def format_of_paths(paths: Iterable[str]) -> str | None:
    """Returns the format of the first path with a known extension; None without one."""
    for path in paths:
        extension = PurePosixPath(strip_compression_extension(path)).suffix.lower().lstrip(".")
        if extension in FORMATS:
            return FORMATS[extension]
    return None


def check_format(format_: Format[Any] | None, config: FilesSourceConfig) -> FileFormat[Any]:
    """Returns the format of files. Raises PlanError for one that the options do not fit."""
    if format_ is None:
        raise PlanError(
            "cannot detect the format by the file extension",
            code="missing-option",
            hint=f"Set format to one of {', '.join(sorted(set(FORMATS.values())))}.",
        )
    if not isinstance(format_, FileFormat):
        raise PlanError("the format does not support files")
    if config.tail and not format_.lines:
        raise PlanError(
            "tail requires a format of lines",
            hint="Use json or text, or watch: true instead of tail.",
        )
    if config.tail and not format_.is_divisible(b""):
        raise PlanError(
            "tail requires the encoding auto, utf-8, ascii or latin-1, and lines",
            hint="Use watch: true instead of tail.",
        )
    if "idle_timeout" in config.model_fields_set and not format_.spans_lines:
        raise OptionError.of(
            "idle_timeout",
            message="idle_timeout is for records of several lines",
            code="unused-option",
            hint="Remove idle_timeout, or set record_start of the format text.",
        )
    return format_
