"""Nexmark's events: proportions, references and distributions of the benchmark's generator."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from option_errors import Case, assert_option_error
from penstock.connectors.nexmark import NexmarkSource, NexmarkSourceConfig
from penstock.sdk import Context, Read
from penstock.sdk.synthetic import source as paced

FIRST = 1000
LEAD = 10
BEGIN = dt.datetime(2015, 7, 15, tzinfo=dt.UTC)


def source(**options: Any) -> NexmarkSource:
    return NexmarkSource(NexmarkSourceConfig.model_validate(options), Context())


def table(of: NexmarkSource, start: int, stop: int, read: Read | None = None) -> pa.Table:
    first = {**of.initial_offset(), "rows": start, "row": 0, "time": 0}
    return pa.Table.from_batches(
        batch
        for part in of.partitions(first, {**first, "rows": stop})
        for batch in of.read(part, read or Read())
    )


def events(kind: str, stop: int = 100_000, **options: Any) -> pd.DataFrame:
    column = table(source(**options), 0, stop).column(kind).combine_chunks()
    return pa.Table.from_struct_array(column.drop_null()).to_pandas()


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    start=st.integers(0, 2**36),
    count=st.integers(1, 120),
    cut=st.integers(0, 120),
    parts=st.integers(1, 7),
    shuffle=st.sampled_from([1, 7, 50]),
)
def test_a_row_depends_on_its_number_alone(
    start: int, count: int, cut: int, parts: int, shuffle: int
) -> None:
    whole = table(source(shuffle=shuffle), start, start + count).to_pylist()
    split, middle = source(shuffle=shuffle, partitions=parts), start + min(cut, count)
    rows = [
        row
        for first, last in [(start, middle), (middle, start + count)]
        if first < last
        for row in table(split, first, last).to_pylist()
    ]
    assert rows == whole


@pytest.mark.slow
def test_batches_do_not_matter(monkeypatch: Any) -> None:
    whole = table(source(), 0, 300).to_pylist()
    monkeypatch.setattr(paced, "ROWS_PER_BATCH", 7)
    assert table(source(), 0, 300).to_pylist() == whole


def test_another_seed_other_events() -> None:
    one, other = (events("bid", 100, seed=seed) for seed in (0, 1))
    assert (one.price != other.price).all() and (one.url != other.url).any()


def test_of_fifty_rows_one_is_a_person_and_three_are_auctions() -> None:
    made = table(source(), 0, 5000)
    kinds = pd.DataFrame({name: made[name].is_valid().to_numpy() for name in made.column_names})
    assert (kinds.sum(axis=1) == 1).all()
    rounds = kinds.groupby(kinds.index // 50).sum()
    assert set(rounds.itertuples(index=False, name=None)) == {(1, 3, 46)}


def test_ids_are_in_order() -> None:
    assert events("person", 5000).id.tolist() == list(range(FIRST, FIRST + 100))
    assert events("auction", 5000).id.tolist() == list(range(FIRST, FIRST + 300))


@pytest.mark.slow
def test_references_of_an_event_exist_or_follow_soon() -> None:
    read = Read(metadata=("position",))
    made = table(source(), 0, 300_000, read)
    position = made["position"].to_numpy()
    persons = position // 50
    auctions = pd.Series(made["auction"].is_valid().to_numpy()).cumsum().to_numpy() - 1
    bids, offers = made["bid"].combine_chunks(), made["auction"].combine_chunks()
    for ids, latest, oldest in [
        (bids.field("bidder"), persons, 999),
        (offers.field("seller"), persons, 999),
        (bids.field("auction"), auctions, 100),
    ]:
        there = ids.is_valid().to_numpy(zero_copy_only=False)
        back = latest[there] - (ids.drop_null().to_numpy() - FIRST)
        assert (ids.drop_null().to_numpy() >= FIRST).all()
        assert back.min() == -LEAD
        assert back.max() == oldest


@pytest.mark.slow
def test_hot_bidders_sellers_and_auctions() -> None:
    bids, auctions = events("bid", 500_000), events("auction", 500_000)
    assert abs(((bids.bidder - FIRST) % 100 == 1).mean() - 0.75) < 0.01
    assert abs(((auctions.seller - FIRST) % 100 == 0).mean() - 0.75) < 0.01
    assert abs(((bids.auction - FIRST) % 100 == 0).mean() - 0.5) < 0.02


@pytest.mark.slow
def test_persons() -> None:
    persons = events("person")
    assert persons.name.str.fullmatch(r"[A-Z][a-z]+ [A-Z][a-z]+").all()
    assert persons.name.nunique() == 99
    assert persons.email_address.str.fullmatch(r"[a-z ]{0,6}@[a-z ]{0,4}\.com").all()
    assert persons.credit_card.str.fullmatch(r"(\d{4} ){3}\d{4}").all()
    assert set(persons.state) == {"AZ", "CA", "ID", "OR", "WA", "WY"}
    assert persons.city.nunique() == 10
    texts = persons[["name", "email_address", "credit_card", "city", "state", "extra"]]
    assert abs(8 + texts.map(len).sum(axis=1).mean() - 200) < 2


def test_auctions() -> None:
    auctions = events("auction")
    assert set(auctions.category) == {10, 11, 12, 13, 14}
    assert auctions.item_name.str.fullmatch(r"[a-z ]{0,19}").all()
    assert auctions.description.str.fullmatch(r"[a-z ]{0,99}").all()
    assert len({*"".join(auctions.description[:1000])}) == 27
    assert (auctions.reserve - auctions.initial_bid).between(100, 10**8).all()
    texts = auctions[["item_name", "description", "extra"]]
    assert abs(48 + texts.map(len).sum(axis=1).mean() - 500) < 2
    open_for = (auctions.expires - auctions.datetime).dt.total_seconds()
    assert open_for.between(0.001, 0.001 + 2 * 0.1666).all()
    assert abs(open_for.mean() - 0.1676) < 0.005


@pytest.mark.slow
def test_bids() -> None:
    bids = events("bid")
    assert bids.price.between(100, 10**8).all()
    assert abs((bids.price < 100_000).mean() - 0.5) < 0.01
    hot = bids.channel.isin(["Google", "Facebook", "Baidu", "Apple"])
    assert abs(hot.mean() - 0.5) < 0.01
    numbers = bids.channel[~hot].str.extract(r"^channel-(\d+)$")[0].astype(int)
    assert numbers.between(0, 9999).all() and numbers.nunique() > 9000
    assert bids.groupby("channel").url.nunique().eq(1).all()
    assert bids.url.str.match(r"https://www\.nexmark\.com/[\w/]+/item\.htm\?query=1").all()
    named = bids.url[~hot].str.extract(r"&channel_id=(\d+)$")[0]
    assert abs(named.notna().mean() - 0.9) < 0.02
    assert (named.dropna().astype(int) == numbers[named.notna()]).all()
    assert abs(32 + bids.extra.str.len().mean() - 100) < 1


@pytest.mark.parametrize(
    "options, begin, step",
    [
        ({}, BEGIN, 0.0001),
        ({"rate": 100}, BEGIN, 0.01),
        ({"rate": 100, "interval": "2s"}, BEGIN, 2),
        ({"start_time": "2024-01-01T00:00:00Z"}, dt.datetime(2024, 1, 1, tzinfo=dt.UTC), 0.0001),
        ({"start_time": "now"}, dt.datetime(1970, 1, 1, tzinfo=dt.UTC), 0.0001),
    ],
)
def test_times(options: Any, begin: dt.datetime, step: float) -> None:
    made = table(source(**options), 0, 100, Read(metadata=("time",))).to_pylist()
    for number, row in enumerate(made):
        event = row["person"] or row["auction"] or row["bid"]
        assert event["datetime"] == row["time"]
        assert row["time"] == begin + dt.timedelta(seconds=number * step)


def test_shuffled_events_are_the_same_events() -> None:
    read = Read(metadata=("time",))
    plain, mixed = (table(source(shuffle=n), 0, 500, read).to_pylist() for n in (1, 50))
    assert plain != mixed
    assert sorted(mixed, key=lambda row: row["time"]) == plain
    for start in range(0, 500, 50):
        group = [row["time"] for row in mixed[start : start + 50]]
        assert {*group} == {row["time"] for row in plain[start : start + 50]}


def test_unused_columns_are_not_generated() -> None:
    made = table(source(), 0, 100, Read(columns=frozenset(["auction"])))
    assert made.schema == source().schema()
    assert made["auction"].combine_chunks() == table(source(), 0, 100)["auction"].combine_chunks()
    assert made["bid"].null_count == made["person"].null_count == 100


@pytest.mark.parametrize(
    "case",
    [
        ({"shuffle": 953}, "shuffle", "less than 953"),
        ({"shuffle": 0}, "shuffle", "greater than or equal to 1"),
        ({"interval": "0s"}, "interval", "greater than 0"),
    ],
)
def test_invalid_options(case: Case) -> None:
    assert_option_error(NexmarkSourceConfig, {}, case)
