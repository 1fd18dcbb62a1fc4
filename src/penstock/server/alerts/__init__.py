"""Alerts of the server: rules about the health and the metrics of pipelines.

`conditions.py` evaluates rules, `watcher.py` opens and resolves alerts, `delivery.py` sends their
messages by `webhook.py` and `email.py`.
"""
