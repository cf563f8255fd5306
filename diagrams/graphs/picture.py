"""A state diagram as a picture, in every form."""

from __future__ import annotations

from typing import Any

import attrs

from ...machines.rows import Machine
from ..drawing.graphviz import Engine
from ..drawing.page import page
from ..drawing.tables import Table, markdown_table, plain_markdown, text_table
from ..palette import Theme
from ..picture import Picture
from .dot import dot_of
from .extract import graph_of
from .foreign import Foreign
from .graph import Graph
from .labels import SIGNS
from .matrix import matrix_markdown, matrix_table, rests_table, rows_table
from .mermaid import mermaid_of
from .svg import svg_text
from .text import text_of


@attrs.frozen(kw_only=True)
class MachinePicture(Picture):
    """A state diagram.

    With `refusals` the forms that have room for tables (.md, .html, .txt) say what every input does
    in every phase. `engine` says which Graphviz draws.
    """

    graph: Graph
    refusals: bool = False
    engine: Engine = Engine.AUTO

    @property
    def title(self) -> str:
        """What it is called."""
        return self.graph.title

    def svg(self, *, theme: Theme = Theme.LIGHT) -> str:
        """Return the SVG. Raises `CannotDraw`."""
        return svg_text(self.graph, theme=theme, engine=self.engine)

    def dot(self, *, theme: Theme = Theme.LIGHT) -> str:
        """Return the DOT."""
        return dot_of(self.graph, theme=theme)

    def mermaid(self) -> str:
        """Return a `stateDiagram-v2`."""
        return mermaid_of(self.graph)

    def markdown(self) -> str:
        """Return a section with the diagram as a Mermaid block, its legend and its tables."""
        graph = self.graph
        parts = [f"# {plain_markdown(graph.title)}", plain_markdown(graph.description)]
        parts.append(f"```mermaid\n{self.mermaid()}```")
        parts.append(
            "\n".join(f"- {SIGNS[mark]} {plain_markdown(told)}" for mark, told in graph.legend)
        )
        parts += [markdown_table(table) for table in graph.tables]
        if self._has_matrix:
            parts += [f"## {plain_markdown(matrix_table(graph).title)}", matrix_markdown(graph)]
        return "\n\n".join(part.rstrip("\n") for part in parts if part) + "\n"

    def html(self, *, theme: Theme = Theme.LIGHT) -> str:
        """Return the page: the SVG and the tables. Raises `CannotDraw`."""
        matrix: tuple[Table, ...] = ()
        if self._has_matrix:
            matrix = (matrix_table(self.graph), rests_table(self.graph))
        return page(
            title=self.graph.title,
            description=self.graph.description,
            pictures=[self.svg(theme=theme)],
            tables=(*self.graph.tables, *matrix),
            theme=theme,
        )

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
