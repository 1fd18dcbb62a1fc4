"""Connections of the server: options of connectors that pipelines use by name.

`secret_options.py` separates secrets from options, `profiles.py` keeps connections and permits
their use, `guard.py` rejects addresses that tests of users must not reach.
"""
