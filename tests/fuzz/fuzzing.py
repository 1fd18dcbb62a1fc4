"""Mutants of byte strings, and the command line of the fuzz programs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from random import Random

Program = Callable[[int, int], Iterator[str]]
"""A fuzz program: runs the inputs of a seed up to a count, and yields its findings."""

TOKENS = [
    b"", b"\0", b"\xff", b"\xef\xbb\xbf", b"\n", b"\r\n", b"\t", b" ", b"'", b'"', b"{", b"}", b"[",
    b"]", b":", b",", b"-", b"#", b"&a", b"*a", b"!!", b"${", b"null", b"true", b"1e999",
    b"-9223372036854775809", b"\\u0000", b"\\ud800", "é☂".encode(), b"[" * 3000, b'{"a":' * 3000,
]  # fmt: skip


def mutant(random: Random, text: bytes) -> bytes:
    """Returns a text with one to four changes: bytes, tokens, cuts, copies and moves."""
    changed = bytearray(text)
    for _ in range(random.randint(1, 4)):
        start = random.randrange(len(changed) + 1)
        stop = min(len(changed), start + random.choice([0, 1, 1, 2, 8, 40]))
        match random.randrange(5):
            case 0:
                changed[start:stop] = random.randbytes(stop - start)
            case 1:
                changed[start:stop] = random.choice(TOKENS)
            case 2:
                changed[start:start] = changed[start:stop]
            case 3:
                part = changed[start:stop]
                del changed[start:stop]
                target = random.randrange(len(changed) + 1)
                changed[target:target] = part
            case _:
                del changed[start : stop if random.random() < 0.9 else len(changed)]
    return bytes(changed)


def main(program: Program, arguments: Sequence[str] | None = None) -> None:
    """Runs a program with the options `--seed` and `--count`. Exits with 1 after a finding."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    options = parser.parse_args(arguments)
    count = 0
    for finding in program(options.seed, options.count):
        print(finding, flush=True)
        count += 1
    sys.exit(count > 0)
