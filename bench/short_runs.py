"""CPU seconds of short runs in one Spark session, which tests and `penstock test` pay.

    ./dev bench short_runs [--json] [--only NAME] [--runs N]

Each pipeline reads a few rows from a file and writes files. After five runs that are not counted it
runs `--runs` times, each time in an empty directory.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import options

UNCOUNTED = 5
TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path.insert(0, str(TESTS))

ROWS = "".join(
    json.dumps({"at": f"2026-03-01T10:0{number}:00Z", "key": "ab"[number % 2], "n": number}) + "\n"
    for number in range(6)
)
SOURCE = """\
sources:
  rows:
    type: files
    path: rows.jsonl
    schema: at TIMESTAMP, key STRING, n BIGINT
"""
SINK = """\
sinks:
  out: {type: files, path: out, format: json, from: result}
"""
PIPELINES = {
    "stateless": f"""{SOURCE}
transforms:
  result: {{type: sql, sql: "SELECT key, n + 1 AS m FROM rows WHERE n > 0"}}
{SINK}""",
    "windowed": f"""{SOURCE}    watermark: {{column: at, delay: 30 seconds}}
transforms:
  result:
    type: sql
    sql: >
      SELECT window.start AS start, key, count(*) AS n, sum(n) AS total
      FROM rows GROUP BY tumble(INTERVAL '2 minutes'), key
{SINK}""",
    "updating": f"""{SOURCE}
transforms:
  result: {{type: sql, sql: "SELECT key, count(*) AS n, max(n) AS m FROM rows GROUP BY key"}}
{SINK}""",
    "python": f"""{SOURCE}
transforms:
  result:
    type: python
    from: rows
    code: |
      def transform(row):
          return {{"key": row["key"], "m": row["n"] + 1}}
    per: row
    schema: key STRING, m BIGINT
{SINK}""",
}


def measure(names: list[str], runs: int) -> dict[str, Any]:
    from command_line import CommandLine
    from costs import Usage
    from penstock.testing.suite import case_session

    usage, result = Usage(), {}
    with case_session() as spark, tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        cli = CommandLine(spark)
        for name in names:
            print(f"{name} ...", file=sys.stderr)
            costs: Counter[str] = Counter()
            for number in range(-UNCOUNTED, runs):
                if number == 0:
                    usage.since_last()
                    began = time.perf_counter()
                directory = Path(scratch, f"{name}{number}")
                directory.mkdir()
                (directory / "rows.jsonl").write_text(ROWS)
                (directory / "pipeline.yaml").write_text(PIPELINES[name])
                done = cli(directory, "run", "pipeline.yaml")
                if done.returncode:
                    raise SystemExit(f"bench: {name} failed:\n{done.stderr}")
            costs.update(usage.since_last())
            costs["wall"] = time.perf_counter() - began
            result[name] = {kind: seconds / runs for kind, seconds in costs.items()}
    return result


def table(result: dict[str, Any]) -> Iterator[str]:
    yield f"{'seconds a run':14}{'CPU':>8}{'driver':>8}{'Java':>8}{'workers':>9}{'wall':>8}"
    for name, costs in result.items():
        driver, java, others = (costs.get(kind, 0.0) for kind in ("tests", "spark", "others"))
        yield (
            f"{name:14}{driver + java + others:>8.3f}{driver:>8.3f}{java:>8.3f}{others:>9.3f}"
            f"{costs['wall']:>8.3f}"
        )


def main() -> None:
    parser = options.parser(__doc__)
    parser.add_argument("--only", choices=PIPELINES, help="one of the pipelines")
    parser.add_argument("--runs", type=int, default=15)
    given = parser.parse_args()
    result = measure([given.only] if given.only else list(PIPELINES), given.runs)
    print(json.dumps(result) if given.json else "\n".join(table(result)))


if __name__ == "__main__":
    main()
