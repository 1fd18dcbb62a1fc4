"""Short runs of the fuzz programs."""

from __future__ import annotations

import damaged_files
import messages
import parser
import payloads
import pytest
import scripts
from fuzzing import Program

PROGRAMS: dict[str, tuple[Program, int]] = {
    "parser": (parser.run, 150),
    "payloads": (payloads.run, 200),
    "damaged_files": (damaged_files.run, 600),
    "messages": (messages.run, 1500),
    "scripts": (scripts.run, 600),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_fuzz(name: str) -> None:
    program, count = PROGRAMS[name]
    assert not list(program(1, count))
