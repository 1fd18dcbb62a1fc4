"""Points of a device: where they are, and what their registers mean."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from penstock.sdk import Config

_CODES = {
    "int16": "h", "uint16": "H", "int32": "i", "uint32": "I", "int64": "q", "uint64": "Q",
    "float32": "f", "float64": "d",
}  # fmt: skip
_MOST_REGISTERS, _MOST_BITS = 125, 2000


class Point(Config):
    """Something that is measured."""

    name: str
    """Its name in the rows."""
    kind: Literal["coils", "discrete_inputs", "holding_registers", "input_registers"]
    """The table of the device that it is in."""
    address: int = Field(ge=0, le=65_535)
    """The number of its first coil or register, from 0."""
    quantity: int = Field(default=1, ge=1)
    """How many values there are; more than one become a list. For `string`, its registers."""
    data_type: Literal[
        "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64", "string",
        "bits",
    ] = "uint16"  # fmt: skip
    """What a value of registers is; `bits` are the 16 of each register, the lowest first."""
    byte_order: Literal["big", "little"] = "big"
    """The order of the two bytes of a register."""
    word_order: Literal["big", "little"] = "big"
    """The order of the registers of a value."""
    scale: float = 1.0
    """What numbers are multiplied by."""
    offset: float = 0.0
    """What is then added to them."""

    @model_validator(mode="after")
    def _readable(self) -> Self:
        most = _MOST_BITS if self.is_bits else _MOST_REGISTERS
        if self.count > most:
            raise ValueError(f"a device gives at most {most} at once, and these are {self.count}")
        if self.scaled and (self.is_bits or self.data_type in ("string", "bits")):
            raise ValueError("scale and offset are for numbers")
        return self

    @property
    def is_bits(self) -> bool:
        """Whether it is in a table of bits."""
        return self.kind in ("coils", "discrete_inputs")

    @property
    def scaled(self) -> bool:
        return (self.scale, self.offset) != (1.0, 0.0)

    @property
    def count(self) -> int:
        """How many bits or registers are read."""
        if self.is_bits or self.data_type not in _CODES:
            return self.quantity
        return self.quantity * self._width

    @property
    def zero(self) -> Any:
        """Its value, or values, where all is 0."""
        zeros = [False] * self.count
        return self.of_bits(zeros) if self.is_bits else self.of_registers(zeros)

    def of_bits(self, bits: Sequence[bool]) -> Any:
        """Its value, or values."""
        return _single([bool(bit) for bit in bits[: self.quantity]])

    def of_registers(self, registers: Sequence[int]) -> Any:
        """Its value, or values. A number that is none (NaN) is None."""
        words = [register.to_bytes(2, self.byte_order) for register in registers]
        if self.data_type == "string":
            ordered = words if self.word_order == "big" else words[::-1]
            return b"".join(ordered).rstrip(b"\0").decode(errors="replace")
        if self.data_type == "bits":
            numbers = (int.from_bytes(word, "big") for word in words)
            return [bool(number >> bit & 1) for number in numbers for bit in range(16)]
        groups = [words[at : at + self._width] for at in range(0, len(words), self._width)]
        return _single([self._number(group) for group in groups])

    @property
    def _width(self) -> int:
        return struct.calcsize(f">{_CODES[self.data_type]}") // 2

    def _number(self, words: list[bytes]) -> Any:
        ordered = words if self.word_order == "big" else words[::-1]
        (number,) = struct.unpack(f">{_CODES[self.data_type]}", b"".join(ordered))
        if not math.isfinite(number):
            return None
        return number * self.scale + self.offset if self.scaled else number


def _single(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else values
