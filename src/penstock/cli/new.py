"""`penstock new`: a first pipeline file."""

from __future__ import annotations

import shlex
import sys
from importlib.resources import files
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from penstock.core.errors import UserError
from penstock.core.text import did_you_mean

_TEMPLATES = files("penstock.cli") / "templates"

Kind = Annotated[str, Parameter(help="What it begins with: files, generate, kafka or sql.")]
Output = Annotated[
    Path | None,
    Parameter(name=["--output", "-o"], metavar="FILE", help="Write to this file instead."),
]
Force = Annotated[bool, Parameter(help="Overwrite the file.")]


def new(kind: Kind = "", /, *, output: Output = None, force: Force = False) -> None:
    """Print a first pipeline file, with comments and a test case.

    penstock new files > orders.yaml
    penstock new sql --output visits.yaml
    """
    text = template(kind)
    if output is None:
        print(text.replace("PIPELINE.yaml", "FILE"), end="")
        return
    try:
        with output.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text.replace("PIPELINE.yaml", shlex.quote(output.name)))
    except FileExistsError:
        raise UserError(
            f"{output} is there already", code="file-exists",
            hint="choose another name, or overwrite it with --force",
        ) from None  # fmt: skip
    except OSError as error:
        raise UserError(
            f"{output} cannot be written: {error.strerror}", code="unwritable-file"
        ) from error
    print(f"wrote {output}; next: penstock test {shlex.quote(str(output))}", file=sys.stderr)


def kinds() -> list[str]:
    """The pipelines that there are templates of."""
    return sorted(each.name.removesuffix(".yaml") for each in _TEMPLATES.iterdir())


def template(kind: str) -> str:
    """A template's text. Raises UserError for an unknown one, with the nearest name."""
    if not kind:
        raise UserError(
            "what should the new pipeline begin with?", code="usage",
            hint=f"known: {', '.join(kinds())}",
        )  # fmt: skip
    if kind not in kinds():
        raise UserError(
            f'there is no template "{kind}"', code="unknown-template",
            hint=did_you_mean(kind, kinds()),
        )  # fmt: skip
    return (_TEMPLATES / f"{kind}.yaml").read_text(encoding="utf-8")
