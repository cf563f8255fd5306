"""One `tools/call`, from the request to its answer (F-80, F-81).

The call goes on by itself, whoever asked for it: here somebody waits for it, and asks the person at
the client while it waits for approval. Whoever decides first has decided.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import attrs
import mcp_types as types

from ....guards.mcp.approval import MISFITS
from ....guards.mcp.asking import Reply, can_be_shown
from ....models.values import NO_ARGUMENTS, Json
from ....runtime.tools.policy import InDoubt
from ....runtime.tools.sealing import Place as SealedPlace
from ....runtime.tools.sealing import SealBroken
from ....runtime.tools.tool import Tool
from ....views.call_view import CallView, Waits
from ...face import Face
from ...problems import Problem
from ...routing import Role, Who
from ..answering import Saying, answer
from ..approval_ids import ApprovalId
from . import answers
from .asking import State, input_required, question, reply
from .changes import Changes
from .offer import Offer, Place

Answer: TypeAlias = "types.CallToolResult | types.InputRequiredResult"
Ask: TypeAlias = "Callable[[types.ElicitRequestFormParams], Awaitable[object]]"
"""Sends `elicitation/create`, and returns what was answered; None: nobody can be asked."""


@attrs.frozen(kw_only=True)
class Client:
    """Who asks, and how a person can be asked there."""

    who: Who
    is_modern: bool
    """Whether it speaks 2026-07-28 or later."""
    has_forms: bool
    ask: Ask


class Calling:
    """A request, until it is answered."""

    def __init__(  # noqa: PLR0913 - all that a call meets
        self,
        face: Face,
        offer: Offer,
        client: Client,
        *,
        tool: Tool,
        state: State | None,
        replied: object,
    ) -> None:
        """`state` and `replied` are what came back with an answer of 2026-07-28."""
        self._face = face
        self._offer = offer
        self._client = client
        self._tool = tool
        self._state = state
        self._replied = replied

    async def answered(self, place: Place) -> Answer:
        """Return the answer. Raises `MCPError` for a doubt, and what the journal raises."""
        async with Changes(self._face.hub, place.run_id) as changes:
            patient = True
            while True:
                call = await self._look(place)
                if call.ended:
                    return self._ended(call)
                if call.waits is Waits.RESOLUTION:
                    if not patient or self._tool.policy.doubt_rule is InDoubt.ASK:
                        raise answers.in_doubt(call)
                    patient = await changes.more(within=self._offer.wait)
                elif call.waits is Waits.APPROVAL:
                    told = await self._decision(call, changes)
                    if told is not None:
                        return told
                else:
                    await changes.more()

    async def _look(self, place: Place) -> CallView:
        call = await self._face.looking.call(place.run_id, place.turn_id, place.invocation_id)
        if call is None:
            raise Problem("unknown_invocation", "there is no such call")
        return call

    def _ended(self, call: CallView) -> types.CallToolResult:
        result = call.result
        if result is None:
            raise AssertionError(call)
        seals = self._offer.tools.seals
        (told,) = seals.results((result,), call.run_id, call.turn_id)
        return answers.ended(call, told)

    # How it is decided.

    async def _decision(self, call: CallView, changes: Changes) -> Answer | None:
        """Wait for a decision, or ask for one; None: look again."""
        arguments = self._shown(call)
        if arguments is None or not self._counts():
            return await self._elsewhere(call, changes)
        if self._client.is_modern:
            return await self._at_modern(call, arguments, changes)
        said, is_decided = await self._elicited(call, arguments, changes)
        if is_decided:
            return None
        if said is None:
            return await self._elsewhere(call, changes)
        return await self._decided(call, said, changes)

    async def _at_modern(
        self, call: CallView, arguments: Mapping[str, Json], changes: Changes
    ) -> Answer | None:
        """Take the answer that came along, once; without one the question is the result."""
        state, replied = self._state, self._replied
        self._state = self._replied = None
        if state is not None and replied is not None and state.digest == call.arguments_digest:
            said = reply(replied)
            if said is not None:
                return await self._decided(call, said, changes)
        return input_required(call, arguments)

    async def _decided(self, call: CallView, said: Reply, changes: Changes) -> Answer | None:
        """Have what a person said judged. What is refused is told as it is: look again."""
        if said.approved is None or not self._counts():
            return answers.waiting(call)
        asked, who = ApprovalId.of_question(call), self._client.who
        heard = await answer(self._face, asked, Saying(approved=said.approved), who)
        return await self._elsewhere(call, changes) if heard.accepted is None else None

    async def _elsewhere(self, call: CallView, changes: Changes) -> Answer | None:
        """Wait a while for who decides elsewhere; then the call is one of the consoles."""
        decided = asyncio.create_task(self._decided_elsewhere(call, changes))
        try:
            await asyncio.wait({decided}, timeout=self._offer.wait)
            if decided.done():
                decided.result()
                return None
            return answers.waiting(call)
        finally:
            await _ended(decided)

    async def _elicited(
        self, call: CallView, arguments: Mapping[str, Json], changes: Changes
    ) -> tuple[Reply | None, bool]:
        """Ask by a request, as before 2026-07-28: what was said, and whether it is decided."""
        asking = asyncio.create_task(self._asked(call, arguments))
        decided = asyncio.create_task(self._decided_elsewhere(call, changes))
        try:
            await asyncio.wait({asking, decided}, return_when=asyncio.FIRST_COMPLETED)
            if decided.done():
                decided.result()
                return None, True
            return asking.result(), False
        finally:
            await _ended(asking, decided)

    async def _asked(self, call: CallView, arguments: Mapping[str, Json]) -> Reply | None:
        for _ in range(MISFITS + 1):
            answered = await self._client.ask(question(call, arguments))
            if answered is None:
                return None
            if (said := reply(answered)) is not None:
                return said
        return Reply(approved=None)

    async def _decided_elsewhere(self, call: CallView, changes: Changes) -> None:
        place = Place(run_id=call.run_id, turn_id=call.turn_id, invocation_id=call.invocation_id)
        while (await self._look(place)).waits is Waits.APPROVAL:
            await changes.more()

    def _counts(self) -> bool:
        """Whether what a person says there counts: the token may decide, still (F-11)."""
        who = self._client.who
        return who.may(Role.DECIDE) and self._face.tokens.is_current(who)

    def _shown(self, call: CallView) -> Mapping[str, Json] | None:
        """Return the arguments that a question shows; None where nobody can be asked there."""
        if not self._client.has_forms:
            return None
        at = SealedPlace(call.run_id, call.turn_id, call.invocation_id)
        given = call.arguments or NO_ARGUMENTS
        try:
            clear = self._offer.tools.seals.clear_arguments(given, at)
        except SealBroken:
            return None
        return clear if can_be_shown(clear) else None


async def _ended(*tasks: asyncio.Task[Any]) -> None:
    """Have tasks end, whatever they raise."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
