"""The number of entries that a command requests, bounded by the size of earlier entries."""

from __future__ import annotations

from collections.abc import Sequence

_PAGE_BYTES = 4 << 20
"""The approximate size of a page."""
_FIRST_ENTRIES = 100


class PageSize:
    """The number of entries of the next page.

    Redis has no limit of bytes for a response, so the number follows the average size of the
    entries of the last page.
    """

    def __init__(self, max_entries: int) -> None:
        self._max_entries = max_entries
        self.entries = min(max_entries, _FIRST_ENTRIES)

    def update(self, sizes: Sequence[int]) -> None:
        """Updates the number after a page whose entries have these sizes in bytes."""
        if sizes:
            average = max(1, sum(sizes) // len(sizes))
            self.entries = min(self._max_entries, max(1, _PAGE_BYTES // average))
