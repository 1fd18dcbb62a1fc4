"""The pages of other tools: their components and options, with their readings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tables import table

from penstock.spec.dialects.arkflow import table as arkflow
from penstock.spec.dialects.arroyo import table as arroyo
from penstock.spec.dialects.options.listing import Row
from penstock.spec.dialects.stream_data_processor import table as stream_data_processor
from penstock.spec.dialects.streamling import table as streamling


@dataclass(frozen=True)
class DialectPage:
    """The page of a tool.

    `shown` returns the test that shows the reading of a row. The tests are in `files`; the page
    `page` in `docs/howto/` has examples.
    """

    tool: str
    page: str
    rows: Callable[[], Iterable[Row]]
    shown: Callable[[Row], str]
    files: Sequence[str]

    def __call__(self) -> str:
        """Returns the page."""
        body = table(
            ("component", "option", "reading", "shown by"),
            [(*row, f"`{self.shown(row)}`") for row in self.rows()],
        )
        files = ", ".join(f"`{file}`" for file in self.files[:-1]) + f" and `{self.files[-1]}`"
        return (
            f"# Files of {self.tool}\n\nThe components and options of {self.tool}, and their "
            f"readings. [Come from {self.tool}](../howto/{self.page}) has examples and the "
            f"differences. The tests are in {files}.\n\n{body}"
        )


def by_kind(tests: dict[str, str], default: str) -> Callable[[Row], str]:
    """Returns the function that finds the test of a row by the first word of its component."""
    return lambda row: tests.get(row.component.partition(" ")[0], default)


def _shown_of_streamling(row: Row) -> str:
    """Returns the test of a row of Streamling's table."""
    kind, _, name = row.component.partition(" ")
    if row.reading.startswith(("accepted without effect", "missing")):
        return (
            "test_settings_without_effect" if kind == "setting" else "test_options_without_effect"
        )
    tests = {
        "source": "test_source", "transform": "test_transform", "sink": "test_sink",
        "setting": "test_setting", "part": "test_source", "function": "test_functions",
    }  # fmt: skip
    if kind == "part" and name in ("`group_by`", "`aggregate`"):
        return "test_sink"
    if kind == "plugin":
        return f"test_{'source' if 'source' in name else 'sink'}"
    return tests.get(kind, "test_a_file")


DIALECT_PAGES: dict[str, Callable[[], str]] = {
    "arkflow.md": DialectPage(
        "ArkFlow", "arkflow.md", arkflow.rows,
        by_kind({
            "input": "test_input", "output": "test_output", "processor": "test_processor",
            "buffer": "test_buffer", "codec": "test_codec", "temporary": "test_processor",
            "job": "test_a_job_is_a_stream",
        }, "test_errors_are_in_the_file"),
        ["tests/unit/spec/test_arkflow_components.py", "tests/unit/spec/test_arkflow_files.py"],
    ),
    "arroyo.md": DialectPage(
        "Arroyo", "arroyo.md", arroyo.rows,
        by_kind({
            "connector": "test_source, test_sink", "every": "test_source",
            "format": "test_source, test_sink", "statement": "test_a_page_does_what_it_says",
            "SQL": "test_queries", "functions": "test_penstock",
        }, "test_source"),
        ["tests/unit/spec/test_arroyo_options.py", "tests/golden/test_query_answers.py",
         "tests/golden/test_function_answers.py", "tests/docs/test_blocks.py"],
    ),
    "streamling.md": DialectPage(
        "Streamling", "streamling.md", streamling.rows, _shown_of_streamling,
        [
            "tests/unit/spec/test_streamling_components.py",
            "tests/unit/spec/test_streamling_files.py",
        ],
    ),
    "stream-data-processor.md": DialectPage(
        "stream-data-processor", "stream-data-processor.md", stream_data_processor.rows,
        by_kind({
            "file": "test_a_consumer_reads_all_nodes_above", "producer": "test_producer",
            "parser": "test_parser", "handler": "test_handler", "consumer": "test_consumer",
        }, "975-graph-components"),
        ["tests/unit/spec/test_graph_files.py", "tests/golden/wrong/"],
    ),
}  # fmt: skip
"""The pages by their file in the reference."""
