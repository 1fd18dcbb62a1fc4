"""Schema files that are not regular files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.core.errors import PlanError
from penstock.formats.avro.datum import configured_schema
from penstock.formats.protobuf.compiled import read_descriptors


def test_a_named_pipe_is_no_schema_file(tmp_path: Path) -> None:
    pipe = tmp_path / "schema"
    os.mkfifo(pipe)
    with pytest.raises(PlanError, match="expected a regular file, found a named pipe"):
        configured_schema(None, str(pipe))
    with pytest.raises(PlanError, match="expected a regular file, found a named pipe"):
        read_descriptors(str(pipe), [])
