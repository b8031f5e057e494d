"""The inputs that a result depends on, so that the result can be kept until one of them changes.

Inputs are the files of the project, and the names that are searched for in all files: modules, classes, base
classes, and renamed imports. Inputs are bits: one for the whole of a file, one for its interface alone, and a
fixed number of bits for names, each shared by many names. A kept result is stored with its inputs.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")

Search: TypeAlias = Literal["module", "classes", "bases", "renamed"]
"""The kind of name that all files are searched for."""

UNSETTLED: Final = 1
"""A bit that represents the inputs of a result that is still being computed."""
_NAMES: Final = 4096
"""The number of bits for names."""


class Dependencies:
    """A recorder of the inputs that are read while a result is computed."""

    def __init__(self) -> None:
        """Initialize with no inputs recorded."""
        self.inputs = 0
        """The inputs read so far for the result being computed."""
        self._files: dict[str, tuple[int, int]] = {}
        """The bits of each file: for the whole file, and for its interface."""
        self.is_recording = False
        """Whether the current result needs its inputs recorded."""
        self._interface = 0
        """Whether files are currently read for their interfaces only."""
        self._tables: list[Callable[[], None]] = []
        """Callbacks that clear intermediate results."""
        self._unsettled: list[tuple[dict[Any, int], Any]] = []
        """The tables and keys of results that depend on queries that are still being computed."""
        self._shared: dict[int, int] = {}
        """One shared object per set of inputs, because many results have equal sets."""

    def file(self, relative: str) -> None:
        """Record that a file is read."""
        bits = self._files.get(relative)
        if bits is None:
            first = 1 << (1 + _NAMES + 2 * len(self._files))
            bits = self._files[relative] = first, first << 1
        self.inputs |= bits[self._interface]

    def name(self, search: Search, name: str) -> None:
        """Record that all files are searched for a name, whether or not any file has it."""
        self.inputs |= bit_of_name(search, name)

    def interface_of(self, find: Callable[[], Result]) -> Result:
        """Compute a result that depends only on the interfaces of the files that are read for it."""
        before, self._interface = self._interface, 1
        try:
            return find()
        finally:
            self._interface = before

    def forget(self) -> None:
        """Discard the aborted computation, and all intermediate results."""
        self.inputs = 0
        self._unsettled.clear()
        self._shared.clear()
        for forget in self._tables:
            forget()

    def restart(self) -> None:
        """Discard all intermediate results and unregister their tables, before other queries replace them."""
        self.forget()
        self._tables.clear()

    def forgets(self, forget: Callable[[], None]) -> None:
        """Register a callback that clears intermediate results."""
        self._tables.append(forget)

    def bits_of_file(self, relative: str, *, interface: bool) -> int:
        """Return the bits of a changed file.

        Args:
            relative: The path of the file, relative to the root of the project.
            interface: Whether the interface changed too.
        """
        whole, outside = self._files.get(relative, (0, 0))
        return whole | outside if interface else whole

    def record(
        self,
        inputs: dict[Any, int],
        key: Any,
        find: Callable[[], Result],
        is_final: Callable[[], bool] | None,
    ) -> Result:
        """Compute or look up a result, and record the inputs that it depends on.

        Args:
            inputs: The known inputs of each result.
            key: The key of the result.
            find: Computes or looks up the result.
            is_final: Returns whether the result is independent of queries that are still being computed. None
                for a query that is not part of a cycle.

        Returns:
            The result.
        """
        (outer, self.inputs), earlier = (self.inputs, 0), len(self._unsettled)
        outermost, self.is_recording = not self.is_recording, True
        is_settled = False
        try:
            result = find()
            is_settled = is_final is not None and is_final()
        finally:
            found = inputs.get(key, 0) | self.inputs
            if is_settled:
                found &= ~UNSETTLED
                for results, each in self._unsettled[earlier:]:
                    if each in results:  # it may have been discarded
                        results[each] = (results[each] | found) & ~UNSETTLED
                del self._unsettled[earlier:]
            elif is_final is not None:
                found |= UNSETTLED
            self.is_recording = not outermost
            inputs[key] = found = self._shared.setdefault(found, found)
            self.inputs = outer | found
            if found & UNSETTLED:
                self._unsettled.append((inputs, key))
        return result


def bit_of_name(search: Search, name: str) -> int:
    """Return the bit of a name that is searched for."""
    return 2 << zlib.crc32(f"{search} {name}".encode("utf-8", "surrogatepass")) % _NAMES


def recorded(
    make: Callable[[], Callable[..., Result]],
    dependencies: Dependencies,
    *,
    keep: int | None = None,
    arguments: int | None = None,
) -> Callable[..., Result]:
    """Wrap a query so that the inputs of its results are recorded on request.

    Args:
        make: Creates an empty table of results, a function from keys to results.
        dependencies: Records the inputs.
        keep: The maximum number of keys with recorded inputs, or None for all.
        arguments: The number of leading arguments that form the key, or None for all.

    Returns:
        A function with the same results. Results without recorded inputs are kept in a table of their own, so
        that they are never reused where inputs are needed.
    """
    inputs: dict[Any, int] = {}
    noted = [make()]
    ask_only = make()

    def forget() -> None:
        inputs.clear()
        noted[0] = make()

    dependencies.forgets(forget)

    def ask_and_note(*key: Any) -> Result:
        if not dependencies.is_recording:
            return ask_only(*key)
        if keep is not None and len(inputs) >= keep:
            forget()
        question, ask = key if arguments is None else key[:arguments], noted[0]
        return dependencies.record(inputs, question, lambda: ask(*key), None)

    return ask_and_note


def recorded_in_cycles(
    ask: Callable[..., Result],
    dependencies: Dependencies,
    inputs: dict[Any, int],
    is_final: Callable[..., bool],
) -> Callable[..., Result]:
    """Wrap a query that may depend on itself so that the inputs of its results are recorded.

    Args:
        ask: Returns the result for a key.
        dependencies: Records the inputs.
        inputs: The dictionary to record them in.
        is_final: Returns whether the result for a key is final.

    Returns:
        A function with the same results.
    """

    def ask_and_note(*key: Any) -> Result:
        if key in inputs and is_final(*key):
            dependencies.inputs |= inputs[key]
            return ask(*key)
        return dependencies.record(inputs, key, lambda: ask(*key), lambda: is_final(*key))

    return ask_and_note
