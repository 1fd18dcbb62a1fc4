"""Time from a statement to its rows in the shells of Penstock and of Spark.

    ./dev bench shell [--json] [--wait SECONDS] [--rounds N]

Both shells read the same JSON file, and run on a terminal. The statements are entered one after the
other, after a pause at the prompt. Each figure is the best of the rounds, each round a new shell.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import installs
import pyspark

from terminal import Terminal

QUERIES = {
    "first query": "SELECT name, amount FROM orders;",
    "the same again": "SELECT name, amount FROM orders;",
    "filter": "SELECT name, amount FROM orders WHERE amount > 1;",
    "aggregate": "SELECT name, sum(amount) FROM orders GROUP BY name;",
    "windows": "SELECT window(at, '1 minute'), count(*) FROM orders GROUP BY 1;",
    "aggregate again": "SELECT name, max(amount) FROM orders GROUP BY name;",
}
ROWS = """\
{"name": "ann", "amount": 3, "at": "2026-01-01T12:00:00Z"}
{"name": "bob", "amount": 1, "at": "2026-01-01T12:00:30Z"}
"""
COLUMNS = "name STRING, amount BIGINT, at TIMESTAMP"


class Shell(NamedTuple):
    """A shell: its command, its definition of the table, and patterns of its output."""

    command: list[str]
    table: str
    defined: str
    done: str


def shells(file: Path) -> dict[str, Shell]:
    """Returns the shells. Spark's own needs a whole Java."""
    installs.java()
    spark = str(Path(pyspark.__file__).parent / "bin" / "spark-sql")
    options = ["--master", "local[2]", "--conf", "spark.sql.shuffle.partitions=2"]
    return {
        "penstock sql": Shell(
            [sys.executable, "-m", "penstock", "sql"],
            f"CREATE TABLE orders ({COLUMNS}) WITH "
            f"(connector = 'files', path = '{file}', format = 'json');",
            "table orders", r"\(\d+ rows? in [^\n]*\n[^\n]*penstock>",
        ),
        "spark-sql": Shell(
            [spark, *options],
            f"CREATE TEMPORARY VIEW orders ({COLUMNS}) USING json OPTIONS (path '{file}');",
            "Time taken", r"Time taken[^\n]*\n[^\n]*spark-sql[^\n]*>",
        ),
    }  # fmt: skip


def measure(shell: Shell, wait: float, directory: Path) -> dict[str, float]:
    """Returns the seconds of each query, and of the start until the table is defined."""
    began = time.monotonic()
    terminal = Terminal(shell.command, directory)
    try:
        terminal.until("(penstock|spark-sql[^\n]*)>")
        seconds = {"start": time.monotonic() - began}
        terminal.enter(shell.table)
        terminal.until(shell.defined)
        time.sleep(wait)
        for name, query in QUERIES.items():
            terminal.said = b""
            entered = time.monotonic()
            terminal.enter(query)
            terminal.until(shell.done)
            seconds[name] = time.monotonic() - entered
        return seconds
    finally:
        terminal.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--wait", type=float, default=10, help="seconds before the first query")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    os.environ |= {"PROMPT_TOOLKIT_NO_CPR": "1"}
    report = {}
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as path:
        directory = Path(path)
        os.environ["XDG_STATE_HOME"] = path
        file = directory / "orders.jsonl"
        file.write_text(ROWS, encoding="utf-8")
        for name, shell in shells(file).items():
            rounds = [measure(shell, given.wait, directory) for _ in range(given.rounds)]
            report[name] = {key: min(each[key] for each in rounds) for key in rounds[0]}
    if given.json:
        print(json.dumps(report, indent=2))
        return
    print(f"{'':20}" + "".join(f"{name:>16}" for name in report))
    for key in next(iter(report.values())):
        print(f"{key:20}" + "".join(f"{each[key]:>14.2f} s" for each in report.values()))


if __name__ == "__main__":
    main()
