"""On which inputs a result depends, so that it can be kept while these do not change.

The inputs are the files of the project, and what all files are searched for: the names of modules, of
classes, of bases. They are bits: one for all of a file, one for its interface alone, and some for names,
each of which stands for many names. A result that is kept brings along what it depends on.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")

Search: TypeAlias = Literal["module", "classes", "bases", "renamed"]
"""What a name is searched for as, through all files."""

UNSETTLED: Final = 1
"""Stands for the inputs of what is still being computed."""
_NAMES: Final = 4096
"""How many bits stand for names."""


class Dependencies:
    """Notes the inputs that are looked at while a result is computed."""

    def __init__(self) -> None:
        """Begin with nothing looked at."""
        self.inputs = 0
        """What was looked at for what is being computed."""
        self._files: dict[str, tuple[int, int]] = {}
        """The bits of each file: of all of it, and of its interface."""
        self.is_recording = False
        """Whether a result is being computed whose inputs are asked for."""
        self._interface = 0
        """Whether files are looked at for their interfaces alone."""
        self._tables: list[Callable[[], None]] = []
        """What forgets the results that were computed on the way."""
        self._unsettled: list[tuple[dict[Any, int], Any]] = []
        """Where the inputs stand of results that depend on what is still being computed."""
        self._shared: dict[int, int] = {}
        """What is equal is kept once: there are many more results than sets of inputs."""

    def file(self, relative: str) -> None:
        """Note that a file is looked at."""
        bits = self._files.get(relative)
        if bits is None:
            first = 1 << (1 + _NAMES + 2 * len(self._files))
            bits = self._files[relative] = first, first << 1
        self.inputs |= bits[self._interface]

    def name(self, search: Search, name: str) -> None:
        """Note that all files are searched for a name, whether any has it or not."""
        self.inputs |= bit_of_name(search, name)

    def interface_of(self, find: Callable[[], Result]) -> Result:
        """Compute a result that depends on the interfaces of the files that are looked at for it."""
        before, self._interface = self._interface, 1
        try:
            return find()
        finally:
            self._interface = before

    def forget(self) -> None:
        """Forget what is being computed, which was given up, and what was computed on the way to results."""
        self.inputs = 0
        self._unsettled.clear()
        self._shared.clear()
        for forget in self._tables:
            forget()

    def restart(self) -> None:
        """Forget all that, and whose results they were: other queries are asked from now on."""
        self.forget()
        self._tables.clear()

    def forgets(self, forget: Callable[[], None]) -> None:
        """Take what forgets results that are computed on the way to others."""
        self._tables.append(forget)

    def bits_of_file(self, relative: str, *, interface: bool) -> int:
        """Give what stands for a file that has changed, in its interface too or only in the rest."""
        whole, outside = self._files.get(relative, (0, 0))
        return whole | outside if interface else whole

    def record(
        self,
        inputs: dict[Any, int],
        key: Any,
        find: Callable[[], Result],
        is_final: Callable[[], bool] | None,
    ) -> Result:
        """Compute a result, or have it from who keeps it, and note the inputs that it depends on.

        Args:
            inputs: The inputs of each result, as far as they are known.
            key: The key of the result.
            find: Computes it, or knows it.
            is_final: Tells whether it is independent of what is still being computed; None for a result
                to which no cycle leads.

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
                    if each in results:  # it may have been forgotten
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
    """Give what stands for a name that is searched for."""
    return 2 << zlib.crc32(f"{search} {name}".encode("utf-8", "surrogatepass")) % _NAMES


def recorded(
    make: Callable[[], Callable[..., Result]],
    dependencies: Dependencies,
    *,
    keep: int | None = None,
    arguments: int | None = None,
) -> Callable[..., Result]:
    """Note the inputs of the results of a query while somebody asks for them.

    Args:
        make: Makes an empty table of results, which gives one for a key.
        dependencies: Notes the inputs.
        keep: For how many keys they are noted; for all where None.
        arguments: How many arguments are the key; all where None.

    Returns:
        Gives the same results. Those whose inputs are not noted are kept apart: of a result that was found
        there, nobody could say what it depends on.
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
    """Note the inputs of the results of a query that may lead back to itself.

    Args:
        ask: Gives a result for a key.
        dependencies: Notes them.
        inputs: Where they are noted.
        is_final: Tells of a key whether its result can be no other one.

    Returns:
        Gives the same results.
    """

    def ask_and_note(*key: Any) -> Result:
        if key in inputs and is_final(*key):
            dependencies.inputs |= inputs[key]
            return ask(*key)
        return dependencies.record(inputs, key, lambda: ask(*key), lambda: is_final(*key))

    return ask_and_note
