"""Events of change streams, as the manual of MongoDB describes them."""

from __future__ import annotations

import datetime as dt
from typing import Any
from uuid import UUID

import bson
import pytest
from bson import Int64, Timestamp
from bson.raw_bson import RawBSONDocument
from pymongo.errors import OperationFailure

from penstock.connectors.mongodb import MongodbSource
from penstock.connectors.mongodb.changes.events import (
    key_of,
    parse_event,
    position_of,
    position_of_token,
    value_of,
)
from penstock.connectors.mongodb.changes.setup import check_server, has_images
from penstock.connectors.mongodb.changes.stream import ChangeStream
from penstock.connectors.mongodb.client import raw_codec_options
from penstock.core.errors import PenstockError, Permanent, Transient
from penstock.sdk import Operation
from penstock.sdk.database.changes import LostChanges

TOKEN = "8266F1B2C3000000012B042C0100296E5A1004"
TIME = Timestamp(0x66F1B2C3, 1)
CONFIG = MongodbSource.config_type.model_validate(
    {"url": "mongodb://localhost/shop", "collection": "orders"}
)


def event(kind: str, **fields: Any) -> Any:
    found = {"_id": {"_data": TOKEN}, "operationType": kind, "clusterTime": TIME, **fields}
    return RawBSONDocument(bson.encode(found), raw_codec_options())


def test_the_position_of_a_token_is_its_time() -> None:
    assert position_of_token(TOKEN) == position_of(TIME)
    assert position_of(Timestamp(3_700_000_000, 2**32 - 1)) < 2**63
    assert position_of(Timestamp(5, 2**32 - 1)) + 1 == position_of(Timestamp(6, 0))
    for text in ("", "6", "0164f1b2c3", "82", "82xyz"):
        with pytest.raises(Permanent, match="unknown form"):
            position_of_token(text)


def test_a_change_of_a_transaction() -> None:
    session = UUID(int=7)
    at = dt.datetime(2024, 9, 23, 18, 0, 1, 5000, tzinfo=dt.UTC)
    found = event(
        "update", documentKey={"shard": "x", "_id": Int64(1)}, fullDocument={"_id": Int64(1)},
        lsid={"id": bson.Binary.from_uuid(session), "uid": b""}, txnNumber=Int64(3), wallTime=at,
    )  # fmt: skip
    parsed = parse_event(found, "orders")
    assert parsed.operation is Operation.UPDATE and parsed.document == bson.encode(
        {"_id": Int64(1)}
    )
    assert parsed.transaction.id == f"{session}:3" and parsed.transaction.time == at
    assert parsed.transaction.lsn == parsed.token == TOKEN
    value = value_of(parsed.key)
    assert value == 1 and type(value) is Int64 and parsed.key != key_of(1)


def test_a_change_without_a_transaction_and_with_a_document_before() -> None:
    found = event("delete", documentKey={"_id": 1}, fullDocumentBeforeChange={"_id": 1, "n": 2})
    parsed = parse_event(found, "orders")
    assert parsed.document is None and parsed.before == bson.encode({"_id": 1, "n": 2})
    assert parsed.transaction.id is None
    assert parsed.transaction.time == dt.datetime.fromtimestamp(TIME.time, dt.UTC)


@pytest.mark.parametrize(
    ("kind", "text"),
    [("rename", "was renamed at"), ("dropDatabase", "dropped with its database"),
     ("invalidate", "dropped or renamed"), ("refineCollectionShardKey", "changed by refine")],
)  # fmt: skip
def test_the_end_of_a_stream(kind: str, text: str) -> None:
    with pytest.raises(Permanent, match=text) as found:
        parse_event(event(kind, ns={"db": "shop", "coll": "orders"}), "orders")
    assert found.value.code == "not-found"


class Server:
    """A client whose commands return an answer or raise an error."""

    def __init__(self, answer: Any, collections: Any = ()) -> None:
        self.answer, self.collections, self.commands = answer, collections, list[Any]()
        self.admin = self

    def __getitem__(self, name: str) -> Server:
        return self

    def command(self, command: Any, **options: Any) -> Any:
        self.commands.append(command)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def list_collections(self, filter: Any) -> Any:
        return [each for each in self.collections if each["name"] == filter["name"]]


@pytest.mark.parametrize(
    ("code", "kind", "error_code", "hint"),
    [(286, LostChanges, "data-gone", "replSetResizeOplog"),
     (40573, Permanent, "change-streams", "rs.initiate"),
     (13, Permanent, "authorization", "the role read"),
     (10334, Permanent, "too-large", "changeStreamPreAndPostImages"),
     (43, Transient, "busy", None)],
)  # fmt: skip
def test_errors_of_a_stream(
    code: int, kind: type[PenstockError], error_code: str, hint: str | None
) -> None:
    server = Server(OperationFailure("no way", code, {"errmsg": "no way"}))
    with pytest.raises(kind) as found:
        ChangeStream(server, CONFIG, TOKEN, has_images=False)
    assert found.value.code == error_code and "no way" in found.value.message
    assert hint is None or hint in str(found.value.hint)


def test_images_are_requested_if_the_collection_has_them() -> None:
    options = {"changeStreamPreAndPostImages": {"enabled": True}}
    found = [{"name": "orders", "type": "collection", "options": options}]
    server = Server({"cursor": {"id": 7, "firstBatch": [], "postBatchResumeToken": {"_data": "8"}}})
    server.collections = found
    assert has_images(server, CONFIG)
    ChangeStream(server, CONFIG, TOKEN, has_images=True)
    assert server.commands[0]["pipeline"] == [
        {"$changeStream": {
            "fullDocument": "whenAvailable", "fullDocumentBeforeChange": "whenAvailable",
            "resumeAfter": {"_data": TOKEN},
        }}
    ]  # fmt: skip
    server.collections = [{"name": "orders", "type": "timeseries", "options": {}}]
    with pytest.raises(Permanent, match='"orders" is a timeseries'):
        has_images(server, CONFIG)


def test_servers_with_change_streams() -> None:
    check_server(Server({"setName": "rs0"}), CONFIG)
    check_server(Server({"msg": "isdbgrid"}), CONFIG)
    with pytest.raises(Permanent, match="standalone"):
        check_server(Server({"isWritablePrimary": True}), CONFIG)
