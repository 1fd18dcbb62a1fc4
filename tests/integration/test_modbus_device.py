"""The Modbus source: values of coils and registers, and failures of the device."""

from __future__ import annotations

import asyncio
import itertools
import json
import multiprocessing
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from taking import Take, Taking

from penstock.connectors.modbus import ModbusSource
from penstock.formats.json import Json
from penstock.sdk import Context, Permanent, Transient
from penstock.sdk.network.tls import Tls
from servers.certificates import Authority
from servers.modbus import SIZE, UNIT, Modbus
from servers.server import free_port


class Polling(Taking):
    """A polling source."""

    def polls(self, count: int) -> list[dict[str, Any]]:
        """Returns the rows once there are `count`, with the column `unit_id`."""
        return [
            {**json.loads(row["payload"]), "unit_id": row["unit_id"]}
            for row in self.rows(count, "unit_id", "received")
        ]


@pytest.fixture
def polling(taking: Take, modbus: Modbus, tmp_path: Path) -> Callable[..., Polling]:
    counter = itertools.count()

    def polling(**options: Any) -> Polling:
        defaults = {"connect": modbus.address, "unit_id": UNIT, "interval": "20ms"}
        config = ModbusSource.config_type.model_validate({**defaults, **options})
        context = Context(state=tmp_path / f"{next(counter)}")
        return taking(ModbusSource(config, context), Polling)

    return polling


def point(kind: str = "holding_registers", address: int = 0, **options: Any) -> dict[str, Any]:
    return {"name": "p", "kind": kind, "address": address, **options}


def words(code: str, *values: Any) -> list[int]:
    data = struct.pack(f">{len(values)}{code}", *values)
    return list(struct.unpack(f">{len(data) // 2}H", data))


def swapped(registers: list[int]) -> list[int]:
    return [(word & 255) << 8 | word >> 8 for word in registers]


def test_a_row_for_each_poll(modbus: Modbus, polling: Any) -> None:
    modbus.switch(10, True, False, True)
    modbus.set(10, 7)
    source = polling(
        points=[
            point("coils", 10, quantity=3),
            {**point("coils", 10), "name": "first"},
            {**point("discrete_inputs", 5, quantity=2), "name": "inputs"},
            {**point("input_registers", 30, quantity=3), "name": "counted"},
            {**point(address=10), "name": "Größe"},
        ]
    )
    rows = source.polls(2)
    assert rows[0] == rows[1] == {
        "p": [True, False, True], "first": True, "inputs": [True, True], "counted": [30, 31, 32],
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
def test_values_of_registers(
    modbus: Modbus, polling: Any, registers: list[int], options: dict[str, Any], value: Any
) -> None:
    modbus.set(40, *registers)
    (row, *_) = polling(points=[point(address=40, **options)]).polls(1)
    assert row["p"] == value


def test_inferred_columns() -> None:
    points = [
        {**point("coils"), "name": "on"},
        {**point("coils", quantity=3), "name": "lamps"},
        {**point(data_type="int16"), "name": "count"},
        {**point(data_type="int16", scale=0.1), "name": "heat"},
        {**point(data_type="float64", quantity=2), "name": "totals"},
        {**point(data_type="string", quantity=4), "name": "model"},
    ]
    config = ModbusSource.config_type.model_validate({"connect": "plc:502", "points": points})
    schema = Json(Json.config_type()).infer_schema(ModbusSource(config).sample(10))
    assert schema is not None and [f"{field.name} {field.type}" for field in schema] == [
        "on bool", "lamps list<element: bool>", "count int64", "heat double",
        "totals list<element: double>", "model string",
    ]  # fmt: skip


def test_changed_values(modbus: Modbus, polling: Any) -> None:
    modbus.set(60, 1)
    source = polling(points=[point(address=60)])
    source.polls(1)
    modbus.set(60, 2)
    rows = source.polls(source.receiving.journal.end() + 3)
    assert {row["p"] for row in rows} == {1, 2} and rows[-1]["p"] == 2


def test_an_unavailable_device(modbus: Modbus, polling: Any) -> None:
    """The receiver ends with a Transient error and is restarted."""
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
    other = polling(points=[point()])
    other.polls(3)
    assert source.receiving.journal.end() == 1


def test_a_full_journal_waits(modbus: Modbus, polling: Any) -> None:
    """Polling pauses, and resumes once records are committed."""
    many = [{**point("input_registers", 0, quantity=125), "name": f"p{n}" * 20} for n in range(30)]
    source = polling(points=many, interval="1ms", journal={"max_size": "1MiB"}).source
    offset, count = source.initial_offset(), 0
    until = time.monotonic() + 60
    while count < 150:
        assert time.monotonic() < until, count
        end = source.latest_offset(offset)
        count, offset = count + source.lag(offset, end), end
        source.commit(end)
        assert sum(path.stat().st_size for path in source.directory.glob("*.segment")) < 2 << 20
        time.sleep(0.05)
    assert source.lost() == 0


@pytest.mark.parametrize(("kind", "address"), [("coils", 60_000), ("holding_registers", SIZE)])
def test_a_missing_point(modbus: Modbus, kind: str, address: int) -> None:
    options = {"connect": modbus.address, "unit_id": UNIT, "points": [point(kind, address)]}
    with pytest.raises(Permanent, match="cannot read the point") as caught:
        ModbusSource(ModbusSource.config_type.model_validate(options)).check()
    assert caught.value.hint


def test_another_unit(modbus: Modbus) -> None:
    options = {"connect": modbus.address, "unit_id": UNIT + 1, "timeout": "1s", "points": [point()]}
    with pytest.raises(Transient, match="returned exception 4") as caught:
        ModbusSource(ModbusSource.config_type.model_validate(options)).check()
    assert caught.value.code == "busy"


def serve_tls(port: int, tls: Tls) -> None:
    """Serves the device UNIT, whose input registers count from 0, with TLS."""
    from pymodbus.server import ModbusTlsServer
    from pymodbus.simulator import DataType, SimData, SimDevice

    registers = SimData(0, values=[*range(SIZE)], datatype=DataType.REGISTERS)

    async def serve() -> None:
        device = SimDevice(id=UNIT, simdata=[registers])
        context = tls.server_context()
        server = ModbusTlsServer([device], sslctx=context, address=("127.0.0.1", port))
        await server.serve_forever()

    asyncio.run(serve())


@pytest.fixture
def tls_device(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The address of a device with TLS, and the file of its CA certificate."""
    authority, port = Authority(tmp_path), free_port()
    certificate = str(authority.issue("device"))
    tls = Tls(certificate=certificate, key=certificate)
    process = multiprocessing.get_context("spawn").Process(
        target=serve_tls, args=(port, tls), daemon=True
    )
    process.start()
    yield f"localhost:{port}", authority.root
    process.terminate()
    process.join()


def test_tls(tls_device: tuple[str, Path]) -> None:
    address, root = tls_device
    options = {"connect": address, "unit_id": UNIT, "points": [point("input_registers", 5)]}
    source = ModbusSource(
        ModbusSource.config_type.model_validate({**options, "tls": {"ca": str(root)}})
    )
    until = time.monotonic() + 30
    while True:
        try:
            source.check()
            break
        except Transient:
            assert time.monotonic() < until
            time.sleep(0.1)
    for tls in (None, True):
        with pytest.raises(Transient, match="could not reach") as caught:
            ModbusSource(ModbusSource.config_type.model_validate({**options, "tls": tls})).check()
        assert "tls" in (caught.value.hint or "")
