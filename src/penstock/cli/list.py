"""`penstock list`: installed components."""

from __future__ import annotations

from penstock.cli.options import Json
from penstock.cli.printing import print_json, print_table
from penstock.sdk.describe import Description, describe_all


def list(*, json: Json = False) -> None:
    """List the installed sources, transforms, sinks and formats.

    penstock list
    penstock list --json
    penstock describe source files     details of a component
    """
    by_kind = describe_all()
    if json:
        print_json({f"{kind}s": [_facts(d) for d in types] for kind, types in by_kind.items()})
        return
    width = max(len(d.type) for types in by_kind.values() for d in types)
    for number, (kind, types) in enumerate(by_kind.items()):
        print(f"{chr(10) if number else ''}{kind}s")
        rows = [(d.type.ljust(width), f"{d.summary}{_missing_extra(d)}") for d in types]
        print_table(("", ""), rows, indent="  ", wrap=True)
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
