"""The source of Modbus devices."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pyarrow as pa

from penstock.connectors.modbus.config import ModbusSourceConfig, Point
from penstock.connectors.modbus.registers import decode_bits, decode_registers, zero_value
from penstock.sdk import Journal, Message, Permanent, ReceivingSource, Transient
from penstock.sdk.network.address import host_and_port

_PERMANENT_EXCEPTIONS = frozenset([1, 2, 3])
"""Illegal function, illegal data address, illegal data value."""


class ModbusSource(ReceivingSource[ModbusSourceConfig]):
    """Polls a Modbus device over TCP; each poll is a row with a field for each point.

    A device has no memory: values are lost while the pipeline is stopped and while the journal is
    full. Rows in the journal are read exactly once.

    Without `schema`, the columns are inferred from the points.

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
    client_modules = ("pymodbus",)

    def message_metadata_schema(self) -> pa.Schema:
        return pa.schema([("unit_id", pa.int32())])

    def check(self) -> None:
        asyncio.run(self._check())

    def sample(self, max_records: int) -> pa.BinaryArray:
        """Returns a row of zeros, from the options and without a connection."""
        return pa.array(
            [_encode_row({point.name: zero_value(point) for point in self.config.points})]
        )

    async def receive(self, journal: Journal) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        async with self._connect() as client:
            due = loop.time()
            while not task.cancelling():  # pymodbus may swallow CancelledError
                row = _encode_row(await self._poll(client))
                await journal.append([Message(row, {"unit_id": self.config.unit_id})])
                journal.ready.set()
                due = max(due + self.config.interval, loop.time())
                await asyncio.sleep(due - loop.time())

    async def _check(self) -> None:
        async with self._connect() as client:
            await self._poll(client)

    @asynccontextmanager
    async def _connect(self) -> AsyncIterator[Any]:
        from pymodbus.client import AsyncModbusTcpClient, AsyncModbusTlsClient

        logging.getLogger("pymodbus.logging").addHandler(logging.NullHandler())
        host, port = host_and_port(self.config.connect)
        tls = self.config.tls_settings
        options: Any = {
            "port": port, "timeout": self.config.timeout, "retries": 0, "reconnect_delay": 0,
        }  # fmt: skip
        client: Any
        if tls is None:
            client = AsyncModbusTcpClient(host, **options)
        else:
            client = AsyncModbusTlsClient(host, sslctx=tls.context(), **options)
        try:
            if not await client.connect():
                raise self._unreachable("no connection")
            yield client
        finally:
            client.close()

    async def _poll(self, client: Any) -> dict[str, Any]:
        return {point.name: await self._read_point(client, point) for point in self.config.points}

    async def _read_point(self, client: Any, point: Point) -> Any:
        from pymodbus.exceptions import ModbusException

        read = getattr(client, f"read_{point.kind}")
        try:
            response = await read(point.address, count=point.count, device_id=self.config.unit_id)
        except (ModbusException, OSError) as error:
            raise self._unreachable(str(error)) from None
        if response.isError():
            raise _response_error(point, response.exception_code)
        if point.is_bits:
            return decode_bits(point, response.bits)
        return decode_registers(point, response.registers)

    def _unreachable(self, reason: str) -> Transient:
        return Transient(
            f"could not reach the Modbus device {self.config.connect}: {reason}",
            code="unreachable",
            hint="Check that the device is running, and the options connect, tls and unit_id.",
        )


def _response_error(point: Point, code: int) -> Transient | Permanent:
    message = f'read the point "{point.name}": the Modbus device returned exception {code}'
    if code in _PERMANENT_EXCEPTIONS:
        return Permanent(
            f"cannot {message}",
            code="rejected",
            hint="Check kind, address and quantity of the point.",
        )
    return Transient(
        f"could not {message}",
        code="busy",
        hint="Increase interval or timeout if the device or its gateway stays busy.",
    )


def _encode_row(values: dict[str, Any]) -> bytes:
    return json.dumps(values, ensure_ascii=False).encode()
