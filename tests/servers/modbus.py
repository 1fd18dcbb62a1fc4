"""A Modbus device, simulated by pymodbus's server."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from servers.server import Server

SIZE = 200
UNIT = 3


class Modbus(Server):
    """The device UNIT, with SIZE of each kind of point, all of them zero at a start."""

    name = "modbus"
    title = "a Modbus device by pymodbus 3"

    def command(self) -> Sequence[str]:
        """This file, as a program."""
        return [sys.executable, "-m", "servers.modbus", str(self.port)]

    def environment(self) -> Mapping[str, str]:
        """So that this module is found."""
        return {"PYTHONPATH": str(Path(__file__).parents[1])}

    def ready(self) -> None:
        """Reads a register."""
        with self.client() as client:
            assert not client.read_holding_registers(0, device_id=UNIT).isError()

    @property
    def address(self) -> str:
        """Where it answers."""
        return f"127.0.0.1:{self.port}"

    def client(self) -> Any:
        """A client of the tests' own."""
        from pymodbus.client import ModbusTcpClient

        return ModbusTcpClient("127.0.0.1", port=self.port, timeout=30)

    def set(self, address: int, *registers: int) -> None:
        """Sets holding registers."""
        with self.client() as client:
            assert not client.write_registers(address, list(registers), device_id=UNIT).isError()

    def switch(self, address: int, *coils: bool) -> None:
        """Sets coils."""
        with self.client() as client:
            assert not client.write_coils(address, list(coils), device_id=UNIT).isError()


async def serve(port: int) -> None:
    """Runs until it is killed. The discrete inputs are on, the input registers count from 0."""
    from pymodbus.server import ModbusTcpServer
    from pymodbus.simulator import DataType, SimData, SimDevice

    bits, registers = DataType.BITS, DataType.REGISTERS
    device = SimDevice(
        id=UNIT,
        simdata=(
            [SimData(0, values=[False] * SIZE, datatype=bits)],
            [SimData(0, values=[True] * SIZE, datatype=bits)],
            [SimData(0, values=[0] * SIZE, datatype=registers)],
            [SimData(0, values=[*range(SIZE)], datatype=registers)],
        ),
    )
    await ModbusTcpServer([device], address=("127.0.0.1", port)).serve_forever()


@pytest.fixture(scope="session")
def modbus() -> Iterator[Modbus]:
    """One for all tests that ask for it."""
    with Modbus() as device:
        yield device


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
