"""Names that are imported when they are asked for: as with any import, once, or an error."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from turnlock.models.lazy import imported_when_asked


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A package with a module beside it and one below: where each name is."""
    package = ModuleType("shelf")
    package.__path__ = []
    for name, held in (("shelf.books", "novel"), ("shelf.books.old", "atlas")):
        module = ModuleType(name)
        setattr(module, held, object())
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(sys.modules, "shelf", package)
    homes = {"books": "novel play", "books.old": "atlas"}
    monkeypatch.setattr(package, "__getattr__", imported_when_asked("shelf", homes), raising=False)
    return package


def test_a_name_is_found_where_it_is_at_home_and_kept(package: ModuleType) -> None:
    books, old = sys.modules["shelf.books"], sys.modules["shelf.books.old"]

    assert (package.novel, package.atlas) == (books.novel, old.atlas)
    assert vars(package)["novel"] is books.novel  # not asked for again


def test_any_other_name_is_told_as_python_tells_it(package: ModuleType) -> None:
    """Whoever mistypes a name reads which, and of what; the object is there for who catches it."""
    with pytest.raises(AttributeError, match=r"^module 'shelf' has no attribute 'novle'$") as said:
        _ = package.novle

    assert (said.value.name, said.value.obj) == ("novle", package)


def test_a_name_that_needs_an_extra_says_how_to_get_it(
    package: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "shelf.books.old", None)  # as if it could not be imported
    homes = {"books": "novel", "books.old": "atlas"}
    ask = imported_when_asked("shelf", homes, extras={"books.old": "maps"})

    said = r"^shelf\.atlas needs shelf\.books\.old: pip install 'turnlock\[maps\]'$"
    with pytest.raises(ModuleNotFoundError, match=said) as told:
        ask("atlas")
    assert told.value.name == "shelf.books.old"
    with pytest.raises(ModuleNotFoundError, match=r"import of shelf\.books\.old halted"):
        package.atlas  # noqa: B018 - of no extra: as Python says it
