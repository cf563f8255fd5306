"""What can be wrong with what is asked of a world; each message names the place and the fix."""

from __future__ import annotations

from ..models.errors import TurnlockError, shown


class UnknownWorld(TurnlockError):
    """There is no world of this name in this journal."""

    code = "unknown_world"

    def __init__(self, world: str) -> None:
        """Say which."""
        super().__init__(f"world {shown(world)}: there is none of this name; make it first")


class UnknownChat(TurnlockError):
    """There is no chat of this name in this world."""

    code = "unknown_chat"

    def __init__(self, world: str, chat: str) -> None:
        """Say which."""
        super().__init__(f"world {shown(world)}: there is no chat {shown(chat)}; open it first")


class UnknownAgent(TurnlockError):
    """There is no agent of this name there."""

    code = "unknown_agent"

    def __init__(self, place: str, agent: str, *, chat: str | None = None) -> None:
        """Say which, and where it was looked for: among the members of a chat, if one is named."""
        self.chat = chat
        what, fix = (
            ("agent", "put it there") if chat is None else ("member", "open the chat with it")
        )
        super().__init__(f"{place}: there is no {what} {shown(agent)}; {fix} first")


class UnknownQuestion(TurnlockError):
    """No tool has asked this in this chat."""

    code = "unknown_question"

    def __init__(self, log: str, question: str) -> None:
        """Say which."""
        super().__init__(f"chat {shown(log)}: nobody has asked {shown(question)} here")


class ChatClosed(TurnlockError):
    """A chat is closed: nothing more is said in it."""

    code = "chat_closed"

    def __init__(self, log: str) -> None:
        """Say which."""
        super().__init__(f"chat {shown(log)}: it is closed; open it again, or another one")


class SaidOtherwise(TurnlockError):
    """An id under which something is published already, and something else."""

    code = "said_otherwise"

    def __init__(self, log: str, place: str, value: str) -> None:
        """Say which."""
        super().__init__(
            f"chat {shown(log)}: {place} {shown(value)} has another text already, and the first"
            f" stays; give what is new a {place} of its own"
        )
