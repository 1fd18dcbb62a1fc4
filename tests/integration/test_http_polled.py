"""The requests of the HTTP poll source, and the records of the responses."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from receiving_here import receiving_here
from taking import Take

from penstock.connectors.http.poll import HttpPollSource
from penstock.sdk import Context, Permanent, Transient
from servers.certificates import Authority
from servers.pushing import LOGIN, Pushing


def source(state: Path, **options: Any) -> HttpPollSource:
    given = {"interval": "20ms", "retry": {"attempts": 1}, **LOGIN, **options}
    config = HttpPollSource.config_type.model_validate(given)
    return HttpPollSource(config, Context("test", "in", state))  # type: ignore[arg-type]


@pytest.fixture
def name(pushing: Pushing) -> str:
    return pushing.new_name()


@pytest.fixture
def url(pushing: Pushing, name: str) -> str:
    return f"{pushing.url}/script/{name}"


@pytest.fixture
def taking(taking: Take, tmp_path: Path, url: str) -> Take:
    return lambda **options: taking(source(tmp_path / "state", **{"url": url, **options}))


def asked(server: Pushing, name: str, count: int) -> list[dict[str, Any]]:
    """The first requests, when there are so many."""
    until = time.monotonic() + 30
    while len(found := server.kept(name)) < count:
        assert time.monotonic() < until, found
        time.sleep(0.01)
    return found[:count]


def queries(server: Pushing, name: str, count: int) -> list[str]:
    return [each["query"] for each in asked(server, name, count)]


def test_the_request(pushing: Pushing, name: str, url: str, taking: Take) -> None:
    pushing.script(name, {"a=1": {"body": "x", "headers": {"X-Said": "y", "Set-Cookie": "c=1"}}})
    options = {"url": f"{url}?a=1", "headers": {"X-Made-Up": "yes"}}
    (row, *_) = taking(**options, method="POST", body="give").rows(1, "url", "headers")
    request = asked(pushing, name, 1)[0]
    assert (request["method"], request["body"]) == ("POST", "give")
    assert request["headers"]["x-made-up"] == "yes"
    assert row["payload"] == b"x" and row["url"] == f"{url}?a=1"
    assert dict(row["headers"])["x-said"] == "y" and "set-cookie" not in dict(row["headers"])


def test_all_of_each_round(pushing: Pushing, name: str, taking: Take) -> None:
    pushing.script(name, {"": {"body": "same", "etag": '"e"'}})
    assert taking().payloads(3)[:3] == [b"same"] * 3
    assert "if-none-match" not in asked(pushing, name, 2)[1]["headers"]


def test_the_interval(pushing: Pushing, name: str, taking: Take) -> None:
    pushing.script(name, {"": {"body": "1"}})
    taken = taking(interval="1h")
    time.sleep(0.5)
    assert taken.payloads(1) == [b"1"]


def test_only_changed_messages(pushing: Pushing, name: str, taking: Take) -> None:
    pushing.script(name, {"": [{"body": each} for each in ("1", "1", "2", "2", "1")]})
    taken = taking(emit="changed")
    asked(pushing, name, 7)
    assert taken.payloads(3) == [b"1", b"2", b"1"]


def test_only_changed_elements(pushing: Pushing, name: str, taking: Take) -> None:
    bodies = ["[1, 2]", "[2, 1, 3]", "[]", "[3]"]
    pushing.script(name, {"": [{"body": each} for each in bodies]})
    taken = taking(emit="changed", framing="array")
    asked(pushing, name, 6)
    assert taken.payloads(4) == [b"1", b"2", b"3", b"3"]


def test_a_restart_resumes_with_the_etag(pushing: Pushing, name: str, taking: Take) -> None:
    pushing.script(name, {"": {"body": "1", "etag": '"e1"'}})
    taken = taking(emit="changed")
    assert "if-none-match" not in asked(pushing, name, 1)[0]["headers"]
    taken.payloads(1)
    asked(pushing, name, 2)
    taken.receiving.close()
    before = len(pushing.kept(name))
    again = taking(emit="changed")
    requests = asked(pushing, name, before + 2)[1:]
    assert {each["headers"]["if-none-match"] for each in requests} == {'"e1"'}
    pushing.script(name, {"": {"body": "2", "etag": '"e2"'}})
    assert again.payloads(2) == [b"1", b"2"]


@pytest.mark.parametrize(
    ("options", "body", "expected"),
    [
        ({}, '[1,\n"a"]', [b'[1,\n"a"]']),
        ({"framing": "lines"}, "1\n\n2", [b"1", b"2"]),
        ({"framing": "array"}, '[1.10, {"a": 2}]', [b"1.10", b'{"a": 2}']),
        ({"framing": "array", "pointer": "/d/0"}, '{"d": [[1, 2], 3]}', [b"1", b"2"]),
    ],
)
def test_the_messages_of_a_body(
    pushing: Pushing, name: str, taking: Take, options: Any, body: str, expected: list[bytes]
) -> None:
    pushing.script(name, {"": {"body": body}})
    assert taking(emit="changed", **options).payloads(len(expected)) == expected


LINKED = {
    "": {"body": "[1, 2]", "headers": {"Link": '<?p=2>; rel="next"'}},
    "p=2": {"body": "[3]", "headers": {"Link": '</script/NAME?p=3>; rel="next"'}},
    "p=3": {"body": "[4]"},
}


def test_pages_by_links(pushing: Pushing, name: str, taking: Take) -> None:
    pushing.script(name, {key: _named(value, name) for key, value in LINKED.items()})
    taken = taking(framing="array", paging={"by": "link"}, emit="changed")
    assert queries(pushing, name, 5) == ["", "p=2", "p=3", "", "p=2"]
    assert taken.payloads(4) == [b"1", b"2", b"3", b"4"]


def test_staying_at_the_last_page(pushing: Pushing, name: str, taking: Take) -> None:
    script = {key: _named(value, name) for key, value in LINKED.items()}
    pushing.script(name, {**script, "p=3": [{"body": "[4]"}, {"body": "[4, 5]"}]})
    paging = {"by": "link", "at_end": "stay"}
    taken = taking(framing="array", paging=paging, emit="changed")
    assert queries(pushing, name, 5) == ["", "p=2", "p=3", "p=3", "p=3"]
    assert taken.payloads(5) == [b"1", b"2", b"3", b"4", b"5"]


def test_pages_by_number(pushing: Pushing, name: str, url: str, taking: Take) -> None:
    pages = {"n=5": {"body": "[1]"}, "n=6": {"body": "[2]"}, "n=7": {"body": "[]"}}
    pushing.script(name, pages)
    paging = {"by": "page", "parameter": "n", "first": 5}
    taken = taking(framing="array", paging=paging)
    assert queries(pushing, name, 4) == ["n=5", "n=6", "n=7", "n=5"]
    assert taken.payloads(2)[:2] == [b"1", b"2"]


def test_staying_at_a_page_that_fills(pushing: Pushing, name: str, taking: Take) -> None:
    pages = {"page=1": [{"body": "[1]"}, {"body": "[1, 2]"}], "page=2": {"body": "[]"}}
    pushing.script(name, pages)
    paging = {"by": "page", "at_end": "stay"}
    taken = taking(framing="array", paging=paging, emit="changed")
    assert taken.payloads(2) == [b"1", b"2"]
    pushing.script(name, {"page=1": {"body": "[1, 2]"}, "page=2": {"body": "[3]"},
                          "page=3": {"body": "[]"}})  # fmt: skip
    assert taken.payloads(3) == [b"1", b"2", b"3"]


CURSOR = {"by": "cursor", "pointer": "/n", "parameter": "at"}
FIRST = '{"d": [1, 1], "n": "b"}'


@pytest.mark.parametrize(
    ("paging", "pages", "grown"),
    [
        (CURSOR, {"": FIRST, "at=b": '{"d": []}'}, {"at=b": '{"d": [1]}'}),
        (CURSOR, {"": FIRST, "at=b": '{"d": [1]}'}, {"at=b": '{"d": [1, 1]}'}),
        (CURSOR, {"": FIRST, "at=b": '{"d": [1], "n": "b"}'}, {"at=b": '{"d": [1, 1]}'}),
        ({"by": "page"}, {"page=1": FIRST, "page=2": '{"d": []}'}, {"page=1": '{"d": [1, 1, 1]}'}),
        ({"by": "link", "pointer": "/n"}, {"": '{"d": [1, 1]}'}, {"": '{"d": [1, 1, 1]}'}),
    ],
)
def test_a_page_that_is_requested_again_delivers_only_new_messages(
    pushing: Pushing, name: str, taking: Take, paging: Any, pages: Any, grown: Any
) -> None:
    pushing.script(name, {key: {"body": body} for key, body in pages.items()})
    paging = {"at_end": "stay", **paging}
    options = {"framing": "array", "pointer": "/d", "paging": paging}
    taken = taking(**options)
    asked(pushing, name, 8)
    taken.receiving.close()
    before = len(pushing.kept(name))
    pushing.script(name, {key: {"body": body} for key, body in {**pages, **grown}.items()})
    again = taking(**options)
    asked(pushing, name, before + 8)
    delivered = sum(body.count("1") for body in {**pages, **grown}.values())
    assert again.payloads(delivered) == [b"1"] * delivered


def test_a_restart_resumes_at_the_cursor(pushing: Pushing, name: str, taking: Take) -> None:
    pages = {
        "since=a": {"body": '{"d": [1], "n": "b"}'},
        "since=b": {"body": '{"d": [2], "n": "c"}'},
        "since=c": {"body": '{"d": [], "n": "c"}'},
    }
    pushing.script(name, pages)
    paging = {"by": "cursor", "parameter": "since", "pointer": "/n", "first": "a"}
    options = {"framing": "array", "pointer": "/d", "paging": paging}
    taken = taking(**options)
    assert queries(pushing, name, 4) == ["since=a", "since=b", "since=c", "since=c"]
    assert taken.payloads(2) == [b"1", b"2"]
    taken.receiving.close()
    before = len(pushing.kept(name))
    pushing.script(name, {**pages, "since=c": {"body": '{"d": [3], "n": "d"}'},
                          "since=d": {"body": '{"d": [], "n": "d"}'}})  # fmt: skip
    assert taking(**options).payloads(3) == [b"1", b"2", b"3"]
    assert queries(pushing, name, before + 1)[-1] == "since=c"


@pytest.mark.parametrize(("at_end", "then"), [("restart", ""), ("stay", "cursor=b")])
def test_an_answer_without_a_cursor(
    pushing: Pushing, name: str, taking: Take, at_end: str, then: str
) -> None:
    first = {"body": "1\n", "headers": {"X-Next": "b"}}
    pushing.script(name, {"": first, "cursor=b": {"body": "2\n"}})
    paging = {"by": "cursor", "header": "X-Next", "at_end": at_end}
    taking(framing="lines", paging=paging)
    assert queries(pushing, name, 3) == ["", "cursor=b", then]


def test_a_busy_server_is_retried(pushing: Pushing, name: str, taking: Take) -> None:
    busy = {"status": 503, "headers": {"Retry-After": "0"}}
    pushing.script(name, {"": [busy, busy, {"body": "1"}]})
    taken = taking(retry={"attempts": 3, "backoff": "1h", "max_backoff": "1h"}, interval="1h")
    assert taken.payloads(1) == [b"1"]


def test_a_retryable_status(pushing: Pushing, name: str, taking: Take) -> None:
    pushing.script(name, {"": [{"status": 404}, {"body": "1"}]})
    taken = taking(retry={"attempts": 2, "backoff": "1ms", "statuses": [404]}, interval="1h")
    assert taken.payloads(1) == [b"1"]


@pytest.mark.parametrize(
    ("answer", "options", "said"),
    [
        ({"status": 404, "body": "no such thing"}, {}, "404: no such thing"),
        ({"status": 302, "headers": {"Location": "/x"}}, {}, "responded with status 302"),
        ({"body": "{}"}, {"framing": "array"}, "expected a JSON array"),
        ({"body": "{}"}, {"framing": "array", "pointer": "/d"}, "expected a JSON array at /d"),
        ({"body": "x" * 1_001}, {"max_message_size": "1KB"}, "more than 1,000 bytes"),
    ],
)
def test_responses_that_fail_the_source(
    pushing: Pushing, name: str, url: str, tmp_path: Path, answer: Any, options: Any, said: str
) -> None:
    pushing.script(name, {"": answer})
    with pytest.raises(Permanent, match=said):
        receiving_here(source(tmp_path, url=url, **options)).result()


def test_a_server_that_stays_busy(pushing: Pushing, name: str, url: str, tmp_path: Path) -> None:
    pushing.script(name, {"": {"status": 429, "headers": {"Retry-After": "0"}}})
    with pytest.raises(Transient, match="429"):
        receiving_here(source(tmp_path, url=url, retry={"attempts": 2})).result()
    assert len(pushing.kept(name)) == 2


def test_more_than_fits_into_the_journal_at_once(pushing: Pushing, name: str, taking: Take) -> None:
    pushing.script(name, {"": {"body": "\n".join(["x" * 100_000] * 30)}})
    taken = taking(framing="lines", journal={"max_size": "1MiB"}, interval="1h")
    at, seen = taken.source.initial_offset(), 0
    until = time.monotonic() + 30
    while seen < 30:
        assert time.monotonic() < until
        end = taken.source.latest_offset(at)
        seen, at = end["position"], end
        taken.source.commit(end)
        time.sleep(0.01)


def test_a_check_of_another_method_sends_no_body(
    pushing: Pushing, name: str, url: str, tmp_path: Path
) -> None:
    pushing.script(name, {"": {"body": "1"}})
    source(tmp_path, url=url, method="POST", body="give").check()
    assert [(each["method"], each["body"]) for each in pushing.kept(name)] == [("HEAD", "")]


def test_tls(tmp_path: Path, name: str, taking: Take) -> None:
    authority = Authority(tmp_path)
    with Pushing(certificate=authority.issue("server")) as server:
        server.script(name, {"": {"body": "1"}})
        options = {"url": f"{server.url}/script/{name}"}
        with pytest.raises(Permanent, match="TLS verification"):
            source(tmp_path, **options).check()
        taken = taking(**options, tls={"ca": str(authority.root)})
        assert taken.payloads(1)[0] == b"1"
        taken.receiving.close()


def _named(answer: dict[str, Any], name: str) -> dict[str, Any]:
    headers = {key: value.replace("NAME", name) for key, value in answer.get("headers", {}).items()}
    return {**answer, "headers": headers}
