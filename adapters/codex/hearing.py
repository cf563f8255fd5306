"""Items and turns: what a notification says of an execution, and of a message (S-21 … S-25)."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from ...agent.transients import ItemChunk
from ...runtime.journal.ledger import Domain
from .calls import CHANGED, NOT_SHOWN
from .evidence import Instance
from .heard import Anomaly
from .items import (
    Item,
    Outcome,
    RawCall,
    Senseless,
    fields,
    item_of,
    outcome_of,
    raw_of,
    text,
    text_or_none,
    valid,
)
from .messages import Asked, Notified
from .notes import said_id
from .turns import Turns

Message: TypeAlias = Notified | Asked


class Hearing:
    """Takes the notifications of one thread."""

    def __init__(self, turns: Turns) -> None:
        """Take those of these turns."""
        self._turns: Final = turns

    def turn_started(self, message: Message) -> None:
        """Take it that an upstream turn goes on."""
        self._turns.begin(text(fields(message.params, "turn"), "id"))

    def turn_completed(self, message: Message) -> None:
        """Take it that an upstream turn is over (S-25)."""
        turn = fields(message.params, "turn")
        self._turns.complete(text(turn, "id"), text_or_none(turn, "status") or "completed")

    def response_completed(self, message: Message) -> None:
        """Take it that a model response has ended (S-31)."""
        if self._turns.begin(text(message.params, "turnId")):
            self._turns.response_ended()

    def error(self, message: Message) -> Domain | None:
        """Take it that a response was cut, and will be tried again."""
        will_retry = message.params.get("willRetry") is True
        if self._turns.begin(text(message.params, "turnId")) and will_retry:
            self._turns.response_ended()
        return Domain.TURN if will_retry else None

    def named_turn(self, message: Message) -> None:
        """Take it that the turn goes on that a message names (S-33a)."""
        turn_id = text_or_none(message.params, "turnId")
        if turn_id is not None:
            self._turns.begin(turn_id)

    # items

    def item_started(self, message: Message) -> None:
        """Take it that an execution was announced, or runs (S-21, S-22)."""
        turn_id, item = text(message.params, "turnId"), item_of(message.params)
        if not self._turns.begin(turn_id) or item is None:
            return
        instance = self._turns.now.instances.announced(item)
        if instance is None:
            if self._turns.now.instances.of(item.id):
                self._used_again(item.id)
            instance = self._turns.open(item.id, item.tool_name, item.arguments)
        self._is_item(instance, item)
        if item.is_running:
            instance.runs = True
            self._turns.express(instance)

    def item_completed(self, message: Message) -> None:
        """Take it that an execution, or a message, has ended (S-24)."""
        turn_id, item = text(message.params, "turnId"), item_of(message.params)
        if item is None:
            self._message_ended(message, turn_id)
            return
        if not self._turns.begin(turn_id):
            self._ended_late(turn_id, item)
            return
        instance = self._turns.now.instances.ended(item)
        if instance is None:
            if self._turns.now.instances.of(item.id):
                self._used_again(item.id)
            instance = self._turns.open(item.id, item.tool_name, item.arguments)
        if instance.ended_as is not None:
            self._turns.odd(Anomaly.COMPLETED_TWICE, f"{instance.name} has ended already")
            return
        self._is_item(instance, item)
        instance.ended_as = item.status or ""
        if item.status == "declined":
            instance.declined = True
            if instance.item_id in self._turns.now.unshown:
                instance.why = NOT_SHOWN
        elif instance.settled and instance.observed and not (instance.denied or instance.rejected):
            self._turns.odd(Anomaly.OUTCOME_AFTER_SETTLEMENT, f"{instance.name} was settled before")
        elif instance.outcome is None:
            instance.outcome = outcome_of(item)
        self._turns.express(instance)

    def _ended_late(self, turn_id: str, item: Item) -> None:
        """Say that something ended after its upstream turn (S-24): no outcome, an anomaly."""
        for it in self._turns.instances_of(turn_id, item.id):
            if it.denied and item.status != "declined" and outcome_of(item).shows_start:
                it.runs = True
                self._turns.express(it)
        detail = f"{item.id} ended after its turn {turn_id}"
        self._turns.odd(Anomaly.OUTCOME_AFTER_SETTLEMENT, detail)

    def _is_item(self, instance: Instance, item: Item) -> None:
        """Take what an item says of an instance: before it is added, what it is."""
        if self._turns.now.has_raw and instance.raw is None and instance.item_kind is None:
            detail = f"{instance.name} was not in the raw stream"
            self._turns.odd(Anomaly.ITEM_WITHOUT_RAW_CALL, detail)
        if not instance.added and not (
            instance.raw is not None and item.kind == "subAgentActivity"
        ):
            instance.tool_name, instance.arguments = item.tool_name, item.arguments
        instance.item_kind = item.kind
        instance.process_id = item.process_id or instance.process_id
        instance.began = item.began if item.began is not None else instance.began

    def _message_ended(self, message: Message, turn_id: str) -> None:
        item = fields(message.params, "item")
        self._turns.begin(turn_id)
        if item.get("type") != "agentMessage":
            return
        said, item_id = item.get("text"), text(item, "id")
        if not isinstance(said, str):
            raise Senseless("text is no text")
        if not self._turns.is_new((turn_id, item_id)):
            self._turns.odd(Anomaly.COMPLETED_TWICE, f"the message {item_id} has ended already")
            return
        self._turns.said.messages.append((turn_id, item_id, said))

    def delta(self, message: Message) -> None:
        """Pass on some more of a message."""
        params = message.params
        turn_id, item_id = text(params, "turnId"), text(params, "itemId")
        of: Literal["text", "thought"] = "text"
        if message.method != "item/agentMessage/delta":
            of = "thought"
        self._turns.begin(turn_id)
        piece = params.get("delta")
        if not isinstance(piece, str):
            raise Senseless("delta is no text")
        chunk = ItemChunk(item=said_id(turn_id, item_id), of=of, text=piece)
        self._turns.said.transients.append(chunk)

    def output(self, message: Message) -> None:
        """Pass on some more output: what was announced runs (S-21)."""
        params = message.params
        turn_id, item_id = text(params, "turnId"), text(params, "itemId")
        piece = params.get("delta", "")
        if not isinstance(piece, str):
            raise Senseless("delta is no text")
        goes_on = self._turns.begin(turn_id)
        several = self._turns.instances_of(turn_id, item_id)
        live = [it for it in several if not it.settled]
        instance = live[-1] if live else several[-1] if several else None
        if piece:
            name = instance.name if instance is not None else valid(item_id)
            self._turns.said.transients.append(ItemChunk(item=name, of="output", text=piece))
        if instance is not None and (goes_on or instance.denied):
            instance.runs = True
            instance.process_id = instance.process_id or text_or_none(params, "processId")
            self._turns.express(instance)

    def changed(self, message: Message) -> None:
        """Take the changes of a patch anew; one that was shown with others is refused (S-37)."""
        params = message.params
        turn_id, item_id = text(params, "turnId"), text(params, "itemId")
        changes = params.get("changes")
        if not isinstance(changes, list):
            raise Senseless("changes is no list")
        if not self._turns.begin(turn_id):
            return
        for it in self._turns.now.instances.live(item_id):
            if it.item_kind != "fileChange" or it.arguments.get("changes") == changes:
                continue
            if not it.added:
                it.arguments = {**it.arguments, "changes": changes}
            elif it.request is not None and not it.claimed:
                self._turns.refuse(it, CHANGED)

    # the raw stream

    def raw(self, message: Message) -> None:
        """Take an item of the raw stream (S-31)."""
        turn_id, raw = text(message.params, "turnId"), raw_of(message.params)
        if not self._turns.begin(turn_id) or raw is None:
            return
        self._turns.now.has_raw = True
        if self._turns.now.instances.is_repeat(raw.id):
            return
        if isinstance(raw, RawCall):
            self._raw_call(raw)
            return
        instance = self._turns.now.instances.raw_output(raw.call_id)
        if instance is None:
            instance = self._turns.open(raw.call_id, "unknown", {})
        instance.told = True
        if instance.settled or instance.denied:
            return
        if instance.item_kind is None and instance.asked is None:
            detail = f"{instance.name} has no item"
            self._turns.odd(Anomaly.SEEN_ONLY_IN_THE_RAW_STREAM, detail)
        if instance.turn.interrupting or not instance.observed:
            return
        if instance.asked is not None and raw.call_id in self._turns.now.shared:
            return  # nobody knows of which of the calls it is the output
        waits = instance.request is not None  # nobody has let it: the runtime gave up on it
        instance.outcome = Outcome(result={"told": raw.told}, shows_start=not waits)
        self._turns.express(instance)

    def _raw_call(self, raw: RawCall) -> None:
        instances = self._turns.now.instances
        instance = instances.raw_call(raw)
        if instance is None:
            if instances.live(raw.call_id):
                self._turns.share(raw.call_id)
            elif instances.of(raw.call_id):
                self._used_again(raw.call_id)
            instance = self._turns.open(raw.call_id, raw.tool_name, raw.arguments)
        instance.raw = raw

    def _used_again(self, item_id: str) -> None:
        detail = f"{item_id} was an id of the turn before"
        self._turns.odd(Anomaly.CALL_ID_USED_AGAIN_IN_TURN, detail)
