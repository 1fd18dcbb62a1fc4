"""The number of entries per command follows the size of the entries."""

from __future__ import annotations

from penstock.connectors.redis.page_size import PageSize


def test_large_entries_are_requested_one_by_one() -> None:
    page_size = PageSize(1000)
    page_size.update([16 << 20])
    assert page_size.entries == 1


def test_small_entries_are_requested_up_to_the_limit() -> None:
    page_size = PageSize(1000)
    page_size.update([10] * 100)
    assert page_size.entries == 1000


def test_an_empty_page_changes_nothing() -> None:
    page_size = PageSize(1000)
    before = page_size.entries
    page_size.update([])
    assert page_size.entries == before


def test_the_first_page_is_within_the_limit() -> None:
    assert PageSize(7).entries == 7
