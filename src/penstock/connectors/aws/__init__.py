"""Queues and streams of Amazon Web Services, and of servers that speak their protocols."""
