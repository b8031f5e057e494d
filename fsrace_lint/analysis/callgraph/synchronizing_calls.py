"""Which calls of libraries synchronize processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.analysis.dataflow.process_set import SYNCHRONIZING

if TYPE_CHECKING:
    from fsrace_lint.catalog import Catalog
    from fsrace_lint.catalog.entries import Barrier
    from fsrace_lint.syntax import model as m


def is_barrier(catalog: Catalog, name: str | None, call: m.Call) -> bool:
    """Return whether every process waits for all others in a call of a name, and in nothing else."""
    entry: Barrier | None = catalog.find("barrier", name)
    return entry is not None and not (entry.bare and (call.arguments or call.keywords))


def synchronizes(catalog: Catalog, name: str | None, call: m.Call) -> bool:
    """Return whether a call of a name synchronizes processes: a barrier, a collective, or a joint save."""
    if catalog.find("barrier", name) is not None:
        return is_barrier(catalog, name, call)
    return catalog.is_any(SYNCHRONIZING, name)
