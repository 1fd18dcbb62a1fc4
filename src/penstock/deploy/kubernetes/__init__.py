"""Kubernetes manifests of a pipeline. Start at `manifests.py`."""
