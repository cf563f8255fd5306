"""A state diagram as a picture, in every form."""

from __future__ import annotations

from typing import Any

import attrs

from ...lifecycle.table import INVOCATION
from ...machines.rows import Machine
from ...turn.table import TURN
from ..drawing.engines import Engine
from ..drawing.tables import Table, markdown_table, plain_markdown, text_table
from ..palette import Theme
from ..picture import Format, Picture
from .dot import dot_of
from .extract import graph_of
from .foreign import Foreign
from .graph import Graph
from .labels import SIGNS
from .matrix import matrix_markdown, matrix_table, rests_table, rows_table
from .plain import mermaid_of, text_of
from .svg import svg_text


@attrs.frozen(kw_only=True)
class MachinePicture(Picture):
    """A state diagram.

    With `refusals` the forms that have room for tables (.md, .html, .txt) say what every input does
    in every phase. `engine` says which Graphviz draws.
    """

    formats = frozenset(Format)

    graph: Graph
    refusals: bool = False
    engine: Engine = Engine.AUTO

    @property
    def title(self) -> str:
        """What it is called."""
        return self.graph.title

    @property
    def description(self) -> str:
        """What is to be seen, in a sentence."""
        return self.graph.description

    def svg(self, *, theme: Theme = Theme.LIGHT) -> str:
        """Return the SVG. Raises `CannotDraw`."""
        return svg_text(self.graph, theme=theme, engine=self.engine)

    def dot(self, *, theme: Theme = Theme.LIGHT) -> str:
        """Return the DOT."""
        return dot_of(self.graph, theme=theme)

    def mermaid(self) -> str:
        """Return a `stateDiagram-v2`."""
        return mermaid_of(self.graph)

    def tables(self) -> tuple[Table, ...]:
        """Return the graph's own tables and, with `refusals`, the matrix."""
        matrix = (matrix_table(self.graph), rests_table(self.graph)) if self._has_matrix else ()
        return (*self.graph.tables, *matrix)

    def sections(self) -> list[str]:
        """Return the legend, the tables and the matrix, which Markdown marks up."""
        graph = self.graph
        legend = (f"- {SIGNS[mark]} {plain_markdown(told)}" for mark, told in graph.legend)
        parts = ["\n".join(legend), *map(markdown_table, graph.tables)]
        if self._has_matrix:
            parts += [f"## {plain_markdown(matrix_table(graph).title)}", matrix_markdown(graph)]
        return parts

    def text(self) -> str:
        """Return the diagram and its tables in at most 100 columns."""
        tables = list(self.graph.tables)
        if self._has_matrix:
            tables.append(rows_table(self.graph))
        return "\n".join((text_of(self.graph), *(text_table(table) + "\n" for table in tables)))

    @property
    def _has_matrix(self) -> bool:
        return self.refusals and bool(self.graph.cells)


def machine_picture(
    machine: Machine[Any, Any] | Foreign, *, refusals: bool = False
) -> MachinePicture:
    """Return the diagram of any machine declared with our rows, or of a `transitions.Machine`."""
    return MachinePicture(graph=graph_of(machine), refusals=refusals)


def invocation_picture(*, refusals: bool = False, engine: Engine = Engine.AUTO) -> MachinePicture:
    """Return the machine of one invocation; with `refusals` also what each phase refuses."""
    return MachinePicture(graph=graph_of(INVOCATION), refusals=refusals, engine=engine)


def turn_picture(*, refusals: bool = False, engine: Engine = Engine.AUTO) -> MachinePicture:
    """Return the machine of one turn; with `refusals` also what each phase refuses."""
    return MachinePicture(graph=graph_of(TURN), refusals=refusals, engine=engine)
