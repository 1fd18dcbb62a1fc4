"""Times of Protobuf messages are exact or dead letters, in any division into batches."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from grpc_tools import protoc
from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock.formats.protobuf import Protobuf, ProtobufConfig

PROTO = """
syntax = "proto3";
import "google/protobuf/timestamp.proto"; import "google/protobuf/duration.proto";
import "google/type/date.proto"; import "google/type/timeofday.proto";
message Row {
  google.protobuf.Timestamp at = 1; repeated google.protobuf.Timestamp list = 2;
  map<string, google.protobuf.Timestamp> map = 3; Inner inner = 4;
  google.protobuf.Duration took = 5; google.type.Date day = 6; google.type.TimeOfDay time = 7;
}
message Inner { google.protobuf.Timestamp at = 1; google.protobuf.Duration took = 2; }
"""
UTC = pa.timestamp("us", "UTC")
EPOCH = dt.datetime(1970, 1, 1)
NANO_BOUND = 2**63 // 10**9
NANO = 10**9


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Any]:
    """The file of descriptors, and the class of `Row` by Google's library."""
    directory = tmp_path_factory.mktemp("proto")
    (directory / "row.proto").write_text(PROTO)
    file = directory / "row.pb"
    modules = [Path(protoc.__file__).parent / "_proto", Path(descriptor_pb2.__file__).parents[2]]
    paths = [f"-I{path}" for path in (directory, *modules)]
    options = [f"--descriptor_set_out={file}", "--include_imports"]
    assert protoc.main(["protoc", *paths, *options, "row.proto"]) == 0
    pool = descriptor_pool.DescriptorPool()
    for each in descriptor_pb2.FileDescriptorSet.FromString(file.read_bytes()).file:
        pool.Add(each)
    return str(file), message_factory.GetMessageClass(pool.FindMessageTypeByName("Row"))


def protobuf(compiled: tuple[str, Any], **options: Any) -> Protobuf:
    return Protobuf(ProtobufConfig(schema_file=compiled[0], message="Row", **options))


SECONDS = st.one_of(
    st.sampled_from([0, -1, NANO_BOUND, -NANO_BOUND, NANO_BOUND + 1, 253402300799, -62135596800]),
    st.integers(-62135596800, 253402300799), st.integers(-(2**63), 2**63 - 1),
    st.integers(NANO_BOUND - 2, NANO_BOUND + 2), st.integers(-NANO_BOUND - 2, -NANO_BOUND + 2),
)  # fmt: skip
NANOS = st.one_of(
    st.sampled_from([0, 1, 1000, 999_999_999, 854_775_807, 854_775_808, 145_224_192]),
    st.integers(0, 999_999).map(lambda micros: micros * 1000), st.integers(0, 999_999_999),
    st.integers(-(2**31), 2**31 - 1),
)  # fmt: skip
TIME = st.tuples(SECONDS, NANOS)
ROWS = st.lists(
    st.fixed_dictionaries({
        "at": st.none() | TIME, "list": st.lists(TIME, max_size=3),
        "map": st.dictionaries(st.sampled_from("abc"), TIME, max_size=2),
        "inner": st.none() | st.fixed_dictionaries({"at": st.none() | TIME}),
    }),
    max_size=8,
)  # fmt: skip


class Wrong(Exception):
    """A value that the type of the column does not have."""


def micros(time: tuple[int, int], truncate: bool) -> int:
    value, rest = divmod(time[0] * NANO + time[1], 1000)
    if (rest and not truncate) or not -(2**63) <= value < 2**63 or abs(time[0]) > 2**63 // 10**6:
        raise Wrong
    return value


def text(time: tuple[int, int], _truncate: bool) -> str:
    """Returns ISO 8601 text of the years that Python has."""
    seconds, nanos = divmod(time[0] * NANO + time[1], NANO)
    try:
        whole = EPOCH + dt.timedelta(seconds=seconds)
    except OverflowError:
        raise Wrong from None
    digits = f"{nanos:09d}"
    while digits.endswith("000"):
        digits = digits[:-3]
    return f"{whole.isoformat()}{'.' if digits else ''}{digits}Z"


def of(row: dict[str, Any], value: Callable[[Any], Any]) -> dict[str, Any]:
    """Returns a row with converted times."""
    inner = row["inner"]
    return {
        "at": row["at"] and value(row["at"]), "list": [value(each) for each in row["list"]],
        "map": sorted((key, value(each)) for key, each in row["map"].items()),
        "inner": inner and {"at": inner["at"] and value(inner["at"])},
    }  # fmt: skip


def message(class_: Any, row: dict[str, Any]) -> bytes:
    made = class_()

    def put(target: Any, time: tuple[int, int] | None) -> None:
        if time is not None:
            target.SetInParent()
            target.seconds, target.nanos = time

    put(made.at, row["at"]) if row["at"] else None
    for time in row["list"]:
        put(made.list.add(), time)
    for key, time in row["map"].items():
        put(made.map[key], time)
    if row["inner"] is not None:
        made.inner.SetInParent()
        put(made.inner.at, row["inner"]["at"]) if row["inner"]["at"] else None
    return bytes(made.SerializeToString())


def schema_of(type_: pa.DataType) -> pa.Schema:
    return pa.schema([
        ("at", type_), ("list", pa.list_(type_)), ("map", pa.map_(pa.string(), type_)),
        ("inner", pa.struct([("at", type_)])),
    ])  # fmt: skip


def numbers(rows: pa.RecordBatch, type_: pa.DataType) -> list[dict[str, Any]]:
    if pa.types.is_timestamp(type_):
        plain = schema_of(pa.int64())
        rows = pa.RecordBatch.from_arrays(
            [column.cast(field.type) for column, field in zip(rows.columns, plain, strict=True)],
            schema=plain,
        )
    return [{**row, "map": sorted(row["map"])} for row in rows.to_pylist()]


@pytest.mark.quick(1)
@pytest.mark.parametrize("truncate", [False, True], ids=["reject", "truncate"])
@pytest.mark.parametrize(
    ("type_", "value"), [(UTC, micros), (pa.string(), text)], ids=["timestamp", "text"]
)
@settings(max_examples=30, deadline=None)
@example([
    {"at": (NANO_BOUND, 854_775_807), "list": [], "map": {}, "inner": None},
    {"at": (2**40, 1), "list": [(5, 1)], "map": {}, "inner": None},
    {"at": (5, 1), "list": [], "map": {"a": (2**62, 0)}, "inner": {"at": (5, 1000)}},
], 1)  # fmt: skip
@given(rows=ROWS, size=st.integers(1, 8))
def test_timestamps(
    compiled: tuple[str, Any], type_: pa.DataType, value: Any, truncate: bool,
    rows: list[dict[str, Any]], size: int,
) -> None:  # fmt: skip
    if value is text:
        rows = [row for row in rows if in_python(row)]
    format_ = protobuf(compiled, nanoseconds="truncate" if truncate else "reject")
    payloads = pa.array([message(compiled[1], row) for row in rows], pa.binary())
    expected, wrong = [], []
    for index, row in enumerate(rows):
        try:
            expected.append(of(row, lambda time: value(time, truncate)))
        except Wrong:
            wrong.append(index)
    whole = format_.decode(payloads, schema_of(type_))
    assert numbers(whole.rows, type_) == expected
    assert [failure.index for failure in whole.failures] == wrong
    parts = [format_.decode(payloads[at : at + size], schema_of(type_)) for at in
             range(0, len(payloads), size)]  # fmt: skip
    assert [row for part in parts for row in numbers(part.rows, type_)] == expected
    errors = [str(failure.error) for part in parts for failure in part.failures]
    assert errors == [str(failure.error) for failure in whole.failures]
    assert all(error.endswith(" is not a TIMESTAMP") for error in errors)
    assert all("(google.protobuf.Timestamp)" in error for error in errors)


def in_python(row: dict[str, Any]) -> bool:
    """Returns whether Python has the times of a row: the years 1 to 9999."""
    try:
        of(row, lambda time: text(time, False))
    except Wrong:
        return False
    return True


def decode(
    compiled: tuple[str, Any], column: str, values: list[tuple[int, ...]], type_: pa.DataType
) -> tuple[list[Any], list[str]]:
    """Returns the values of a column of messages with these fields, and the errors."""
    payloads = []
    for value in values:
        made = compiled[1]()
        part = getattr(made, column)
        part.SetInParent()
        for field, number in zip(part.DESCRIPTOR.fields, value, strict=True):
            setattr(part, field.name, number)
        payloads.append(made.SerializeToString())
    schema = pa.schema([(column, type_)])
    decoded = protobuf(compiled).decode(pa.array(payloads, pa.binary()), schema)
    errors = [f"{failure.error} {failure.error.hint}" for failure in decoded.failures]
    return decoded.rows.column(0).to_pylist(), errors


@pytest.mark.slow
@given(times=st.lists(TIME, max_size=5))
def test_durations(compiled: tuple[str, Any], times: list[tuple[int, int]]) -> None:
    found, errors = decode(compiled, "took", times, pa.string())
    assert not errors
    exact = [seconds * NANO + nanos for seconds, nanos in times]
    for text_, total in zip(found, exact, strict=True):
        sign, _, number = text_.partition("PT")
        whole, _, fraction = number.removesuffix("S").partition(".")
        value = int(whole) * NANO + int(fraction.ljust(9, "0"))
        assert (value if sign == "" else -value) == total
        assert sign in ("", "-") and not fraction.endswith("0")


@pytest.mark.slow
@given(parts=st.tuples(
    st.sampled_from([1, 1600, 1900, 2023, 2024, 9999]) | st.integers(0, 9999),
    st.integers(-1, 13), st.integers(-1, 32),
))  # fmt: skip
@settings(deadline=None)
@example(parts=(2023, 2, 29))
@example(parts=(2024, 2, 29))
@example(parts=(2024, 4, 31))
def test_dates(compiled: tuple[str, Any], parts: tuple[int, int, int]) -> None:
    found, errors = decode(compiled, "day", [parts, (2024, 2, 29)], pa.date32())
    assert found.pop() == dt.date(2024, 2, 29)
    try:
        assert found == [dt.date(*parts)] and not errors
    except ValueError:
        assert not found and "(google.type.Date) is not a DATE" in errors[0]


def test_partial_dates_have_a_declaration(compiled: tuple[str, Any]) -> None:
    _, errors = decode(compiled, "day", [(2024, 5, 0)], pa.date32())
    assert errors == [
        'column "day": year: 2024, month: 5, day: 0 (google.type.Date) is not a DATE '
        "Declare the type STRUCT<year: INT, month: INT, day: INT>."
    ]
    type_ = pa.struct([("year", pa.int32()), ("month", pa.int32()), ("day", pa.int32())])
    assert decode(compiled, "day", [(2024, 5, 0)], type_) == (
        [{"year": 2024, "month": 5, "day": 0}], []
    )  # fmt: skip


@pytest.mark.slow
@given(parts=st.tuples(
    st.integers(-1, 24), st.integers(-1, 60), st.integers(-1, 60), NANOS,
))  # fmt: skip
@settings(deadline=None)
@example(parts=(24, 0, 0, 0))
@example(parts=(0, 60, 0, 0))
@example(parts=(0, 0, 60, 0))
@example(parts=(23, 59, 59, NANO))
@example(parts=(23, 59, 59, NANO - 1))
def test_times_of_day(compiled: tuple[str, Any], parts: tuple[int, int, int, int]) -> None:
    found, errors = decode(compiled, "time", [parts], pa.string())
    hours, minutes, seconds, nanos = parts
    if (
        hours in range(24) and minutes in range(60) and seconds in range(60)
        and nanos in range(NANO)
    ):  # fmt: skip
        whole, _, fraction = found[0].partition(".")
        assert whole == f"{hours:02d}:{minutes:02d}:{seconds:02d}" and not errors
        assert int(fraction.ljust(9, "0")) == nanos
    else:
        assert not found and "(google.type.TimeOfDay) is not a STRING" in errors[0]


def test_fields_of_times_are_a_struct(compiled: tuple[str, Any]) -> None:
    type_ = pa.struct([("seconds", pa.int64()), ("nanos", pa.int32())])
    far = (2**63 - 1, 999_999_999)
    for column in ("at", "took"):
        expected = [{"seconds": far[0], "nanos": far[1]}]
        assert decode(compiled, column, [far], type_) == (expected, [])
        rows = pa.RecordBatch.from_pylist([{column: expected[0]}], pa.schema([(column, type_)]))
        (payload,) = protobuf(compiled).encode(rows).payloads.to_pylist()
        written = getattr(compiled[1].FromString(payload), column)
        assert (written.seconds, written.nanos) == far
    _, errors = decode(compiled, "at", [far, (5, 1), (2**50, 1)], UTC)
    hints = [error.rsplit("is not a TIMESTAMP ")[1] for error in errors]
    declare = "Declare the type STRUCT<seconds: BIGINT, nanos: INT>."
    assert hints == [declare, "Set nanoseconds: truncate.", declare]
