"""`penstock schema`: the JSON Schema of pipeline files."""

from __future__ import annotations

from penstock.cli.printing import print_json
from penstock.sdk import registry
from penstock.spec.schema import json_schema


def schema() -> None:
    """Print the JSON Schema of pipeline files, with all installed components.

    Editors complete and check pipeline files by the schema. Save the schema next to the files, and
    refer to the schema in their first line.

      penstock schema > penstock.schema.json

    In the pipeline file, for the YAML plugins of VS Code, Neovim and others:

      # yaml-language-server: $schema=penstock.schema.json
    """
    print_json(json_schema(registry.schemas()))
