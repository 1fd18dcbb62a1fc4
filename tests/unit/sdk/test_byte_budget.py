"""The bound of the bytes that the connections of a receiver hold."""

from __future__ import annotations

import asyncio

from penstock.sdk.network.byte_budget import ByteBudget


def test_shares_wait_for_room_and_the_oldest_may_grow() -> None:
    async def run() -> None:
        budget = ByteBudget(100)
        oldest, second, third = budget.share(), budget.share(), budget.share()
        oldest.resize(60)
        second.resize(40)
        assert budget.has_room(oldest) and not budget.has_room(second)
        await oldest.await_room()
        waiting = asyncio.create_task(third.await_room())
        await asyncio.sleep(0)
        assert not waiting.done()
        oldest.resize(0)
        await waiting
        assert budget.used == 40

    asyncio.run(run())


def test_the_end_of_the_context_releases_the_bytes() -> None:
    budget = ByteBudget(10)
    with budget.share() as share:
        share.resize(50)
        assert not budget.has_room(budget.share())
    assert budget.used == 0 and budget.has_room(budget.share())


def test_a_cancelled_wait_blocks_no_share() -> None:
    async def run() -> None:
        budget = ByteBudget(10)
        holder = budget.share()
        holder.resize(10)
        waits = [asyncio.create_task(budget.share().await_room()) for _ in range(2)]
        await asyncio.sleep(0)
        waits[0].cancel()
        holder.resize(0)
        await waits[1]

    asyncio.run(run())
