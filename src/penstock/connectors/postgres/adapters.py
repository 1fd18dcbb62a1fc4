"""The forms of values in parameters and results of PostgreSQL."""

from __future__ import annotations

from typing import Any


def adapt_values(client: Any) -> None:
    """Makes a connection return times and UUIDs as texts, which have each value.

    Numbers of floating point are sent without a type: a REAL is not equal to its digits as DOUBLE
    PRECISION, so a range of rows would lack the last one.
    """
    from psycopg.types.numeric import FloatDumper
    from psycopg.types.string import TextLoader

    class UntypedFloat(FloatDumper):
        oid = 0

        def quote(self, obj: float) -> bytes:
            return f"'{obj!r}'".encode()

    for name in ("timestamp", "timestamptz", "date", "time", "timetz", "interval", "uuid"):
        client.adapters.register_loader(name, TextLoader)
    client.adapters.register_dumper(float, UntypedFloat)
