"""`penstock explain`: what a pipeline will do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from penstock.cli.options import Files, Json, Sets
from penstock.cli.printing import print_json, print_table, print_warnings
from penstock.core.text import plural

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.plan.explain import Explanation, Needs, NodeFacts, QueryFacts
    from penstock.plan.hint import Hint
    from penstock.plan.model import Plan

_SHAPES = {"source": ("([", "])"), "transform": ("[", "]"), "sink": ("[(", ")]")}


def explain(
    files: Files,
    /,
    *,
    set: Sets = (),
    static: Annotated[
        bool, Parameter(help="Without Spark: only columns that are declared.")
    ] = False,
    mermaid: Annotated[bool, Parameter(help="Print a Mermaid diagram.")] = False,
    json: Json = False,
) -> None:
    """Explain a pipeline: nodes, columns, queries, state, and what each sink guarantees.

    Nothing is run and nothing is written. Columns that are not declared are told by Spark, which
    takes a few seconds.

      penstock explain late-flights.yaml
      penstock explain late-flights.yaml --static
      penstock explain late-flights.yaml --mermaid > plan.mmd
    """
    from penstock import app
    from penstock.plan.explain import explain as explained

    plan = app.plan(files, sets=set)
    print_warnings(plan.warnings)
    found = explained(plan) if static or mermaid else explained(plan, *_told(plan))
    if json:
        print_json(found)
    elif mermaid:
        _print_mermaid(found)
    else:
        _print(found)


def _told(plan: Plan) -> tuple[dict[str, pa.Schema], dict[str, dict[str, Hint]]]:
    """What Spark tells: the columns of nodes, and what queries need of their sources."""
    from penstock import app
    from penstock.engine.columns import to_arrow

    with app.session(plan) as spark:
        types = app.types(plan, spark)
        hints = app.hints(plan, spark)
    return {name: to_arrow(columns) for name, columns in types.items()}, hints


def _print(found: Explanation) -> None:
    print(f"{found.pipeline}: {'runs to its end' if found.bounded else 'runs for ever'}\n")
    for kind in ("source", "transform", "sink"):
        nodes = [node for node in found.nodes if node.kind == kind]
        if nodes:
            print(f"{kind}s")
            print_table(("", "", "", ""), [_row(node) for node in nodes], indent="  ", wrap=True)
            print()
    for query in found.queries:
        _print_query(query)
    print("guarantees")
    for node in found.nodes:
        if node.guarantee is not None:
            print(f"  {node.name}: {node.guarantee.level}")
            for reason in (*node.guarantee.because, *(f"note: {n}" for n in node.guarantee.notes)):
                print(f"    - {reason}")
    print(f"\nstate: {found.state} (windows and joins in {found.state_store})")
    print(f"dead letters: {found.dead_letters}")


def _row(node: NodeFacts) -> tuple[str, str, str, str]:
    facts = [
        f"format {node.format}" if node.format else "",
        "static" if node.static else "",
        f"watermark {node.watermark}" if node.watermark else "",
        f"remembers {node.remembers}" if node.remembers else "",
    ]
    about = f"{', '.join(fact for fact in facts if fact)}"
    columns = "?" if node.columns is None else ", ".join(map(str, node.columns))
    told = f"{about}; {columns}" if about and node.kind != "sink" else about or columns
    return node.name, node.type, f"from {', '.join(node.inputs)}" if node.inputs else "", told


def _print_query(query: QueryFacts) -> None:
    print(f"query {query.name}")
    rows = [("as a stream", ", ".join(query.within))]
    rows += [(f"needs of {each.source}", _needs(each)) for each in query.needs]
    if query.below:
        rows.append(("on each batch", ", ".join(query.below)))
    rows.append((plural(len(query.sinks), "sink"), ", ".join(query.sinks)))
    rows.append(("output mode", query.output_mode))
    rows += [("", f"({reason})") for reason in query.because]
    print_table(("", ""), rows, indent="  ", wrap=True)
    print()


def _needs(needs: Needs) -> str:
    columns = "all columns" if needs.columns is None else f"columns {', '.join(needs.columns)}"
    return f"{columns} where {' AND '.join(needs.where)}" if needs.where else columns


def _print_mermaid(found: Explanation) -> None:
    print("flowchart LR")
    for node in found.nodes:
        before, after = _SHAPES[node.kind]
        memory = f"<br>remembers {node.remembers}" if node.remembers else ""
        level = f"<br>{node.guarantee.level}" if node.guarantee else ""
        print(f'  {node.name}{before}"{node.name}<br><i>{node.type}</i>{memory}{level}"{after}')
    for node in found.nodes:
        for name in node.inputs:
            print(f"  {name} --> {node.name}")
