"""Collections of MongoDB, written and read without Spark."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from bson import Binary, Int64, ObjectId, Regex, Timestamp

from crossing import by_hand, systems
from database_tables import read, write
from interruptions import Interruptions, check_table
from penstock.connectors.mongodb import MongodbSink, MongodbSource
from penstock.core.errors import Permanent, PlanError, Transient
from penstock.sdk import Context, LookupSource, Operation, Read
from penstock.sdk.columns.json_mark import json_field
from servers.certificates import Authority
from servers.failing_member import FailingMember
from servers.ferretdb import PASSWORD, FerretDb
from servers.gate import Gate

UTC = pa.timestamp("us", tz="UTC")
NOON = dt.datetime(2024, 2, 29, 12, 0, 0, 123_000, tzinfo=dt.UTC)
HEX = "65f0c4045cb311e7907ba600"


@pytest.fixture
def options(ferretdb: FerretDb) -> dict[str, Any]:
    return {**ferretdb.login, "collection": ferretdb.new_collection()}


def sink(options: dict[str, Any], key: Sequence[str] = (), **more: Any) -> MongodbSink:
    made = MongodbSink(MongodbSink.config_type.model_validate({**options, **more}))
    if key:
        made.mode, made.primary_key = "upsert", tuple(key)
    return made


def source(options: dict[str, Any], *columns: Any, **more: Any) -> MongodbSource:
    made = MongodbSource(MongodbSource.config_type.model_validate({**options, **more}))
    made.columns = pa.schema(columns or [("_id", pa.int64())])
    return made


def rows_of(of: MongodbSource) -> list[dict[str, Any]]:
    with closing(of):
        rows, errors, _ = read(of)
    assert errors == []
    return rows


def batch(**columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def test_types_are_written_and_read(ferretdb: FerretDb, options: dict[str, Any]) -> None:
    schema = pa.schema(
        [
            ("_id", pa.int64()), ("small", pa.int16()), ("count", pa.int32()),
            ("single", pa.float32()), ("raw", pa.binary()), ("day", pa.date32()), ("at", UTC),
            ("local", pa.timestamp("us")), ("who", pa.string()), ("price", pa.decimal128(38, 2)),
            ("place", pa.struct([("city", pa.string()), ("since", UTC)])),
            ("tags", pa.list_(pa.int64())), ("counts", pa.map_(pa.string(), pa.int64())),
            json_field(pa.field("any", pa.string())),
        ]
    )  # fmt: skip
    row = {
        "_id": 2**53 + 1, "small": -7, "count": 2**31 - 1, "single": 0.5, "raw": b"\x00\xff",
        "day": dt.date(1969, 7, 20), "at": NOON, "local": NOON.replace(tzinfo=None), "who": HEX,
        "price": Decimal("123456789012345678901234567890123456.78"),
        "place": {"city": "Bern", "since": NOON}, "tags": [1, None], "counts": [("a", 1)],
        "any": '{"n": 1.5, "on": {"$date": "2024-02-29T12:00:00Z"}}',
    }  # fmt: skip
    empty = {**dict.fromkeys(row), "_id": 2**53 + 2}
    written = pa.RecordBatch.from_pylist([row, empty], schema)
    of = sink(options, object_id_columns=["who"], decimals="string")
    of.check_schema(schema)
    assert write(of, written) == {}
    first, second = ferretdb.documents(options["collection"])
    assert first["who"] == ObjectId(HEX) and first["place"] == {"city": "Bern", "since": NOON}
    assert type(first["_id"]) is Int64 and type(first["count"]) is int
    assert first["any"]["on"] == NOON.replace(microsecond=0)
    assert second == {**dict.fromkeys(row), "_id": 2**53 + 2}
    assert rows_of(source(options, *schema)) == [row, empty]


def test_types_of_other_programs(ferretdb: FerretDb, options: dict[str, Any]) -> None:
    key = ObjectId()
    document = {
        "_id": key, "uuid": Binary(bytes(range(16)), 4), "legacy": Binary(b"x" * 16, 3),
        "stamp": Timestamp(1, 2), "pattern": Regex("^a"), "whole": 3.0,
    }  # fmt: skip
    ferretdb.insert(options["collection"], document)
    texts = [(name, pa.string()) for name in ("_id", "uuid", "missing")]
    binary = [("legacy", pa.binary())]
    marked = [json_field(pa.field(name, pa.string())) for name in ("stamp", "pattern")]
    assert rows_of(source(options, *texts, *binary, *marked, ("whole", pa.int32()))) == [
        {
            "_id": str(key), "uuid": "00010203-0405-0607-0809-0a0b0c0d0e0f", "legacy": b"x" * 16,
            "missing": None, "stamp": '{"$timestamp": {"t": 1, "i": 2}}', "whole": 3,
            "pattern": '{"$regularExpression": {"pattern": "^a", "options": ""}}',
        }
    ]  # fmt: skip
    assert rows_of(source(options, ("_id", pa.binary()))) == [{"_id": key.binary}]


def test_documents_that_do_not_fit_are_bad(ferretdb: FerretDb, options: dict[str, Any]) -> None:
    good: dict[str, Any] = {"n": 1, "f": 0.5, "at": NOON, "in": {"a": 1}}
    bad: list[dict[str, Any]] = [
        {"n": 1.5}, {"n": "x"}, {"n": {"a": 1}}, {"f": 0.1}, {"at": "yesterday"}, {"n": Regex("a")},
        {"in": {"a": [1]}},
    ]  # fmt: skip
    documents = [{**good, **each, "_id": place} for place, each in enumerate([{}, *bad, {}])]
    ferretdb.insert(options["collection"], *documents)
    columns = [
        ("_id", pa.int64()), ("n", pa.int64()), ("f", pa.float32()), ("at", UTC),
        ("in", pa.struct([("a", pa.int64())])),
    ]  # fmt: skip
    found, of = Read(), source(options, *columns)
    with closing(of):
        end = of.latest_offset(of.initial_offset())
        (part,) = of.partitions(of.initial_offset(), end)
        rows = [row["_id"] for rows in of.read(part, found) for row in rows.to_pylist()]
    assert rows == [0, 8]
    messages = [each.error.message for each in found.bad]
    assert messages[:2] == [
        'column "n": 1.5 (DOUBLE) is not a BIGINT', 'column "n": "x" (STRING) is not a BIGINT',
    ]  # fmt: skip
    assert messages[3] == 'column "f": 0.1 (DOUBLE) is not a FLOAT'
    assert messages[5].endswith("(regex) is not a BIGINT") and messages[6].startswith('column "in')
    assert found.bad[1].payload is not None and b'"n": "x"' in found.bad[1].payload
    assert {each.error.code for each in found.bad} == {"wrong-type"} and len(messages) == len(bad)


def test_rejected_rows_are_found_in_one_write(ferretdb: FerretDb, options: dict[str, Any]) -> None:
    maps = [[("a", 1)], [("a.b", 1)], [("$a", 1)], [("a", 1)], [("a", 1), ("a", 2)], [("a", 1)]]
    rows = batch(
        _id=pa.array([1, 2, 3, 4, 5, None]), m=pa.array(maps, pa.map_(pa.string(), pa.int64()))
    )
    failures = write(sink(options), rows)
    assert failures == {
        1: "MongoDB rejects the document: invalid key: \"a.b\" (key must not contain '.' sign)",
        2: "MongoDB rejects the document: invalid key: \"$a\" (key must not start with '$' sign)",
        4: 'column "m": a key of the map is duplicated',
        5: "the _id is null",
    }
    assert [each["_id"] for each in ferretdb.documents(options["collection"])] == [1, 4]


def test_rejected_rows_after_bad_ones(ferretdb: FerretDb, options: dict[str, Any]) -> None:
    """The index of a rejected document is that of its row, also after rows without a document."""
    maps = [[("a", 1), ("a", 2)], [("a", 1)], [("a.b", 1)]]
    failures = write(sink(options), batch(m=pa.array(maps, pa.map_(pa.string(), pa.int64()))))
    assert [*failures] == [0, 2] and "a.b" in failures[2]


def test_values_without_an_exact_form(ferretdb: FerretDb, options: dict[str, Any]) -> None:
    times = pa.array([NOON.replace(microsecond=123_456), NOON, None], UTC)
    text = pa.array([HEX, "no", HEX])
    failures = write(sink(options, object_id_columns=["who"]), batch(at=times, who=text))
    assert failures == {
        0: 'column "at": the time has microseconds, and MongoDB stores milliseconds',
        1: 'column "who": "no" is not an ObjectId: expected 24 hexadecimal digits',
    }
    assert write(sink(options, microseconds="truncate", nulls="omit"), batch(at=times)) == {}
    documents = ferretdb.documents(options["collection"])
    assert [each.get("at", "missing") for each in documents] == [None, NOON, NOON, "missing"]


def test_a_repeated_insert_with_an_id(ferretdb: FerretDb, options: dict[str, Any]) -> None:
    """A document that is there already is written; another document with its `_id` is rejected."""
    write(sink(options, id_column="id"), batch(id=["a", "b"], n=[1, 2]))
    failures = write(sink(options, id_column="id"), batch(id=["a", "b", "c"], n=[1, 3, 4]))
    assert [*failures] == [1] and "duplicate key" in failures[1]
    assert ferretdb.documents(options["collection"]) == [
        {"_id": "a", "n": 1}, {"_id": "b", "n": 2}, {"_id": "c", "n": 4},
    ]  # fmt: skip
    assert rows_of(source(options, ("id", pa.string()), id_column="id")) == [
        {"id": "a"}, {"id": "b"}, {"id": "c"}
    ]  # fmt: skip


@pytest.mark.parametrize("id_column", ["a", "_id"])
def test_upserts_and_deletes(ferretdb: FerretDb, options: dict[str, Any], id_column: str) -> None:
    of = sink(options, ["a"], id_column=id_column)
    write(of, batch(a=[1, 2, 3, None], s=["a", "b", "c", "d"]), 0)
    operations = pa.array([Operation.UPDATE.value, Operation.DELETE.value, Operation.DELETE.value])
    rows = batch(a=pa.array([1, 2, None]), s=["new", None, None])
    failures = write(of, rows, 1, operations)
    assert failures == {2: "expected a value in the primary key, found null in a"}
    key = "_id" if id_column == "a" else "a"
    documents = ferretdb.documents(options["collection"])
    assert sorted((each[key], each["s"]) for each in documents) == [(1, "new"), (3, "c")]


def test_upserts_by_several_fields(ferretdb: FerretDb, options: dict[str, Any]) -> None:
    rows = batch(a=[1, 1], b=["x", "y"], n=[1, 2])
    with pytest.raises(PlanError, match="there is no collection"):
        write(sink(options, ["a", "b"], create=False), rows)
    ferretdb.insert(options["collection"], {"a": 0})
    with pytest.raises(Permanent, match="has no unique index on the primary key a, b") as raised:
        write(sink(options, ["a", "b"], create=False), rows)
    assert raised.value.code == "no-unique-index"
    for number in range(2):
        assert write(sink(options, ["b", "a"]), rows, number) == {}
    assert write(sink(options, ["a", "b"], create=False), rows, 3) == {}
    assert len(ferretdb.documents(options["collection"])) == 3


def test_rejected_upserts(ferretdb: FerretDb, options: dict[str, Any]) -> None:
    of = sink(options, ["id"], id_column="id")
    with closing(ferretdb.client()) as client:
        client["shop"][options["collection"]].create_index("n", unique=True)
    failures = write(of, batch(id=[1, 2, 3, 4], n=[1, 1, 2, 2]))
    assert [*failures] == [1, 3]
    assert all(
        text.startswith("MongoDB rejects the document: E11000") for text in failures.values()
    )
    assert [each["_id"] for each in ferretdb.documents(options["collection"])] == [1, 3]


def test_filters_and_pipelines(ferretdb: FerretDb, options: dict[str, Any]) -> None:
    ids = [ObjectId() for _ in range(4)]
    documents = [{"_id": each, "n": n, "k": n % 2, "at": NOON} for n, each in enumerate(ids)]
    ferretdb.insert(options["collection"], *documents)
    columns = [("n", pa.int64())]
    by_id = {"_id": {"$in": [{"$oid": str(ids[1])}, {"$oid": str(ids[2])}]}}
    assert rows_of(source(options, *columns, filter=by_id)) == [{"n": 1}, {"n": 2}]
    by_time = {"at": {"$gte": dt.datetime(2024, 2, 29)}, "n": {"$gt": 2}}
    assert rows_of(source(options, *columns, filter=by_time)) == [{"n": 3}]
    stages = [{"$group": {"_id": "$k", "n": {"$sum": "$n"}}}]
    of = source(options, ("_id", pa.int32()), *columns, filter={"n": {"$gt": 0}}, pipeline=stages)
    assert rows_of(of) == [{"_id": 0, "n": 2}, {"_id": 1, "n": 4}]
    with pytest.raises(PlanError, match="filter is not valid Extended JSON"):
        source(options, filter={"_id": {"$oid": "no"}}).validate()


def test_new_documents_by_time(ferretdb: FerretDb, options: dict[str, Any]) -> None:
    """Documents with equal times are in the order of `_id`. Times of the future are not read."""
    later = dt.datetime(2200, 1, 1, tzinfo=dt.UTC)
    ferretdb.insert(options["collection"], {"_id": 2, "at": NOON}, {"_id": 3, "at": later})
    more: dict[str, Any] = {"cursor_columns": ["at"], "watch": True, "interval": "1ms"}
    of = source(options, ("_id", pa.int64()), **more)
    with closing(of):
        rows, _, end = read(of)
        assert [row["_id"] for row in rows] == [2]
        ferretdb.insert(
            options["collection"], {"_id": 1, "at": NOON}, {"_id": 4, "at": NOON},
            {"_id": 0, "at": NOON + dt.timedelta(seconds=1)},
        )  # fmt: skip
        rows, _, _ = read(of, end)
    assert [row["_id"] for row in rows] == [4, 0]


def test_new_documents_by_object_id(ferretdb: FerretDb, options: dict[str, Any]) -> None:
    old, new = ObjectId.from_datetime(NOON), ObjectId()
    ferretdb.insert(options["collection"], {"_id": new}, {"_id": old})
    columns = [("_id", pa.string())]
    assert rows_of(source(options, *columns, watch=True, min_age="1h")) == [{"_id": str(old)}]
    rows = [{"_id": str(old)}, {"_id": str(new)}]
    assert rows_of(source(options, *columns, watch=True, min_age="0s")) == rows
    numbers = ferretdb.new_collection()
    ferretdb.insert(numbers, {"_id": 1})
    with pytest.raises(PlanError, match="has no _id of ObjectIds, so new documents cannot be"):
        read(source({**options, "collection": numbers}, watch=True))


def test_cursor_columns_without_an_order(ferretdb: FerretDb, options: dict[str, Any]) -> None:
    ferretdb.insert(options["collection"], {"a": 1, "b": 1}, {"a": "x"}, {"a": 2, "b": 2})
    for column, code in (("a", "cursor-type"), ("b", "null-cursor")):
        with pytest.raises(Permanent) as raised:
            read(source(options, cursor_columns=[column]))
        assert raised.value.code == code
    listed = ferretdb.new_collection()
    ferretdb.insert(listed, {"a": [1, 2]})
    with pytest.raises(Permanent, match="or of a type without order"):
        read(source({**options, "collection": listed}, cursor_columns=["a"]))
    filtered = {"a": {"$type": "number"}}
    of = source(options, ("a", pa.int64()), cursor_columns=["a"], filter=filtered)
    assert rows_of(of) == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize("more", [{}, {"max_records": 1}])
def test_ids_of_several_kinds(
    ferretdb: FerretDb, options: dict[str, Any], more: dict[str, Any]
) -> None:
    ferretdb.insert(options["collection"], {"_id": "x"}, {"_id": 1}, {"_id": "y"})
    with pytest.raises(Permanent, match="in the order of _id, which has values of several types"):
        read(source(options, **more))


def test_columns_of_a_sample(ferretdb: FerretDb, options: dict[str, Any]) -> None:
    assert source(options).infer_schema() is None
    ferretdb.insert(
        options["collection"], {"_id": ObjectId(HEX), "n": 1, "in": {"x": 0.5}},
        {"_id": ObjectId(), "n": 2**40, "at": NOON, "tags": ["a"]},
    )  # fmt: skip
    of = source(options, id_column="key")
    assert of.infer_schema() == pa.schema(
        [
            ("key", pa.string()), ("n", pa.int64()), ("in", pa.struct([("x", pa.float64())])),
            ("at", UTC), ("tags", pa.list_(pa.string())),
        ]
    )  # fmt: skip
    assert of.infer_primary_key() == ("key",)


def lookup(
    options: dict[str, Any], columns: pa.Schema, *key: str, **more: Any
) -> LookupSource[Any]:
    config = MongodbSource.config_type.model_validate({**options, **more})
    made = MongodbSource.create(config, replace(Context(), lookup=True))
    assert isinstance(made, LookupSource)
    made.primary_key, made.columns = key, columns
    made.prepare_lookup()
    return made


def found(of: LookupSource[Any], **keys: Any) -> tuple[list[dict[str, Any]], list[Any]]:
    read, client = Read(), of.open()
    rows = of.lookup(client, batch(**keys), read).to_pylist()
    of.close_client(client)
    return rows, [(bad.origin, bad.error.code) for bad in read.bad]


def test_lookups(ferretdb: FerretDb, options: dict[str, Any]) -> None:
    ferretdb.insert(
        options["collection"], {"_id": ObjectId(HEX), "a": 1, "b": "x"},
        {"_id": HEX[::-1], "a": 1, "b": "y"}, {"_id": "z", "a": 2, "b": "x"},
        {"_id": "bad", "a": "no", "b": "x"},
    )  # fmt: skip
    columns = pa.schema([("_id", pa.string()), ("a", pa.int64()), ("b", pa.string())])
    by_id = lookup(options, columns, "_id")
    rows, bad = found(by_id, _id=[HEX, HEX[::-1], "none", "bad"])
    assert sorted(row["_id"] for row in rows) == sorted([HEX, HEX[::-1]])
    assert bad == [(options["collection"], "wrong-type")]
    rows, bad = found(lookup(options, columns, "a", "b"), a=[1, 2, 2], b=["y", "x", "y"])
    assert bad == [] and sorted(row["_id"] for row in rows) == sorted([HEX[::-1], "z"])
    rows, bad = found(lookup(options, columns, "a"), a=[1, 2])
    assert [row["_id"] for row in rows] == ["z"] and bad == [("a=1", "several-rows")]
    assert found(by_id, _id=[f"k{number}" for number in range(500)]) == ([], [])
    with pytest.raises(PlanError, match="watch has no meaning for a lookup table"):
        lookup(options, columns, "_id", watch=True)


def test_an_unknown_collection(ferretdb: FerretDb, options: dict[str, Any]) -> None:
    ferretdb.insert(options["collection"], {"a": 1})
    wrong = {**options, "collection": f"{options['collection']}x"}
    for call in (source(wrong).check, lambda: read(source(wrong)), sink(wrong, create=False).check):
        with pytest.raises(PlanError, match="there is no collection") as raised:
            call()
        assert raised.value.hint is not None and options["collection"] in raised.value.hint
    sink(wrong).check()


def test_errors_of_statements_are_permanent(ferretdb: FerretDb, options: dict[str, Any]) -> None:
    ferretdb.insert(options["collection"], {"a": 1})
    with pytest.raises(Permanent, match=r"\$nothing") as raised:
        read(source(options, pipeline=[{"$nothing": 1}]))
    assert raised.value.code == "rejected"


def test_tls(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with FerretDb(certificate=authority.issue("server")) as server:
        options = {**server.login, "collection": "c"}
        server.insert("c", {"_id": 1})
        assert rows_of(source(options, tls={"ca": str(authority.root)})) == [{"_id": 1}]
        assert rows_of(source(options, tls={"verify": False})) == [{"_id": 1}]
        (tmp_path / "ca.pem").write_text("no certificate")
        for wrong in (True, {"ca": str(tmp_path / "ca.pem")}):
            with pytest.raises(Permanent) as raised:
                source(options, tls=wrong, timeout="1s").check()
            assert raised.value.code == "tls" and raised.value.hint is not None


def test_a_stopped_server_is_unreachable() -> None:
    server = FerretDb()
    with pytest.raises(Transient) as raised:
        source({**server.login, "collection": "c"}, timeout="1s").check()
    server.close()
    assert raised.value.code == "unreachable" and "made-up-password" not in str(raised.value)
    assert "Topology" not in raised.value.message


def test_rows_of_every_type(ferretdb: FerretDb, tmp_path: Path) -> None:
    assert by_hand.check(systems.mongodb(ferretdb), tmp_path) == []


def test_interrupted_connections(ferretdb: FerretDb, options: dict[str, Any]) -> None:
    with Gate(ferretdb.port) as gate:
        check = Interruptions(gate, PASSWORD)
        given = check.through(options, timeout="1s", id_column="id")
        check_table(check, MongodbSink, MongodbSource, given, key=("id",))


def test_a_limit_of_connections_is_transient(ferretdb: FerretDb, options: dict[str, Any]) -> None:
    """A server beyond the limit closes connections without a reason."""
    with Gate(ferretdb.port) as gate:
        of = source(Interruptions(gate, PASSWORD).through(options, timeout="2s"))
        gate.reject()
        with pytest.raises(Transient, match=r"connection closed|reset by peer") as found:
            of.check()
        assert "maxIncomingConnections" in str(found.value.hint)
        gate.heal()
        ferretdb.insert(options["collection"], {"_id": 1})
        of.check()


@pytest.mark.parametrize("is_of_document", [False, True])
@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (10107, "not primary", "busy"), (189, "primary stepped down", "busy"),
        (11600, "interrupted at shutdown", "busy"), (50, "exceeded time limit", "busy"),
        (112, "WriteConflict", "busy"), (14031, "out of disk space", "busy"),
        (371, "user writes blocked", "busy"), (8000, "you are over your space quota", "busy"),
        (8000, "bad auth", "authentication"), (13, "not authorized on shop", "authorization"),
    ],
)  # fmt: skip
def test_errors_of_members(
    ferretdb: FerretDb, options: dict[str, Any], code: int, reason: str, kind: str,
    is_of_document: bool,
) -> None:  # fmt: skip
    """Errors of all documents are transient or permanent, and no dead letters."""
    error = {"code": code, "errmsg": reason}
    answer: dict[str, Any] = {"ok": 0.0, **error}
    if is_of_document:
        answer = {"ok": 1.0, "n": 0, "writeErrors": [{"index": 0, **error}]}
    rows = batch(_id=[1, 2])
    with FailingMember(ferretdb.port) as member:
        url = f"mongodb://127.0.0.1:{member.port}/shop"
        of = sink({**options, "url": url, "timeout": "3s"})
        member.answers.append(("insert", answer))
        with pytest.raises(Transient if kind == "busy" else Permanent, match=reason) as found:
            write(of, rows)
        assert found.value.code == kind
        assert write(of, rows) == {}
    assert [each["_id"] for each in ferretdb.documents(options["collection"])] == [1, 2]


def test_unsatisfied_write_concerns(ferretdb: FerretDb, options: dict[str, Any]) -> None:
    with FailingMember(ferretdb.port) as member:
        of = sink({**options, "url": f"mongodb://127.0.0.1:{member.port}/shop", "timeout": "3s"})
        concern = {"code": 64, "errmsg": "waiting for replication timed out"}
        member.answers.append(("insert", {"ok": 1.0, "n": 1, "writeConcernError": concern}))
        with pytest.raises(Transient, match="waiting for replication") as found:
            write(of, batch(_id=[1]))
        assert found.value.hint == "Check the members of the replica set."
        assert write(of, batch(_id=[1])) == {}
