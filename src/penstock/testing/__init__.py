"""What is shipped for testing pipelines and connectors."""
