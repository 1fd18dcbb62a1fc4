"""The state in an object store, by hand: durable points, leases, other machines, failures."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.core.errors import Permanent, StateError, Transient
from penstock.runtime.object_state import lease as leases
from penstock.runtime.object_state import mirror
from penstock.runtime.object_state.client import Conflict, ObjectClient
from penstock.runtime.object_state.manifest import KEY, Manifest
from penstock.runtime.object_state.mirror import ObjectStorage
from penstock.runtime.state.directory import StateDirectory
from penstock.sdk import object_client
from penstock.sdk.object_store import StorageOptions
from servers.s3 import S3, Bucket

LONG = b"\xff" + bytes(range(256)) * 300
Open = Callable[..., StateDirectory]


@pytest.fixture(params=["s3", "gcs", "azurite"])
def bucket(request: pytest.FixtureRequest, s3: S3) -> Any:
    return request.getfixturevalue(request.param).new_bucket()


@pytest.fixture
def options(bucket: Bucket) -> StorageOptions:
    return StorageOptions(**bucket.server.storage)


@pytest.fixture
def open_state(bucket: Bucket, options: StorageOptions, tmp_path: Path) -> Open:
    """`open_state("machine")` is the state in the bucket, with a local copy of its own."""

    def open_state(machine: str, seconds: float = 30.0) -> StateDirectory:
        client = ObjectClient(f"{bucket.url}/states/shop", options)
        root = tmp_path / machine
        return StateDirectory(root, ObjectStorage(client, root, seconds))

    return open_state


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """`elsewhere("b")` lets later leases be those of the host "b"."""
    return lambda host: monkeypatch.setattr(leases.socket, "gethostname", lambda: host)


@contextmanager
def killed(state: StateDirectory) -> Iterator[None]:
    """A run that ends without a release of its lease, as by kill -9."""
    with pytest.MonkeyPatch.context() as patch, state.locked():
        yield
        patch.setattr(state.storage, "_release", lambda: None)


def write(state: StateDirectory, name: str, content: bytes) -> Path:
    path = state.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def files(state: StateDirectory) -> dict[str, bytes]:
    """The files of a local copy that do not belong to a process."""
    found = (path for path in state.root.rglob("*") if path.is_file() and path.name != "lock")
    return {str(path.relative_to(state.root)): path.read_bytes() for path in found}


def until(holds: Callable[[], bool]) -> None:
    """Waits until a condition holds."""
    for _ in range(200):
        if holds():
            return
        time.sleep(0.05)
    pytest.fail("timeout")


def manifest(bucket: Bucket) -> Manifest:
    return Manifest.decode(bucket.get(f"states/shop/{KEY}"), bucket.url)


def test_another_machine_continues_at_the_last_durable_point(
    open_state: Open, bucket: Bucket, elsewhere: Callable[[str], None]
) -> None:
    one, two = open_state("one", seconds=2), open_state("two")
    elsewhere("one")
    with killed(one):
        checkpoint = one.checkpoint("q")
        write(one, "checkpoints/q/offsets/0", b"v1\n{}")
        write(one, "checkpoints/q/offsets/.0.crc", b"sum")
        write(one, "checkpoints/q/updating/g/0-a/1.snapshot.arrow", LONG)
        write(one, "spool/q/0/.kept/out/bad.arrow", b"\xfe")
        one.storage.sync(checkpoint, one.spool)
        durable = files(one)
        write(one, "checkpoints/q/commits/0", b"v1\n{}")
        one.storage.stage(checkpoint)
        write(one, "checkpoints/q/offsets/1", b"v1\n{}")
        write(two, "checkpoints/q/offsets/7", b"of an old run")
    del durable["checkpoints/q/offsets/.0.crc"]
    elsewhere("two")
    with two.locked():
        assert files(two) == durable
        assert two.planned("q") == 0 and two.committed("q") is None
        (two.root / "checkpoints/q/updating/g/0-a/1.snapshot.arrow").unlink()
        two.storage.sync(checkpoint := two.checkpoint("q"))
        assert not (checkpoint / "offsets/1").exists()
    names = bucket.names("states/shop/files/")
    assert len(names) == 1, "only the dead letters remain"
    assert manifest(bucket).lease is None


def test_a_durable_point_is_one_request(open_state: Open, bucket: Bucket) -> None:
    state = open_state("one")
    with state.locked():
        for number in range(3):
            before = manifest(bucket).sequence
            write(state, f"checkpoints/q/commits/{number - 1}", b"v1\n{}")
            write(state, f"checkpoints/q/offsets/{number}", b"v1\n{}")
            state.storage.sync(state.checkpoint("q"))
            state.storage.sync(state.checkpoint("q"))
            assert manifest(bucket).sequence == before + 1
            assert bucket.names("states/shop/files/") == []


def test_a_file_that_grows_is_uploaded_in_parts(open_state: Open, bucket: Bucket) -> None:
    state, other = open_state("one"), open_state("two")
    with state.locked():
        path = write(state, "nodes/in/files.log", LONG)
        state.storage.sync(state.root / "nodes")
        path.write_bytes(LONG + b"\xffmore")
        state.storage.sync(state.root / "nodes")
        names = bucket.names("states/shop/files/")
        assert sorted(len(bucket.get(name)) for name in names) == [5, len(LONG)]
    other.refresh()
    assert (other.root / "nodes/in/files.log").read_bytes() == LONG + b"\xffmore"
    with state.locked():
        path.write_bytes(b"\xff" * len(LONG) * 2)
        state.storage.sync(state.root / "nodes")
        assert len(bucket.names("states/shop/files/")) == 1


def test_a_second_run_is_rejected_with_the_owner_of_the_lease(
    open_state: Open, elsewhere: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "_POLL_SECONDS", 0.05)
    elsewhere("host-a")
    one, two = open_state("one", seconds=1.5), open_state("two")
    with one.locked():
        elsewhere("host-b")
        with pytest.raises(StateError) as caught, two.locked():
            pytest.fail("two runs own the state")
        assert caught.value.code == "already-running"
        assert "on host-a, since 20" in caught.value.message
        assert two.owner() is not None and two.is_elsewhere() and not one.is_elsewhere()
        one.storage.sync()
    with two.locked():
        assert two.storage.owner() is not None
    assert one.owner() is None


def test_a_lease_of_an_ended_process_of_this_machine_is_taken_at_once(
    open_state: Open, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    with killed(open_state("one")):
        pass
    ended = manifest(bucket).lease
    assert ended is not None and not leases.has_ended(ended)
    assert leases.has_ended(replace(ended, pid=2**22 + 1))
    assert not leases.has_ended(replace(ended, pid=2**22 + 1, namespace="pid:[1]"))
    assert not leases.has_ended(replace(ended, pid=2**22 + 1, host="other"))
    assert not leases.has_ended(replace(ended, pid=2**22 + 1, identity="other-boot:1"))
    monkeypatch.setattr(leases, "has_ended", lambda lease: lease.id == ended.id)
    with open_state("two").locked():
        assert manifest(bucket).lease != ended


def test_a_paused_run_commits_nothing_after_its_lease_was_taken_over(
    open_state: Open, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = open_state("one"), open_state("two")
    now = mirror._time()
    monkeypatch.setattr(mirror, "_time", lambda: now)
    with pytest.raises(StateError) as ended, one.locked():
        write(one, "checkpoints/q/offsets/0", b"v1\n{}")
        one.storage.sync(one.root)
        one.storage.check_owner()
        monkeypatch.setattr(leases, "has_ended", lambda lease: True)
        with two.locked():
            write(two, "checkpoints/q/commits/0", b"v1\n{}")
            two.storage.sync(two.root)
            one.storage.check_owner()  # the lease has not been renewed for less than half its time
            now += 16
            with pytest.raises(StateError) as caught:
                one.storage.check_owner()
            assert caught.value.code == "state-taken-over"
            write(one, "checkpoints/q/commits/0", b"another")
            for _ in range(2):
                with pytest.raises(StateError, match="another run has taken over the state"):
                    one.storage.sync(one.root)
            assert one.storage.lost is caught.value
    assert ended.value is caught.value, "the end of the run reports it, too"
    stored = manifest(bucket)
    assert stored.files["checkpoints/q/commits/0"].text == "v1\n{}" and stored.lease is None


def test_a_write_whose_response_is_lost_is_no_takeover(open_state: Open, bucket: Bucket) -> None:
    state = open_state("one")
    client: Any = state.storage._client  # type: ignore[attr-defined]
    replace_object = client.replace

    def replace_twice(key: str, content: bytes, version: Any) -> Any:
        replace_object(key, content, version)
        return replace_object(key, content, version)

    def replace_and_fail(key: str, content: bytes, version: Any) -> Any:
        replace_object(key, content, version)
        raise Transient("could not write")

    with state.locked():
        write(state, "checkpoints/q/offsets/0", b"v1\n{}")
        client.replace = replace_twice
        state.storage.sync(state.root)
        client.replace = replace_and_fail
        write(state, "checkpoints/q/offsets/1", b"v1\n{}")
        with pytest.raises(Transient):
            state.storage.sync(state.root)
        client.replace = replace_object
        write(state, "checkpoints/q/offsets/2", b"v1\n{}")
        state.storage.sync(state.root)
        client.replace = replace_twice
    stored = manifest(bucket)
    assert {f"checkpoints/q/offsets/{number}" for number in range(3)} <= stored.files.keys()
    assert stored.lease is None


def test_an_outage_is_a_transient_error_and_loses_nothing(
    open_state: Open, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(object_client.RETRIES, "max_retries", 0)
    state, other = open_state("one"), open_state("two")
    with ExitStack() as stack:
        stack.callback(bucket.server.gate.heal)
        with state.locked():
            path = write(state, "checkpoints/q/updating/1.arrow", LONG)
            state.write("closing", {"since": "now"})
            bucket.server.gate.stop()
            for _ in range(2):
                with pytest.raises(Transient, match=f"could not write {bucket.url}") as caught:
                    state.storage.sync(state.checkpoint("q"))
            assert bucket.server.secret not in f"{caught.value.fields()}"
            with pytest.raises(Transient, match="could not read"):
                other.refresh()
            bucket.server.gate.heal()
            state.storage.sync(state.checkpoint("q"))
            stored = manifest(bucket).files
            assert stored["closing"].text and stored["checkpoints/q/updating/1.arrow"].parts
            path.unlink()


@pytest.mark.parametrize(
    ("change", "code", "text"),
    [
        ({"url": "s3://no-such-bucket/p"}, "unknown-bucket", '"no-such-bucket" does not exist'),
        ({"auth": {"access_key": "AKIA0", "secret_key": "hunter22"}}, "authorization", "denied"),
        ({"auth": None}, "authentication", "no credentials"),
        ({"endpoint_url": "http://127.0.0.1:9"}, "unavailable", "could not read"),
        ({"endpoint_url": "https://127.0.0.1:9", "tls": {"ca": "/none.pem"}}, "tls", "/none.pem"),
    ],
    ids=["bucket", "denied", "credentials", "down", "certificate"],
)
def test_a_store_that_cannot_be_used_is_an_error_at_the_start(
    s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], code: str,
    text: str,
) -> None:  # fmt: skip
    bucket = s3.new_bucket()
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    url = change.pop("url", f"{bucket.url}/p")
    client = ObjectClient(url, StorageOptions(**{**bucket.server.storage, **change}))
    state = StateDirectory(tmp_path / "copy", ObjectStorage(client, tmp_path / "copy"))
    kind = Transient if code == "unavailable" else Permanent
    with pytest.raises(kind) as caught, state.locked():
        pytest.fail("the state was opened")
    error = caught.value
    assert error.code == code and text in error.message
    assert url in error.message or code == "tls"
    texts = f"{error.fields()}"
    assert "hunter22" not in texts and bucket.server.secret not in texts
    assert "Debug source" not in texts and error.hint


@pytest.mark.parametrize("store", ["gcs", "azurite"])
def test_a_cloud_store_that_cannot_be_used_is_an_error_at_the_start(
    request: pytest.FixtureRequest, s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    store: str,
) -> None:  # fmt: skip
    monkeypatch.setitem(object_client.RETRIES, "max_retries", 0)
    server = request.getfixturevalue(store)
    bucket = server.new_bucket()
    down = server.storage["endpoint_url"].replace(str(server.gate.port), "9")
    cases = [
        (bucket.url.replace(bucket.name, "no-such-bucket"), {}, "unknown-bucket"),
        (bucket.url, {"auth": server.wrong_auth}, "authorization"),
        (bucket.url, {"anonymous": True, "auth": None}, "authorization"),
        (bucket.url, {"endpoint_url": down}, "unavailable"),
        (f"{bucket.url}/a//b", {}, "invalid-name"),
    ]
    for url, change, code in cases:
        client = ObjectClient(url, StorageOptions(**{**server.storage, **change}))
        state = StateDirectory(tmp_path / "copy", ObjectStorage(client, tmp_path / "copy"))
        kind = Transient if code == "unavailable" else Permanent
        with pytest.raises(kind) as caught, state.locked():
            pytest.fail("the state was opened")
        assert caught.value.code == code and url in caught.value.message, caught.value
        texts = f"{caught.value.fields()}"
        assert "Debug source" not in texts and caught.value.hint
        assert not any(str(value)[-30:] in texts for value in change.get("auth", {}) or ())
        assert server.secret not in texts


def test_a_store_without_conditional_writes_is_rejected(
    open_state: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = ObjectClient._put
    monkeypatch.setattr(
        ObjectClient, "_put", lambda self, key, c, mode: put(self, key, c, "overwrite")
    )
    with pytest.raises(Permanent) as caught, open_state("one").locked():
        pytest.fail("the state was opened")
    assert caught.value.code == "unsupported-storage"


def test_a_store_that_rejects_each_conditional_write_is_an_error(
    open_state: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reject(*_: Any) -> Any:
        raise Conflict("precondition failed")

    monkeypatch.setattr(ObjectClient, "create", reject)
    with pytest.raises(Permanent) as caught, open_state("one").locked():
        pytest.fail("the state was opened")
    assert caught.value.code == "unsupported-storage"


@pytest.mark.parametrize("content", [b"", b"\x1f\x8b", b"text"])
def test_a_damaged_manifest_is_an_error(open_state: Open, bucket: Bucket, content: bytes) -> None:
    bucket.put(f"states/shop/{KEY}", content)
    with pytest.raises(StateError) as caught, open_state("one").locked():
        pytest.fail("the state was opened")
    assert caught.value.code == "corrupt-state" and f"/{KEY}" in caught.value.message


def test_damaged_files_are_errors(open_state: Open, bucket: Bucket) -> None:
    with open_state("one").locked() as _:
        pass
    with (state := open_state("one")).locked():
        write(state, "checkpoints/q/1.arrow", LONG)
    (name,) = bucket.names("states/shop/files/")
    bucket.put(name, LONG[:-1])
    with pytest.raises(StateError) as caught, open_state("two").locked():
        pytest.fail("the state was opened")
    assert "checkpoints/q/1.arrow has another content" in caught.value.message
    stored = manifest(bucket)
    assert stored.lease is None and "checkpoints/q/1.arrow" in stored.files
    hostile = {"../../escaped": next(iter(stored.files.values()))}
    bucket.put(f"states/shop/{KEY}", replace(stored, files=hostile).encode())
    with pytest.raises(StateError) as caught:
        open_state("three").refresh()
    assert "it has the path '../../escaped'" in caught.value.message


def test_the_lease_is_not_renewed_after_its_release(open_state: Open, bucket: Bucket) -> None:
    state = open_state("one")
    with state.locked():
        storage: Any = state.storage
        storage._release()
        storage._publish(renew=True)
    assert manifest(bucket).lease is None


def test_the_lease_is_renewed_during_a_long_upload(open_state: Open, bucket: Bucket) -> None:
    state = open_state("one", seconds=0.3)
    storage: Any = state.storage
    upload = storage._files.upload

    def upload_slowly(*given: Any) -> Any:
        before = manifest(bucket).sequence
        until(lambda: manifest(bucket).sequence > before + 1)
        return upload(*given)

    with state.locked():
        path = write(state, "checkpoints/q/updating/1.arrow", LONG)
        storage._files.upload = upload_slowly
        storage.stage(path)
        storage._files.upload = upload
    assert "checkpoints/q/updating/1.arrow" in manifest(bucket).files


def test_files_are_read_while_a_run_replaces_them(open_state: Open) -> None:
    one, two = open_state("one"), open_state("two")
    with one.locked():
        path = write(one, "dead_letters/q-0.arrow", LONG)
        one.storage.sync(one.root)
        two.owner()  # reads the manifest
        path.write_bytes(LONG[:-1])
        one.storage.sync(one.root)
        two.refresh()
    assert (two.root / "dead_letters/q-0.arrow").read_bytes() == LONG[:-1]


def test_a_stop_request_reaches_the_run_of_another_machine(open_state: Open) -> None:
    one, two = open_state("one", seconds=0.3), open_state("two")
    with one.locked():
        two.storage.request_stop()
        until((one.root / "stop").exists)


def test_dead_letters_are_removed_for_all_machines(open_state: Open, bucket: Bucket) -> None:
    one, two = open_state("one"), open_state("two")
    with one.locked():
        write(one, "dead_letters/q-0.arrow", LONG)
    two.refresh()
    with two.changed():
        (two.root / "dead_letters/q-0.arrow").unlink()
    assert "dead_letters/q-0.arrow" not in manifest(bucket).files
    one.refresh()
    assert not (one.root / "dead_letters/q-0.arrow").exists()
