"""docs/tools.md: what it shows runs, and what it says of misfits is what is said."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from turnlock.models.values import Json
from turnlock.runtime import BadArguments, OutcomeUnknown, Tool
from turnlock.runtime.tools.arguments import check

PAGE = Path(__file__).resolve().parents[3] / "docs" / "tools.md"
BEFORE = """
from functools import partial
from turnlock.runtime import Toolbox
bank, key = None, "k"
def send(text: str, *, api_key: str) -> str: ...
"""


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """The names that the page's blocks leave behind, each run after the one before."""
    text = PAGE.read_text(encoding="utf-8")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path)
    module = ModuleType("shown_on_the_page")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for block in [BEFORE, *re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)]:
        exec(compile(block, str(PAGE), "exec"), vars(module))  # noqa: S102 - a page of ours
    return vars(module)


def test_what_the_page_declares_is_what_it_says(shown: dict[str, Any]) -> None:
    order = shown["order"]
    assert isinstance(order, Tool)
    parameters: Any = order.parameters
    assert order.description == "Order some items."
    assert parameters["properties"]["items"]["description"] == "What to order."
    assert parameters["$defs"]["Item"]["properties"]["price"]["description"] == "In euros."
    assert set(shown["tools"]) == {"shell_cmd"}
    assert shown["transfer"].is_async
    assert shown["OutcomeUnknown"] is OutcomeUnknown


def test_the_misfit_on_the_page_is_the_one_that_is_told(shown: dict[str, Any]) -> None:
    items: list[Json] = [
        {"name": "a", "price": 1},
        {"name": "b", "price": 2},
        {"name": "c", "price": -1},
    ]
    with pytest.raises(BadArguments) as told:
        check(shown["order"], {"items": items})
    text = re.sub(r"\s+", " ", PAGE.read_text(encoding="utf-8"))
    assert str(told.value).partition("give what")[0] in text.replace("give …", "")
