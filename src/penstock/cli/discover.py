"""`penstock discover`: the tables of a database, the topics of other systems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from penstock.cli.options import Json
from penstock.cli.printing import print_json, print_table, print_text
from penstock.core.errors import PenstockError, UserError

if TYPE_CHECKING:
    from penstock.discovery import DiscoveredTable

TypeAndTables = Annotated[
    str,
    Parameter(name="TYPE [TABLE]...", help="The type of the source, and tables."),
]
Url = Annotated[str | None, Parameter(metavar="URL", help="The option url of the source.")]
FilePath = Annotated[
    str | None, Parameter(name="--path", metavar="PATH", help="The option path of the source.")
]
Options = Annotated[
    tuple[str, ...],
    Parameter(
        name="--set",
        metavar="KEY=VALUE",
        help="Another option of the source, as in auth.username=reader; may be repeated.",
    ),
]


def discover(
    *type_and_tables: TypeAndTables,
    url: Url = None,
    path: FilePath = None,
    options: Options = (),
    json: Json = False,
) -> None:
    """List the tables of a database or the topics of a system, or print a pipeline of tables.

    Lists the columns and the primary key of each table, and whether its changes can be read.
    With tables, prints a pipeline that reads them, with their changes if possible. Variables
    remain in the pipeline: write --set 'auth.password=${PASSWORD}', in single quotes.
    Of Kafka, NATS, Pulsar and Redis, lists the names that exist for each option, such as topic.

      penstock discover sqlite --path shop.db
      penstock discover postgres --url postgresql://127.0.0.1/shop
      penstock discover postgres orders --url postgresql://127.0.0.1/shop > orders.yaml
      penstock discover kafka --set brokers=localhost:9092
    """
    from penstock.discovery import discover as discover_tables
    from penstock.discovery import listed_options, pipeline_text

    if not type_and_tables:
        raise UserError(
            "expected the type of a source", code="usage",
            hint="Run penstock discover TYPE, as in penstock discover postgres --url URL.",
        )  # fmt: skip
    type_, *names = type_and_tables
    known = {"url": url, "path": path}
    given = {key: value for key, value in known.items() if value is not None}
    for text in options:
        _set_option(given, text)
    if listed := listed_options(type_):
        _list_topics(type_, given, names, listed, json=json)
        return
    found = discover_tables(type_, given, names)
    if json:
        print_json([_facts(table) for table in found.tables])
    elif names:
        print(pipeline_text(found), end="")
    else:
        _print_list(found.tables)


def _set_option(options: dict[str, Any], text: str) -> None:
    """Sets an option of the form KEY=VALUE; dots in the key separate nested options."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    key, equals, value = text.partition("=")
    *parents, last = key.split(".")
    if not equals or not all((*parents, last)):
        raise UserError(
            f"--set {text}: expected KEY=VALUE", code="usage",
            hint="Write for example auth.username=reader.",
        )  # fmt: skip
    try:
        parsed = YAML(typ="safe", pure=True).load(value)
    except YAMLError:
        parsed = value
    for parent in parents:
        options = options.setdefault(parent, {})
        if not isinstance(options, dict):
            raise UserError(f'--set {key}: "{parent}" has a value already', code="usage")
    options[last] = parsed


def _list_topics(
    type_: str, options: dict[str, Any], names: Sequence[str], listed: Sequence[str], *, json: bool
) -> None:
    """Prints the names that exist for each option of a source."""
    from penstock.discovery import topic_names

    if names:
        raise UserError(
            f"penstock discover {type_} lists names, and describes none", code="usage",
            hint=f"Remove {' '.join(names)}.",
        )  # fmt: skip
    found = [(option, name) for option in listed for name in topic_names(type_, options, option)[1]]
    if json:
        print_json([{"option": option, "name": name} for option, name in found])
    elif not found:
        print(f"no {' or '.join(listed)}")
    else:
        print_table(("option", "name"), found)


def _print_list(tables: Sequence[DiscoveredTable]) -> None:
    if not tables:
        print("no tables")
        return
    changes = any(table.reads_changes for table in tables)
    header = ("table", "columns", "primary key", *(("changes",) if changes else ()))
    rows = [
        (
            table.name, _columns_text(table), ", ".join(table.primary_key),
            *((("yes" if table.has_changes else "no"),) if changes else ()),
        )
        for table in tables
    ]  # fmt: skip
    print_table(header, rows, wrap=True)
    for table in tables:
        error = table.error or table.changes_error
        if error is not None:
            print()
            print_text(f"{table.name}: {_reason(error)}")


def _columns_text(table: DiscoveredTable) -> str:
    from penstock.sdk.columns.json_mark import column_type

    if table.columns is None:
        return ""
    return ", ".join(f"{field.name} {column_type(field)}" for field in table.columns)


def _reason(error: PenstockError) -> str:
    return f"{error.message}\n{error.hint}" if error.hint else error.message


def _facts(table: DiscoveredTable) -> dict[str, object]:
    from penstock.core.error_report import to_dicts
    from penstock.sdk.columns.json_mark import column_type

    error = table.error or table.changes_error
    return {
        "table": table.name,
        "columns": [
            {
                "name": field.name,
                "type": column_type(field),
                "nullable": field.nullable,
            }
            for field in table.columns or ()
        ],
        "primary_key": list(table.primary_key),
        "changes": table.has_changes if table.reads_changes else None,
        "errors": [] if error is None else to_dicts(error),
    }
