"""``turnlock export``: the text on standard output, or files where they were asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from turnlock.cli.export import command
from turnlock.verification.exports.technique import export


def run(*arguments: object) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def test_tla_goes_to_standard_output_with_its_configuration() -> None:
    """The module ends with its own line, then the configuration follows."""
    module, configuration = export(invocations=3).values()

    assert run("tla", "--invocations", 3).output == f"{module}\n{configuration}"


def test_files_are_written_and_named(tmp_path: Path) -> None:
    """A folder that is not there is made; nothing else is written; again writes over."""
    names = ["turnlock.cfg", "turnlock.tla"]
    folder = tmp_path / "new" / "folder"

    for _ in range(2):
        result = run("tla", "--output", folder)

        assert result.exit_code == 0
        assert sorted(path.name for path in folder.iterdir()) == names
        assert sorted(result.output.split()) == [str(folder / name) for name in names]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "Missing argument"),
        (("promela",), "'promela' is not 'tla'"),
        (("tla", "--invocations", 5), "1<=x<=4"),
        (("tla", "--invocations", "two"), "not a valid integer"),
    ],
)
def test_wrong_usage_is_told(arguments: tuple[object, ...], told: str) -> None:
    """Status 2, and the values that would be right."""
    result = run(*arguments)

    assert result.exit_code == 2
    assert told in result.output


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """The cause and the fix, no traceback, and nothing is left behind."""
    (tmp_path / "file").touch()

    result = run("tla", "--output", tmp_path / "file" / "folder")

    assert result.exit_code == 1
    assert "cannot be written (Not a directory); choose another --output" in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
