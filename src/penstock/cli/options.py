"""Options that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

Files = Annotated[
    list[Path],
    Parameter(
        metavar="FILE",
        help="The pipeline's files; several are merged.",
        negative=(),
        consume_multiple=True,
    ),
]

Sets = Annotated[
    tuple[str, ...],
    Parameter(
        name="--set",
        metavar="KEY=VALUE",
        help="Replaces a value of the file, as in sinks.out.path=elsewhere; may be repeated.",
    ),
]

Json = Annotated[bool, Parameter(name="--json", help="Prints one JSON object, for programs.")]
