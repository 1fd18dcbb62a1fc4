"""Targets of requests: the URL and the headers of each row, and rows that share a request."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from penstock.connectors.http.config import RowRequestConfig
from penstock.connectors.http.framing import CONTENT_TYPES
from penstock.connectors.http.request_lines import UrlTemplate, render_headers
from penstock.sdk import Failure, Rejected

RowGroup = tuple[int, ...]
"""Indexes of the rows that share a request."""


class Target(NamedTuple):
    """The URL and the headers of the request of a row."""

    url: str
    headers: Mapping[str, str]


def find_targets(
    config: RowRequestConfig, url: UrlTemplate, rows: pa.RecordBatch
) -> tuple[dict[int, Target], list[Failure]]:
    """Returns the targets of rows by index, and the failures of rows without a valid one."""
    targets: dict[int, Target] = {}
    failures: list[Failure] = []
    urls = url.render(rows)
    for index, (address, headers) in enumerate(zip(urls, _headers(config, rows), strict=True)):
        if isinstance(address, Rejected):
            failures.append(Failure(index, address))
        elif isinstance(headers, Rejected):
            failures.append(Failure(index, headers))
        else:
            targets[index] = Target(address, headers)
    return targets, failures


def _headers(config: RowRequestConfig, rows: pa.RecordBatch) -> Iterator[dict[str, str] | Rejected]:
    content_type = {"Content-Type": CONTENT_TYPES[config.framing]}
    for headers in render_headers(config.headers, rows):
        yield headers if isinstance(headers, Rejected) else {**content_type, **headers}


def group_rows(targets: Mapping[int, Target]) -> list[RowGroup]:
    """Groups rows with the same URL and headers, in order."""
    groups: dict[Any, list[int]] = defaultdict(list)
    for index, target in targets.items():
        groups[target.url, *target.headers.items()].append(index)
    return [tuple(group) for group in groups.values()]
