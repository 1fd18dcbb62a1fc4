"""Processes that receive messages into the journal, and their supervision.

Start at `receivers.py`.
"""
