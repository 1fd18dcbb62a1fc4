"""Writes the pages of docs/reference from the code.

./dev docs            writes them
./dev docs --check    ends with 1 if they are stale, and writes nothing
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from inspect import cleandoc
from pathlib import Path

from matrix import connectors
from members import documented, entry, imported
from tables import table

from penstock.cli.main import main as penstock
from penstock.cli.main import make_app
from penstock.core import errors
from penstock.sdk.capability import Capability
from penstock.sdk.describe import (
    Description,
    Option,
    describe_all,
    describe_model,
    shared_options,
)
from penstock.sdk.promise import TOLD
from penstock.sdk.registry import Kind
from penstock.spec.models import PipelineSpec

REFERENCE = Path(__file__).parent / "reference"
NOTE = "<!-- Written by docs/build.py from the code: do not edit. -->\n\n"
WIDTH = "100"
MATRIX = "What they promise is side by side in [one table](connectors.md)."


def options(found: Sequence[Option]) -> str:
    """A table of options."""
    if not found:
        return "It has no options.\n\n"
    rows = [(f"`{o.name}`", o.type, default(o), o.text) for o in found]
    return table(("option", "value", "default", "meaning"), rows)


def default(option: Option) -> str:
    """An option's default as a user would write it."""
    if option.required:
        return "required"
    if option.default is None or isinstance(option.default, dict | list):
        return ""
    value = option.default
    return f"`{value if value and isinstance(value, str) else json.dumps(value)}`"


def components(kind: Kind, meaning: str) -> str:
    """The page of a kind: the options that all have, then each type."""
    found = describe_all()[kind]
    page = f"# {kind.title()}s\n\n{meaning}\n\n"
    page += table(("type", "what it is"), [(f"[`{d.type}`](#{d.type})", d.summary) for d in found])
    if shared := shared_options(kind):
        page += f"## Options of every {kind}\n\n{options(shared)}"
    return page + "".join(component(each) for each in found)


def component(found: Description) -> str:
    """One type: purpose, example, options, what it can do."""
    page = f"## {found.type}\n\n{found.summary}\n\n"
    if found.text:
        page += f"{found.text}\n\n"
    if found.extra:
        page += f"It needs `pip install 'penstock[{found.extra}]'`.\n\n"
    if found.example:
        page += f"```yaml\n{found.example.rstrip()}\n```\n\n"
    page += promised(found) + options(found.options)
    for part in found.parts:
        page += f"`{part.name}`: {part.text}\n\n{options(part.options)}"
    if found.metadata:
        named = ", ".join(f"`{column.name}` ({column.type})" for column in found.metadata)
        page += f"Metadata columns: {named}.\n\n"
    if found.capabilities:
        named = [
            f"[{name}](#capabilities)" + (f" (`{option}`)" if option else "")
            for name, option in found.capabilities.items()
        ]
        page += f"Capabilities: {', '.join(named)}.\n\n"
    return page


def promised(found: Description) -> str:
    """What a source or sink promises; a table where options change it."""
    told = TOLD.get(found.kind, "")
    if len(found.promises) > 1:
        rows = [(f"`{p.variant}`", p.parallelism, p.guarantee, p.told) for p in found.promises]
        return table(("with", "unit of parallelism", "guarantee", told), rows)
    return "".join(
        f"Unit of parallelism: {each.parallelism}. Guarantee: {each.guarantee}. "
        f"{told.capitalize()}: {each.told}.\n\n"
        for each in found.promises
    )


def capabilities() -> str:
    """What the words under `Capabilities` mean."""
    meanings = documented("penstock.sdk.capability", "Capability")
    rows = [(each.value, meanings[each.name]) for each in Capability]
    return "## Capabilities\n\n" + table(("word", "meaning"), rows)


def sources() -> str:
    return components("source", f"Systems that are read. {MATRIX}") + capabilities()


def sinks() -> str:
    return components("sink", f"Systems that are written to. {MATRIX}") + capabilities()


def transforms() -> str:
    return components("transform", "Steps between sources and sinks.")


def formats() -> str:
    return components(
        "format",
        "How bytes become rows and rows become bytes. A node names one as `format: json`, or with "
        'options as `format: {type: csv, delimiter: ";"}`.',
    )


def pipeline() -> str:
    """The keys of a pipeline file."""
    keys, parts = describe_model(PipelineSpec)
    page = (
        "# The pipeline file\n\n`penstock schema` prints the same as JSON Schema, for editors.\n\n"
        + options(keys)
    )
    for part in parts:
        page += f"## {part.name}\n\n{part.text}\n\n{options(part.options)}"
    return page


def error_classes() -> str:
    """What each class of errors means for a run."""
    page = (
        "# Errors\n\nAn error has a stable code, a message, and often a hint. Its class says what "
        "it means for a run.\n\n"
        + f"```text\n{cleandoc(errors.__doc__ or '').partition(chr(10) * 2)[2]}\n```\n\n"
    )
    rows = []
    for kind in classes(errors.PenstockError):
        conduct = kind.conduct
        rows.append(
            (
                f"`{kind.__name__}`",
                f"`{kind.default_code}`",
                yes(conduct.retried),
                yes(conduct.stops_query),
                str(conduct.exit_code),
                conduct.log_level,
                str(conduct.http_status),
            )
        )
    header = ("class", "code, unless a more exact one is given", "retried", "stops the query",
              "exit code", "log level", "HTTP status")  # fmt: skip
    codes = table(
        ("exit code", "meaning"),
        [("0", "all went well"), ("1", "the run failed, or a test did"),
         ("2", "the user's files or command line"), ("3", "the outside world"),
         ("4", "the state directory"), ("130", "Ctrl-C before the run had begun")],
    )  # fmt: skip
    return page + table(header, rows) + codes


def classes(kind: type[errors.PenstockError]) -> Iterator[type[errors.PenstockError]]:
    """A class of errors and those below it, as `core/errors.py` defines them."""
    if kind.__module__ == errors.__name__:
        yield kind
        for child in kind.__subclasses__():
            yield from classes(child)


def yes(fact: bool) -> str:
    return "yes" if fact else "no"


def command_line() -> str:
    """The help of each verb."""
    page = f"# The command line\n\n```text\n{help_of()}\n```\n\n"
    for verb in verbs():
        page += f"## {' '.join(verb)}\n\n```text\n{help_of(*verb)}\n```\n\n"
    return page


def verbs() -> Iterator[tuple[str, ...]]:
    """Each verb, and the verbs below it."""
    app = make_app()
    for name in names(app):
        yield (name,)
        yield from ((name, below) for below in names(app[name]))


def names(app: object) -> list[str]:
    return [name for name in app if not name.startswith("-")]  # type: ignore[attr-defined]


def help_of(*verb: str) -> str:
    """What `--help` prints."""
    with redirect_stdout(io.StringIO()) as printed:
        penstock([*verb, "--help"])
    return "\n".join(line.rstrip() for line in printed.getvalue().strip().splitlines())


def sdk() -> str:
    """The public names of `penstock.sdk`."""
    page = "# The SDK\n\nAll that the author of a component imports, from `penstock.sdk`.\n\n"
    for name, module in sorted(imported("penstock.sdk").items()):
        page += f"## {name}\n\n{entry(module, name)}"
    return page


PAGES: dict[str, Callable[[], str]] = {
    "pipeline.md": pipeline, "connectors.md": connectors, "sources.md": sources,
    "transforms.md": transforms, "sinks.md": sinks, "formats.md": formats,
    "command-line.md": command_line, "errors.md": error_classes, "sdk.md": sdk,
}  # fmt: skip


def build() -> dict[Path, str]:
    """The pages as they should be."""
    return {
        REFERENCE / name: NOTE + re.sub(r"\n{3,}", "\n\n", page()).rstrip() + "\n"
        for name, page in PAGES.items()
    }


def main(arguments: Sequence[str]) -> int:
    os.environ.update(COLUMNS=WIDTH, NO_COLOR="1")
    pages = build()
    stale = [path for path, text in pages.items() if not path.exists() or path.read_text() != text]
    stale += [path for path in REFERENCE.glob("*.md") if path not in pages]
    if list(arguments) == ["--check"]:
        for path in stale:
            print(f"stale: docs/reference/{path.name}")
        if stale:
            print("./dev docs writes them again")
        return 1 if stale else 0
    if arguments:
        print(__doc__)
        return 2
    REFERENCE.mkdir(exist_ok=True)
    for path in stale:
        if path in pages:
            path.write_text(pages[path])
            print(f"wrote docs/reference/{path.name}")
        else:
            path.unlink()
            print(f"removed docs/reference/{path.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
