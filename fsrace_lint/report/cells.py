"""The width of text on a terminal, and its colors; `rich` is imported only for colors and non-ASCII text."""

from __future__ import annotations


def cell_len(text: str) -> int:
    """Return the number of terminal cells of a visible text."""
    if text.isascii():
        return len(text)
    from rich import cells  # noqa: PLC0415  # most text is ASCII

    return cells.cell_len(text)


def styled(text: str, style: str) -> str:
    """Return a text with the escape sequences of a style."""
    from rich.color import ColorSystem  # noqa: PLC0415  # most reports go to files and programs
    from rich.style import Style  # noqa: PLC0415  # the same

    return Style.parse(style).render(text, color_system=ColorSystem.STANDARD)
