"""Updating queries: state of rows by key, and the changes of their results in each batch."""
