"""Connectors of AWS services and services with the same protocols."""
