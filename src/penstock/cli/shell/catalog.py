"""Tables, views, functions and settings of a shell: listed, described and removed."""

from __future__ import annotations

from collections.abc import Collection

from penstock.cli.printing import print_table
from penstock.cli.shell.checks import check_statement
from penstock.cli.shell.definitions import Entry, read_entries, read_entry, setting_key
from penstock.cli.shell.input import Part
from penstock.cli.shell.shell import Shell
from penstock.core.errors import UserError
from penstock.core.text import did_you_mean
from penstock.spec.script.statements import Set


def list_entries(shell: Shell, kinds: Collection[str]) -> None:
    """Prints the definitions of these kinds."""
    found = [entry for entry in shell.definitions.tables() if entry.kind in kinds]
    if not found:
        print(f"no {' or '.join(f'{kind}s' for kind in kinds)}")
        return
    print_table(("kind", "name"), [tuple(entry.summary.split(" ", 1)) for entry in found])


def describe(shell: Shell, name: str) -> None:
    """Prints the columns of a table or view. Raises PenstockError."""
    entry = find(shell, name)
    if entry.sink_only or entry.kind == "function":
        show_create(shell, name)
        return
    [query] = read_entries(f"SELECT * FROM `{entry.key}`")
    _print_columns(shell, query)


def describe_query(shell: Shell, part: Part) -> None:
    """Prints the columns of a query. Raises PenstockError."""
    _print_columns(shell, _read_query(part, shell))


def _print_columns(shell: Shell, query: Entry) -> None:
    from penstock.sdk.columns.type_names import sql_name

    columns = shell.columns(query)
    print_table(("column", "type"), [(field.name, sql_name(field.type)) for field in columns])


def show_create(shell: Shell, name: str) -> None:
    """Prints the statement of a definition. Raises UserError."""
    print(f"{find(shell, name).text};")


def explain(shell: Shell, part: Part) -> None:
    """Prints the plan of a query. Raises PenstockError."""
    from penstock.cli.explain import print_explanation

    query = _read_query(part, shell)
    if not query.reads(shell.definitions.entries):
        raise UserError(
            "the query reads no table and has no plan", code="missing-option", where=part.location
        )
    with shell.planned(query) as plan:
        print_explanation(plan, shell.spark.result().newSession())


def _read_query(part: Part, shell: Shell) -> Entry:
    query = read_entry(part)
    if not query.is_query:
        raise UserError(
            "expected a query", code="usage", where=part.location,
            hint="write DESCRIBE NAME for the columns of a table or view",
        )  # fmt: skip
    check_statement(query, shell.definitions)
    return query


def drop(shell: Shell, name: str, *, kinds: Collection[str] = (), if_exists: bool = False) -> None:
    """Removes a definition of one of these kinds, by default of any. Raises UserError."""
    entry = shell.definitions.entries.get(name.lower())
    if entry is None and if_exists:
        print(f'there is no {kinds_text(kinds)} "{name}"')
        return
    entry = find(shell, name, kinds)
    if kinds and entry.kind not in kinds:
        raise UserError(
            f'"{name}" is a {entry.kind}', code="wrong-kind",
            hint=f"Enter DROP {entry.kind.upper()} {name}.",
        )  # fmt: skip
    shell.drop(entry.key)
    print(f"dropped {entry.kind} {entry.key}")


def list_settings(shell: Shell) -> None:
    """Prints the settings."""
    rows = [
        (".".join(part.value for part in entry.statement.path), str(entry.statement.value.data()))
        for entry in shell.definitions.settings()
        if isinstance(entry.statement, Set)
    ]
    if rows:
        print_table(("setting", "value"), rows)
    else:
        print("no settings")


def reset(shell: Shell, name: str) -> None:
    """Removes a setting, or all settings without a name. Raises UserError."""
    settings = {entry.key: entry for entry in shell.definitions.settings()}
    key = setting_key(name.split("."))
    if name and key not in settings:
        known = [each.removeprefix("SET ") for each in settings]
        raise UserError(
            f'"{name}" is not set', code="unknown-setting",
            hint=did_you_mean(name, known) or "Enter SET for the settings.",
        )  # fmt: skip
    for each in [key] if name else settings:
        shell.definitions = shell.definitions.remove(each)
        print(f"reset {each.removeprefix('SET ')}")


def find(shell: Shell, name: str, kinds: Collection[str] = ()) -> Entry:
    """Returns the definition of a table, view or function. Raises UserError."""
    entry = shell.definitions.entries.get(name.lower())
    if entry is None:
        names = [each.key for each in shell.definitions.tables()]
        hint = did_you_mean(name, names) or "Enter SHOW TABLES for the tables and views."
        raise UserError(
            f'there is no {kinds_text(kinds)} "{name}"', code="unknown-table", hint=hint
        )
    return entry


def kinds_text(kinds: Collection[str]) -> str:
    """Returns the kinds of definitions in a message."""
    return " or ".join(kinds or ("table", "view"))
