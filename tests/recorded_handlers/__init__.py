"""Recorded cases of stream-data-processor, and streams of rows through its handlers."""
