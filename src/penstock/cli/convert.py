"""`penstock convert`: a pipeline as YAML."""

from __future__ import annotations

from penstock.cli.options import Files


def convert(files: Files, /) -> None:
    """Print a pipeline as one YAML file: a SQL script, or several files and their includes.

    Variables and secrets remain expressions. Comments are not kept.

      penstock convert shop.sql > shop.yaml
    """
    from penstock.spec.yaml.writer import convert as to_yaml

    print(to_yaml([str(file) for file in files]), end="")
