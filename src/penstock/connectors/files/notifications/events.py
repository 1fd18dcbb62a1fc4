"""Messages about objects in S3: the objects that they state as created.

Messages come from S3 itself, or from S3 by Amazon SNS or Amazon EventBridge.
Sources: https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html,
https://docs.aws.amazon.com/AmazonS3/latest/userguide/ev-events.html
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote_plus


class UnknownMessage(ValueError):
    """A message that is not a notification of S3."""


def created_objects(body: str) -> list[str]:
    """Returns the URLs of the objects that a message states as created. Raises UnknownMessage."""
    try:
        message = json.loads(body)
        if isinstance(message, dict) and message.get("Type") == "Notification":
            message = json.loads(message["Message"])
        return _created(message)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnknownMessage(f"expected a notification of S3, found {body[:200]!r}") from error


def _created(message: Any) -> list[str]:
    if message.get("source") == "aws.s3":
        if message["detail-type"] != "Object Created":
            return []
        detail = message["detail"]
        return _url(detail["bucket"]["name"], detail["object"]["key"])
    if message.get("Event") == "s3:TestEvent":
        return []
    urls = []
    for record in message["Records"]:
        if record["eventName"].removeprefix("s3:").startswith("ObjectCreated:"):
            object_ = record["s3"]
            key = unquote_plus(object_["object"]["key"], errors="strict")
            urls += _url(object_["bucket"]["name"], key)
    return urls


def _url(bucket: str, key: str) -> list[str]:
    """Returns the URL of an object, none for the mark of a directory."""
    return [] if key.endswith("/") else [f"s3://{bucket}/{key}"]
