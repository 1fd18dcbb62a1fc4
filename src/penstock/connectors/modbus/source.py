"""The source of Modbus devices."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self

import pyarrow as pa
from pydantic import Field, model_validator

from penstock.connectors.modbus.point import Point
from penstock.sdk import (
    Duration,
    Journal,
    Message,
    Permanent,
    ReceivingConfig,
    ReceivingSource,
    Transient,
)
from penstock.sdk.kit.address import Address, host_and_port

_LASTING = frozenset([1, 2, 3])
"""Answers that stay the same: no such function, no such address, no such value."""


class ModbusSourceConfig(ReceivingConfig):
    connect: Address
    """The device, as `host:port`; the port is mostly 502."""
    unit_id: int = Field(default=1, ge=0, le=255)
    """The number of the device, where several are behind one address."""
    interval: Duration = Field(default=1.0, gt=0)
    """The time from one poll to the next."""
    points: list[Point] = Field(min_length=1)
    """What is read; each is a field of the rows."""
    timeout: Duration = Field(default=3.0, gt=0)
    """How long an answer may take."""

    @model_validator(mode="after")
    def _different(self) -> Self:
        names = [point.name for point in self.points]
        if len(names) > len({*names}):
            raise ValueError("two points have the same name")
        return self


class ModbusSource(ReceivingSource[ModbusSourceConfig]):
    """Polls a Modbus device over TCP; each poll is a row with a field for each point.

    A device keeps nothing: what it measured while nobody polled, or while the journal was full, is
    gone. What was polled is read once.

    The columns are those of the points, if there is no `schema` that says otherwise.

    ```yaml
    type: modbus
    connect: plc.example.com:502
    interval: 500ms
    points:
      - {name: running, kind: coils, address: 0}
      - {name: heat, kind: input_registers, address: 8, data_type: int16, scale: 0.1}
      - {name: total, kind: holding_registers, address: 16, data_type: float64}
    ```
    """

    parallelism = "the connection"
    acknowledges = None
    extra = "modbus"
    clients = ("pymodbus",)

    def about(self) -> pa.Schema:
        return pa.schema([("unit_id", pa.int32())])

    def check(self) -> None:
        asyncio.run(self._tried())

    def sample(self, most: int) -> pa.BinaryArray:
        """What the points say, without the device."""
        return pa.array([_row({point.name: point.zero for point in self.config.points})])

    async def receive(self, journal: Journal) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        async with self._connected() as client:
            due = loop.time()
            while not task.cancelling():  # which the client may have swallowed
                row = _row(await self._polled(client))
                await journal.append([Message(row, {"unit_id": self.config.unit_id})])
                journal.ready.set()
                due = max(due + self.config.interval, loop.time())
                await asyncio.sleep(due - loop.time())

    async def _tried(self) -> None:
        async with self._connected() as client:
            await self._polled(client)

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Any]:
        from pymodbus.client import AsyncModbusTcpClient

        logging.getLogger("pymodbus.logging").addHandler(logging.NullHandler())
        host, port = host_and_port(self.config.connect)
        client = AsyncModbusTcpClient(
            host, port=port, timeout=self.config.timeout, retries=0, reconnect_delay=0
        )
        try:
            if not await client.connect():
                raise self._unreachable("no connection")
            yield client
        finally:
            client.close()

    async def _polled(self, client: Any) -> dict[str, Any]:
        return {point.name: await self._value(client, point) for point in self.config.points}

    async def _value(self, client: Any, point: Point) -> Any:
        from pymodbus.exceptions import ModbusException

        read = getattr(client, f"read_{point.kind}")
        try:
            answer = await read(point.address, count=point.count, device_id=self.config.unit_id)
        except (ModbusException, OSError) as error:
            raise self._unreachable(str(error)) from None
        if answer.isError():
            raise self._refused(point, answer.exception_code)
        return point.of_bits(answer.bits) if point.is_bits else point.of_registers(answer.registers)

    def _unreachable(self, why: str) -> Transient:
        return Transient(
            f"could not reach the Modbus device {self.config.connect}: {why}",
            code="unreachable",
            hint="is it on, and are connect and unit_id right?",
        )

    def _refused(self, point: Point, code: int) -> Transient | Permanent:
        message = f'the Modbus device does not give the point "{point.name}" (exception {code})'
        if code in _LASTING:
            return Permanent(message, code="refused", hint="look at its kind, address and quantity")
        return Transient(message, code="busy", hint="the device, or the one behind it, is busy")


def _row(values: dict[str, Any]) -> bytes:
    return json.dumps(values, ensure_ascii=False).encode()
