"""The history of metrics: rates over runs, levels of detail, and its file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.core.log import Silent
from penstock.server.history.levels import DAY, HOUR, LEVELS, bucket, resolution_of
from penstock.server.history.recorder import History, open_store
from penstock.server.history.sampling import Baseline, Series, sample
from penstock.server.history.store import FILE, HistoryStore

LAG = Series("lag", "orders")
ROWS = Series("rows_per_second", "orders")
BYTES = Series("bytes_per_second", "orders")
START = bucket(1_800_000_000, DAY)


def snapshot(began: float, seconds: float, rows: int, **facts: Any) -> Any:
    node = {"kind": "source", "rows": rows, "bytes": None, "lag": 4, "dead_letters": 0, **facts}
    return {
        "began": began, "seconds": seconds, "restarts": 0, "nodes": {"orders": node},
        "queries": {"orders": {"batches": rows, "batch_seconds": rows / 2,
                               "phase_seconds": {"commit": rows / 4}}},
    }  # fmt: skip


def rates(*snapshots: Any) -> list[float]:
    """Returns the rows per second of the source, by snapshot."""
    found, earlier = [], None
    for each in snapshots:
        current = Baseline.of(each)
        assert current is not None
        found.append(sample(each, current, earlier)[ROWS])
        earlier = current
    return found


def test_a_new_run_has_no_negative_rate() -> None:
    found = rates(
        snapshot(100, 10, 50), snapshot(100, 20, 150), snapshot(130, 5, 20), snapshot(130, 15, 20)
    )
    assert found == [5, 10, 4, 0]


def test_durations_are_means_per_batch() -> None:
    first, second = snapshot(100, 10, 4), snapshot(100, 20, 4)
    one, other = Baseline.of(first), Baseline.of(second)
    assert one is not None and other is not None
    values = sample(first, one, None)
    assert values[Series("batch_seconds", "orders")] == 0.5
    assert values[Series("phase_seconds", "orders", "commit")] == 0.25
    assert Series("batch_seconds", "orders") not in sample(second, other, one), "no batch"


def test_a_snapshot_of_an_earlier_version_has_no_history() -> None:
    old = snapshot(100, 10, 4)
    del old["began"]
    assert Baseline.of(old) is None


@pytest.fixture
def store(tmp_path: Path) -> HistoryStore:
    return HistoryStore(tmp_path / FILE)


def fill(store: HistoryStore, start: int, end: int, step: int, spike: int = 0) -> None:
    for time in range(start, end, step):
        lag = 1000.0 if time == spike else float(time % HOUR)
        values = {LAG: lag, ROWS: 6.0, BYTES: float(time - start)}
        store.add(time, {"shop": values}, {"shop": Baseline(0, time, {})})


@pytest.mark.slow
def test_old_samples_have_less_detail_but_their_extremes(tmp_path: Path) -> None:
    store, spike = HistoryStore(tmp_path / FILE), START + 20 * 60
    fill(store, START, START + 2 * HOUR, 10, spike)
    store.close()
    store = HistoryStore(tmp_path / FILE)  # a restart of the server
    fill(store, START + 2 * HOUR, START + 32 * DAY, HOUR)
    now = START + 32 * DAY - HOUR
    old = store.read("shop", START + 2 * DAY, START + 4 * DAY, HOUR, now)
    assert [time for time, _ in old] == [START + 2 * DAY + n * HOUR for n in range(48 + 1)]
    rows = store._connection.execute("SELECT level, min(time) FROM samples GROUP BY level")
    for level, first in rows.fetchall():
        assert first >= now - LEVELS[level].retention - HOUR
    assert old[0][1][ROWS].value == 6.0
    store.close()


def test_a_spike_remains_and_gauges_have_the_last_value(store: HistoryStore) -> None:
    spike = START + 20 * 60
    fill(store, START, START + HOUR, 10, spike)
    fill(store, START + HOUR, START + 5 * HOUR, 600)
    (_, first), (_, second), *_ = store.read(
        "shop", START + 20 * 60, START + HOUR, 600, START + 5 * HOUR
    )
    assert (first[LAG].most, first[LAG].value, first[LAG].least) == (1790.0, 1790.0, 1000.0)
    assert (second[LAG].value, second[LAG].least) == (2390.0, 1800.0)


def test_a_step_under_way_has_the_samples_so_far(store: HistoryStore) -> None:
    fill(store, START, START + 95, 10)
    found = store.read("shop", START, START + 95, 60, START + 95)
    assert [(time - START, values[LAG].value) for time, values in found] == [(0, 50), (60, 90)]
    ((_, both),) = store.read("shop", START, START + 95, 120, START + 95)
    assert (both[BYTES].value, both[BYTES].least, both[BYTES].most) == (50, 0, 90)
    fine = store.read("shop", START, START + 95, 10, START + 95)
    assert len(fine) == 10
    assert store.read("other", START, START + 95, 10, START + 95) == []


def test_names_and_removed_pipelines(store: HistoryStore) -> None:
    hostile = Series("lag", "'; DROP TABLE samples; -- \"ü\n", "\x00")
    store.add(START, {"a": {hostile: 1.0}, "b": {LAG: 2.0}}, {
        "a": Baseline(1, 2, {hostile: 3.0}), "b": Baseline(1, 2, {}),
    })  # fmt: skip
    assert store.baselines()["a"] == Baseline(1, 2, {hostile: 3.0})
    store.keep_only(["a"])
    ((_, values),) = store.read("a", START, START + 10, 10, START + 10)
    assert (values[hostile].value, list(store.baselines())) == (1.0, ["a"])
    assert store.read("b", START, START + 10, 10, START + 10) == []


def test_layouts_of_a_failed_transaction_are_written_again(store: HistoryStore) -> None:
    """A sample without its layout could not be read."""
    sample = {"shop": {LAG: 7.0}}
    with pytest.raises(KeyError):
        store.add(START, {**sample, "other": {LAG: 1.0}}, {"shop": Baseline(1, 2, {})})
    for _ in range(2):
        store.add(START, sample, {"shop": Baseline(1, 2, {})})
        ((_, values),) = store.read("shop", START, START + 10, 10, START + 10)
        assert values[LAG].value == 7.0
        store.keep_only([])


@pytest.mark.parametrize(
    ("window", "wished", "age", "found"),
    [(900, None, 900, 10), (HOUR, None, HOUR, 20), (DAY, None, DAY, 600),
     (30 * DAY, None, 30 * DAY, 14400), (HOUR, 1, HOUR, 10), (DAY, 3600, DAY, 3600),
     (30 * DAY, 10**9, 30 * DAY, 86400), (900, 10, 10 * HOUR, 60), (900, None, 20 * DAY, 600)],
)  # fmt: skip
def test_resolutions(window: float, wished: float | None, age: float, found: int) -> None:
    assert resolution_of(window, wished, age) == found


def test_a_restarted_server_continues_from_its_last_sample(tmp_path: Path) -> None:
    current = {"shop": snapshot(START, 10, 100)}

    def history() -> History:
        return History(tmp_path, lambda: current, lambda: ["shop"], Silent())

    first = history()
    first.record(START + 10)
    first.record(START + 20)  # the same snapshot: no sample
    first._store.close()
    current["shop"] = snapshot(START, 40, 130)
    second = history()
    second.record(START + 40)
    found = second._store.read("shop", START, START + 60, 10, START + 60)
    assert [(time - START, values[ROWS].value) for time, values in found] == [(10, 10), (40, 1)]
    assert second._store.minutes(ROWS, 0) == {"shop": []}, "a minute is over with the next sample"
    second._store.close()


def test_metrics_of_an_unknown_form_affect_no_other_pipeline(tmp_path: Path) -> None:
    current = {
        "shop": snapshot(START, 10, 100), "later": {"began": "soon"},
        "large": snapshot(START, 10, 10**60, lag=10**60),
    }  # fmt: skip
    history = History(tmp_path, lambda: current, lambda: current.keys(), Silent())
    history.record(START + 10)
    assert history._store.baselines().keys() == {"shop", "large"}
    ((_, values),) = history._store.read("large", START, START + 20, 20, START + 20)
    assert values[LAG].value > 1e38
    history._store.close()


def test_a_damaged_file_is_kept_beside_a_new_one(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"no database" * 200)
    store = open_store(tmp_path, Silent())
    assert store.baselines() == {}
    store.close()
    assert (tmp_path / f"{FILE}.damaged").read_bytes().startswith(b"no database")
