"""Options of the Modbus source."""

from __future__ import annotations

import struct
from typing import Literal, Self

from pydantic import Field, model_validator

from penstock.sdk import Config, PositiveDuration, ReceivingConfig
from penstock.sdk.network.address import Address
from penstock.sdk.network.tls import Tls, TlsOption, resolve_tls

NUMBER_CODES = {
    "int16": "h", "uint16": "H", "int32": "i", "uint32": "I", "int64": "q", "uint64": "Q",
    "float32": "f", "float64": "d",
}  # fmt: skip
"""The `struct` code of each numeric data type."""
_MAX_REGISTERS, _MAX_BITS = 125, 2000


class Point(Config):
    """A measured value, or several values at consecutive addresses."""

    name: str
    """The field's name in the rows."""
    kind: Literal["coils", "discrete_inputs", "holding_registers", "input_registers"]
    """The table of the device."""
    address: int = Field(ge=0, le=65_535)
    """The address of the first coil or register, from 0."""
    quantity: int = Field(default=1, ge=1)
    """The number of values. Several values become a list. For `string`, the number of registers."""
    data_type: Literal[
        "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64", "string",
        "bits",
    ] = "uint16"  # fmt: skip
    """The type of a value in registers. `bits` are the 16 bits of each register, the lowest
    first."""
    byte_order: Literal["big", "little"] = "big"
    """The order of the two bytes of a register."""
    word_order: Literal["big", "little"] = "big"
    """The order of the registers of a value."""
    scale: float = 1.0
    """The factor that numbers are multiplied by."""
    offset: float = 0.0
    """The number that is added after scaling."""

    @model_validator(mode="after")
    def _check_request(self) -> Self:
        limit = _MAX_BITS if self.is_bits else _MAX_REGISTERS
        if self.count > limit:
            unit = "bits" if self.is_bits else "registers"
            raise ValueError(f"expected at most {limit} {unit} per request, found {self.count}")
        if self.scaled and (self.is_bits or self.data_type in ("string", "bits")):
            raise ValueError("scale and offset are for numbers")
        return self

    @property
    def is_bits(self) -> bool:
        """Whether the point is in a table of bits."""
        return self.kind in ("coils", "discrete_inputs")

    @property
    def scaled(self) -> bool:
        """Whether numbers are scaled or shifted."""
        return (self.scale, self.offset) != (1.0, 0.0)

    @property
    def width(self) -> int:
        """The number of registers of one number."""
        return struct.calcsize(f">{NUMBER_CODES[self.data_type]}") // 2

    @property
    def count(self) -> int:
        """The number of bits or registers of a request."""
        if self.is_bits or self.data_type not in NUMBER_CODES:
            return self.quantity
        return self.quantity * self.width


class ModbusSourceConfig(ReceivingConfig):
    connect: Address
    """The device, as `host:port`. The standard port is 502, or 802 with TLS."""
    tls: TlsOption = None
    """TLS (Modbus/TCP Security): `true`, or certificates and verification. No TLS by default."""
    unit_id: int = Field(default=1, ge=0, le=255)
    """The unit identifier of the device, where several devices share an address."""
    interval: PositiveDuration = 1.0
    """The time between two polls."""
    points: list[Point] = Field(min_length=1)
    """The points to read. Each is a field of the rows."""
    timeout: PositiveDuration = 3.0
    """The timeout of connecting and of a request."""

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        names = [point.name for point in self.points]
        if len(names) > len({*names}):
            raise ValueError("two points have the same name")
        return self

    @property
    def tls_settings(self) -> Tls | None:
        """The TLS settings; None without TLS."""
        return resolve_tls(self.tls)
