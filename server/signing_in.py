"""Who a browser is: a token, or a code for one use, becomes a cookie (F-13)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import attrs
from starlette.responses import JSONResponse, Response

from .cookies import LASTS
from .problems import Problem
from .routing import Asked, Endpoint, Role, Who

if TYPE_CHECKING:
    from .face import Face


LONGEST: Final = 4_096
"""Bytes of the one body that anybody may send."""


@attrs.frozen(kw_only=True)
class SignIn:
    """A code for one use or a token; neither where the token is in ``Authorization``."""

    code: str | None = None
    token: str | None = None


def _told(who: Who) -> dict[str, Any]:
    return {"name": who.name, "roles": sorted(who.roles), "expires_at": who.until}


async def _sign_in(face: Face, asked: Asked) -> Response:
    body: SignIn = asked.body
    scope = asked.http.scope
    header = "authorization" in asked.http.headers
    if header + (body.code is not None) + (body.token is not None) != 1:
        raise Problem(
            "unauthenticated", "send one of: a code, a token, Authorization: Bearer TOKEN"
        )
    if header:
        found = face.guard.admit(scope)
    elif body.code is not None:
        found = face.guard.by_code(body.code, scope).who()
    else:
        found = face.guard.by_token(body.token or "", scope).who()
    sealed, who = face.guard.cookies.seal(found)
    cookie = face.guard.cookie(sealed, scope, lasts=int(LASTS))
    return JSONResponse(_told(who), headers={"Set-Cookie": cookie})


async def _who(_: Face, asked: Asked) -> Response:
    return JSONResponse(_told(asked.who))


async def _sign_out(face: Face, asked: Asked) -> Response:
    who = asked.who
    if who.session is not None and who.until is not None:
        face.tokens.end(who.session, until=who.until)
    cookie = face.guard.cookie("", asked.http.scope, lasts=0)
    return Response(status_code=204, headers={"Set-Cookie": cookie})


ENDPOINTS: Final = (
    Endpoint(
        method="POST",
        path="/v1/session",
        handler=_sign_in,
        role=None,
        summary="Sign in: a code for one use, or a token, becomes a cookie.",
        body=SignIn,
        longest=LONGEST,
        codes=("unauthenticated", "too_many_attempts"),
    ),
    Endpoint(
        method="GET", path="/v1/session", handler=_who, role=Role.LOOK, summary="Say who asks."
    ),
    Endpoint(
        method="DELETE",
        path="/v1/session",
        handler=_sign_out,
        role=Role.LOOK,
        summary="Sign out: the cookie ends.",
        statuses=(204,),
    ),
)
