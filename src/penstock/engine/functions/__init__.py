"""User-defined functions: their registration in Spark, and their evaluation in tasks.

Imported by `derivation`, and from outside by `cli`. Start at `evaluate.py`.
"""
