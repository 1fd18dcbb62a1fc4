"""Files in S3 whose objects are discovered by notifications."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.files import FilesSource
from penstock.connectors.files.notifications import receiver
from penstock.core.errors import PenstockError, Permanent, Transient
from penstock.formats.json import Json
from penstock.sdk import Context, Read
from servers.s3 import EVENTS, Bucket, Notified


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def open_source(options: dict[str, Any], state: Path | None) -> FilesSource:
    config = FilesSource.config_type.model_validate(options)
    source = FilesSource.create(config, Context("p", "n", state))
    assert isinstance(source, FilesSource)
    source.format = Json(Json.config_type())
    source.columns = pa.schema([("n", pa.int64())])
    return source


class Run:
    """The batches of a run, each with the numbers in its new files."""

    def __init__(self, options: dict[str, Any], state: Path, start: Any = None) -> None:
        self.source = open_source(options, state)
        self.offset = start or self.source.initial_offset()

    def batch(self) -> list[int]:
        end = self.source.latest_offset(self.offset)
        read = Read()
        numbers = [
            n
            for partition in self.source.partitions(self.offset, end)
            for rows in self.source.read(partition, read)
            for n in rows.column("n").to_pylist()
        ]
        self.offset = end
        return sorted(numbers)


@pytest.fixture
def started(queue: Notified, state: Path) -> Iterator[Run]:
    run = Run(queue.options(), state)
    with closing(run.source):
        yield run


def put(bucket: Bucket, key: str, *numbers: int) -> None:
    bucket.put(key, b"".join(b'{"n": %d}\n' % n for n in numbers))


def test_messages_of_s3_sns_and_eventbridge(queue: Notified, started: Run) -> None:
    """Keys with special characters; test events, other events and other prefixes are deleted."""
    aws = queue.bucket.server
    key = "in/a b+ü%41&=?#'\"/x.json"
    queue.notify()
    put(queue.bucket, key, 1)
    put(queue.bucket, "other/x.json", 2)
    put(queue.bucket, "in/_hidden/x.json", 3)
    put(queue.bucket, "in//empty.json", 4)
    put(queue.bucket, "in/../parent.json", 5)
    put(queue.bucket, "in/gone.json", 6)
    aws.client.delete_object(Bucket=queue.bucket.name, Key="in/gone.json")
    queue.bucket.put("in/directory/", b"")
    assert started.batch() == [1]
    sns = aws.connect("sns")
    topic = sns.create_topic(Name=queue.bucket.name)["TopicArn"]
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=queue.arn)
    queue.notify(TopicConfigurations=[{"TopicArn": topic, "Events": EVENTS}])
    put(queue.bucket, "in/of sns+.json", 7)
    assert started.batch() == [7]
    events = aws.connect("events")
    pattern = {"source": ["aws.s3"], "detail": {"bucket": {"name": [queue.bucket.name]}}}
    events.put_rule(Name=queue.bucket.name, EventPattern=json.dumps(pattern))
    events.put_targets(Rule=queue.bucket.name, Targets=[{"Id": "1", "Arn": queue.arn}])
    queue.notify(EventBridgeConfiguration={})
    put(queue.bucket, "in/of bridge+%2B.json", 8)
    assert started.batch() == [8]
    assert queue.count == 0


def test_repeated_and_late_messages(queue: Notified, state: Path, started: Run) -> None:
    """A file is read once, in this run and the next. An object that is overwritten is read again,
    once, whatever the order of its messages."""
    put(queue.bucket, "in/a.json", 1)
    for _ in range(3):
        queue.send("in/a.json")
    assert started.batch() == [1]
    queue.send("in/a.json", eventTime="2020-01-01T00:00:00Z")
    assert started.batch() == []
    put(queue.bucket, "in/a.json", 2, 3)
    queue.send("in/a.json", eventName="s3:ObjectCreated:CompleteMultipartUpload")
    queue.send("in/a.json", eventName="ObjectRemoved:Delete")
    assert started.batch() == [2, 3]
    again = Run({**queue.options(listing="start")}, state, started.offset)
    queue.send("in/a.json")
    assert again.batch() == []
    assert queue.count == 0


def test_messages_are_kept_until_their_files_are_recorded(
    queue: Notified, state: Path, started: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(queue.bucket, "in/a.json", 1)
    queue.send("in/a.json")
    with monkeypatch.context() as patch:
        patch.setattr(started.source._discovered.log, "append", fail)
        with pytest.raises(OSError, match="disk"):
            started.batch()
    assert queue.count == 1
    queue.send("in/a.json")
    with monkeypatch.context() as patch:
        patch.setattr(receiver.Receiver, "_delete", fail)
        with pytest.raises(OSError, match="disk"):
            Run(queue.options(), state).batch()
    assert queue.count == 2
    assert Run(queue.options(), state).batch() == [1]


def fail(*arguments: Any) -> None:
    raise OSError("the disk is full")


def test_unknown_messages_stay_in_the_queue(queue: Notified, started: Run) -> None:
    """They do not stop others, and a dead-letter queue of SQS can receive them."""
    put(queue.bucket, "in/a.json", 1)
    for body in ("hello", ["a"], {"Records": [{}]}, {"Type": "Notification", "Message": 5}, None):
        queue.send_body(body)
    queue.send("in/a.json")
    assert started.batch() == [1]
    assert queue.count == 5


def test_runs_that_end(queue: Notified, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run reads the files of all messages that were sent before; with a listing also others."""
    monkeypatch.setattr(receiver, "MAX_REQUESTS", 2)
    bounded = {**queue.options(), "watch": False}
    empty = Run(bounded, state)
    assert empty.batch() == []
    for number in range(45):
        put(queue.bucket, f"in/{number}.json", number)
        queue.send(f"in/{number}.json")
    put(queue.bucket, "in/lost.json", 100)
    once = Run(bounded, state, empty.offset)
    assert once.batch() == [*range(45)]
    put(queue.bucket, "in/later.json", 101)
    queue.send("in/later.json")
    assert once.batch() == []
    listed = {**queue.options(listing="start"), "watch": False}
    assert Run(listed, state, once.offset).batch() == [100, 101]
    assert queue.count == 0


@pytest.mark.parametrize("is_temporary", [True, False])
def test_previews_list_files(queue: Notified, state: Path, is_temporary: bool) -> None:
    """Without a state, or with a temporary one, messages are left to the run."""
    put(queue.bucket, "in/a.json", 1)
    queue.send("in/a.json")
    source = open_source(queue.options(), None)
    if is_temporary:
        source = source.with_state(state)
    assert source.latest_offset(source.initial_offset())["files"] == 1
    visible = queue.sqs.receive_message(QueueUrl=queue.url)
    assert len(visible["Messages"]) == 1


def test_files_that_are_moved_are_not_read_again(queue: Notified, state: Path) -> None:
    queue.notify()
    options = {**queue.options(), "after_read": {"move": f"{queue.bucket.url}/in/done"}}
    run = Run(options, state)
    put(queue.bucket, "in/a.json", 1)
    assert run.batch() == [1]
    run.source.commit(run.offset)
    assert queue.bucket.names() == ["in/done/a.json"]
    assert run.batch() == []
    put(queue.bucket, "in/a.json", 1)
    assert run.batch() == [1]
    assert queue.count == 0


def test_several_queries_share_the_log(queue: Notified, state: Path) -> None:
    """The files of messages that one query received are files of the other."""
    first, second = Run(queue.options(), state), Run(queue.options(), state)
    for number in range(3):
        put(queue.bucket, f"in/{number}.json", number)
        queue.send(f"in/{number}.json")
    assert first.batch() == [0, 1, 2]
    assert second.batch() == [0, 1, 2]


def test_errors_of_the_queue(queue: Notified, state: Path) -> None:
    with pytest.raises(Permanent, match="does not exist"):
        open_source(queue.options(queue="absent"), state).check()
    unreachable = queue.options(endpoint_url="http://127.0.0.1:9", queue="http://127.0.0.1:9/1/q")
    with pytest.raises(Transient, match="could not reach SQS"):
        Run(unreachable, state).batch()
    source = open_source(queue.options(), state)
    source.check()
    with pytest.raises(PenstockError, match="notifications has no meaning for a lookup table"):
        source = open_source({**queue.options(), "watch": False}, state)
        source.prepare_lookup()
