"""Aggregates of a PostgreSQL table, maintained by its triggers.

Start at `sink`. `merge` has the SQL of the aggregates, `triggers` their installation.
"""

from penstock.connectors.postgres.aggregate.sink import PostgresAggregateSink

__all__ = ["PostgresAggregateSink"]
