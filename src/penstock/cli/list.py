"""`penstock list`: what a pipeline can be made of."""

from __future__ import annotations

from penstock.cli.options import Json
from penstock.cli.printing import print_json, print_table
from penstock.sdk.describe import Description, describe_all


def list(*, json: Json = False) -> None:
    """List all sources, transforms, sinks and formats that are installed.

    penstock list
    penstock list --json
    penstock describe source files     more about one of them
    """
    found = describe_all()
    if json:
        print_json({f"{kind}s": [_facts(each) for each in all_] for kind, all_ in found.items()})
        return
    width = max(len(each.type) for all_ in found.values() for each in all_)
    for number, (kind, all_) in enumerate(found.items()):
        print(f"{chr(10) if number else ''}{kind}s")
        rows = [(each.type.ljust(width), f"{each.summary}{_lacking(each)}") for each in all_]
        print_table(("", ""), rows, indent="  ", wrap=True)
    print("\npenstock describe KIND TYPE shows its options and an example.")


def _facts(each: Description) -> dict[str, object]:
    return {
        "type": each.type,
        "summary": each.summary,
        "capabilities": each.capabilities,
        "extra": each.extra,
        "installed": not each.missing,
    }


def _lacking(each: Description) -> str:
    return f" (needs: pip install 'penstock[{each.extra}]')" if each.missing else ""
