"""The systems of `databases.py`, each with the best way of its client."""
