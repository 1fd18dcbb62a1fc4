"""`./dev server mariadb`."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pymysql

from servers.server import free_port

TESTS = Path(__file__).parents[1]


def test_runs_a_database_until_a_signal() -> None:
    """The printed login is valid, and the binary log has whole rows and the names of columns."""
    port = free_port()
    command = [sys.executable, "-m", "servers", "mariadb", "--port", str(port)]
    with subprocess.Popen(command, cwd=TESTS, stdout=subprocess.PIPE, text=True) as word:
        assert word.stdout
        greeting = word.stdout.readline()
        assert f"url: mysql://127.0.0.1:{port}/shop and auth: {{username: penstock, " in greeting
        login = {"user": "penstock", "password": "penstock", "database": "shop"}
        with pymysql.connect(host="127.0.0.1", port=port, **login) as client:
            cursor = client.cursor()
            cursor.execute("SELECT @@log_bin, @@binlog_format, @@binlog_row_metadata")
            assert cursor.fetchone() == (1, "ROW", "FULL")
        word.send_signal(signal.SIGINT)
        assert word.wait(60) == 0
