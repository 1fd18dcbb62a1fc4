"""Columns with event times below transforms that rename or replace columns, in any case."""

from __future__ import annotations

from penstock.transforms.map import Map, MapConfig
from penstock.transforms.rename import Rename, RenameConfig


def test_a_renamed_time() -> None:
    rename = Rename(RenameConfig(columns={"AT": "seen", "other": "at2"}))
    assert rename.time_columns({"at"}) == {"seen"}
    assert rename.time_columns({"At", "b"}) == {"seen", "b"}


def test_a_replaced_time() -> None:
    replaced = Map(MapConfig(set={"AT": "date_format(at, 'HH')"}))
    assert replaced.time_columns({"at"}) == set()
    assert Map(MapConfig(set={"Seen": "at"})).time_columns({"at"}) == {"at", "seen"}
