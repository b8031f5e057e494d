"""The width of text on a terminal, and its colors; rich is loaded where ASCII without colors will not do."""

from __future__ import annotations


def cell_len(text: str) -> int:
    """Count the cells that visible text takes."""
    if text.isascii():
        return len(text)
    from rich import cells  # noqa: PLC0415  # most text is ASCII

    return cells.cell_len(text)


def styled(text: str, style: str) -> str:
    """Put the escape sequences of a style around a text."""
    from rich.color import ColorSystem  # noqa: PLC0415  # most reports go to files and programs
    from rich.style import Style  # noqa: PLC0415  # the same

    return Style.parse(style).render(text, color_system=ColorSystem.STANDARD)
