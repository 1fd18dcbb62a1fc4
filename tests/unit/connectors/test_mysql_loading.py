"""Lines of LOAD DATA LOCAL, and the server that requests them."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest
from pymysql.protocol import MysqlPacket

from penstock.connectors.mysql import loading

OK = b"\0\2\0\0\0\3\0"
"""A response: two rows and three warnings."""


class Peer:
    """A client of PyMySQL whose server requests a file."""

    def __init__(self, file: bytes) -> None:
        self._responses = [b"\xfb" + file, OK]
        self.sent: list[bytes] = []

    def _execute_command(self, command: int, sql: bytes) -> None:
        self.sent.append(sql)

    def _read_packet(self) -> MysqlPacket:
        return MysqlPacket(self._responses.pop(0), "utf8")

    def write_packet(self, data: bytes) -> None:
        self.sent.append(data)


@pytest.fixture
def rows() -> pa.RecordBatch:
    texts = ["a\tb\\", None, "c\n\0"]
    days = [dt.date(2024, 2, 29), dt.date(1, 1, 1), None]
    columns = pa.schema([("text", pa.string()), ("day", pa.date32())])
    return pa.record_batch([texts, days], schema=columns)


def test_lines(rows: pa.RecordBatch) -> None:
    expected = [b"a\\tb\\\\\t2024-02-29\n", b"\\N\t0001-01-01\n", b"c\\n\\0\t\\N\n"]
    assert bytes(loading.lines(rows)) == b"".join(expected)
    assert bytes(loading.lines(rows.slice(1, 1))) == expected[1]


def test_lines_are_sent(rows: pa.RecordBatch) -> None:
    peer, data = Peer(b"rows of penstock"), loading.lines(rows)
    sql = loading.statement("`t`", "`text`, `day`")
    assert loading.load(peer, sql, data) == (2, 3)
    assert peer.sent == [sql.encode(), bytes(data), b""]


def test_another_file_is_not_sent(rows: pa.RecordBatch) -> None:
    peer = Peer(b"/etc/passwd")
    assert loading.load(peer, "LOAD", loading.lines(rows)) == (2, 3)
    assert peer.sent == [b"LOAD", b""]
