"""A plugin of a package that is not installed."""

import nowhere_at_all  # noqa: F401
