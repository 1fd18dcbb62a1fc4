"""`penstock compact`: combination of the small files of tables."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from penstock.cli.options import Files, Json, Overrides
from penstock.cli.printing import print_json, print_table
from penstock.core.errors import PlanError
from penstock.core.units import byte_count

Nodes = Annotated[
    tuple[str, ...],
    Parameter(name="--node", metavar="NODE", help="A sink; may be repeated. By default all."),
]
Size = Annotated[
    str | None,
    Parameter(metavar="SIZE", help="The size of the files; 128 MiB, or that of the sink's option."),
]


def compact(
    files: Files, /, *, overrides: Overrides = (), nodes: Nodes = (), size: Size = None,
    json: Json = False,
) -> None:  # fmt: skip
    """Combine the small files of the tables of sinks.

    The rows of the tables stay the same. Works beside a run of the pipeline. Files that are no
    longer used remain until VACUUM (Delta Lake) or the expiry of snapshots (Iceberg).

      penstock compact lake.yaml
      penstock compact lake.yaml --node orders --size 512MB
    """
    try:
        wanted = None if size is None else byte_count(size)
        if wanted is not None and wanted < 1:
            raise ValueError("expected at least 1 byte")
    except ValueError as error:
        raise PlanError(f"--size {size}: {error}", code="invalid-option") from None

    from penstock import app
    from penstock.compaction import compact as compact_sinks

    found = list(compact_sinks(app.plan(files, overrides=overrides), nodes, wanted))
    if json:
        print_json(
            [
                {"node": each.node, "removed": each.files.removed, "added": each.files.added}
                for each in found
            ]
        )
        return
    rows = [(each.node, str(each.files.removed), str(each.files.added)) for each in found]
    print_table(("node", "files", "combined into"), rows)
