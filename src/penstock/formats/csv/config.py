"""Options of the format `csv`."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from penstock.formats.csv.header import MissingColumns
from penstock.sdk.encoding.lines import Framing
from penstock.sdk.encoding.time_options import TimeOptions
from penstock.sdk.encoding.transcoding import AUTO, BYTE_ENCODINGS, Encoding
from penstock.sdk.null_text import NullText


class CsvConfig(TimeOptions):
    """Options of `csv`."""

    delimiter: str = Field(default=",", min_length=1, max_length=1, pattern=r"^[\x01-\x7f]$")
    """The field separator; `"\\t"` for tabs."""
    quote: str = Field(default='"', max_length=1, pattern=r"^[\x01-\x7f]?$")
    """The quote character of fields with delimiters, quotes or line ends; empty for none."""
    escape: str = Field(default="", max_length=1, pattern=r"^[\x01-\x7f]?$")
    """The escape character before quotes and itself inside quotes, beside doubled quotes."""
    header: bool = True
    """Read column names from the first line of a file, and write them."""
    missing_columns: Annotated[MissingColumns, NullText()] = "error"
    """For a declared column that is not in the header: `error`, or `null` for nulls. A header
    without any declared column is an error in both cases."""
    columns: list[str] = []
    """The field names of payloads and of files without a header, in order.

    The declared columns by default."""
    nulls: list[str] = [""]
    """Unquoted texts that mean null. A null is written as the empty text if it is one of them, and
    otherwise as the first of them."""
    comment: str = Field(default="", max_length=1)
    """Skip lines of a file that start with this character, except those within a quoted field."""
    framing: Framing = "none"
    """The content of a payload: one record, or with `lines` one on each line that is not blank."""
    encoding: Encoding = AUTO
    """The encoding for reading, such as `latin-1` or `utf-16-le`. With `auto` the byte order mark
    of a file determines UTF-16 or UTF-32; other files and payloads are UTF-8. Files are written as
    UTF-8."""

    @model_validator(mode="after")
    def _check_encoding(self) -> Self:
        if self.framing == "lines" and self.encoding not in BYTE_ENCODINGS:
            raise ValueError("framing: lines requires the encoding auto, utf-8, ascii or latin-1")
        return self

    @model_validator(mode="after")
    def _check_characters(self) -> Self:
        special = ["\n", "\r", *filter(None, (self.delimiter, self.quote, self.comment))]
        if len(set(special)) < len(special):
            raise ValueError("expected different characters as delimiter, quote and comment")
        if self.escape in (self.delimiter, "\n", "\r"):
            raise ValueError("expected an escape that is neither the delimiter nor a line end")
        return self
