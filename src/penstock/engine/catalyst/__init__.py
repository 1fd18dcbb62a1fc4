"""Access to Spark's plans and types through py4j, independent of pipelines.

Imported by the packages above. Start at `spark_plan.py`.
"""
