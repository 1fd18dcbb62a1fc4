"""`penstock new`: templates of pipeline files."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from penstock.cli.new_plugin import write_plugin
from penstock.core.errors import UserError
from penstock.core.text import did_you_mean
from penstock.templates import read_template, template_names

PLUGIN = "plugin"

Kind = Annotated[
    str,
    Parameter(
        help="The template: generate, files, sql, nexmark, kafka, clicks, changes or plugin."
    ),
]
Name = Annotated[str, Parameter(help="The name of a plugin.")]
Output = Annotated[
    Path | None,
    Parameter(name=["--output", "-o"], metavar="FILE", help="Write to a file or directory."),
]
Force = Annotated[bool, Parameter(help="Overwrite an existing file.")]


def new(
    kind: Kind = "", name: Name = "", /, *, output: Output = None, force: Force = False
) -> None:
    """Print a template of a pipeline file, with comments and a test case.

    With plugin writes a package with a source, a transform, a sink, a function and their tests.

    penstock new files > orders.yaml
    penstock new sql --output visits.yaml
    penstock new plugin weather
    """
    if kind == PLUGIN:
        root = write_plugin(name, output, force=force)
        print(f"wrote {root}; run pip install -e '{root}[test]'", file=sys.stderr)
        return
    if name:
        raise UserError(
            f'expected one word, found "{kind} {name}"', code="usage",
            hint=f"Write penstock new {kind} --output {name}.",
        )  # fmt: skip
    _require_template(kind)
    if output is None:
        print(read_template(kind, "FILE"), end="")
        return
    try:
        with output.open("w" if force else "x", encoding="utf-8") as file:
            file.write(read_template(kind, shlex.quote(output.name)))
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


def _require_template(kind: str) -> None:
    """Raises UserError for a name without a template."""
    if not kind:
        raise UserError(
            "expected the name of a template", code="usage",
            hint=f"Add one of {', '.join([*template_names(), PLUGIN])}.",
        )  # fmt: skip
    if kind not in template_names():
        raise UserError(
            f'there is no template "{kind}"', code="unknown-template",
            hint=did_you_mean(kind, [*template_names(), PLUGIN]),
        )  # fmt: skip
