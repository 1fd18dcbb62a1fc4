"""The bound of the bytes of messages that a consumer has received and not yet handled."""

from __future__ import annotations

from typing import Any

from penstock.sdk.network.byte_budget import ByteBudget, Share


class BytesInFlight:
    """The bytes of the unhandled messages of a channel, by their delivery tags.

    Beyond the bound the channel reads no further message, so that the connection stops reading. The
    client counts messages only, whatever their sizes.
    """

    def __init__(self, budget: ByteBudget | None = None) -> None:
        self._budget = budget or ByteBudget()
        self._shares: dict[int, Share] = {}
        self._bounded = True

    def attach(self, channel: Any) -> None:
        """Bounds the messages of a channel of the client's lower layer."""
        read_content = channel._read_content

        async def read_within_bound(frame: Any, header: Any) -> Any:
            share = self._budget.share()
            if self._bounded:
                await share.await_room()
                share.resize(header.body_size)
                self._shares[frame.delivery_tag] = share
            return await read_content(frame, header)

        channel._read_content = read_within_bound

    def release(self, delivery_tag: int | None) -> None:
        """Releases the bytes of a handled message."""
        if (share := self._shares.pop(delivery_tag or 0, None)) is not None:
            share.resize(0)

    def release_all(self) -> None:
        """Releases the bytes of all messages, and bounds no further message."""
        self._bounded = False
        for delivery_tag in list(self._shares):
            self.release(delivery_tag)
