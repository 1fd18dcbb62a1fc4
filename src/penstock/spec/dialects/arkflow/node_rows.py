"""The rows of inputs and outputs as options of the nodes of a stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.core.names import quote_name
from penstock.spec.dialects.arkflow.buffers import BufferPlan
from penstock.spec.dialects.arkflow.plans import VALUE, InputPlan, OutputPlan
from penstock.spec.dialects.options.trees import Tree


def batch_times(seconds: Mapping[str, float | None]) -> dict[str, Tree]:
    """Returns the times of the batches of a sink, without unset ones."""
    return {name: f"{round(time * 1e6)}us" for name, time in seconds.items() if time}


def input_rows(plans: Sequence[InputPlan], buffer: BufferPlan | None) -> Tree:
    """Returns how rows become batches; None for a single input of messages."""
    is_named = len(plans) > 1 or (buffer is not None and buffer.window.get("join") is not None)
    return {plan.name: plan.rows for plan in plans if plan.rows or is_named} or None


def output_rows(plan: OutputPlan, prefix: str = "") -> dict[str, Tree]:
    """Returns the rows of an output, as the transform `steps` makes them."""
    columns = {f"{prefix}{name}": value for name, value in plan.columns.items()}
    return {
        "encode": plan.encode, "value": plan.value, "columns": columns or None,
        "rows": plan.rows, "target": plan.table,
        "infer": True if plan.infer else None,
    }  # fmt: skip


def select_inputs(plans: Mapping[str, InputPlan]) -> str:
    """Returns the query of several inputs by the names of their nodes, with the columns of all."""
    columns = list(dict.fromkeys(column for plan in plans.values() for column in plan.columns))
    types = {name: type_ for plan in plans.values() for name, type_ in plan.types.items()}
    parts = (_select_input(name, plan, columns, types) for name, plan in plans.items())
    return " UNION ALL ".join(parts)


def _select_input(
    name: str, plan: InputPlan, columns: Sequence[str], further: Mapping[str, str]
) -> str:
    """Returns the query of one of several inputs. Columns of other inputs are null."""
    types = {**further, VALUE: "BINARY", "counter": "BIGINT", "run": "BIGINT", "partition": "INT",
             "offset": "BIGINT", "key": "BINARY", "timestamp": "TIMESTAMP",
             "publish_time": "TIMESTAMP"}  # fmt: skip
    selected = [
        quote_name(column)
        if column in plan.columns
        else f"CAST(NULL AS {types.get(column, 'STRING')}) AS {quote_name(column)}"
        for column in columns
    ]
    text = plan.name.replace("\\", "\\\\").replace("'", "\\'")
    return f"SELECT {', '.join(selected)}, '{text}' AS __input__ FROM {quote_name(name)}"
