"""What components promise."""

from __future__ import annotations

from typing import Any

from penstock.sdk import Capability, Config, ReceivingConfig, ReceivingSource, Sink, Transform
from penstock.sdk.guarantees import DeliveryGuarantee, delivery_guarantee, guarantees


class Options(Config):
    address: str
    """Required."""
    sure: bool = False
    """What changes the promise."""


class Parcels(Sink[Options]):
    capabilities = frozenset({Capability.BYTES})
    acknowledges: str | None = "each parcel has arrived"
    variants = ("sure: true", "sure: false")

    def __init__(self, config: Options, context: Any = None) -> None:
        super().__init__(config, context)
        if not config.sure:
            self.acknowledges = None

    def writer(self, *_: Any) -> Any:
        raise NotImplementedError


class Knocks(ReceivingSource[ReceivingConfig]):
    parallelism = "the door"
    acknowledges = "the door is opened"

    async def receive(self, journal: Any) -> None:
        raise NotImplementedError


def test_variants_promise_what_their_options_make_of_it() -> None:
    sure, unsure = guarantees(Parcels)
    assert (sure.variant, sure.guarantee) == ("sure: true", "at least once")
    assert (sure.acknowledged, sure.parallelism) == (
        "each parcel has arrived",
        "a partition of the batch",
    )
    assert (unsure.guarantee, unsure.acknowledged) == ("at most once", "never")
    assert delivery_guarantee(Parcels(Options(address="made up", sure=True)), "sure: true") == sure


def test_without_variants_there_is_one_promise() -> None:
    assert guarantees(Knocks) == (
        DeliveryGuarantee(
            "",
            "the door",
            "at least once",
            "the door is opened",
            tuple(sorted(Knocks.capabilities)),
        ),
    )


def test_a_transform_has_no_guarantees() -> None:
    assert guarantees(Transform) == ()


def test_a_sink_that_knows_a_batch_writes_it_once() -> None:
    class Once(Parcels):
        capabilities = frozenset({Capability.BYTES, Capability.EXACTLY_ONCE})

    assert {each.guarantee for each in guarantees(Once)} == {"exactly once"}
