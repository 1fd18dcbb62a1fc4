"""Filters of jq."""
