"""Notifications of new objects in S3, received from a queue.

Start at `receiver`. `events` has the forms of messages.
"""
