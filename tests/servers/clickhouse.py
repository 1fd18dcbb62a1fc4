"""ClickHouse: its engine in a process (chdb), behind a small server of the HTTP interface."""

from __future__ import annotations

import base64
import logging
import re
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from servers.server import Server

USER, PASSWORD = "made-up-user", "made-up-password"
DATABASE = "shop"
_LOGIN = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
_OF_HTTP = {
    "query", "database", "default_format", "session_id", "query_id", "compress", "user", "password",
    "enable_http_compression", "wait_end_of_query", "role", "client_protocol_version",
}  # fmt: skip
"""Parameters that are no settings, or that the engine has only behind its own server."""
_INSERT = re.compile(r"(?is)\s*(INSERT\s+INTO\s.*?)\s+FORMAT\s+(\w+)\s*")
_CODE = re.compile(r"Code: (\d+)")


class ClickHouse(Server):
    """The server with DATABASE, for USER with PASSWORD. Its data survive a kill.

    The engine is ClickHouse's; users and passwords, the port and HTTP are this file's. So rights of
    users, replication and limits of the HTTP interface are not those of a real server.
    """

    name = "clickhouse"
    title = "the engine of ClickHouse 26.9 (chdb 4)"

    def __init__(self, port: int | None = None, certificate: Path | None = None) -> None:
        super().__init__(port)
        self._certificate = certificate

    def command(self) -> Sequence[str]:
        """This file, as a program."""
        program = [sys.executable, "-m", "servers.clickhouse", str(self.port)]
        certificate = [str(self._certificate)] if self._certificate else []
        return [*program, str(self.directory.path), *certificate]

    def environment(self) -> Mapping[str, str]:
        """So that this module is found."""
        return {"PYTHONPATH": str(Path(__file__).parents[1])}

    def ready(self) -> None:
        """Executes a query."""
        assert self("SELECT 1") == [(1,)]

    @property
    def login(self) -> dict[str, Any]:
        """The options of a connection with a short timeout."""
        return {
            "url": f"clickhouse://127.0.0.1:{self.port}/{DATABASE}",
            "auth": {"username": USER, "password": PASSWORD},
            "timeout": "20s",
        }

    def new_table(self) -> str:
        """Returns an unused name."""
        return f"t{uuid.uuid4().hex[:12]}"

    def __call__(self, *statements: str) -> list[tuple[Any, ...]]:
        """Executes statements with a client of the tests' own. Returns the rows of the last one."""
        import clickhouse_connect

        logging.getLogger("clickhouse_connect").addHandler(logging.NullHandler())
        secure: dict[str, Any] = {"interface": "http"}
        if self._certificate is not None:
            secure = {"interface": "https", "verify": False}
        client = clickhouse_connect.create_client(
            host="127.0.0.1", port=self.port, username=USER, password=PASSWORD, compress=False,
            autogenerate_session_id=False, query_retries=0, **secure,
        )  # fmt: skip
        with client:
            for statement in statements[:-1]:
                client.command(statement)
            last = statements[-1]
            if last.lstrip().upper().startswith(("SELECT", "DESCRIBE", "SHOW")):
                return [tuple(row) for row in client.query(last, settings={"final": 1}).result_rows]
            client.command(last)
            return []


def serve(port: int, directory: Path, certificate: str | None = None) -> None:
    """Runs until it is killed."""
    import asyncio
    import ssl

    from aiohttp import web
    from chdb.session import Session

    session = Session(str(directory / "data"))
    session.query(f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
    known = set(session.query("SELECT name FROM system.settings", "TSV").bytes().decode().split())
    turn = asyncio.Lock()

    def run(
        query: str, database: str, settings: Mapping[str, str], form: str, body: bytes
    ) -> bytes:
        session.query("USE " + (f"`{database}`" if database else "default"))
        text = query.strip().rstrip(";")
        given = ", ".join(f"{name} = '{value}'" for name, value in settings.items())
        if match := _INSERT.fullmatch(text):
            file = directory / f"{uuid.uuid4().hex}.body"
            file.write_bytes(body)
            try:
                text = f"{match[1]} FROM INFILE '{file}' SETTINGS {given} FORMAT {match[2]}"
                return session.query(text).bytes()
            finally:
                file.unlink()
        if re.match(r"(?i)\s*(SELECT|WITH|DESCRIBE|SHOW)\b", text):
            if not re.search(r"(?is)\bFORMAT\s+\w+\s*$", text):
                text += f"\nFORMAT {form}"
            text += f"\nSETTINGS {given}" if given else ""
        return session.query(text, form).bytes()

    async def answer(request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != _LOGIN:
            return _error("Code: 516. DB::Exception: made-up-user: Authentication failed", 403)
        body = await request.read()
        values = dict(request.query)
        query = values.get("query") or body.decode()
        settings = {
            name: value for name, value in values.items() if name in known and name not in _OF_HTTP
        }
        form = values.get("default_format", "TabSeparated")
        if found := re.search(r"(?is)\bFORMAT\s+(\w+)\s*$", query):
            form = found[1]
        try:
            async with turn:
                data = await asyncio.to_thread(
                    run, query, values.get("database", ""), settings, form, body
                )
        except Exception as error:
            return _error(str(error), 500)
        return web.Response(body=data, headers={"X-ClickHouse-Format": form} if data else {})

    def _error(text: str, status: int) -> web.Response:
        code = _CODE.search(text)
        headers = {"X-ClickHouse-Exception-Code": code[1] if code else "1"}
        return web.Response(status=status, text=text, headers=headers)

    app = web.Application(client_max_size=1 << 30)
    app.router.add_route("*", "/", answer)
    tls = None
    if certificate is not None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate)
    web.run_app(app, host="127.0.0.1", port=port, ssl_context=tls, print=None, access_log=None)


@pytest.fixture(scope="session")
def clickhouse() -> Iterator[ClickHouse]:
    """One server for all tests that ask for it."""
    with ClickHouse() as server:
        yield server


if __name__ == "__main__":
    serve(int(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
