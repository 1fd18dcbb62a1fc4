"""HTTP server of a run: metrics for Prometheus, health and readiness."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from socketserver import TCPServer, ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import make_wsgi_app

from penstock.core.errors import Permanent, UserError
from penstock.observe.prometheus import make_registry
from penstock.runtime.handle import RunHandle
from penstock.sdk.network.connection_limits import ConnectionCounter, ConnectionLimits

LOOPBACK = "127.0.0.1"
POLL_SECONDS = 0.25
CONNECTION_TIMEOUT = 10.0
"""The maximum duration of a connection, from its acceptance to the end of the response."""
LIMITS = ConnectionLimits(max_connections=64, max_connections_per_address=32)

Answer = tuple[str, dict[str, Any]]
"""The status line and the JSON body of a response."""


@contextmanager
def monitoring(handle: RunHandle, listen: str) -> Iterator[str]:
    """Serves the endpoints of a run during the block. Yields the URL.

    Raises UserError if the address is invalid, and Permanent if it cannot be used.
    """
    host, port = parse_listen(listen)
    server = _open(host, port, _Monitor(handle))
    thread = threading.Thread(
        target=server.serve_forever, args=(POLL_SECONDS,), name="penstock-monitoring", daemon=True
    )
    thread.start()
    try:
        yield _url(host, server.server_port)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def parse_listen(text: str) -> tuple[str, int]:
    """Returns the host and the port of `PORT`, `HOST:PORT` or `[IPV6]:PORT`.

    The host of a port alone is the loopback address. Raises UserError.
    """
    host, colon, port = text.strip().rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    valid_host = bool(host) if colon else True
    if ":" in host and not bracketed:
        valid_host = False
    if not (valid_host and port.isascii() and port.isdigit() and int(port) <= 65535):
        raise UserError(
            f'expected PORT or HOST:PORT to listen on, found "{text}"',
            code="invalid-address",
            hint="Pass a port such as 9090, or an address such as 0.0.0.0:9090 or [::1]:9090.",
        )
    return host.strip("[]") or LOOPBACK, int(port)


def _open(host: str, port: int, application: _Monitor) -> _Server:
    try:
        (family, *_), *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return _Server(family, (host, port), application)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise Permanent(
            f"cannot listen on {host}:{port}: {reason}",
            code="listen",
            hint="Choose a free port and an address of this machine.",
        ) from error


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class _Monitor:
    """The WSGI application of one run."""

    def __init__(self, handle: RunHandle) -> None:
        self._handle = handle
        self._metrics = make_wsgi_app(make_registry(handle.plan.name, handle.metrics))
        paths = handle.plan.spec.runtime.endpoints
        self._metrics_path = paths.metrics
        self._answers: dict[str, Callable[[], Answer]] = {
            paths.health: self._health,
            paths.ready: self._ready,
            paths.live: self._live,
        }

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        path, method = environ["PATH_INFO"], environ["REQUEST_METHOD"]
        if path == self._metrics_path:
            return self._metrics(environ, start_response)  # type: ignore[no-any-return]
        status, content = self._answer(path, method)
        body = json.dumps(content).encode() + b"\n"
        headers = [
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(body))),
            ("Cache-Control", "no-store"),
        ]
        start_response(status, headers)
        return [] if method == "HEAD" else [body]

    def _answer(self, path: str, method: str) -> Answer:
        if path not in self._answers:
            return "404 Not Found", {"paths": [self._metrics_path, *self._answers]}
        if method not in ("GET", "HEAD"):
            return "405 Method Not Allowed", {"methods": ["GET", "HEAD"]}
        return self._answers[path]()

    def _health(self) -> Answer:
        seconds = self._handle.metrics.snapshot()["seconds"]
        return "200 OK", {"status": "ok", **self._run, "seconds": seconds}

    def _live(self) -> Answer:
        return "200 OK", {"live": True, **self._run}

    def _ready(self) -> Answer:
        """Returns whether all sources have subscribed, and the codes of failed queries."""
        metrics, failed = self._handle.metrics, self._handle.metrics.failures
        if failed:
            reason = "failed"
        elif self._handle.stop_request.requested.is_set():
            reason = "stopping"
        elif not metrics.started:
            reason = "starting"
        else:
            return "200 OK", {"ready": True, **self._run}
        content = {"ready": False, **self._run, "reason": reason, "failed": failed}
        return "503 Service Unavailable", content

    @property
    def _run(self) -> dict[str, str]:
        return {"pipeline": self._handle.plan.name, "run": self._handle.id}


class _Server(ThreadingMixIn, WSGIServer):
    """An HTTP server with a thread for each connection.

    The number and the duration of connections are limited: slow clients use neither the file
    descriptors nor the threads of the run.
    """

    daemon_threads = True

    def __init__(self, family: int, address: tuple[str, int], application: _Monitor) -> None:
        self.address_family = family
        self._lock = threading.Lock()
        self._counter = ConnectionCounter(LIMITS)
        self._deadlines: dict[Any, tuple[Any, float]] = {}
        super().__init__(address, _RequestHandler)
        self.set_app(application)

    def server_bind(self) -> None:
        """Binds without the reverse look-up of the host in `HTTPServer`, which may take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]
        self.setup_environ()

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Counts a connection. Returns whether the limits permit it."""
        with self._lock:
            accepted = self._counter.add(client_address)
            if accepted:
                deadline = time.monotonic() + CONNECTION_TIMEOUT
                self._deadlines[request] = client_address, deadline
        return accepted

    def service_actions(self) -> None:
        """Disconnects clients after `CONNECTION_TIMEOUT`. Called every `POLL_SECONDS`."""
        now = time.monotonic()
        with self._lock:
            for request, (_, deadline) in self._deadlines.items():
                if deadline < now:
                    with suppress(OSError):
                        request.shutdown(socket.SHUT_RDWR)

    def close_request(self, request: Any) -> None:
        """Closes a connection and removes it from the count."""
        with self._lock:
            if (opened := self._deadlines.pop(request, None)) is not None:
                self._counter.remove(opened[0])
            super().close_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Does nothing: a client that goes away is no event of the run."""


class _RequestHandler(WSGIRequestHandler):
    timeout = CONNECTION_TIMEOUT

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing."""
