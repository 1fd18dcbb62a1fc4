"""Many dead letters."""

from __future__ import annotations

import pyarrow as pa

from penstock.engine.tasks.dead_letter_writer import DEAD_LETTER

DAY = 1_700_000_000_000_000


def made_letters(count: int, node: str = "x", payload: bytes = b"{}") -> pa.Table:
    """Returns letters of two codes, with one time for each two of them."""
    values: dict[str, list[object]] = {name: [None] * count for name in DEAD_LETTER.names}
    values |= {name: ["x"] * count for name in ("pipeline", "stage", "message")}
    values["node"] = [node] * count
    values["id"] = [f"{number:09}" for number in range(count)]
    values["code"] = ["even", "odd"] * (count // 2) + ["even"] * (count % 2)
    values["payload"], values["attempt"] = [payload] * count, [1] * count
    values["time"] = [DAY + number // 2 for number in range(count)]
    return pa.table(values, schema=DEAD_LETTER)
