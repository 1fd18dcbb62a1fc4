"""Modbus TCP devices."""

from penstock.connectors.modbus.source import ModbusSource

__all__ = ["ModbusSource"]
