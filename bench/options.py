"""Options shared by benches."""

from __future__ import annotations

import argparse
from collections.abc import Iterable


def parser(description: str | None) -> argparse.ArgumentParser:
    """A parser with `--json`."""
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--json", action="store_true", help="print one JSON object")
    return made


def add_engines(to: argparse.ArgumentParser, engines: Iterable[str]) -> None:
    """`--engines NAME,NAME`; by default all of them."""
    all_ = list(engines)

    def chosen(text: str) -> list[str]:
        names = text.split(",")
        for name in names:
            if name not in all_:
                raise argparse.ArgumentTypeError(f"no {name!r} among {', '.join(all_)}")
        return names

    to.add_argument(
        "--engines", type=chosen, default=all_, metavar="NAME,NAME", help=f"of {', '.join(all_)}"
    )
