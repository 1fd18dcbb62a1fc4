"""JSON: one object per record; one object per line in files."""

from __future__ import annotations

from penstock.formats.json.plain import JsonConfig, PlainJson
from penstock.sdk.component import Component, Context

__all__ = ["Json", "JsonConfig"]


class Json(PlainJson):
    """JSON objects: one per payload, one per line in files (`.jsonl`), or files of other layouts.

    ```yaml
    format: {type: json, timestamps: millis, unknown: reject}
    ```

    Keys are columns. A key that differs from a column only by case is the column, unless the object
    has the equal key with a value. A missing key and `null` are null. The last of equal keys
    wins. Unknown keys are ignored; only the structure of their values is validated. No value is
    rounded or truncated silently, not even in nested values:

    * Integers accept numbers without a fractional part (`12`, `12.0`, `1.2e1`) and their text
      (`"12"`). A number out of range is an error.
    * FLOAT and DOUBLE accept numbers and their text, and "NaN", "Infinity" and "-Infinity" (also
      written in this form). Values are rounded to the nearest; a number out of range is an error.
    * DECIMAL accepts numbers and text, exactly. More digits than the type has are an error.
    * STRING accepts text. A number, boolean, object or array becomes its JSON text, as in Spark's
      `from_json`, at a tenth of the speed.
    * BOOLEAN accepts `true` and `false`. BINARY is base64. DATE is `"2024-01-02"`.
    * TIMESTAMP is ISO 8601: `"2024-01-02T03:04:05.678+02:00"`. A space may replace the T. Seconds,
      fraction, time and offset (default UTC) are optional. Digits below a microsecond are an
      error, unless `nanoseconds` is `truncate`. TIMESTAMP_NTZ is the same in UTC. With
      `timestamps: seconds|millis|micros|nanos` both are numbers.
    * STRUCT is an object, ARRAY an array, MAP an object whose keys are text of the key's type.
    * VARIANT accepts any value, at a tenth of the speed; `null` is NULL. A number that is neither a
      decimal of 38 digits nor a double is an error. VARIANT is written as its value. Other formats
      read and write the JSON text of the value.

    With `framing: lines` a payload may hold several objects, one per line. Each invalid line is a
    dead letter of its own.

    A file may also be an array of objects, or have objects of several lines, as of pretty-printing.
    The position is the number of the line; in these files it is the number of the object. An array
    that is not closed is an error after its last object.

    White space around and inside objects is allowed. A byte order mark is skipped; that of a file
    determines UTF-16 or UTF-32. A payload that
    is empty, not an object, or more than one object is an error, as is a line of more than 64 MB.
    Blank lines of a file are skipped. Rules: RFC 8259, plus control characters in text and trailing
    commas.

    With `registry`, undeclared columns come from the JSON Schema at the first run: `date` and
    `date-time` are DATE and TIMESTAMP, an object without properties is a MAP, a value of several
    types is STRING. Payloads are validated against the columns, not against the schema. A sink
    registers a schema derived from its columns.
    """

    @classmethod
    def create(cls, config: JsonConfig, context: Context | None = None) -> Component[JsonConfig]:
        if config.registry is None:
            return cls(config, context)
        from penstock.formats.json.registered import RegisteredJson

        return RegisteredJson(config, context)
