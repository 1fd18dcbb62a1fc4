"""Values of rows in the binary log, as the texts or bytes that the server returns for a query.

The library's own values are not used: they lose dates with zeros, the year 0, the zeros at the end
of BINARY, and members of ENUM and SET in other character sets than UTF-8.

Source: https://dev.mysql.com/doc/dev/mysql-server/latest/classbinary__log_1_1Table__map__event.html
"""

from __future__ import annotations

import datetime as dt
import json
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.connectors.mysql.changes.addresses import TEXTS
from penstock.connectors.mysql.changes.charsets import BINARY, decode
from penstock.connectors.mysql.changes.columns import declared_in_log, is_address
from penstock.core.errors import Permanent
from penstock.sdk.database.changes import Unsent, Value

_EPOCH = dt.datetime(1970, 1, 1)
_INTEGERS = {1: 1, 2: 2, 9: 3, 3: 4, 8: 8}
_DIGITS, _GROUP_BYTES = 9, (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
_UTF8 = ("utf8mb4", "utf8mb3", "utf8", "ascii")
_CHARACTERS = frozenset({15, 252, 253, 254, 255})
"""Types of which the log has a collation: text, binary data and, of MariaDB, geometries."""


class Image:
    """The bytes of row images."""

    def __init__(self, data: bytes) -> None:
        self.data, self.position = data, 0

    def take(self, size: int) -> bytes:
        """Returns the next bytes."""
        self.position += size
        if self.position > len(self.data):
            raise ValueError("the row ends early")
        return self.data[self.position - size : self.position]

    def number(self, size: int) -> int:
        """Returns an unsigned number, the lowest byte first."""
        return int.from_bytes(self.take(size), "little")

    def big(self, size: int) -> int:
        """Returns an unsigned number, the highest byte first."""
        return int.from_bytes(self.take(size), "big")

    @property
    def is_read(self) -> bool:
        """Whether no bytes are left."""
        return self.position == len(self.data)


Read = Callable[[Image], Value]


@dataclass(frozen=True)
class Column:
    """A column of the rows that follow in the log, with its type of `declared_in_log`."""

    name: str
    read: Read
    declared: str


def columns_of(
    event: Any, charsets: Mapping[int, str], declared: Mapping[str, str]
) -> list[Column] | None:
    """Returns the columns of a TableMapEvent; None if the log does not have their names.

    `charsets` has the character sets of collations, and `declared` the types of the table now.
    Raises Permanent for a type that is not supported.
    """
    metadata = event.optional_metadata
    if len(metadata.column_name_list) != len(event.columns):
        return None
    of_texts = iter(metadata.charset_collation_list or ())
    of_members = iter(metadata.enum_and_set_collation_list or ())
    has_geometries = event.dbms == "mariadb"
    found = []
    for column, name in zip(event.columns, metadata.column_name_list, strict=True):
        charset = None
        if column.type in (247, 248):
            charset = charsets.get(next(of_members, 0))
        elif column.type in _CHARACTERS and (column.type != 255 or has_geometries):
            charset = charsets.get(next(of_texts, 0))
        read = _reader(column, name, charset, declared.get(name, ""))
        type_ = declared_in_log(column, charset, declared.get(name, ""))
        found.append(Column(name, read, type_))
    return found


def read_row(image: Image, columns: Sequence[Column], present: bytes) -> dict[str, Value]:
    """Reads a row image, of which the bitmap `present` has the columns."""
    bits = int.from_bytes(present, "little")
    sent = [column for index, column in enumerate(columns) if bits >> index & 1]
    # MySQL sets the bits after the last column.
    nulls = int.from_bytes(image.take((len(sent) + 7) // 8), "little") & (1 << len(sent)) - 1
    if not nulls and len(sent) == len(columns):
        return {column.name: column.read(image) for column in columns}
    row: dict[str, Value] = dict.fromkeys([column.name for column in columns], Unsent.VALUE)
    for index, column in enumerate(sent):
        row[column.name] = None if nulls >> index & 1 else column.read(image)
    return row


def members_of(declared: str) -> list[str]:
    """Returns the members of a declared ENUM or SET."""
    return [text.replace("''", "'") for text in re.findall(r"'((?:[^']|'')*)'", declared)]


def _reader(column: Any, name: str, charset: str | None, declared: str) -> Read:
    """Returns the function that reads a value of a column."""
    type_ = column.type
    if type_ in _INTEGERS:
        size, signed = _INTEGERS[type_], not column.unsigned
        return lambda image: str(int.from_bytes(image.take(size), "little", signed=signed))
    if type_ in (4, 5):
        form = struct.Struct("<f" if type_ == 4 else "<d")
        return lambda image: repr(form.unpack(image.take(form.size))[0])
    if type_ == 246:
        return lambda image: _decimal(image, column.precision, column.decimals)
    if type_ in (15, 253, 254):
        prefix = 2 if column.max_length > 255 else 1
        width = column.max_length if type_ == 254 else 0
        if is_address(column, charset, declared):
            return lambda image: _address(image, prefix, width, TEXTS[declared])
        return lambda image: _text(image, prefix, charset, width)
    if type_ in (252, 255):
        of_bytes = BINARY if type_ == 255 else charset
        return lambda image: _text(image, column.length_size, of_bytes, 0)
    if type_ == 245:
        return lambda image: _json(image, column.length_size)
    if type_ == 247:
        return lambda image: _enum(image, column, _members(column, charset, declared))
    if type_ == 248:
        return lambda image: _set(image, column, _members(column, charset, declared))
    if type_ == 16:
        return lambda image: _bits(image, column.bits)
    if type_ in _TIMES:
        read = _TIMES[type_]
        return lambda image: read(image, getattr(column, "fsp", 0))
    raise Permanent(
        f'column "{name}" has the type {type_} of the log, which is not supported',
        code="unsupported-table", hint="Change the type of the column.",
    )  # fmt: skip


def _text(image: Image, prefix: int, charset: str | None, width: int) -> Value:
    data = image.take(image.number(prefix))
    # The log leaves out zeros at the end of BINARY.
    return data.ljust(width, b"\0") if charset == BINARY else decode(data, charset)


def _address(image: Image, prefix: int, width: int, to_text: Callable[[bytes], str]) -> Value:
    return to_text(image.take(image.number(prefix)).ljust(width, b"\0"))


def _decimal(image: Image, precision: int, scale: int) -> str:
    whole, first = divmod(precision - scale, _DIGITS)
    parts, last = divmod(scale, _DIGITS)
    size = _GROUP_BYTES[first] + 4 * (whole + parts) + _GROUP_BYTES[last]
    data = bytearray(image.take(size))
    is_negative = not data[0] & 0x80
    data[0] ^= 0x80
    if is_negative:
        data = bytearray(byte ^ 0xFF for byte in data)
    digits = Image(bytes(data))
    integer = str(digits.big(_GROUP_BYTES[first])) if first else ""
    integer += "".join(f"{digits.big(4):09d}" for _ in range(whole))
    fraction = "".join(f"{digits.big(4):09d}" for _ in range(parts))
    fraction += f"{digits.big(_GROUP_BYTES[last]):0{last}d}" if last else ""
    text = integer.lstrip("0") or "0"
    return f"{'-' if is_negative else ''}{text}{'.' if fraction else ''}{fraction}"


def _json(image: Image, prefix: int) -> Value:
    """Reads JSON of MySQL, which has a binary form."""
    from pymysqlreplication.json_binary import parse_json

    data = image.take(image.number(prefix))
    if not data:
        return "null"
    return json.dumps(_texts(parse_json(data[0], data[1:])), ensure_ascii=False)


def _texts(value: Any) -> Any:
    """Returns a value of JSON with texts in place of bytes."""
    if isinstance(value, dict):
        return {_texts(name): _texts(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_texts(item) for item in value]
    if isinstance(value, bytes):
        return value.decode()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def _members(column: Any, charset: str | None, declared: str) -> Sequence[str] | None:
    """Returns the members of ENUM or SET; None if they are not known.

    The library decodes only those in UTF-8.
    """
    values = column.enum_values[1:] if column.type == 247 else column.set_values
    if values is None:
        return None
    is_decoded = all(values) and (charset in _UTF8 or all(map(str.isascii, values)))
    members = list(values) if is_decoded else members_of(declared)
    return members if len(members) == len(values) else None


def _enum(image: Image, column: Any, members: Sequence[str] | None) -> Value:
    data = image.take(column.size)
    index = int.from_bytes(data, "little")
    if index == 0:
        return ""
    return data if members is None else members[index - 1]


def _set(image: Image, column: Any, members: Sequence[str] | None) -> Value:
    data = image.take(column.size)
    mask = int.from_bytes(data, "little")
    if members is None:
        return data if mask else ""
    return ",".join(each for index, each in enumerate(members) if mask >> index & 1)


def _bits(image: Image, bits: int) -> Value:
    data = image.take((bits + 7) // 8)
    return str(data[0]) if bits == 1 else data


def _fraction(image: Image, digits: int) -> str:
    size = (digits + 1) // 2
    return f".{image.big(size):0{2 * size}d}"[: digits + 1] if digits else ""


def _date(image: Image, digits: int) -> str:
    value = image.number(3)
    return f"{value >> 9:04d}-{value >> 5 & 15:02d}-{value & 31:02d}"


def _datetime(image: Image, digits: int) -> str:
    value = image.big(5) - (1 << 39)
    months, day = divmod(value >> 17, 32)
    year, month = divmod(months, 13)
    time = f"{value >> 12 & 31:02d}:{value >> 6 & 63:02d}:{value & 63:02d}"
    return f"{year:04d}-{month:02d}-{day:02d} {time}{_fraction(image, digits)}"


def _timestamp(image: Image, digits: int) -> str:
    seconds, fraction = image.big(4), _fraction(image, digits)
    if seconds == 0 and not fraction.strip(".0"):
        return f"0000-00-00 00:00:00{fraction}"
    return f"{_EPOCH + dt.timedelta(seconds=seconds)}{fraction}"


def _time(image: Image, digits: int) -> str:
    size = (digits + 1) // 2
    value = image.big(3 + size) - (1 << 23 + 8 * size)
    whole, fraction = divmod(abs(value), 1 << 8 * size)
    text = f"{whole >> 12 & 1023:02d}:{whole >> 6 & 63:02d}:{whole & 63:02d}"
    more = f".{fraction:0{2 * size}d}"[: digits + 1] if digits else ""
    return f"{'-' if value < 0 else ''}{text}{more}"


def _year(image: Image, digits: int) -> str:
    value = image.number(1)
    return f"{value + 1900 if value else 0:04d}"


_TIMES: Mapping[int, Callable[[Image, int], str]] = {
    10: _date, 13: _year, 17: _timestamp, 18: _datetime, 19: _time,
}  # fmt: skip
