"""Modbus with pymodbus. A message is a poll."""

from __future__ import annotations

from typing import Any

from clients.system import Ready, System
from penstock.connectors.modbus import ModbusSource
from servers.modbus import UNIT, Modbus


class ModbusDevice(System):
    name, source = "modbus (polls)", ModbusSource
    messages = 2_000

    @classmethod
    def server(cls) -> Any:
        return Modbus()

    def __init__(self, server: Any) -> None:
        self._host, self._port = server.address.split(":")

    def options(self) -> dict[str, Any]:
        point = {"name": "heat", "kind": "holding_registers", "address": 0}
        address = f"{self._host}:{self._port}"
        return {"connect": address, "unit_id": UNIT, "points": [point], "interval": "1ms"}

    def send(self, payloads: list[bytes]) -> None:
        """Does nothing: a device always has values."""

    def take(self, count: int, ready: Ready) -> int:
        from pymodbus.client import ModbusTcpClient

        with ModbusTcpClient(self._host, port=int(self._port)) as client:
            ready()
            for _ in range(count):
                client.read_holding_registers(0, device_id=UNIT)
        return count
