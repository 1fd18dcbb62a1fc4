"""The state directory of a pipeline: its entries, its status, and its compatibility with a plan.

Start at `directory.py`.
"""
