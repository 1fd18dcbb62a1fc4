"""Python processes of Spark: a zygote forks the workers, which start in milliseconds.

Imported by `spark_session` and `tasks`. Start at `zygote.py`.
"""
