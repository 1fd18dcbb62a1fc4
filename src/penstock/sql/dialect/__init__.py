"""Translation of SQL of other dialects (PostgreSQL, DataFusion, Arroyo) to Spark SQL."""
