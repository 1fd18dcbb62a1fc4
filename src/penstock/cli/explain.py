"""`penstock explain`: the plan of a pipeline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from penstock.cli.options import (
    Dialect,
    Files,
    FunctionFiles,
    Json,
    Overrides,
    Settings,
    Strict,
    with_functions,
)
from penstock.cli.printing import (
    concealed_output,
    print_item,
    print_json,
    print_table,
    print_text,
    print_warnings,
)
from penstock.core.text import plural
from penstock.core.units import binary_size_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from penstock.engine.spark_session.memory import Resources
    from penstock.plan.explain import Explanation, Needs, NodeFacts, QueryFacts
    from penstock.plan.explain_sql import NodeSql
    from penstock.plan.model import Plan
    from penstock.plan.node_changes import Change
    from penstock.plan.pushdown import Pushdown

_STORES = {"memory": "memory", "rocksdb": "RocksDB"}
_SHAPES = {"source": ("([", "])"), "transform": ("[", "]"), "sink": ("[(", ")]")}


def explain(
    files: Files,
    /,
    *,
    overrides: Overrides = (),
    functions: FunctionFiles = (),
    dialect: Dialect = None,
    strict: Strict = False,
    settings: Settings = None,
    static: Annotated[bool, Parameter(help="Show declared columns only, without Spark.")] = False,
    mermaid: Annotated[bool, Parameter(help="Print a Mermaid diagram.")] = False,
    sql: Annotated[bool, Parameter(help="Print the SQL that Spark runs.")] = False,
    json: Json = False,
) -> None:
    """Explain a pipeline: nodes, columns, queries, state, and the guarantees of sinks.

    Lists the changes since the last run, with their effects on the state. With the code of an
    error in place of a file, prints its meaning.

    Runs and writes nothing. Spark infers columns that are not declared, which takes a few
    seconds.

      penstock explain late-flights.yaml
      penstock explain late-flights.yaml --static
      penstock explain late-flights.yaml --mermaid > plan.mmd
      penstock explain shop.sql --sql
      penstock explain unknown-column
    """
    if len(files) == 1 and _explain_code(str(files[0]), json):
        return
    from penstock.spec.front_end import choose

    choose(dialect, strict, settings)
    from penstock import app
    from penstock.plan.explain import explain as explain_plan
    from penstock.plan.explain_sql import explain_sql

    plan = app.plan(files, overrides=with_functions(overrides, functions))
    print_warnings(plan.warnings)
    if sql:
        with concealed_output():
            _print_sql(explain_sql(plan), json)
        return
    inferred: Sequence[Any] = ()
    changes = app.changes(plan)
    if not (static or mermaid):
        plan = app.with_primary_keys(plan)
        with app.session(plan) as spark:
            *inferred, changes = _infer(plan, spark)
    chosen = app.resources(plan)
    explanation = explain_plan(
        plan, *inferred, state_store=chosen.state_store, memory=format_heap(chosen),
        changes=changes,
    )  # fmt: skip
    with concealed_output():
        if json:
            print_json(explanation)
        elif mermaid:
            _print_mermaid(explanation)
        else:
            _print(explanation)


def _explain_code(word: str, json: bool) -> bool:
    """Prints the meaning of an error code. Returns False for other words and for files."""
    from penstock.core.error_codes import ERROR_CODES

    if word not in ERROR_CODES or Path(word).exists():
        return False
    if json:
        print_json({"code": word, "meaning": ERROR_CODES[word]})
    else:
        print_text(f"{word}: {ERROR_CODES[word]}")
    return True


def format_heap(chosen: Resources) -> str:
    """Returns the heap, and the memory of the machine if the heap was chosen by it."""
    heap = f"{binary_size_text(chosen.heap)} for Spark"
    if chosen.memory is None:
        return heap
    available, total = map(binary_size_text, (chosen.memory.available, chosen.memory.total))
    return f"{heap} (auto: {available} of {total} are available)"


def _infer(
    plan: Plan, spark: SparkSession
) -> tuple[dict[str, pa.Schema], dict[str, dict[str, Pushdown]], list[Change]]:
    """Returns the columns of nodes, the pushdowns, and the changes since the last run."""
    from penstock import app
    from penstock.engine.catalyst.columns import to_arrow

    types = app.types(plan, spark)
    pushdowns = app.pushdowns(plan, spark)
    columns = {name: to_arrow(each) for name, each in types.items()}
    return columns, pushdowns, app.changes(plan, types, spark)


def print_explanation(plan: Plan, spark: SparkSession) -> None:
    """Prints the explanation of a plan."""
    from penstock import app
    from penstock.plan.explain import explain as explain_plan

    chosen = app.resources(plan)
    *inferred, changes = _infer(plan, spark)
    explanation = explain_plan(
        plan, *inferred, state_store=chosen.state_store, memory=format_heap(chosen),
        changes=changes,
    )  # fmt: skip
    with concealed_output():
        _print(explanation)


def _print_sql(texts: Sequence[NodeSql], json: bool) -> None:
    if json:
        print_json(texts)
        return
    for text in texts:
        option = "" if text.option == "sql" else f" {text.option}"
        scope = " (on each batch)" if text.by_batch else ""
        print(f"-- {text.node}{option}{scope}\n{text.sql.strip()};\n")


def _print(explanation: Explanation) -> None:
    print(f"{explanation.pipeline}: {'bounded' if explanation.bounded else 'unbounded'}\n")
    for kind in ("source", "transform", "sink"):
        nodes = [node for node in explanation.nodes if node.kind == kind]
        if nodes:
            print(f"{kind}s")
            print_table(("", "", "", ""), [_row(node) for node in nodes], indent="  ", wrap=True)
            print()
    for query in explanation.queries:
        _print_query(query)
    if explanation.replaced:
        print("options of later files")
        rows = [(r.option, r.where, f"replaces {r.replaced}") for r in explanation.replaced]
        print_table(("", "", ""), rows, indent="  ", wrap=True)
        print()
    print("guarantees")
    for node in explanation.nodes:
        if node.guarantee is not None:
            print(f"  {node.name}: {node.guarantee.level}")
            for reason in (*node.guarantee.reasons, *(f"note: {n}" for n in node.guarantee.notes)):
                print_item(reason, "    ")
    print()
    print_text(
        f"state: {explanation.state} (state of transforms in {_STORES[explanation.state_store]})"
    )
    print(f"memory: {explanation.memory}")
    print(f"dead letters: {explanation.dead_letters}")
    if explanation.changes:
        _print_changes(explanation.changes)


def _print_changes(changes: Sequence[Change]) -> None:
    print("\nchanges since the last run")
    for change in changes:
        print(f"  {change}")
    if any(change.effect == "incompatible" for change in changes):
        print(
            "\nA change marked with - does not fit the state: penstock run fails (changed-plan).\n"
            "Undo it, rename the changed node, or reset the state with --fresh."
        )


def _row(node: NodeFacts) -> tuple[str, str, str, str]:
    facts = [
        f"format {node.format}" if node.format else "",
        "lookup" if node.lookup else "static" if node.static else "",
        f"watermark {node.watermark}" if node.watermark else "",
        f"keeps {node.state}" if node.state else "",
        f"checks {', '.join(node.checks)}" if node.checks else "",
        f"fills {node.dynamic_table}" if node.kind == "sink" and node.dynamic_table else "",
    ]
    summary = ", ".join(fact for fact in facts if fact)
    columns = "?" if node.columns is None else ", ".join(map(str, node.columns))
    text = f"{summary}; {columns}" if summary and node.kind != "sink" else summary or columns
    return node.name, node.type, f"from {', '.join(node.inputs)}" if node.inputs else "", text


def _print_query(query: QueryFacts) -> None:
    print(f"query {query.name}")
    rows = [("as a stream", ", ".join(query.stream_nodes))]
    rows += [(f"reads from {needs.source}", _format_needs(needs)) for needs in query.needs]
    if query.batch_nodes:
        rows.append(("on each batch", ", ".join(query.batch_nodes)))
    rows.append((plural(len(query.sinks), "sink"), ", ".join(query.sinks)))
    rows.append(("output mode", query.output_mode))
    rows += [("", f"({reason})") for reason in query.reasons]
    print_table(("", ""), rows, indent="  ", wrap=True)
    print()


def _format_needs(needs: Needs) -> str:
    columns = "all columns" if needs.columns is None else f"columns {', '.join(needs.columns)}"
    return f"{columns} where {' AND '.join(needs.where)}" if needs.where else columns


def _print_mermaid(explanation: Explanation) -> None:
    print("flowchart LR")
    for node in explanation.nodes:
        before, after = _SHAPES[node.kind]
        state = f"<br>keeps {node.state}" if node.state else ""
        level = f"<br>{node.guarantee.level}" if node.guarantee else ""
        print(f'  {node.name}{before}"{node.name}<br><i>{node.type}</i>{state}{level}"{after}')
    for node in explanation.nodes:
        for name in node.inputs:
            print(f"  {name} --> {node.name}")
        for name in node.checks:
            print(f"  {name} -.-> {node.name}")
        if node.kind == "sink" and node.dynamic_table:
            print(f"  {node.name} -.-> {node.dynamic_table}")
