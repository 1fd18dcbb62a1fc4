"""Options that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

Files = Annotated[
    list[Path],
    Parameter(help="The pipeline's files; several are merged.", negative=(), consume_multiple=True),
]

Sets = Annotated[
    list[str],
    Parameter(name="--set", help="Replaces a value of the file: `--set sinks.out.path=elsewhere`."),
]

Json = Annotated[bool, Parameter(name="--json", help="Print one JSON object for programs.")]
