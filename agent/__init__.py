"""The agent loop: a model and its tools in conversation, on a runtime that survives crashes.

An `Agent` asks a `Model`, performs the calls of its answer on a runtime, its own or a shared one,
and gives the results back, until the model asks for no more. All of it is in the journal before
anything follows from it: the same lines after a crash go on where it stopped.
`ChatCompletionsModel` speaks to any chat-completions endpoint (extra `openai`), `ScriptedModel`
plays a script; any object with `speak` and `close` is a model. `docs/agent.md` shows it at work.

These names are public; every other name in here may change with any release.
"""

from typing import TYPE_CHECKING

from ..models.lazy import imported_when_asked

if TYPE_CHECKING:
    from .approving import Approve, AskApproval, Decision, Deny
    from .conversation import Conversation, Owed
    from .errors import ConversationBroken, HookFailed, LimitReached, ModelError
    from .events import Answered, CallUpdate, Event, RunResult
    from .forks import Forked, NotForked, fork
    from .loop import Agent
    from .messages import Answer, Message, Prompt, Results, Stop, Tokens, ToolCall
    from .providers import open_model
    from .providers.anthropic import AnthropicModel
    from .providers.chat_completions import ChatCompletionsModel
    from .providers.client import MissingClient
    from .providers.google import GoogleModel
    from .providers.responses import ResponsesModel
    from .script import Recorded, Script, ScriptedCall, ScriptedModel
    from .setup import AfterAnswer, BeforeAnswer, Start, Tools
    from .speaking import (
        Again,
        CallBegan,
        CallEnded,
        CallText,
        Elsewhere,
        Ended,
        Model,
        Question,
        Said,
        Text,
        Thought,
        Used,
        listen,
    )
    from .transients import (
        SpeechChunk,
        SpeechEnded,
        SpeechFailed,
        SpeechStarted,
        Transient,
    )

__all__ = [
    "AfterAnswer", "Again", "Agent", "Answer", "Answered", "AnthropicModel", "Approve",
    "AskApproval", "BeforeAnswer", "CallBegan", "CallEnded", "CallText", "CallUpdate",
    "ChatCompletionsModel", "Conversation", "ConversationBroken", "Decision", "Deny",
    "Elsewhere", "Ended", "Event", "Forked", "GoogleModel", "HookFailed", "LimitReached",
    "Message", "MissingClient", "Model", "ModelError", "NotForked", "Owed", "Prompt",
    "Question", "Recorded", "ResponsesModel", "Results", "RunResult", "Said", "Script",
    "ScriptedCall", "ScriptedModel", "SpeechChunk", "SpeechEnded", "SpeechFailed",
    "SpeechStarted", "Start", "Stop", "Text", "Thought", "Tokens", "ToolCall", "Tools",
    "Transient", "Used", "fork", "listen", "open_model",
]  # fmt: skip

if not TYPE_CHECKING:  # imported when first asked for: each brings the runtime along
    __getattr__ = imported_when_asked(
        "turnlock.agent",
        {
            "approving": "Approve AskApproval Decision Deny",
            "conversation": "Conversation Owed",
            "errors": "ConversationBroken HookFailed LimitReached ModelError",
            "events": "Answered CallUpdate Event RunResult",
            "forks": "Forked NotForked fork",
            "loop": "Agent",
            "messages": "Answer Message Prompt Results Stop Tokens ToolCall",
            "providers": "open_model",
            "providers.anthropic": "AnthropicModel",
            "providers.chat_completions": "ChatCompletionsModel",
            "providers.client": "MissingClient",
            "providers.google": "GoogleModel",
            "providers.responses": "ResponsesModel",
            "script": "Recorded Script ScriptedCall ScriptedModel",
            "setup": "AfterAnswer BeforeAnswer Start Tools",
            "speaking": (
                "Again CallBegan CallEnded CallText Elsewhere Ended Model Question Said Text"
                " Thought Used listen"
            ),
            "transients": "SpeechChunk SpeechEnded SpeechFailed SpeechStarted Transient",
        },
    )


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__
