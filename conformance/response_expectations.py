"""What a case can expect of Responses, besides the words for every reply."""

from __future__ import annotations

from typing import Any

from conformance.expectations import subset
from conformance.message_expectations import MessageExpectation


class ResponseExpectation(MessageExpectation):
    """More words, for the items of an output and for what a response says of its request."""

    def on_items(self, wanted: list[dict[str, Any]]) -> None:
        """The output in its order: so many items, each with at least these members."""
        found = [item.value for item in self.reply.items]
        assert len(found) == len(wanted), f"{self.where}: {found}"
        for place, (item, part) in enumerate(zip(found, wanted, strict=True)):
            subset(part, item, f"{self.where} item {place}")

    def on_item_lacks(self, unwanted: list[str]) -> None:
        """No item has these members."""
        for item in self.reply.items:
            assert not set(unwanted) & set(item.value), f"{self.where}: {item.value}"

    def on_secret(self, wanted: bool) -> None:
        """Every thought is there in secret as well, or none is."""
        thoughts = [item.value for item in self.reply.items if item.kind == "reasoning"]
        assert thoughts, f"{self.where}: no thought"
        for thought in thoughts:
            self._equal("encrypted_content" in thought, wanted)

    def on_told(self, wanted: dict[str, Any]) -> None:
        """What it says of its request, with at least these members."""
        assert self.reply.told is not None, f"{self.where}: no response: {self.reply.body}"
        subset(wanted, self.reply.told, self.where)

    def on_dropped_tools(self, wanted: list[str]) -> None:
        """The kinds of hosted tools that were left out."""
        last = self.reply.body or self.reply.chunks[-1]["response"]
        self._equal(last["flare"]["dropped_tools"], wanted)

    def on_item_deltas(self, at_least: list[int]) -> None:
        """A stream brings the items in so many pieces each at least."""
        if self.reply.chunks:
            found = [len(item.deltas) for item in self.reply.items]
            assert len(found) == len(at_least), f"{self.where}: {found}"
            pairs = zip(found, at_least, strict=True)
            assert all(mine >= wanted for mine, wanted in pairs), f"{self.where}: {found}"
