"""HTTP requests in a pipeline: rows as requests, and responses as columns."""

from penstock.connectors.http.transform.transform import HttpTransform

__all__ = ["HttpTransform"]
