"""Escaped texts of the line protocol of InfluxDB.

Syntax: https://docs.influxdata.com/influxdb/v2/reference/syntax/line-protocol/. Measurements, tags
and names of fields have no form for a line break, nor for a backslash before an escaped character.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

UNWRITABLE = r"[\n\r]|\\([,= ]|$)"


def is_unwritable(text: str) -> bool:
    """Returns whether a measurement, a tag or the name of a field has no form."""
    return re.search(UNWRITABLE.replace("$", r"\Z"), text) is not None


def is_unwritable_measurement(text: str) -> bool:
    """Returns whether a measurement has no form.

    A line that begins with # is a comment, and blanks at the beginning of a line are removed.
    InfluxDB 1 takes a backslash and a quote for a quote, and loses points of both measurements.
    """
    return is_unwritable(text) or '\\"' in text or text.startswith(("#", "\t", "\v", "\f", "\0"))


def escape_measurement(text: str) -> str:
    """Returns the escaped name of a measurement."""
    return text.replace(",", r"\,").replace(" ", r"\ ")


def escape_key(text: str) -> str:
    """Returns an escaped name or value of a tag, or an escaped name of a field."""
    return escape_measurement(text).replace("=", r"\=")


def escape_keys(texts: pa.StringArray) -> pa.StringArray:
    """Returns escaped values of tags."""
    for character in ",= ":
        texts = pc.replace_substring(texts, character, f"\\{character}")
    return texts


def quote(texts: pa.StringArray) -> pa.StringArray:
    """Returns the quoted values of text fields."""
    for character in ("\\", '"'):
        texts = pc.replace_substring(texts, character, f"\\{character}")
    return pc.binary_join_element_wise('"', texts, '"', "")
