"""Invalid options of the MongoDB source and sink."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import closing

import dns.message
import dns.resolver
import pyarrow as pa
import pytest

from option_errors import Case, assert_option_error
from penstock.connectors.mongodb import MongodbSink
from penstock.connectors.mongodb.client import create_client
from penstock.connectors.mongodb.config import MongodbSinkConfig, MongodbSourceConfig
from penstock.connectors.mongodb.errors import row_error, translate_error
from penstock.core.errors import PlanError, Transient
from penstock.sdk.network.tls import Tls

OPTIONS = {"url": "mongodb://db.example/shop", "collection": "orders"}
COLUMNS = pa.schema([("id", pa.int64()), ("who", pa.string())])


@pytest.mark.parametrize(
    "case",
    [
        (
            {"url": "http://db.example/shop"},
            "url",
            "expected mongodb://HOST or mongodb+srv://HOST[:PORT]",
        ),
        (
            {"url": "mongodb+srv://db.example:27017/shop"},
            "url",
            "expected mongodb+srv://HOST without a port, which is in the DNS",
        ),
        (
            {"url": "mongodb+srv://db.example/shop", "tls": False},
            "",
            "tls: false contradicts the scheme of the URL",
        ),
        ({"url": "mongodb://db.example"}, "url", "expected a database: mongodb://HOST/DATABASE"),
        ({"collection": "a$b"}, "collection", "expected the name of a collection, without $"),
        ({"auth": {"username": "a"}}, "auth", "expected username and password, or identity"),
        ({"auth": {"identity": "azure"}}, "auth", "identity: azure requires audience"),
        (
            {"auth": {"identity": "aws", "audience": "a"}},
            "auth",
            "identity: aws has no audience",
        ),
        (
            {"auth": {"identity": "google", "audience": "a", "client_id": "c"}},
            "auth",
            "client_id requires identity: azure",
        ),
        (
            {"auth": {"identity": "aws", "database": "shop"}},
            "auth",
            "database requires username and password",
        ),
        (
            {"tls": {"certificate": "a.pem", "key": "b.pem"}},
            "tls",
            "expected one file with certificate and key, in both tls options",
        ),
        ({"cursor_columns": ["a.b"]}, "cursor_columns", "without a dot, found a.b"),
        ({"cursor_columns": ["a", "a"]}, "cursor_columns", "expected each column once"),
        ({"pipeline": {"$match": {}}}, "pipeline", "Input should be a valid list"),
    ],
)
def test_invalid_options_of_the_source(case: Case) -> None:
    assert_option_error(MongodbSourceConfig, OPTIONS, case)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"id_column": "key"}, 'id_column: unknown column "key"'),
        ({"object_id_columns": ["whom"]}, 'object_id_columns: unknown column "whom"'),
        ({"object_id_columns": ["id"]}, 'object_id_columns: column "id" has the type BIGINT'),
    ],
)
def test_columns_that_the_rows_do_not_have(options: dict[str, object], message: str) -> None:
    sink = MongodbSink(MongodbSinkConfig.model_validate({**OPTIONS, **options}))
    with pytest.raises(PlanError) as raised:
        sink.check_schema(COLUMNS)
    assert raised.value.message == message


def test_columns_that_documents_cannot_have() -> None:
    sink = MongodbSink(MongodbSinkConfig.model_validate({**OPTIONS, "id_column": "id"}))
    with pytest.raises(PlanError, match='columns "id" and "_id" are both the _id'):
        sink.check_schema(COLUMNS.append(pa.field("_id", pa.int64())))
    with pytest.raises(PlanError, match=r'column "\$x": MongoDB has no field of this name'):
        sink.check_schema(COLUMNS.append(pa.field("$x", pa.int64())))


class DnsServer(socketserver.BaseRequestHandler):
    """Answers with the member `db0.shop.example` at port 27018; there is no other name."""

    def handle(self) -> None:
        data, socket = self.request
        answer = dns.message.make_response(dns.message.from_wire(data))
        (question,) = answer.question
        if question.name.to_text() == "_mongodb._tcp.db.shop.example.":
            if question.rdtype == dns.rdatatype.SRV:
                record = dns.rrset.from_text(
                    question.name, 60, "IN", "SRV", "0 0 27018 db0.shop.example."
                )
                answer.answer.append(record)
        else:
            answer.set_rcode(dns.rcode.NXDOMAIN)
        socket.sendto(answer.to_wire(), self.client_address)


@pytest.fixture
def dns_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with socketserver.UDPServer(("127.0.0.1", 0), DnsServer) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        resolver = dns.resolver.Resolver(configure=False)
        resolver.nameservers, resolver.port = ["127.0.0.1"], server.server_address[1]
        monkeypatch.setattr(dns.resolver, "default_resolver", resolver)
        yield
        server.shutdown()


@pytest.mark.slow
@pytest.mark.usefixtures("dns_server")
def test_members_in_the_dns() -> None:
    options = {**OPTIONS, "url": "mongodb+srv://db.shop.example/shop"}
    config = MongodbSourceConfig.model_validate(options)
    assert config.tls_settings == Tls()
    with closing(create_client(config)) as client:
        seeds = client.topology_description.server_descriptions()
        assert [*seeds] == [("db0.shop.example", 27018)]
    other = MongodbSourceConfig.model_validate({**options, "url": "mongodb+srv://no.example/shop"})
    with pytest.raises(Transient, match=r"database no\.example/shop: The DNS query name"):
        create_client(other)


def test_errors_by_code() -> None:
    from pymongo.errors import OperationFailure, ServerSelectionTimeoutError

    config = MongodbSourceConfig.model_validate(OPTIONS)
    codes = {
        13: "authorization", 18: "authentication", 50: "busy", 11600: "busy", 10107: "busy",
        9: "rejected",
    }  # fmt: skip
    for number, code in codes.items():
        error = translate_error(OperationFailure("no, full error: {}", number), config)
        assert error.code == code and "full error" not in error.message
    unreachable = ServerSelectionTimeoutError("refused, Timeout: 1s, Topology Description: <>")
    error = translate_error(unreachable, config)
    assert error.message == "could not reach the database db.example:27017/shop: refused"


def test_errors_of_a_write_that_are_not_of_its_document() -> None:
    config = MongodbSourceConfig.model_validate(OPTIONS)
    assert row_error({"code": 121, "errmsg": "Document failed validation"}, config).message == (
        "MongoDB rejects the document: Document failed validation"
    )
    with pytest.raises(Transient, match="interrupted at shutdown"):
        row_error({"code": 11600, "errmsg": "interrupted at shutdown"}, config)
