"""Options of Arroyo that are accepted and have no effect, with the reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from penstock.spec.dialects.arroyo.connectors import find_connector
from penstock.spec.dialects.arroyo.formats import COMMON, OF_FORMATS
from penstock.spec.dialects.arroyo.option_rules import Key
from penstock.spec.dialects.arroyo.values import text_of
from penstock.spec.script.options import Option

_REASONS: Mapping[str, str] = {
    "multipart.": "uploads are divided by the client library",
    "filename.": "names of files are unique",
    "sink.version": "there is one version",
    "shuffle_by_partition.": "rows are divided by partition",
    "load_balancer_mode": "one URL is used",
    "consumer.": "requests of the client have their own limits",
    "max_packet_size": "the broker limits the size of messages",
    "wait_for_control": "a run ends at the end of its input",
    "rolling_policy.watermark": "files are complete after each batch",
    "partitioning.time_pattern": "the log of the table names its files",
    "parquet.row_group_size": "row groups have the size of a batch",
    "parquet.compression": "files are compressed with the codec of the table",
    "framing.newline.max_length": "long lines are read in full",
    "lookup.cache.max_bytes": "there is no limit of the cache",
    "storage.": "the scheme of the URL decides",
}
"""The reasons why accepted options have no effect, by the begin of their names."""


def unneeded_options(options: Sequence[Option]) -> Iterator[tuple[Option, str]]:
    """Yields the options of a table without an effect, each with the reason."""
    texts = {option.name: text_of(option) for option in options}
    connector = find_connector(texts.get("connector", ""), texts)
    rules = {
        **COMMON, **OF_FORMATS, **connector.both, **connector.source, **connector.sink,
        **connector.of_format,
    }  # fmt: skip
    for option in options:
        rule, found = rules.get(option.name), reason(option.name)
        if isinstance(rule, Key) and not rule.parts and found is not None:
            yield option, found


def reason(option: str) -> str | None:
    """Returns the reason why an option without a target has no effect; None if it has one."""
    return next((each for begin, each in _REASONS.items() if option.startswith(begin)), None)
