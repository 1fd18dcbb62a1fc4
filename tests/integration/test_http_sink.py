"""The requests of the HTTP sink, and the effect of responses."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.http import HttpSink
from penstock.core.errors import PlanError
from penstock.sdk import BatchId, Failure, Permanent, Transient, registry
from servers.certificates import Authority
from servers.server import free_port
from servers.web import PASSWORD, USER, Web

RETRY = {"attempts": 3, "backoff": "50ms"}


def sink(**options: Any) -> HttpSink:
    made = HttpSink(
        HttpSink.config_type.model_validate({"retry": RETRY, "timeout": "10s", **options})
    )
    json_ = registry.find("format", "json")
    made.format = json_(json_.config_type.model_validate({}))  # type: ignore[assignment]
    return made


def sent(rows: list[dict[str, Any]], **options: Any) -> list[Failure]:
    """Writes rows as the engine does; gives the failures."""
    batch = pa.RecordBatch.from_pylist(rows)
    to = sink(**options)
    to.check_schema(batch.schema)
    client = to.open()
    try:
        writer = to.writer(client, BatchId("q", 0), 0, batch.schema)
        assert to.format is not None
        failures = writer.write(batch, to.format.encode(batch).payloads)
        writer.commit()
    finally:
        client.close()
    return list(failures)


@pytest.fixture
def name(web_server: Web) -> str:
    return web_server.new_name()


def ids(bodies: list[bytes]) -> list[int]:
    return [json.loads(body)["id"] for body in bodies]


def test_a_request_for_each_row(web_server: Web, name: str) -> None:
    url = f"{web_server.url}/kept/{name}?tag={{tag}}"
    rows = [{"id": 1, "tag": "a b&c"}, {"id": 2, "tag": "ü/?"}]
    headers = {"X-Id": "{id}", "X-Fixed": "f"}
    assert sent(rows, url=url, method="PUT", headers=headers, concurrency=1) == []
    one, two = web_server.requests(name)
    assert (one["method"], one["query"], two["query"]) == ("PUT", {"tag": "a b&c"}, {"tag": "ü/?"})
    assert one["headers"]["x-id"] == "1" and two["headers"]["x-fixed"] == "f"
    assert one["headers"]["content-type"] == "application/json"


def test_requests_without_bodies(web_server: Web, name: str) -> None:
    assert sent([{"id": 1}], url=f"{web_server.url}/kept/{name}?id={{id}}", method="DELETE") == []
    (request,) = web_server.requests(name)
    assert (request["method"], request["query"], request["body"]) == ("DELETE", {"id": "1"}, "")


@pytest.mark.parametrize("framing", ["lines", "array"])
def test_several_rows_in_a_body(web_server: Web, name: str, framing: str) -> None:
    other = web_server.new_name()
    rows = [{"id": at, "to": [name, other][at % 3 == 0]} for at in range(6)]
    assert sent(rows, url=f"{web_server.url}/kept/{{to}}", framing=framing) == []
    for to, expected in ((name, [1, 2, 4, 5]), (other, [0, 3])):
        (body,) = web_server.bodies(to)
        found = json.loads(body) if framing == "array" else [*map(json.loads, body.splitlines())]
        assert [row["id"] for row in found] == expected


@pytest.mark.parametrize("framing", ["single", "lines", "array"])
def test_rejected_rows_of_a_body(web_server: Web, name: str, framing: str) -> None:
    rows = [{"id": at} for at in range(1, 6)]
    failures = sent(rows, url=f"{web_server.url}/choosy/{name}", framing=framing, concurrency=1)
    (failure,) = failures
    assert (failure.index, failure.error.code) == (2, "http-422")
    assert "the id 3 is not accepted" in failure.error.message
    kept = [
        row
        for body in web_server.bodies(name)
        for row in (
            json.loads(body) if framing == "array" else [*map(json.loads, body.splitlines())]
        )
    ]
    assert [row["id"] for row in kept] == [1, 2, 4, 5]


def test_a_busy_server_is_retried(web_server: Web, name: str) -> None:
    assert sent([{"id": 1}, {"id": 2}], url=f"{web_server.url}/busy/{name}", concurrency=1) == []
    assert sorted(ids(web_server.bodies(name))) == [1, 2]


def test_a_server_that_stays_busy(web_server: Web, name: str) -> None:
    url = f"{web_server.url}/busy/{name}"
    with pytest.raises(Transient, match="503"):
        sent([{"id": 1}], url=url, retry={"attempts": 1})


@pytest.mark.parametrize(
    ("auth", "fine"),
    [
        ({"username": USER, "password": PASSWORD}, True),
        ({"username": USER, "password": "wrong"}, False),
        ({"token": "wrong"}, False),
    ],
)
def test_logins(web_server: Web, name: str, auth: dict[str, str], fine: bool) -> None:
    url = f"{web_server.url}/strict/{name}"
    if fine:
        assert sent([{"id": 1}], url=url, auth=auth) == []
        return
    with pytest.raises(Permanent, match="401") as caught:
        sent([{"id": 1}], url=url, auth=auth)
    assert "auth" in (caught.value.hint or "")


def test_the_options_success_and_reject(web_server: Web, name: str) -> None:
    url = f"{web_server.url}/strict/{name}"
    assert sent([{"id": 1}], url=url, success=["2xx", 401]) == []
    (failure,) = sent([{"id": 1}], url=url, reject=["4xx"])
    assert failure.error.code == "http-401"
    with pytest.raises(ValueError, match="2xx"):
        sink(url=url, success=["fine"])


def test_a_rejected_row_is_not_retried(web_server: Web, name: str) -> None:
    url = f"{web_server.url}/busy/{name}"
    (failure,) = sent([{"id": 1}], url=url, reject=["5xx"])
    assert failure.error.code == "http-503" and web_server.bodies(name) == []


def test_retryable_statuses(web_server: Web, name: str) -> None:
    url = f"{web_server.url}/busy/{name}"
    with pytest.raises(Permanent, match="503"):
        sent([{"id": 1}], url=url, retry={**RETRY, "statuses": [429]})
    assert web_server.bodies(name) == []
    assert sent([{"id": 2}], url=url, retry={**RETRY, "statuses": ["5xx"]}) == []
    assert ids(web_server.bodies(name)) == [2]
    with pytest.raises(Transient, match="404"):
        sent([{"id": 1}], url=f"{web_server.url}/nowhere", retry={**RETRY, "statuses": [404]})
    with pytest.raises(ValueError, match="2xx"):
        sink(url=url, retry={"statuses": ["fine"]})


def test_invalid_urls(web_server: Web) -> None:
    with pytest.raises(Permanent, match="404"):
        sent([{"id": 1}], url=f"{web_server.url}/nowhere")
    with pytest.raises(ValueError, match="a scheme and a host"):
        sink(url="not an url")


def test_an_unknown_column() -> None:
    with pytest.raises(PlanError) as caught:
        sink(url="http://localhost/{idd}").check_schema(pa.schema([("id", pa.int64())]))
    assert caught.value.message == 'url: unknown column "idd"'


def test_a_certificate_of_another_authority(tls_web: Any) -> None:
    server, root = tls_web
    url = f"https://127.0.0.1:{server.port}/kept/{server.new_name()}"
    assert sent([{"id": 1}], url=url, tls={"ca": str(root)}) == []
    assert sent([{"id": 1}], url=url, tls={"verify": False}) == []
    for call in (lambda: sent([{"id": 1}], url=url), sink(url=url).check):
        with pytest.raises(Permanent, match="TLS verification"):
            call()


@pytest.fixture
def tls_web(tmp_path: Any) -> Any:
    authority = Authority(tmp_path)
    with Web(certificate=authority.issue("web")) as server:
        yield server, authority.root


@pytest.mark.parametrize(
    ("host", "reason"),
    [("127.0.0.1", "Connection refused"), ("made-up.invalid", "Name or service not known")],
)
def test_the_reason_of_an_unreachable_server(host: str, reason: str) -> None:
    url = f"http://{host}:{free_port()}"
    with pytest.raises(Transient) as caught:
        sent([{"id": 1}], url=f"{url}/")
    assert caught.value.message in (
        f"could not reach {url}: {reason}",
        f"could not reach {url}: Temporary failure in name resolution",
    )
