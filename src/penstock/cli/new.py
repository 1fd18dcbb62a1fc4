"""`penstock new`: templates of pipeline files."""

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

Kind = Annotated[str, Parameter(help="The template: files, generate, kafka or sql.")]
Output = Annotated[
    Path | None,
    Parameter(name=["--output", "-o"], metavar="FILE", help="Write to a file."),
]
Force = Annotated[bool, Parameter(help="Overwrite an existing file.")]


def new(kind: Kind = "", /, *, output: Output = None, force: Force = False) -> None:
    """Print a template of a pipeline file, with comments and a test case.

    penstock new files > orders.yaml
    penstock new sql --output visits.yaml
    """
    text = read_template(kind)
    if output is None:
        print(text.replace("PIPELINE.yaml", "FILE"), end="")
        return
    try:
        with output.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text.replace("PIPELINE.yaml", shlex.quote(output.name)))
    except FileExistsError:
        raise UserError(
            f"{output} exists", code="file-exists",
            hint="Choose another name, or add --force to overwrite the file.",
        ) from None  # fmt: skip
    except OSError as error:
        raise UserError(
            f"cannot write {output}: {error.strerror}", code="unwritable-file"
        ) from error
    print(f"wrote {output}; run penstock test {shlex.quote(str(output))}", file=sys.stderr)


def template_names() -> list[str]:
    """Returns the names of the templates."""
    return sorted(file.name.removesuffix(".yaml") for file in _TEMPLATES.iterdir())


def read_template(kind: str) -> str:
    """Returns the text of a template. Raises UserError for an unknown name."""
    if not kind:
        raise UserError(
            "expected the name of a template", code="usage",
            hint=f"Add one of {', '.join(template_names())}.",
        )  # fmt: skip
    if kind not in template_names():
        raise UserError(
            f'there is no template "{kind}"', code="unknown-template",
            hint=did_you_mean(kind, template_names()),
        )  # fmt: skip
    return (_TEMPLATES / f"{kind}.yaml").read_text(encoding="utf-8")
