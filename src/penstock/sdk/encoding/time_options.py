"""Options of formats for timestamps."""

from __future__ import annotations

from penstock.sdk.columns.conversion import Conversion
from penstock.sdk.columns.scalar_parsing import TimeForm, Times
from penstock.sdk.columns.times import Nanoseconds
from penstock.sdk.config import Config


class TimeOptions(Config):
    """Options of formats whose timestamps may be text or numbers, or have nanoseconds."""

    timestamps: Times = "iso"
    """The form of timestamps that are text or numbers: ISO 8601 text, or numbers since 1970 in a
    unit."""
    nanoseconds: Nanoseconds = "reject"
    """Read timestamps with digits below a microsecond as errors, or truncate them."""

    @property
    def time_form(self) -> TimeForm:
        """The form of timestamps in text and numbers."""
        return TimeForm(self.timestamps, self.nanoseconds)

    @property
    def conversion(self) -> Conversion:
        """The conversion of values to columns, and of columns to values."""
        return Conversion(self.time_form)
