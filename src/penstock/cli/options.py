"""Options shared by several commands."""

from __future__ import annotations

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

Json = Annotated[bool, Parameter(name="--json", help="Print one JSON object.")]
