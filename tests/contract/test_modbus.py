from __future__ import annotations

from typing import Any

import pytest

from penstock.connectors.modbus import ModbusSource
from penstock.testing.contract.component import ComponentContract
from servers.modbus import UNIT, Modbus


class TestModbusSource(ComponentContract):
    """The source polls: the contract of receiving sources, which sends messages, does not apply."""

    component = ModbusSource
    lossy_reason = "a device does not store past values"

    @pytest.fixture
    def server(self, modbus: Modbus) -> Modbus:
        return modbus

    @pytest.fixture
    def options(self, modbus: Modbus) -> dict[str, Any]:
        point = {"name": "heat", "kind": "holding_registers", "address": 0}
        return {"connect": modbus.address, "unit_id": UNIT, "points": [point]}
