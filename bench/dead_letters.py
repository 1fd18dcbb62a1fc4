"""Cost of rows on which SQL fails, beside the same run without such rows.

    ./dev bench dead_letters [--json] [--runs N]

A pipeline divides by a column of generated rows and writes JSON lines. Of 2,000 rows, 0, 1, 10 and
40 have the divisor 0; of 100,000 rows, none and one half. Each run is a process of its own, and
each figure the best of the runs. A run whose rows or dead letters are not exact fails.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import options
from measure import Cost, Failed, best, measure

from penstock.runtime.dead_letters.store import DeadLetters

CASES = (
    (2_000, 0), (2_000, 1), (2_000, 10), (2_000, 40), (100_000, 0), (100_000, 50_000),
)  # fmt: skip
"""Rows, and those of them on which the division fails."""

PIPELINE = """\
name: quotients
sources:
  numbers: {{type: generate, rows: {rows}, fields: {{id: sequence}}}}
transforms:
  quotients: {{type: sql, sql: "SELECT id, 10 / ({divisor}) AS quotient FROM numbers"}}
sinks:
  out: {{type: files, from: quotients, path: out, format: json}}
"""


def run(rows: int, bad: int) -> Cost:
    """Runs the pipeline in a fresh directory. Raises Failed unless its results are exact."""
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch:
        directory = Path(scratch)
        divisor = f"id % {rows // bad}" if bad else "id + 1"
        (directory / "quotients.yaml").write_text(PIPELINE.format(rows=rows, divisor=divisor))
        command = [sys.executable, "-m", "penstock", "run", "quotients.yaml"]
        cost = measure(command, cwd=directory)
        check(directory, rows, bad)
        return cost


def check(directory: Path, rows: int, bad: int) -> None:
    """Raises Failed unless each row is either in the output or a dead letter."""
    failing = set(range(0, rows, rows // bad)) if bad else set()
    lines = [line for path in (directory / "out").glob("*.json*") for line in path.open()]
    if sorted(json.loads(line)["id"] for line in lines) != sorted(set(range(rows)) - failing):
        raise Failed(f"{len(lines):,} of {rows - bad:,} rows are in the output")
    dead_letters = DeadLetters(directory / ".penstock" / "quotients" / "dead_letters").read()
    payloads = sorted(json.loads(payload)["id"] for payload in dead_letters["payload"].to_pylist())
    reasons = {
        (letter["node"], letter["code"], letter["message"]) for letter in dead_letters.to_pylist()
    }
    if payloads != sorted(failing) or len(reasons) > 1:
        raise Failed(f"{dead_letters.num_rows:,} dead letters are not the {bad:,} failing rows")


def compare(runs: int) -> list[dict[str, Any]]:
    results = []
    for rows, bad in CASES:
        print(f"{bad:,} of {rows:,} ...", file=sys.stderr)
        result: dict[str, Any] = {"rows": rows, "bad": bad}
        try:
            result |= asdict(best(runs, lambda rows=rows, bad=bad: run(rows, bad)))
        except Failed as failure:
            result["failed"] = str(failure).strip().splitlines()[-1]
        results.append(result)
    return results


def table(results: list[dict[str, Any]]) -> Iterator[str]:
    yield f"{'rows':>8}{'bad':>8}{'seconds':>10}{'over clean':>12}{'CPU s':>8}"
    clean = {each["rows"]: each["wall"] for each in results if "wall" in each and not each["bad"]}
    for each in results:
        head = f"{each['rows']:>8,}{each['bad']:>8,}"
        if "failed" in each:
            yield f"{head}  failed: {each['failed']}"
            continue
        over = each["wall"] - clean.get(each["rows"], 0.0)
        yield f"{head}{each['wall']:>10.1f}{over:>12.1f}{each['cpu']:>8.1f}"


def main() -> None:
    parser = options.parser(__doc__)
    parser.add_argument("--runs", type=int, default=2, help="the runs of each case")
    given = parser.parse_args()
    results = compare(given.runs)
    print(json.dumps(results) if given.json else "\n".join(table(results)))


if __name__ == "__main__":
    main()
