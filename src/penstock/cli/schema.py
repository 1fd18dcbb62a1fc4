"""`penstock schema`: the JSON Schema of pipeline files."""

from __future__ import annotations

from penstock.cli.printing import print_json
from penstock.sdk import registry
from penstock.spec.schema import json_schema


def schema() -> None:
    """Print the JSON Schema of pipeline files, with all components that are installed.

    An editor completes and checks pipeline files with it: keep it beside them, and name it in
    their first line.

      penstock schema > penstock.schema.json

    and in the pipeline file, for the YAML plugins of VS Code, Neovim and others:

      # yaml-language-server: $schema=penstock.schema.json
    """
    print_json(json_schema(registry.schemas()))
