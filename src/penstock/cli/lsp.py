"""`penstock lsp`: the language server."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from penstock.core.errors import MissingExtra

Stdio = Annotated[bool, Parameter(help="Use standard input and output, as is the default.")]


def lsp(*, stdio: Stdio = True) -> None:
    """Start the language server, for an editor that starts it.

    Speaks the Language Server Protocol on standard input and output: errors, completion, hover,
    fixes, definitions and symbols in YAML files and SQL scripts.

      penstock lsp
    """
    try:
        from penstock.lsp.server import serve
    except ModuleNotFoundError as error:
        raise MissingExtra.of("lsp", error.name or "pygls") from error
    serve()
