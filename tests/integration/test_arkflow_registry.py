"""The codec `registry` of the transform `steps`: Avro and Protobuf, by the schema of a payload."""

from __future__ import annotations

import io
import json
import uuid
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import fastavro

from penstock.transforms.steps.codec_config import Codec
from penstock.transforms.steps.codecs import make_codec
from servers.apicurio import Apicurio

AVRO = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}]}
PROTO = 'syntax = "proto3"; package p; message Other { int32 x = 1; } message M { string b = 1; }'


def register(registry: Apicurio, body: dict[str, Any]) -> int:
    request = Request(
        f"{registry.url}/subjects/{uuid.uuid4().hex}/versions", json.dumps(body).encode(),
        {"Content-Type": "application/vnd.schemaregistry.v1+json"},
    )  # fmt: skip
    with urlopen(request) as response:
        return int(json.loads(response.read())["id"])


def framed(number: int, payload: bytes) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + payload


def test_payloads_have_the_columns_of_their_schema(apicurio: Apicurio) -> None:
    avro = register(apicurio, {"schema": json.dumps(AVRO)})
    proto = register(apicurio, {"schema": PROTO, "schemaType": "PROTOBUF"})
    datum = io.BytesIO()
    fastavro.schemaless_writer(datum, fastavro.parse_schema(AVRO), {"a": 7})
    codec = make_codec(Codec(type="registry", url=apicurio.url), Path())
    assert codec.decode([framed(avro, datum.getvalue())]).to_pylist() == [{"a": 7}]
    # The message is the second one of the file: one index, 1, after its count.
    message = framed(proto, b"\x02\x02" + b"\x0a\x01z")
    assert codec.decode([message]).to_pylist() == [{"b": "z"}]
    named = make_codec(Codec(type="registry", url=apicurio.url, message="p.M"), Path())
    assert named.decode([message]).to_pylist() == [{"b": "z"}]
