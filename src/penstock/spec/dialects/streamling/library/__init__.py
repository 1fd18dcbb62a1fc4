"""Functions of Streamling's SQL in Python. Workers of Spark import these modules."""
