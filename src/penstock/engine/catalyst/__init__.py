"""Access to Spark's plans and types through py4j. It knows nothing of pipelines.

Imported by all packages but `workers`. Start at `spark_plan.py`.
"""
