"""Completion at the prompt of the shell, after its definitions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from penstock.cli.shell.definitions import Definitions, read_entries
from penstock.cli.shell.prompt import ScriptInputCompleter


def complete(text: str) -> list[str]:
    [table] = read_entries("CREATE TABLE orders (id INT) WITH (connector = 'files', path = 'x')")
    shell: Any = SimpleNamespace(definitions=Definitions().add(table))
    before, _, after = text.partition("|")
    document = Document(before + after, len(before))
    found = ScriptInputCompleter(shell).get_completions(document, CompleteEvent())
    return [document.text[: len(before) + item.start_position] + item.text for item in found]


@pytest.mark.slow
def test_proposals() -> None:
    assert complete("SELECT | FROM orders") == ["SELECT id"]
    assert complete("SELECT * FROM ord|") == ["SELECT * FROM orders"]
    assert "CREATE TABLE a () WITH (connector = 'kafka" in complete(
        "CREATE TABLE a () WITH (connector = 'ka|"
    )
    assert complete("\\q|") and all(each.startswith("\\q") for each in complete("\\q|"))
    assert "DESCRIBE" in complete("des|")
    assert complete("SELECT abs|")[0] == "SELECT abs()"
