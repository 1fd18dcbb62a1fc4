"""Protocol Buffers with a registry: messages by their indexes, imports, both forms of schemas."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from google.protobuf import descriptor_pool, message_factory
from registry_formats import BY_TOPIC, UNKNOWN, context, failure_codes, formatted, payloads, renamed

from penstock.core.errors import PlanError
from penstock.formats.protobuf.compiled import compile_text
from servers.apicurio import Apicurio

SHOP = """\
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
message Customer { string name = 1; }
message Order {
  int64 id = 1;
  optional string name = 2;
  google.protobuf.Timestamp at = 3;
  message Line { int32 count = 1; }
}
"""


@pytest.fixture
def subject(apicurio: Apicurio) -> str:
    return apicurio.new_subject()


@pytest.fixture
def shop(tmp_path: Path) -> str:
    file = tmp_path / "shop.proto"
    file.write_text(SHOP)
    return str(file)


def of_confluent(text: str, name: str) -> Any:
    """A message as Google's library has it, of a package that it does not know yet."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    package = f"p{uuid.uuid4().hex[:8]}"
    made = compile_text(f"{package}.proto", text.replace("shop", package), {})
    file = FileDescriptorSet.FromString(made).file[-1]
    pool = descriptor_pool.Default()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}"))


def test_messages_of_several_types_have_their_name(apicurio: Apicurio, subject: str) -> None:
    values = [("Customer", {"name": "ann"}), ("Order", {"id": 7}), ("Order.Line", {"count": 3})]
    found, names = [], []
    for name, value in values:
        message = of_confluent(SHOP, name)
        names.append(message.DESCRIPTOR.full_name)
        serialize = ProtobufSerializer(message, apicurio.client, conf=BY_TOPIC)
        found.append(serialize(message(**value), context(subject)))
    columns = pa.schema([("id", pa.int64()), ("kind", pa.string()), ("name", pa.string())])
    format_ = formatted("protobuf", apicurio, subject, type_column="kind")
    format_.check_columns(columns)
    decoded = format_.decode(payloads(*found), columns)
    assert not decoded.failures
    assert decoded.rows.to_pylist() == [
        {"id": None, "kind": names[0], "name": "ann"},
        {"id": 7, "kind": names[1], "name": None},
        {"id": None, "kind": names[2], "name": None},
    ]
    with pytest.raises(PlanError, match="no column"):
        format_.check_columns(columns.remove(1))
    with pytest.raises(PlanError, match="not known"):
        format_.infer_schema(payloads())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Customer", {"name": "ann"}),
        ("Order", {"id": 7, "name": "x"}),
        ("Order.Line", {"count": 3}),
    ],
)
def test_messages_of_confluent_are_read(
    apicurio: Apicurio, subject: str, name: str, value: dict[str, Any]
) -> None:
    message = of_confluent(SHOP, name)
    serialize = ProtobufSerializer(message, apicurio.client, conf=BY_TOPIC)
    found = serialize(message(**value), context(subject))
    format_ = formatted("protobuf", apicurio, subject, message=message.DESCRIPTOR.full_name)
    (row,) = format_.decode(payloads(found), format_.infer_schema(payloads())).rows.to_pylist()
    assert {key: row[key] for key in value} == value


@pytest.mark.parametrize("name", ["Customer", "Order.Line"])
def test_written_messages_are_read_by_confluent(
    apicurio: Apicurio, subject: str, shop: str, name: str
) -> None:
    message = of_confluent(SHOP, name)
    value = {"name": "ann"} if name == "Customer" else {"count": 3}
    format_ = formatted("protobuf", apicurio, subject, schema_file=shop, message=f"shop.{name}")
    encoded = format_.encode(pa.RecordBatch.from_pylist([value], schema=format_.declared_schema()))
    (payload,) = encoded.payloads.to_pylist()
    found = ProtobufDeserializer(message, {"use.deprecated.format": False})(
        payload, context(subject)
    )
    assert {key: getattr(found, key) for key in value} == value
    (kept,) = apicurio.schemas(subject)
    assert (kept.schema.schema_type, kept.schema.schema_str) == ("PROTOBUF", SHOP)


def test_fields_that_came_later_are_left_out(apicurio: Apicurio, subject: str) -> None:
    apicurio.register(subject, 'syntax = "proto3"; message M { int64 id = 1; }', "PROTOBUF")
    columns = formatted("protobuf", apicurio, subject).infer_schema(payloads())
    later = 'syntax = "proto3"; message M { int64 number = 1; string more = 2; }'
    apicurio.register(subject, later, "PROTOBUF")
    writer = formatted("protobuf", apicurio, subject, registry={"register": False})
    rows = pa.RecordBatch.from_pylist([{"number": 7, "more": "x"}])
    encoded = writer.encode(rows)
    decoded = formatted("protobuf", apicurio, subject).decode(encoded.payloads, columns)
    assert decoded.rows.to_pylist() == [{"id": 7}], "fields go by their numbers"


def test_a_payload_of_another_message(apicurio: Apicurio, subject: str, shop: str) -> None:
    format_ = formatted("protobuf", apicurio, subject, schema_file=shop, message="shop.Order")
    rows = pa.RecordBatch.from_pylist([{"id": 1}], schema=pa.schema([("id", pa.int64())]))
    encoded = format_.encode(rows)
    reader = formatted("protobuf", apicurio, subject)
    decoded = reader.decode(encoded.payloads, reader.infer_schema(payloads()))
    assert failure_codes(decoded) == [(0, "another-message")]
    wrong = encoded.payloads[0].as_py()[:5] + b"\x02\x12" + b"\x08\x01"
    assert failure_codes(reader.decode(payloads(wrong), rows.schema)) == [(0, "unknown-message")]
    for cut in (wrong[:5], wrong[:6], wrong[:5] + b"\xff"):
        assert failure_codes(reader.decode(payloads(cut), rows.schema)) == [(0, "not-framed")]


def test_ids_that_are_replaced(apicurio: Apicurio, subject: str, shop: str) -> None:
    format_ = formatted("protobuf", apicurio, subject, schema_file=shop, message="shop.Order.Line")
    rows = pa.RecordBatch.from_pylist([{"count": 3}], schema=format_.declared_schema())
    foreign = payloads(renamed(format_.encode(rows).payloads[0].as_py(), UNKNOWN))
    assert failure_codes(format_.decode(foreign, rows.schema)) == [(0, "unknown-schema")]
    replacing = {"replace_ids": {UNKNOWN: apicurio.schemas(subject)[0].schema_id}}
    reader = formatted("protobuf", apicurio, subject, registry=replacing, message="shop.Order.Line")
    assert reader.decode(foreign, rows.schema).rows.to_pylist() == [{"count": 3}]


def test_imports(apicurio: Apicurio, subject: str) -> None:
    money = apicurio.new_subject()
    text = 'syntax = "proto3"; package shop; message Money { int64 cents = 1; }'
    apicurio.register(money, text, "PROTOBUF")
    order = (
        'syntax = "proto3"; package shop; import "shop/money.proto"; '
        "message Order { Money price = 1; }"
    )
    apicurio.register(subject, order, "PROTOBUF", [("shop/money.proto", money, 1)])
    format_ = formatted("protobuf", apicurio, subject, registry={"register": False})
    columns = format_.infer_schema(payloads())
    rows = pa.RecordBatch.from_pylist([{"price": {"cents": 5}}], columns.remove_metadata())
    encoded = format_.encode(rows)
    assert format_.decode(encoded.payloads, columns).rows.to_pylist() == rows.to_pylist()


def test_schemas_that_cannot_be_registered(
    apicurio: Apicurio, subject: str, tmp_path: Path
) -> None:
    with pytest.raises(PlanError) as caught:
        formatted("protobuf", apicurio, subject).encode(pa.RecordBatch.from_pylist([]))
    assert "schema_file" in str(caught.value.hint)
    (tmp_path / "a.proto").write_text('syntax = "proto3"; message A {}')
    (tmp_path / "b.proto").write_text('syntax = "proto3"; import "a.proto"; message B { A a = 1; }')
    options = {"schema_file": str(tmp_path / "b.proto"), "message": "B"}
    with pytest.raises(PlanError) as caught:
        formatted("protobuf", apicurio, subject, **options).encode(pa.RecordBatch.from_pylist([]))
    assert caught.value.code == "unsupported-import"
