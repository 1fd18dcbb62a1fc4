"""The page of the components and options of ArkFlow."""

from __future__ import annotations

from tables import table

from penstock.spec.dialects.arkflow.table import rows

_TESTS = {
    "input": "test_input", "output": "test_output", "processor": "test_processor",
    "buffer": "test_buffer", "codec": "test_codec", "temporary": "test_processor",
}  # fmt: skip
_COMPONENTS = "tests/unit/spec/test_arkflow_components.py"
_FILES = "tests/unit/spec/test_arkflow_files.py"


def arkflow() -> str:
    """Returns the page."""
    body = table(
        ("component", "option", "reading", "shown by"),
        [(name, option, reading, _shown(name)) for name, option, reading in rows()],
    )
    return (
        "# Files of ArkFlow\n\nThe components and options of ArkFlow, and their readings. "
        "[Come from ArkFlow](../howto/arkflow.md) has examples and the differences. The tests are "
        f"in `{_COMPONENTS}` and `{_FILES}`.\n\n{body}"
    )


def _shown(name: str) -> str:
    kind = name.partition(" ")[0]
    return f"`{_TESTS[kind]}`" if kind in _TESTS else "`test_errors_are_in_the_file`"
