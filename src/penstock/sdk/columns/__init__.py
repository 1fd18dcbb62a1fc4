"""Columns: types, conversion, inference, checks of columns that options name, text forms."""
