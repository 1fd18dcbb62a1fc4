"""Queries that read no table: computed at once, with the functions of the shell."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock import app
from penstock.cli.shell.definitions import Definitions, Entry, read_entries
from penstock.cli.shell.input import NAME
from penstock.cli.shell.script import Script
from penstock.core.errors import raise_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from penstock.plan.model import Plan
    from penstock.plan.node import Node

QUERY = "result_query"
"""The node of the first query of a script."""
_OTHER = "result_2_query"
_ROW = "CREATE TABLE shell_row WITH (connector = 'impulse'); SELECT * FROM shell_row"


def compute(
    query: Entry, definitions: Definitions, overrides: Sequence[str], session: SparkSession
) -> pa.Table:
    """Returns the rows of a query without relations. Raises PenstockError."""
    from penstock.engine.analysis.errors import locate_errors
    from penstock.engine.catalyst.variants import variants_to_json

    script = Script.of(definitions.of_query(query), query, *read_entries(_ROW))
    with script.relocating():
        partial, errors = app.script_plan(script.text, name=NAME, overrides=overrides)
        raise_all(error for error in errors if error.code != "missing-option")
        assert partial is not None
        plan = partial.plan
        node = _node(plan)
        with locate_errors(plan, node), interruptible():
            return variants_to_json(_frame(plan, node, session)).toArrow()


@contextmanager
def interruptible() -> Iterator[None]:
    """Raises KeyboardInterrupt in place of an error of Java that Ctrl-C has caused."""
    from py4j.protocol import Py4JError

    try:
        yield
    except Py4JError as error:
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, KeyboardInterrupt):
                raise KeyboardInterrupt from error
            cause = cause.__context__
        raise


def _node(plan: Plan) -> Node:
    """Returns the query as a node without inputs. A plan has none."""
    other = plan.nodes[_OTHER]
    spec = plan.spec.transforms[QUERY]
    config = other.component.config.model_copy(update={"sql": spec.options["sql"]})
    component = type(other.component)(config, other.component.context)
    return replace(other, name=QUERY, spec=spec, inputs=(), component=component)


def _frame(plan: Plan, node: Node, session: SparkSession) -> DataFrame:
    from penstock.engine.functions.register import name_columns, register_functions

    assert node.frame_transform is not None
    register_functions(plan.functions, session)
    frame = node.frame_transform.relate({}, session)
    return name_columns(frame) if plan.functions else frame
