"""Python processes of Spark: a zygote forks the workers, which start in milliseconds.

Imported by `spark_session` and `tasks`, and from outside by `cli`. Start at `zygote.py`.
"""
