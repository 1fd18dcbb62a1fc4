"""`penstock apply`: a file becomes a version of a pipeline of a server."""

from __future__ import annotations

from difflib import SequenceMatcher
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from penstock.cli.printing import print_warnings
from penstock.cli.server_options import Data, Fresh, Server, connect
from penstock.core.errors import UserError, raise_all
from penstock.core.text import plural, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.plan.node_changes import Change
    from penstock.server_client import Draft, ServedPipeline, ServedVersion, ServerClient

File = Annotated[Path, Parameter(name="FILE", help="The file of the pipeline.")]
Note = Annotated[str, Parameter(metavar="TEXT", help="A note about the version.")]
REFUSED = "changed-plan"


def apply(
    file: File, /, *, note: Note = "", fresh: Fresh = False, server: Server = None,
    data: Data = None,
) -> None:  # fmt: skip
    """Apply a file to the pipeline of its name on a server, or create the pipeline.

    First prints the changes and their effects on the state. A file with errors, or with changes
    that the state does not support, stops nothing. A running pipeline restarts and resumes.

      penstock apply shop.yaml --note "count returns, too"
      penstock apply shop.yaml --server https://penstock.example.com
    """
    from penstock import app
    from penstock.server_client import Draft

    partial, _ = app.partial_plan(file)
    name = file.stem if partial is None else partial.plan.name
    client = connect(server, data)
    text = _read(file)
    pipeline = client.find(name)
    if pipeline is None:
        created = client.create(name, Draft(file, text, f"{name}{file.suffix}"), note)
        print(f"{name}: created as version {created.version}; start it with penstock start {name}")
        return
    draft = Draft(file, text, pipeline.file)
    if text == pipeline.text and not pipeline.changed and pipeline.version and not fresh:
        print(f"{name}: no changes since version {pipeline.version}")
        return
    preview(client, pipeline, draft, fresh=fresh)
    print_applied(pipeline, client.apply(pipeline, draft, note, fresh=fresh))


def preview(client: ServerClient, pipeline: ServedPipeline, draft: Draft, *, fresh: bool) -> None:
    """Prints the changes that a draft makes. Raises its errors; with `fresh` none of the state."""
    found = client.check(pipeline.id, draft)
    print_warnings(found.warnings)
    print(f"{pipeline.name}: {_line_counts(pipeline.text or '', draft.text)}")
    errors = [error for error in found.errors if not (fresh and error.code == REFUSED)]
    for line in [] if errors and not found.changes else _effects(found.changes, fresh=fresh):
        print(printable(f"  {line}"))
    for error in errors:
        if error.code == REFUSED and found.changes:
            error.detail = None  # the changes above
    raise_all(errors)


def print_applied(pipeline: ServedPipeline, version: ServedVersion) -> None:
    """Prints the result of an applied version."""
    effect = "does not run" if pipeline.wish == "stopped" else "restarts"
    print(f"{pipeline.name}: version {version.number} is applied; the pipeline {effect}")


def _effects(changes: Sequence[Change], *, fresh: bool) -> list[str]:
    """Returns a line for each change since the last run, and one for all other parts."""
    if fresh:
        return ["--fresh: the state of the pipeline is reset"]
    lines = [
        f"{'incompatible' if change.effect == 'incompatible' else 'changed'}: {change.subject}: "
        f"{change.reason}"
        for change in changes
    ]
    rest = "all other parts keep" if changes else "all parts keep"
    return [*lines, f"{rest} their state"]


def _line_counts(before: str, after: str) -> str:
    """Returns the numbers of added and removed lines."""
    added = removed = 0
    for kind, i, j, k, m in SequenceMatcher(
        None, before.splitlines(), after.splitlines(), autojunk=False
    ).get_opcodes():
        if kind != "equal":
            removed, added = removed + j - i, added + m - k
    return f"{plural(added, 'line')} added, {removed:,} removed"


def _read(file: Path) -> str:
    """Returns the text of a file. Raises UserError for bytes that are not UTF-8."""
    try:
        return file.read_bytes().decode("utf-8")
    except OSError as error:
        raise UserError(
            f"the file {file} cannot be read: {error.strerror}", code="unreadable-file"
        ) from error
    except UnicodeDecodeError as error:
        raise UserError(f"{file} is not UTF-8", code="not-utf8") from error
