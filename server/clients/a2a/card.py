"""The agent card: what this server offers, and how it is asked (A2A 1.0)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ....adapters.own import OwnAdapter
from ....runtime.version import version
from ...face import Face
from ...guard import is_loopback

if TYPE_CHECKING:  # an extra's
    from starlette.requests import Request

PATH: Final = "/v1/a2a"
PROTOCOL: Final = "1.0"


def card(face: Face, request: Request, agent: str | None) -> dict[str, Any]:
    """Return it, with addresses as the server was asked for: TLS ends in front of it."""
    url = request.url
    scheme = "http" if is_loopback(url.hostname or "") else "https"
    query = "" if agent is None else f"?agent={agent}"
    names = (agent,) if agent is not None else _agents(face)
    return {
        "name": names[0] if names else "turnlock",
        "description": "Agents whose tool calls are recorded, approved and run once.",
        "version": version(),
        "supportedInterfaces": [
            {
                "url": f"{scheme}://{url.netloc}{PATH}{query}",
                "protocolBinding": "JSONRPC",
                "protocolVersion": PROTOCOL,
            }
        ],
        "capabilities": {"streaming": True, "pushNotifications": False},
        "defaultInputModes": ["text/plain", "application/json"],
        "defaultOutputModes": ["text/plain", "application/json"],
        "securitySchemes": {
            "token": {"httpAuthSecurityScheme": {"scheme": "Bearer", "description": "a token"}}
        },
        "securityRequirements": [{"schemes": {"token": {"list": []}}}],
        "skills": [
            {
                "id": name,
                "name": name,
                "description": f"Says something to the agent {name}; one task is one prompt.",
                "tags": ["agent"],
            }
            for name in names
        ],
    }


def _agents(face: Face) -> tuple[str, ...]:
    """Return the agent that is asked unless another is named, where this server has one."""
    adapters = () if face.sessions is None else face.sessions.adapters.values()
    return tuple(it.default for it in adapters if isinstance(it, OwnAdapter))
