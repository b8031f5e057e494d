"""Ask isort how imports are sorted."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    import isort

    from fsrace_lint.fixes.layout import Layout


def sorted_by(config: isort.Config, text: str) -> str | None:
    """Sort the imports of a text; return None if isort leaves such a text alone."""
    import isort  # noqa: PLC0415  # loaded only if a fix adds an import

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return isort.code(text, config=config)
    except Exception:  # noqa: BLE001  # whatever isort cannot sort is not sorted
        return None


def sections(modules: Iterable[str], layout: Layout) -> list[int]:
    """Return the section that each module belongs to, in the order of the sections."""
    import isort  # noqa: PLC0415  # loaded only if a fix adds an import

    config = layout.sortings[0]
    order = {name: number for number, name in enumerate(config.sections)}
    return [order.get(isort.place_module(module, config=config), len(order)) for module in modules]
