"""Deployment of a pipeline: Kubernetes manifests, commands of other clusters, and an image.

Start at `project.py`, which reads the files of a pipeline. `kubernetes/manifests.py` and
`commands.py` use it. Nothing here starts Spark or connects to a cluster.
"""
