"""What draws: Graphviz, SVG, pages and pixels."""
