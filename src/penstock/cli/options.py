"""Options shared by several commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

Files = Annotated[
    list[Path],
    Parameter(
        metavar="FILE",
        help="The files of the pipeline; several files are merged.",
        negative=(),
        consume_multiple=True,
    ),
]

Overrides = Annotated[
    tuple[str, ...],
    Parameter(
        name="--set",
        metavar="KEY=VALUE",
        help="Override a value of the file, as in sinks.out.path=elsewhere; may be repeated.",
    ),
]

FunctionFiles = Annotated[
    tuple[Path, ...],
    Parameter(
        name="--functions",
        metavar="FILE",
        help="A Python file with functions for SQL, in place of function_files; may be repeated.",
    ),
]

Dialect = Annotated[
    str | None,
    Parameter(
        metavar="NAME",
        help="The language of the files, such as arkflow or streamling; by default as recognized.",
    ),
]
Strict = Annotated[
    bool, Parameter(negative=(), help="Report options that a dialect ignores as errors.")
]

Settings = Annotated[
    str | None,
    Parameter(
        name="--config",
        metavar="NAME",
        help="The file of settings of a dialect that has one, with or without its suffix.",
    ),
]

Json = Annotated[bool, Parameter(name="--json", help="Print one JSON object.")]


def with_functions(overrides: tuple[str, ...], files: tuple[Path, ...]) -> tuple[str, ...]:
    """Returns overrides that also set the function files."""
    if not files:
        return overrides
    paths = json.dumps([str(file.absolute()) for file in files])
    return (*overrides, f"function_files={paths}")
