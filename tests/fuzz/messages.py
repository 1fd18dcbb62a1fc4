"""Random bytes for the parsers of messages: framings, bodies, event streams and headers.

.venv/bin/python tests/fuzz/messages.py --seed 1 --count 1000
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from fuzzing import main, mutant

from penstock.connectors.http.framing import split_body
from penstock.connectors.http.sse.parser import EventParser
from penstock.core.errors import ConnectError, RecordError
from penstock.formats.protobuf.lengths import undelimit
from penstock.sdk.messages.framing import (
    DelimiterFraming,
    DigitPrefixFraming,
    Framing,
    LengthPrefixFraming,
    encode_frame,
    frame_decoder,
)
from penstock.sdk.schema_registry.wire_format import split_header

FRAMINGS: list[Framing] = [
    "lines", DelimiterFraming(delimiter="||"), DelimiterFraming(delimiter="\0"),
    LengthPrefixFraming(length=1), LengthPrefixFraming(length=2, order="little"),
    LengthPrefixFraming(length=4), DigitPrefixFraming(digits=4), DigitPrefixFraming(digits=18),
]  # fmt: skip
BODIES = [b'[1,{"a":[2]},"x"]', b'{"data":{"items":[1,{"b":2}]}}', b"one\ntwo\r\n\nthree"]
EVENTS = b"\xef\xbb\xbfid: 1\nevent: x\ndata: a\ndata: b\n\nretry: 10\r\n: c\r\rdata\n\n"
MAX_SIZE = 100


def run(seed: int, count: int) -> Iterator[str]:
    """Parses `count` inputs with each parser. Yields unexpected exceptions and differences."""
    random = Random(seed)
    for number in range(count):
        for name, parse in PARSERS.items():
            state = random.getstate()
            problem = _problem(parse, random)
            if problem is not None:
                yield f"seed {seed}, number {number}, {name}: {problem} (state {hash(state)})"


def _problem(parse: Callable[[Random], None], random: Random) -> str | None:
    try:
        parse(random)
    except (RecordError, ConnectError):
        return None
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def _parse_frames(random: Random) -> None:
    """Parses a stream in one chunk and in several: messages and losses must not differ."""
    framing = random.choice(FRAMINGS)
    frames = (encode_frame(random.randbytes(random.randrange(9)).hex().encode(), framing)
              for _ in range(random.randrange(6)))  # fmt: skip
    data = b"".join(frames)
    if random.random() < 0.8:
        data = mutant(random, data)
    whole = _decode_frames(framing, [data])
    pieces = _decode_frames(framing, list(_chunks(random, data)))
    if whole != pieces:
        raise AssertionError(f"{framing!r}: {data!r} differs in chunks: {whole} and {pieces}")


def _decode_frames(framing: Framing, chunks: list[bytes]) -> tuple[list[bytes], int, str]:
    decoder = frame_decoder(framing, MAX_SIZE)
    messages = [message for chunk in chunks for message in decoder.feed(chunk)]
    messages += decoder.finish()
    return messages, decoder.lost, str(decoder.error is not None)


def _chunks(random: Random, data: bytes) -> Iterator[bytes]:
    position = 0
    while position < len(data):
        size = random.randint(1, 1 + len(data) // 2)
        yield data[position : position + size]
        position += size


def _parse_body(random: Random) -> None:
    body = mutant(random, random.choice(BODIES))
    framing: Any = random.choice(["single", "lines", "array"])
    messages = split_body(body, framing, random.choice(["", "/data/items", "/1/a", "/~0/²"]))
    if not all(isinstance(message, bytes) for message in messages):
        raise AssertionError(f"{body!r}: expected bytes")


def _parse_events(random: Random) -> None:
    """Parses an event stream in one chunk and in several: the events must not differ."""
    data = mutant(random, EVENTS * random.randint(1, 3))
    whole = EventParser().feed(data)
    parser = EventParser()
    pieces = [event for chunk in _chunks(random, data) for event in parser.feed(chunk)]
    if whole != pieces:
        raise AssertionError(f"{data!r} differs in chunks: {whole} and {pieces}")


def _parse_header(random: Random) -> None:
    payload = mutant(random, b"\0\0\0\0\x01\x04\x02\x06rest")
    split_header(payload, random.random() < 0.5)


def _parse_length(random: Random) -> None:
    undelimit(mutant(random, b"\x05hello"))


PARSERS: dict[str, Callable[[Random], None]] = {
    "frames": _parse_frames, "body": _parse_body, "events": _parse_events,
    "header": _parse_header, "length": _parse_length,
}  # fmt: skip

if __name__ == "__main__":
    main(run)
