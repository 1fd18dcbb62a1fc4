"""The table of sinks when a table whose changes are read is truncated."""

from __future__ import annotations

from collections.abc import Sequence

from tables import table

from penstock.sdk import Capability, Sink, registry
from penstock.sdk.guarantees import variants

_KEPT = "the rows stay"
HEAD = """## Truncated tables

The effect of a `TRUNCATE` on the target of each sink, by the option `on_truncate` of the source.
With `fail`, the default, the run ends with the error [`truncated`](errors.md#truncated) for all
sinks, and no row is removed. With `apply` `penstock check` reports the other sinks of the source.
[Truncated tables](../howto/databases.md#truncated-tables) explains the conditions.

"""


def truncations() -> str:
    """Returns the section of the page of connectors."""
    rows: list[Sequence[str]] = []
    for type_ in registry.types("sink"):
        can = [
            variant
            for variant, made in variants(registry.find("sink", type_)).items()
            if isinstance(made, Sink) and Capability.TRUNCATE in made.capabilities
        ]
        rows.append((f"[`{type_}`](sinks.md#{type_})", _KEPT, _applied(can)))
    return HEAD + table(("sink", "`on_truncate: ignore`", "`on_truncate: apply`"), rows) + "\n"


def _applied(can: Sequence[str]) -> str:
    """Returns the effect of `apply`, for the variants of a sink that can remove all rows."""
    if not can:
        return "the error [`unsupported-truncation`](errors.md#unsupported-truncation)"
    with_ = "" if "" in can else f", with {' or '.join(f'`{each}`' for each in can)}"
    return f"all rows are removed in the transaction of the batch, with `mode: upsert`{with_}"
