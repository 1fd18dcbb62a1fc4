"""From a plan to Spark; all of Spark's API is here."""
