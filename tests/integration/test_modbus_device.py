"""What a Modbus source makes of a device's coils and registers, and of its failures."""

from __future__ import annotations

import itertools
import json
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from taking import Take, Taking

from penstock.connectors.modbus import ModbusSource
from penstock.formats.json import Json
from penstock.sdk import Context, Permanent, Transient
from servers.modbus import SIZE, UNIT, Modbus


class Polling(Taking):
    """A source that polls."""

    def polls(self, count: int) -> list[dict[str, Any]]:
        """The first rows, once there are so many, with the column `unit_id`."""
        return [
            {**json.loads(row["payload"]), "unit_id": row["unit_id"]}
            for row in self.rows(count, "unit_id", "received")
        ]


@pytest.fixture
def polling(taking: Take, modbus: Modbus, tmp_path: Path) -> Callable[..., Polling]:
    counter = itertools.count()

    def polling(**options: Any) -> Polling:
        given = {"connect": modbus.address, "unit_id": UNIT, "interval": "20ms", **options}
        config = ModbusSource.config_type.model_validate(given)
        context = Context(state=tmp_path / f"{next(counter)}")
        return taking(ModbusSource(config, context), Polling)

    return polling


def point(kind: str = "holding_registers", address: int = 0, **options: Any) -> dict[str, Any]:
    return {"name": "p", "kind": kind, "address": address, **options}


def words(code: str, *values: Any) -> list[int]:
    data = struct.pack(f">{len(values)}{code}", *values)
    return list(struct.unpack(f">{len(data) // 2}H", data))


def swapped(registers: list[int]) -> list[int]:
    return [(each & 255) << 8 | each >> 8 for each in registers]


def test_a_row_for_each_poll(modbus: Modbus, polling: Any) -> None:
    modbus.switch(10, True, False, True)
    modbus.set(10, 7)
    source = polling(
        points=[
            point("coils", 10, quantity=3),
            {**point("coils", 10), "name": "one"},
            {**point("discrete_inputs", 5, quantity=2), "name": "inputs"},
            {**point("input_registers", 30, quantity=3), "name": "counted"},
            {**point(address=10), "name": "Größe"},
        ]
    )
    rows = source.polls(2)
    assert rows[0] == rows[1] == {
        "p": [True, False, True], "one": True, "inputs": [True, True], "counted": [30, 31, 32],
        "Größe": 7, "unit_id": UNIT,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("registers", "options", "value"),
    [
        (words("h", -2), {"data_type": "int16"}, -2),
        (words("H", 65_000), {"data_type": "uint16"}, 65_000),
        (words("i", -70_000), {"data_type": "int32"}, -70_000),
        (words("I", 4_000_000_000), {"data_type": "uint32"}, 4_000_000_000),
        (words("q", -(2**60)), {"data_type": "int64"}, -(2**60)),
        (words("Q", 2**63 + 1), {"data_type": "uint64"}, 2**63 + 1),
        (words("f", 1.5), {"data_type": "float32"}, 1.5),
        (words("d", -2.25), {"data_type": "float64"}, -2.25),
        (words("f", float("nan")), {"data_type": "float32"}, None),
        (words("f", 1.5, 2.5), {"data_type": "float32", "quantity": 2}, [1.5, 2.5]),
        (words("f", 1.5)[::-1], {"data_type": "float32", "word_order": "little"}, 1.5),
        (swapped(words("i", 70_000)), {"data_type": "int32", "byte_order": "little"}, 70_000),
        ([0x4865, 0x6C6C, 0x6F00], {"data_type": "string", "quantity": 3}, "Hello"),
        ([0x8001], {"data_type": "bits"}, [True, *[False] * 14, True]),
        (words("h", -215), {"data_type": "int16", "scale": 0.5, "offset": 10}, -97.5),
    ],
)  # fmt: skip
def test_what_registers_mean(
    modbus: Modbus, polling: Any, registers: list[int], options: dict[str, Any], value: Any
) -> None:
    modbus.set(40, *registers)
    (row, *_) = polling(points=[point(address=40, **options)]).polls(1)
    assert row["p"] == value


def test_columns_that_nobody_declared() -> None:
    points = [
        {**point("coils"), "name": "on"},
        {**point("coils", quantity=3), "name": "lamps"},
        {**point(data_type="int16"), "name": "count"},
        {**point(data_type="int16", scale=0.1), "name": "heat"},
        {**point(data_type="float64", quantity=2), "name": "totals"},
        {**point(data_type="string", quantity=4), "name": "model"},
    ]
    config = ModbusSource.config_type.model_validate({"connect": "nobody:502", "points": points})
    found = Json(Json.config_type()).infer(ModbusSource(config).sample(10))
    assert found is not None and [f"{field.name} {field.type}" for field in found] == [
        "on bool", "lamps list<element: bool>", "count int64", "heat double",
        "totals list<element: double>", "model string",
    ]  # fmt: skip


def test_what_changes_is_seen(modbus: Modbus, polling: Any) -> None:
    modbus.set(60, 1)
    source = polling(points=[point(address=60)])
    source.polls(1)
    modbus.set(60, 2)
    rows = source.polls(source.receiving.journal.end() + 3)
    assert {row["p"] for row in rows} == {1, 2} and rows[-1]["p"] == 2


def test_a_device_that_was_away(modbus: Modbus, polling: Any) -> None:
    """The receiver ends with a Transient error, and the next one polls again."""
    source = polling(points=[point("input_registers", 5)])
    source.polls(1)
    source.receiving.receiver.ready.clear()
    modbus.kill()
    end = source.receiving.journal.end()
    modbus.start()
    source.receiving.await_ready()
    assert {row["p"] for row in source.polls(end + 2)} == {5}


def test_an_interval(modbus: Modbus, polling: Any) -> None:
    source = polling(points=[point()], interval="1 hour")
    source.polls(1)
    again = polling(points=[point()])
    again.polls(3)
    assert source.receiving.journal.end() == 1


def test_a_full_journal_waits(modbus: Modbus, polling: Any) -> None:
    """It is not polled meanwhile, and goes on when there is room."""
    many = [{**point("input_registers", 0, quantity=125), "name": f"p{n}" * 20} for n in range(30)]
    source = polling(points=many, interval="1ms", journal={"size": "1MiB"}).source
    at, seen = source.initial(), 0
    until = time.monotonic() + 60
    while seen < 150:
        assert time.monotonic() < until, seen
        end = source.latest(at)
        seen, at = seen + source.lag(at, end), end
        source.commit(end)
        assert sum(each.stat().st_size for each in source.directory.glob("*.segment")) < 2 << 20
        time.sleep(0.05)
    assert source.lost() == 0


@pytest.mark.parametrize(("kind", "address"), [("coils", 60_000), ("holding_registers", SIZE)])
def test_a_point_that_is_not_there(modbus: Modbus, kind: str, address: int) -> None:
    given = {"connect": modbus.address, "unit_id": UNIT, "points": [point(kind, address)]}
    with pytest.raises(Permanent, match="does not give the point") as caught:
        ModbusSource(ModbusSource.config_type.model_validate(given)).check()
    assert caught.value.hint


def test_another_unit(modbus: Modbus) -> None:
    given = {"connect": modbus.address, "unit_id": UNIT + 1, "timeout": "1s", "points": [point()]}
    with pytest.raises((Transient, Permanent)):
        ModbusSource(ModbusSource.config_type.model_validate(given)).check()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"points": []}, "at least 1"),
        ({"points": [point(), point()]}, "the same name"),
        ({"points": [point(quantity=126)]}, "at most 125"),
        ({"points": [point(data_type="int32", quantity=63)]}, "at most 125"),
        ({"points": [point("coils", quantity=2001)]}, "at most 2000"),
        ({"points": [point("coils", scale=2)]}, "for numbers"),
        ({"points": [point(data_type="string", offset=2)]}, "for numbers"),
    ],
)
def test_options_that_do_not_fit(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ModbusSource.config_type.model_validate({"connect": "a:502", **options})
