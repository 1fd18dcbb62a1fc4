"""Columns with event times and operations below transforms that change columns, in any case."""

from __future__ import annotations

from penstock.transforms.drop import Drop, DropConfig
from penstock.transforms.map import Map, MapConfig
from penstock.transforms.rename import Rename, RenameConfig


def test_a_renamed_time() -> None:
    rename = Rename(RenameConfig(columns={"AT": "seen", "other": "at2"}))
    lineage = rename.relation().lineage
    assert lineage.time_columns({"at"}) == {"seen"}
    assert lineage.time_columns({"At", "b"}) == {"seen", "b"}


def test_a_replaced_time() -> None:
    replaced = Map(MapConfig(set={"AT": "date_format(at, 'HH')"}))
    assert replaced.relation().lineage.time_columns({"at"}) == set()
    added = Map(MapConfig(set={"Seen": "at"}))
    assert added.relation().lineage.time_columns({"at"}) == {"at", "seen"}


def test_an_operation_column() -> None:
    rename = Rename(RenameConfig(columns={"_OP": "kind"})).relation().lineage
    assert (rename.operation("_op"), rename.operation("x")) == ("kind", "x")
    drop = Drop(DropConfig(columns=["_OP"])).relation().lineage
    assert (drop.operation("_op"), drop.operation("x")) == (None, "x")
