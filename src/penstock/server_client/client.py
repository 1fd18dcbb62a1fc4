"""The client of one server, and its connections."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import SplitResult, quote, urlencode, urlsplit

from penstock.core.errors import (
    PenstockError,
    Permanent,
    Transient,
    UserError,
    raise_all,
)
from penstock.core.known_secrets import remember_secret
from penstock.core.text import did_you_mean
from penstock.plan.node_changes import Change
from penstock.server_client.answers import (
    Draft,
    DraftCheck,
    ServedPipeline,
    ServedVersion,
    read_error,
    read_pipeline,
)
from penstock.server_client.event_stream import EVENTS, read_events

TIMEOUT = 30.0
CHECK_TIMEOUT = 180.0
"""The time for a check of a text by Spark: that of the server, and for a free worker."""
REPLAY_TIMEOUT = 660.0
"""The time for a replay: that of the server, and for the start of a session."""
MAX_ANSWER = 256 * 1024 * 1024
_BLOCK = 1 << 16


class ServerClient:
    """A client of one server. Each call has a connection of its own.

    All calls raise Transient for a server that cannot be reached, does not answer in time or is
    busy, Permanent for an invalid token or a missing right, and the errors of the server.
    """

    def __init__(self, url: str, token: str, timeout: float = TIMEOUT) -> None:
        """Raises UserError for an invalid URL or a token of other characters than ASCII."""
        self._url, self._timeout = _parsed(url), timeout
        if not token.isascii() or not token.isprintable() or " " in token:
            raise UserError(
                "the token of the server is invalid", code="invalid-token",
                hint="Copy the whole token into PENSTOCK_TOKEN, without line breaks.",
            )  # fmt: skip
        remember_secret(token)
        self._token = token

    def pipelines(self) -> list[ServedPipeline]:
        """Returns all pipelines, the worst health first."""
        return [read_pipeline(facts) for facts in self._get("pipelines")]

    def pipeline(self, name: str) -> ServedPipeline:
        """Returns the pipeline of a name, with its text.

        Raises UserError for an unknown name, and for a name of several pipelines.
        """
        found = self.find(name)
        if found is None:
            names = [each.name for each in self.pipelines()]
            raise UserError(
                f'the server has no pipeline "{name}"', code="unknown-pipeline",
                hint=did_you_mean(name, names) or "List the pipelines with penstock status --all.",
            )  # fmt: skip
        return found

    def find(self, name: str) -> ServedPipeline | None:
        """Returns the pipeline of a name; None for an unknown one, else as `pipeline`."""
        found = [each for each in self.pipelines() if each.name == name]
        if len(found) > 1:
            raise UserError(
                f'the server has {len(found)} pipelines "{name}"', code="ambiguous-name",
                detail="\n".join(each.file for each in found),
                hint="Give the pipelines different names.",
            )  # fmt: skip
        return self.show(found[0].id) if found else None

    def show(self, id: str) -> ServedPipeline:
        """Returns the pipeline of an ID, with its text. Raises UserError for an unknown ID."""
        return read_pipeline(self._get(f"pipelines/{id}"))

    def check(self, id: str, draft: Draft) -> DraftCheck:
        """Checks a draft against the state of a pipeline, without effect on it."""
        body = {"text": draft.text, "level": "plan"}
        found = self._post(f"pipelines/{id}/check", body, draft, CHECK_TIMEOUT)
        return DraftCheck(
            [read_error(facts, 422, draft) for facts in found["errors"]],
            [read_error(facts, 422, draft) for facts in found["warnings"]],
            [Change(**facts) for facts in found["changes"]],
        )

    def create(self, name: str, draft: Draft, note: str) -> ServedPipeline:
        """Creates a pipeline, which does not run yet."""
        body = {"name": name, "text": draft.text, "note": note}
        return read_pipeline(self._post("pipelines", body, draft, CHECK_TIMEOUT))

    def apply(
        self, pipeline: ServedPipeline, draft: Draft, note: str, *, fresh: bool
    ) -> ServedVersion:
        """Applies a draft. Raises StateError if the pipeline has a newer version than here."""
        body = {"text": draft.text, "note": note, "fresh": fresh, "base": pipeline.version or 0}
        path = f"pipelines/{pipeline.id}/apply"
        return ServedVersion(**self._post(path, body, draft, CHECK_TIMEOUT))

    def versions(self, id: str) -> list[ServedVersion]:
        """Returns the last 100 versions of a pipeline, last first."""
        return [ServedVersion(**facts) for facts in self._get(f"pipelines/{id}/versions")]

    def version(self, id: str, number: int) -> ServedVersion:
        """Returns a version. Raises UserError for an unknown number."""
        return ServedVersion(**self._get(f"pipelines/{id}/versions/{number}"))

    def roll_back(
        self, pipeline: ServedPipeline, number: int, draft: Draft, *, fresh: bool
    ) -> ServedVersion:
        """Applies the text of an earlier version, which `draft` has."""
        body = {"fresh": fresh, "base": pipeline.version or 0}
        path = f"pipelines/{pipeline.id}/versions/{number}/roll-back"
        return ServedVersion(**self._post(path, body, draft, CHECK_TIMEOUT))

    def start(self, id: str, *, fresh: bool = False) -> ServedPipeline:
        """Requests that a pipeline runs."""
        return read_pipeline(self._post(f"pipelines/{id}/start", {"fresh": fresh}))

    def stop(self, id: str) -> ServedPipeline:
        """Requests that a pipeline stops after its current batch."""
        return read_pipeline(self._post(f"pipelines/{id}/stop", {}))

    def replay(self, id: str, ids: list[str] | None, *, force: bool = False) -> dict[str, Any]:
        """Replays dead letters of a stopped pipeline; None is all of them."""
        body = {"ids": ids, "force": force}
        path = f"pipelines/{id}/dead-letters/replay"
        found: dict[str, Any] = self._post(path, body, timeout=REPLAY_TIMEOUT)
        return found

    def rotate_keys(self) -> int:
        """Encrypts all secrets with a new key. Returns their number."""
        count: int = self._post("connections/keys/rotate", {})["secrets"]
        return count

    def logs(
        self, id: str, *, run: str | None = None, level: str = "info", limit: int = 500,
        since: str | None = None,
    ) -> list[dict[str, Any]]:  # fmt: skip
        """Returns the last lines of the log of a pipeline, oldest first, from the time `since`."""
        given = {"run": run, "level": level, "limit": limit, "since": since}
        query = urlencode({name: value for name, value in given.items() if value is not None})
        found: list[dict[str, Any]] = self._get(f"pipelines/{id}/logs?{query}")
        return found

    def tap(
        self, id: str, node: str, rows: int, seconds: float
    ) -> Generator[dict[str, Any], None, None]:
        """Yields the answers of a tap on a node of a running pipeline, for some seconds.

        An answer has `opened`, or `columns` and `rows` of a batch, or `missed` with the reason for
        which a batch has none. Raises Transient if the server ends before.
        """
        query = urlencode({"node": node, "rows": rows})
        with closing(self._events(f"pipelines/{id}/tap?{query}", seconds)) as events:
            for name, content in events:
                if name == "failed":
                    status = content["status"]
                    raise_all(read_error(facts, status) for facts in content["errors"])
                if name != "age":
                    yield content

    def get_facts(self, path: str, **query: Any) -> Any:
        """Returns the answer to a GET of a path below `/api/v1`, as JSON."""
        given = urlencode({name: value for name, value in query.items() if value is not None})
        return self._get(f"{path}?{given}" if given else path)

    def post_facts(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the answer to a POST of a path below `/api/v1`, as JSON."""
        found: dict[str, Any] = self._post(path, body, timeout=CHECK_TIMEOUT)
        return found

    def _get(self, path: str) -> Any:
        return self._call("GET", path, None, None, self._timeout)

    def _post(
        self, path: str, body: Any, draft: Draft | None = None, timeout: float | None = None
    ) -> Any:
        return self._call("POST", path, body, draft, timeout or self._timeout)

    def _call(
        self, method: str, path: str, body: Any, draft: Draft | None, timeout: float
    ) -> Any:  # fmt: skip
        deadline = time.monotonic() + timeout
        with self._reached(timeout):
            status, content = self._exchange(method, path, body, timeout, deadline)
        return self._content(status, content, draft)

    @contextmanager
    def _reached(self, timeout: float, failure: str = "could not reach") -> Iterator[None]:
        """Raises the errors of a connection as those of the server."""
        try:
            yield
        except TimeoutError:
            raise Transient(
                f"the server {self._url.netloc} did not answer within {timeout:.0f} s",
                code="server-timeout", hint="Inspect the process of penstock serve, and try again.",
            ) from None  # fmt: skip
        except ssl.SSLError as error:
            raise Permanent(
                f"TLS with the server {self._url.netloc} failed", code="tls", detail=str(error),
                hint="Set SSL_CERT_FILE to the certificate of the authority.",
            ) from error  # fmt: skip
        except (OSError, HTTPException) as error:
            raise Transient(
                f"{failure} the server {self._url.netloc}", code="unreachable",
                detail=str(error) or type(error).__name__,
                hint="Start it with penstock serve, or correct --server or PENSTOCK_SERVER.",
            ) from error  # fmt: skip

    def _exchange(
        self, method: str, path: str, body: Any, timeout: float, deadline: float
    ) -> tuple[int, bytes]:
        with closing(self._connection(timeout)) as connection:
            self._send(connection, method, path, body)
            response = connection.getresponse()
            return response.status, _read(response, deadline)

    def _connection(self, timeout: float) -> HTTPConnection:
        kind = HTTPSConnection if self._url.scheme == "https" else HTTPConnection
        return kind(self._url.hostname or "", self._url.port, timeout=timeout)

    def _send(self, connection: HTTPConnection, method: str, path: str, body: Any) -> None:
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}
        text = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            text = json.dumps(body).encode()
        connection.request(method, f"{self._url.path.rstrip('/')}/api/v1/{path}", text, headers)

    def _events(self, path: str, seconds: float) -> Generator[tuple[str, Any], None, None]:
        """Yields the names and contents of server-sent events, for some seconds."""
        deadline = time.monotonic() + seconds
        with closing(self._connection(self._timeout)) as connection:
            with self._reached(self._timeout):
                self._send(connection, "GET", path, None)
                socket, response = connection.sock, connection.getresponse()
                if response.status != 200:
                    content = _read(response, time.monotonic() + self._timeout)
                    self._content(response.status, content, None)
            if response.headers.get_content_type() != EVENTS:
                raise self._no_penstock(response.status)
            with self._reached(self._timeout, "the connection was lost to"):
                yield from read_events(response, socket, deadline, self._timeout)

    def _content(self, status: int, content: bytes, draft: Draft | None) -> Any:
        try:
            found = json.loads(content) if content else None
            if status >= 400 and isinstance(found, dict):
                raise_all(read_error(facts, status, draft) for facts in found["errors"])
        except (ValueError, KeyError, TypeError, RecursionError):
            raise self._no_penstock(status) from None
        if not 200 <= status < 300:
            raise self._no_penstock(status)
        return found

    def _no_penstock(self, status: int) -> PenstockError:
        return Permanent(
            f"{self._url.netloc} answered with status {status}, and not as a server of Penstock",
            code="no-penstock-server", hint="Correct --server or PENSTOCK_SERVER.",
        )  # fmt: skip


def _parsed(url: str) -> SplitResult:
    try:
        found = urlsplit(url)
        valid = found.scheme in ("http", "https") and found.hostname and (found.port or True)
    except ValueError:
        valid = False
    if not valid or found.username is not None or found.query or found.fragment:
        raise UserError(
            "expected the URL of a server, such as http://localhost:7077", code="invalid-url",
            hint="Correct --server or PENSTOCK_SERVER. The token belongs into PENSTOCK_TOKEN.",
        )  # fmt: skip
    return found._replace(path=quote(found.path))


def _read(response: HTTPResponse, deadline: float) -> bytes:
    """Returns the body. Raises TimeoutError after the deadline, also for one that trickles."""
    found = bytearray()
    while block := response.read1(_BLOCK):
        found += block
        if time.monotonic() > deadline:
            raise TimeoutError
        if len(found) > MAX_ANSWER:
            raise HTTPException(f"the answer has more than {MAX_ANSWER >> 20} MiB")
    return bytes(found)
