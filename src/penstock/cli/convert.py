"""`penstock convert`: a pipeline as a SQL script or as YAML."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from penstock.cli.options import Dialect, Files, Settings, Strict

Language = Annotated[
    Literal["sql", "yaml"] | None,
    Parameter(
        name="--to",
        help="Language of the output; by default sql for one YAML file, and otherwise yaml.",
    ),
]


def convert(
    files: Files, /, *, to: Language = None, dialect: Dialect = None, strict: Strict = False,
    settings: Settings = None,
) -> None:  # fmt: skip
    """Print a pipeline as one SQL script or one YAML file.

    One YAML file is printed as a SQL script, a SQL script or a file of another tool as YAML.
    Several files and their includes are merged, and printed as YAML. Option --to selects the
    language.

    Connection tables of Arroyo's web API are printed as the statements of a SQL script, connection
    profiles as the connections of a YAML file.

    Variables and secrets remain expressions. Comments are not kept. Parts of a pipeline that a
    script cannot state are errors, and nothing is printed.

      penstock convert shop.yaml > shop.sql
      penstock convert shop.sql > shop.yaml
      penstock convert base.yaml production.yaml > merged.yaml
    """
    from penstock.spec.dialects.conversions import convert_export
    from penstock.spec.front_end import choose

    choose(dialect, strict, settings)
    paths = [str(file) for file in files]
    converted = convert_export(paths[0]) if len(paths) == 1 else None
    if converted is not None:
        print(converted, end="")
        return
    if (to or _default(paths)) == "sql":
        _print_script(paths)
        return
    from penstock.spec.yaml.writer import convert as to_yaml

    print(to_yaml(paths), end="")


def _print_script(paths: list[str]) -> None:
    from penstock.cli.printing import print_warnings
    from penstock.spec.script.writer import to_script

    script = to_script(paths)
    print(script.text, end="")
    print_warnings(script.warnings)


def _default(paths: list[str]) -> str:
    from penstock.spec.front_end import DEFAULT, language_of

    return "sql" if len(paths) == 1 and language_of(paths[0]) == DEFAULT else "yaml"
