"""The processor time of watching idle files: one listing, and the share of a core at its pace.

    python bench/listing.py [--json] [--files N]

The files are in one directory and already known, as for a run that waits for new files.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from penstock.connectors.files import FilesSource, FilesSourceConfig
from penstock.connectors.files.pace import MAX_SHARE
from penstock.formats.text import Text, TextConfig
from penstock.sdk import Context

LISTINGS = 5


def listing_seconds(directory: Path, option: str) -> float:
    """Returns the least processor time of a listing without new files."""
    config = FilesSourceConfig.model_validate({"path": str(directory / "*.txt"), option: True})
    source = FilesSource(config, Context(state=directory / f".{option}"))
    source.format = Text(TextConfig())
    offset = source.latest_offset(source.initial_offset())
    times = []
    for _ in range(LISTINGS):
        source._pace.record(0.0)
        begin = time.thread_time()
        offset = source.latest_offset(offset)
        times.append(time.thread_time() - begin)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        for number in range(options.files):
            (Path(name) / f"{number:07}.txt").write_bytes(b"x\n")
        seconds = {option: listing_seconds(Path(name), option) for option in ("watch", "tail")}
    if options.json:
        print(json.dumps({"files": options.files, "max_share": MAX_SHARE, "seconds": seconds}))
        return
    for option, taken in seconds.items():
        print(f"{option}: {taken:.3f} s for {options.files:,} files ({MAX_SHARE:.0%} of a core)")


if __name__ == "__main__":
    main()
