"""Code of the user that ends its worker: the rows that do so become dead letters."""

from __future__ import annotations

import pytest
from pipelines import Workspace

from penstock.sdk.forked_calls import CODE

pytestmark = pytest.mark.spark

PIPELINE = """\
sources:
  s: {type: files, path: in/*.jsonl, schema: "id LONG"}
functions:
  gone: {code: "import os\\ndef gone(x: int) -> int:\\n    return os._exit(3) if x == 2 else x"}
  killed:
    code: |
      import os, signal
      async def killed(x: int) -> int:
          return os.kill(os.getpid(), signal.SIGSEGV) if x == 4 else x
  closed:
    code: |
      import os
      def closed(x: int) -> int:
          os.closerange(3 if x == 10 else 4000, 4096)
          return x
  reconnects:
    code: |
      import socket
      client = socket.socketpair()
      def reconnects(x: int) -> int:
          global client
          for each in client:
              each.close()
          client = socket.socketpair()
          return x
transforms:
  p:
    type: python
    from: s
    per: row
    schema: id LONG
    code: |
      import os
      def transform(row):
          return os._exit(7) if row["id"] == 6 else row
  q:
    type: sql
    sql: SELECT id, gone(id) AS x, killed(id) AS y, closed(id) AS z, reconnects(id) AS r FROM p
sinks:
  out: {type: memory, from: q}
"""


def test_rows_that_end_the_worker(workspace: Workspace) -> None:
    workspace.put_rows("in", [{"id": number} for number in range(12)], files=1)
    workspace.run(PIPELINE)
    rows = workspace.result()
    assert sorted(rows["id"]) == [0, 1, 3, 5, 7, 8, 9, 11]
    dead_letters = {letter["payload"]: letter for letter in workspace.dead_letters()}
    assert dead_letters[b'{"id": 6}']["code"] == CODE
    assert (
        dead_letters[b'{"id": 6}']["message"] == "the function ended its process with exit code 7"
    )
    assert "exit code 3" in dead_letters[b'{"id": 2}']["message"]
    assert dead_letters[b'{"id": 10}']["message"].endswith("closed the files of its process")
    assert "signal SIGSEGV" in dead_letters[b'{"id": 4}']["message"]


HANGING = """\
sources:
  s: {type: files, path: in/*.jsonl, schema: "id LONG"}
functions:
  computes:
    timeout: 500ms
    code: |
      def computes(x: int) -> int:
          while x == 3:
              pass
          return x
  blocks:
    timeout: 500ms
    code: |
      import itertools
      def blocks(x: int) -> bool:
          return x == 7 and any(itertools.repeat(0))
transforms:
  p:
    type: python
    from: s
    per: row
    timeout: 500ms
    schema: id LONG
    code: |
      import re
      def transform(row):
          if row["id"] == 5:
              re.match("(a+)+b", "a" * 60)
          return row
  q:
    type: sql
    sql: SELECT id, computes(id) AS x, blocks(id) AS y FROM p
sinks:
  out: {type: memory, from: q}
"""


def test_rows_without_a_result_in_time(workspace: Workspace) -> None:
    workspace.put_rows("in", [{"id": number} for number in range(12)], files=1)
    outcome = workspace.start(HANGING).wait(400)
    assert outcome is not None and outcome.errors == {}, outcome
    rows = workspace.result()
    assert sorted(rows["id"]) == [0, 1, 2, 4, 6, 8, 9, 10, 11]
    found = {letter["payload"]: letter for letter in workspace.dead_letters()}
    assert sorted(found) == [b'{"id": %d}' % number for number in (3, 5, 7)]
    assert {letter["code"] for letter in found.values()} == {"function-failed"}
    assert all("no result within 500ms" in letter["message"] for letter in found.values())


OPENED = """\
sources:
  s: {type: memory, rows: [{id: 1}]}
transforms:
  p:
    type: python
    from: s
    schema: id LONG
    code: |
      import os
      class Transform:
          def open(self):
              os._exit(5)
          def transform(self, batch):
              return batch
      transform = Transform
sinks:
  out: {type: memory, from: p}
"""


def test_a_transform_that_ends_the_worker_when_it_is_opened(workspace: Workspace) -> None:
    outcome = workspace.start(OPENED).wait(120)
    assert outcome is not None
    (error,) = outcome.errors.values()
    assert error.code == "failed-open"
    assert "cannot be opened: the function ended its process with exit code 5" in error.message
