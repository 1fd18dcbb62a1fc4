"""`penstock list`: installed components."""

from __future__ import annotations

import builtins

from penstock.cli.options import Json
from penstock.cli.printing import print_json, print_table, print_text
from penstock.plan.plugins import broken_plugins, installed_plugins
from penstock.sdk.describe import Description, describe_all


def list(*, json: Json = False) -> None:
    """List the installed sources, transforms, sinks and formats, and all plugins.

    penstock list
    penstock list --json
    penstock describe source files     details of a component
    """
    by_kind = describe_all()
    plugins, broken = installed_plugins(), broken_plugins()
    if json:
        facts = {f"{kind}s": [_facts(d) for d in types] for kind, types in by_kind.items()}
        print_json({**facts, "plugins": plugins, "broken_plugins": broken})
        return
    tables: dict[str, builtins.list[tuple[str, str]]] = {
        kind: [(d.type, f"{d.summary}{_missing_extra(d)}") for d in types]
        for kind, types in by_kind.items()
    }
    for kind in ("function", "preprocessor"):
        of_kind = [plugin for plugin in plugins if plugin.kind == kind]
        tables[kind] = [(plugin.name, f"of the package {plugin.package}") for plugin in of_kind]
    width = max(len(name) for table in tables.values() for name, _ in table)
    for number, (kind, table) in enumerate(each for each in tables.items() if each[1]):
        print(f"{chr(10) if number else ''}{kind.replace('_', ' ')}s")
        rows = [(name.ljust(width), text) for name, text in table]
        print_table(("", ""), rows, indent="  ", wrap=True)
    if broken:
        print("\nbroken plugins")
        for plugin in broken:
            print_text(f"  {plugin.message}")
    print("\nrun penstock describe KIND TYPE to see options and an example")


def _facts(description: Description) -> dict[str, object]:
    return {
        "type": description.type,
        "summary": description.summary,
        "capabilities": description.capabilities,
        "extra": description.extra,
        "installed": not description.missing,
    }


def _missing_extra(description: Description) -> str:
    return (
        f" (requires: pip install 'penstock[{description.extra}]')" if description.missing else ""
    )
