"""A search that stopped before its end, in a file, so that a later run continues it."""

from __future__ import annotations

import hashlib
import inspect
import io
import json
import os
import pickle
import sys
from typing import TYPE_CHECKING, Any, Final, Protocol

from fsrace_lint.explore.errors import ExploreError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from fsrace_lint.explore.scenario import Bounds, Scenario

_VERSION: Final = 1
_OWN: Final = (
    "fsrace_lint.explore.moves",
    "fsrace_lint.explore.search.",
    "fsrace_lint.explore.running.retry",
)
"""The beginnings of the names of the modules whose classes a search is made of."""
_PLAIN: Final = {("builtins", name) for name in ("set", "frozenset", "range", "complex", "bytearray")} | {
    ("collections", name) for name in ("deque", "defaultdict", "OrderedDict")
}


class _Reader(pickle.Unpickler):
    """Reads plain data of a search only: a foreign file can run no code."""

    def find_class(self, module: str, name: str) -> Any:
        is_known = module.startswith(_OWN) or (module, name) in _PLAIN
        found = super().find_class(module, name) if is_known else None
        if not isinstance(found, type) or found.__module__ != module:
            raise pickle.UnpicklingError(f"unexpected {module}.{name}")
        return found


def digest(scenario: Scenario, bounds: Bounds) -> str:
    """Return a text that identifies a search: the code and the options that decide what is run.

    Whether processes see each other is left out, because a search can find this out.
    """
    told = [str(_VERSION), sys.version, *_code_of(scenario.function)]
    for part in (scenario.setup, scenario.check):
        told += _code_of(part)
    told.append(repr([kind.__name__ for kind in scenario.expected]))
    options = scenario._asdict().items()
    plain = [(name, value) for name, value in options if isinstance(value, (str, int, float, tuple))]
    left_out = ("expected", "lifetimes")
    told += [f"{name}={value!r}" for name, value in plain if name not in left_out]
    told.append(repr(bounds.preemptions))
    return hashlib.sha256("\0".join(told).encode(errors="replace")).hexdigest()[:16]


def _code_of(function: Callable[..., object] | None) -> list[str]:
    """Return the name of a function, and the text of its file."""
    if function is None:
        return [""]
    name = getattr(function, "__qualname__", type(function).__qualname__)
    try:
        module = inspect.getmodule(function)
        return [name, inspect.getsource(module if module is not None else function)]
    except (OSError, TypeError):
        return [name]


class Search(Protocol):
    """A search that can be saved."""

    def state(self) -> dict[str, object]:
        """Return the search as data."""

    def restore(self, state: dict[str, Any]) -> None:
        """Continue where a search stopped."""


def save(file: Path, identity: str, searches: Sequence[Search], counts: dict[str, Any]) -> None:
    """Write searches to a file, in one step.

    Args:
        file: The file.
        identity: The `digest()` of the search.
        searches: The searches.
        counts: What they have found so far, as plain data.
    """
    state = [search.state() for search in searches]
    head = json.dumps({"fsrace-lint": _VERSION, "search": identity, **counts})
    data = head.encode() + b"\n" + pickle.dumps(state)
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        beside.write_bytes(data)
        beside.replace(file)
    except OSError as error:
        raise ExploreError(f"cannot write {file}: {error.strerror}") from None
    finally:
        beside.unlink(missing_ok=True)


def load(file: Path, identity: str, searches: Sequence[Search], *, lifetimes: bool = False) -> dict[str, Any]:
    """Continue a search where it stopped.

    Args:
        file: The file.
        identity: The `digest()` of the search.
        searches: New searches, in the order in which they were saved.
        lifetimes: Whether the start and the end of each process are moves. A search without these moves
            begins again.

    Returns:
        What the search had found; empty if there is no file that can be continued.

    Raises:
        ExploreError: The file is not a saved search, or is that of another one.
    """
    try:
        head, _, body = file.read_bytes().partition(b"\n")
        counts = json.loads(head)
        is_known = counts.pop("fsrace-lint") == _VERSION
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise ExploreError(f"{file} is not a saved search") from None
    if not is_known or counts.pop("search", None) != identity:
        raise ExploreError(
            f"{file} is a search of other code, or with other options: delete it to start from the beginning"
        )
    if lifetimes and not counts.get("lifetimes"):
        return {}
    try:
        for search, state in zip(searches, _Reader(io.BytesIO(body)).load(), strict=True):
            search.restore(state)
    except Exception as error:  # noqa: BLE001  # a damaged pickle can raise anything
        raise ExploreError(f"{file} is damaged: {error}") from None
    return dict(counts)
