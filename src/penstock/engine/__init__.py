"""The engine: execution of plans on Spark. The only package that uses the API of Spark."""
