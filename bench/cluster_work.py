"""The work of the bench `cluster`: its pipelines, and the program that runs them in turn."""

PIPELINES = {
    "stateless": """\
transforms:
  result: {type: sql, from: rows, sql: "SELECT id, key, n * 2 AS m FROM rows WHERE n % 10 < 8"}
sinks: {out: {type: files, from: result, path: out, format: json}}
""",
    "window": """\
transforms:
  result:
    type: sql
    sql: |
      SELECT window.start AS start, key, count(*) AS n, sum(n) AS total
      FROM rows GROUP BY window(at, '10 seconds'), key
sinks: {out: {type: files, from: result, path: out, format: json}}
""",
    "updating": """\
transforms:
  result: {type: sql, sql: "SELECT key, count(*) AS n, sum(n) AS total FROM rows GROUP BY key"}
sinks: {out: {type: blackhole, from: result}}
""",
}
SOURCE = """\
sources:
  rows:
    type: generate
    max_records: ROWS
    partitions: TASKS
    fields:
      id: sequence
      key: {type: integer, max: 99}
      n: {type: integer, max: 1000}
      at: {type: timestamp, start_time: "2026-01-01T00:00:00Z", step: 10ms}
    watermark: {column: at, delay: 1 second}
"""
PROGRAM = """
import json, sys
from penstock import app
from penstock.runtime.session import session

def tasks():
    executors = spark._jsc.sc().statusStore().executorList(False)
    return sum(executors.apply(number).totalTasks() for number in range(executors.size()))

plans = [app.plan(path) for path in sys.argv[1:]]
with session(plans[0], length="endless") as spark:
    for plan in plans:
        before = tasks()
        outcome = app.run(plan, spark=spark.newSession())
        assert not outcome.errors, outcome
        written = plan.state / "tasks.part"
        written.write_text(str(tasks() - before))
        written.rename(plan.state / "tasks")
"""
