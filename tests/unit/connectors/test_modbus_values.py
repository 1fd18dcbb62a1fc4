"""Values of Modbus registers: orders of bytes and words, numbers, texts and bits."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from penstock.connectors.modbus.config import Point
from penstock.connectors.modbus.registers import decode_bits, decode_registers, zero_value


def point(**options: Any) -> Point:
    return Point.model_validate({"name": "p", "kind": "holding_registers", "address": 0, **options})


def registers(data: bytes) -> list[int]:
    return list(struct.unpack(f">{len(data) // 2}H", data))


@pytest.mark.parametrize(
    ("options", "data", "value"),
    [
        ({}, b"\xff\xfe", 65_534),
        ({"data_type": "int16"}, b"\xff\xfe", -2),
        ({"byte_order": "little"}, b"\x01\x02", 0x0201),
        ({"data_type": "uint32"}, b"\x00\x01\x00\x02", 0x10002),
        ({"data_type": "uint32", "word_order": "little"}, b"\x00\x01\x00\x02", 0x20001),
        ({"data_type": "uint32", "byte_order": "little"}, b"\x01\x00\x02\x00", 0x10002),
        ({"data_type": "float32"}, struct.pack(">f", 1.5), 1.5),
        ({"data_type": "float32"}, struct.pack(">f", float("nan")), None),
        ({"data_type": "int16", "scale": 0.1, "offset": -40}, b"\x01\xf4", 10.0),
        ({"quantity": 3}, b"\0\1\0\2\0\3", [1, 2, 3]),
        ({"data_type": "int32", "quantity": 2}, b"\0\0\0\1\xff\xff\xff\xff", [1, -1]),
        ({"data_type": "string", "quantity": 3}, b"abc\0\0\0", "abc"),
        ({"data_type": "string", "quantity": 2, "word_order": "little"}, b"cdab", "abcd"),
    ],
)
def test_registers(options: dict[str, Any], data: bytes, value: Any) -> None:
    assert decode_registers(point(**options), registers(data)) == value


def test_bits() -> None:
    found = decode_registers(point(data_type="bits"), [0b101])
    assert found == [True, False, True, *[False] * 13]
    coils = point(kind="coils", quantity=3)
    assert decode_bits(coils, [True, False, True, True, True]) == [True, False, True]
    assert decode_bits(point(kind="coils"), [True, False]) is True


def test_values_of_zero() -> None:
    assert zero_value(point(data_type="float32", scale=2, offset=5)) == 5
    assert zero_value(point(kind="coils", quantity=2)) == [False, False]
    assert zero_value(point(data_type="string", quantity=2)) == ""
