"""UC-007: the models that runs may have, by kind (S-85)."""

from __future__ import annotations

import asyncio

import pytest

from turnlock.adapters.contract import CommandRefused
from turnlock.models.errors import TurnlockError
from turnlock.server.bounds import SessionSettings
from turnlock.server.routing import Role

from ..runtime.virtual import run, settled
from . import faces
from .peers import serving
from .scripted import ScriptedAdapter


def test_s_85_by_kind_preloaded_and_cached_ten_minutes() -> None:
    """One question at the start; none for ten minutes; one by `reload`; at once it is one."""

    async def play() -> None:
        scripted = ScriptedAdapter()
        async with serving(others=[scripted]) as it:
            await settled()
            assert scripted.asked_for_models == 1
            found = await it.sessions.models("scripted")
            assert [one.name for one in found["scripted"].models] == ["small", "large"]
            assert scripted.asked_for_models == 1
            assert set(await it.sessions.models()) == {"own", "scripted"}
            (own,) = (await it.sessions.models("own"))["own"].models
            assert (own.name, own.provider, own.default) == ("test:reader", "test", True)
            await it.sessions.models(reload=True)
            assert scripted.asked_for_models == 2
            await asyncio.sleep(SessionSettings().models_for + 1)
            await asyncio.gather(*(it.sessions.models() for _ in range(5)))
            assert scripted.asked_for_models == 3
            with pytest.raises(CommandRefused) as refused:
                await it.sessions.models("guard")
            assert refused.value.code == "runtime_model_provider_not_found"

    run(play())


def test_s_85_a_kind_whose_preload_fails_is_unavailable_and_the_server_starts() -> None:
    """It is listed so, without its words' control characters, and asked anew by `reload`."""

    async def play() -> None:
        scripted = ScriptedAdapter(failing={"models": TurnlockError("no\x1b[31m way")})
        async with serving(others=[scripted]) as it:
            found = (await it.sessions.models())["scripted"]
            assert found.models == ()
            assert found.why is not None
            assert "\x1b" not in found.why
            scripted.failing.clear()
            assert (await it.sessions.models())["scripted"].why is not None
            found = (await it.sessions.models("scripted", reload=True))["scripted"]
            assert (found.why, len(found.models)) == (None, 2)

    run(play())


def test_f_33a_models_and_capabilities_over_http() -> None:
    """What a client reads; `reload` takes the role `run`; an unknown kind is 404, one field 422."""

    async def play() -> None:
        scripted = ScriptedAdapter(failing={"models": TurnlockError("no")})
        async with serving(others=[scripted]) as it, faces.opened(
            journal=it.sessions.journal, sessions=it.sessions
        ) as face:  # fmt: skip
            look, owner = face.client(Role.LOOK), face.client(Role.RUN)
            models = (await look.get("/v1/models")).json()
            assert models == {
                "models": [
                    {
                        "kind": "own",
                        "unavailable": False,
                        "models": [{"name": "test:reader", "provider": "test", "default": True}],
                    },
                    {"kind": "scripted", "unavailable": True, "detail": "no", "models": []},
                ]
            }
            assert (await look.get("/v1/models?kind=none")).status_code == 404
            assert (await look.post("/v1/models/reload", json={})).status_code == 403
            scripted.failing.clear()
            again = await owner.post("/v1/models/reload", json={"kind": "scripted"})
            assert again.json()["models"][0]["unavailable"] is False
            assert (await owner.post("/v1/models/reload", json={"kinds": []})).status_code == 422
            able = (await look.get("/v1/capabilities")).json()
            assert able["default"] == "own"
            assert able["kinds"]["own"]["retry"] is True
            assert able["kinds"]["scripted"]["retry"] is False
            assert able["kinds"]["own"]["scopes"] == ["once", "turn", "session"]

    run(play())
