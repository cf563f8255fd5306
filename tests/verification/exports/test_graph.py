"""TLC's graph is ours, edge for edge: equal counts alone do not show where a transition leads."""

# The graph is asked of TLC with a command of the test's own, made of what the checker uses.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from turnlock.lifecycle.phases import Phase
from turnlock.models.inputs import Input
from turnlock.verification.exports import checkers
from turnlock.verification.exports.derive import derive
from turnlock.verification.exports.explore import steps
from turnlock.verification.exports.model import Member, Model, Scope, State
from turnlock.verification.exports.tla import tla

from .kernel_walk import paths
from .plants import row

Edges = Counter[tuple[State, State]]

NODE = re.compile(r'^(-?\d+) \[label="(.*)"(?:,style = filled)?\];?$', re.MULTILINE)
EDGE = re.compile(r"^(-?\d+) -> (-?\d+) ", re.MULTILINE)
VARIABLE = re.compile(r"/\\\\ (\w+) = (.*?)(?=\\n/|$)")
MEMBER = re.compile(r'\[phase \|-> \\"(\w+)\\", owed \|-> (\d+), attempt \|-> (\d+)\]')


def edges_of(model: Model) -> Edges:
    """Every transition that our own exploration takes."""
    return Counter((state, after) for state in paths(model) for _, _, after in steps(model, state))


def edges_of_tlc(model: Model, workdir: Path) -> Edges:
    """Every transition that TLC takes, read from the graph that it writes."""
    java = shutil.which("java")
    try:
        jar = checkers._jar()
    except checkers.ToolMissing as missing:
        pytest.skip(str(missing))
    if java is None:
        pytest.skip("java is missing")
    checkers._write(tla(model), workdir)
    options = ["-XX:+UseParallelGC", f"-Djava.io.tmpdir={workdir}", "-cp", str(jar), "tlc2.TLC"]
    done = checkers._run(
        [java, *options, "-deadlock", "-workers", "1", "-dump", "dot", "graph", "turnlock"], workdir
    )
    assert done.returncode == 0, done.stdout
    graph = (workdir / "graph.dot").read_text(encoding="utf-8")
    states = {name: state(label) for name, label in NODE.findall(graph)}
    return Counter((states[source], states[target]) for source, target in EDGE.findall(graph))


def state(label: str) -> State:
    """A state of the model, as TLC prints it."""
    variables = dict(VARIABLE.findall(label))
    return State(
        turn=variables["turn"].strip('\\"'),
        members=int(variables["members"]),
        roster=tuple(
            Member(phase, int(owed), int(attempt))
            for phase, owed, attempt in MEMBER.findall(variables["member"])
        ),
        grant=variables["grant"] == "TRUE",
        asked=int(variables["asked"]),
        taken=int(variables["taken"]),
    )


def test_tlc_walks_our_graph(tmp_path: Path) -> None:
    """Each of the 5,850 transitions of two members leads from and to the same states."""
    model = derive(Scope(invocations=2))

    ours = edges_of(model)

    assert ours.total() == 5_850
    assert edges_of_tlc(model, tmp_path) == ours


def test_a_row_that_leads_elsewhere_leads_tlc_elsewhere(tmp_path: Path) -> None:
    """The negative control: a redirected row keeps both counts, and the graphs part."""
    redirected = row(Phase.STARTED, Input.LEASE_OVER, target=Phase.FAILED)

    theirs = edges_of_tlc(redirected, tmp_path)

    assert theirs == edges_of(redirected)
    assert theirs != edges_of(derive(Scope(invocations=1)))
