"""Tests of pipelines, and the contract for connectors."""
