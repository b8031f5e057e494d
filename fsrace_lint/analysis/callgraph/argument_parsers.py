"""The arguments that a program describes, and the values that the words of a command give them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_FLAGS: Final = {"store_true": True, "store_false": False}
"""The actions of flags, and the values that the flags set."""
_WITHOUT_VALUE: Final = frozenset({*_FLAGS, "store_const", "append_const", "count"})
_WITH_VALUE: Final = frozenset({"store", "append", "extend"})
_MANY: Final = frozenset({"+", "*"})
_OTHER: Final = object()
"""A value that differs from all constants in the code."""

Values: TypeAlias = "tuple[object, ...]"
"""All values that an expression can have, or nothing if they are not known."""


class Described(Record, frozen=True, eq=False):
    """A call that describes arguments of a program.

    Attributes:
        does: What the call does, as in the library models.
        call: The call.
        is_first: Whether no other positional argument precedes it in its function.
    """

    does: str
    call: m.Call
    is_first: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The spellings of an option, or the names of a subcommand."""
        literal = (each.value for each in self.call.arguments if isinstance(each, m.Constant))
        return tuple(map(str, (*literal, *self.constants("aliases"))))

    @property
    def spellings(self) -> tuple[str, ...]:
        """The spellings of an option."""
        return tuple(name for name in self.names if name.startswith("-"))

    @property
    def destination(self) -> object:
        """The attribute with the value. A long spelling of an option names it."""
        long = (name for name in self.names if name.startswith("--"))
        name = next(long, next(iter(self.names), ""))
        return next(iter(self.constants("dest")), name.lstrip("-").replace("-", "_"))

    @property
    def flag(self) -> bool | None:
        """The value that a flag sets, or None for another argument."""
        return _FLAGS.get(self.action)

    @property
    def action(self) -> str:
        """The action, or an empty string if it is not known."""
        action = next(iter(self.constants("action")), "" if self.passes("action") else "store")
        return action if isinstance(action, str) else ""

    def passes(self, *keywords: str) -> bool:
        """Return whether the call passes one of some keywords, or may do so with `**`."""
        return any(each.name is None or each.name in keywords for each in self.call.keywords)

    def constants(self, keyword: str) -> Values:
        """Return the constants in a keyword argument."""
        value = next((each.value for each in self.call.keywords if each.name == keyword), None)
        items = value.items if isinstance(value, m.Sequence) else (value,)
        return tuple(each.value for each in items if isinstance(each, m.Constant))

    def take(self, waiting: list[str]) -> tuple[str, bool]:
        """Take the value of an option from the end of a list.

        Returns:
            The value, empty if it is not known, and whether it is known where the value ends.
        """
        if self.action in _WITHOUT_VALUE:
            return "", True
        if not self.passes("nargs"):
            return waiting.pop() if waiting else "", self.action in _WITH_VALUE
        while waiting and waiting[-1] and not waiting[-1].startswith("-"):
            waiting.pop()
        return "", _MANY.issuperset(self.constants("nargs"))

    @property
    def default(self) -> Values:
        """The values of an option that a command omits.

        A command in documentation can omit an option such as `--output`, so any value is possible, but not
        one that the code compares it with.
        """
        if self.passes("default") and self.constants("default") != (None,):
            return () if self.passes("type") else self.constants("default")
        return (None, _OTHER) if self.flag is None else (not self.flag,)


class ParsedWords(Record, frozen=True, eq=False):
    """The words of a command, divided by what a program describes.

    Attributes:
        described: What the program describes.
        positional: The first words that belong to no option.
        options: The values of the options, by spelling. An empty value is not known.
        is_complete: Whether no further arguments are possible.
    """

    described: Sequence[Described]
    positional: tuple[str, ...]
    options: Mapping[str, str]
    is_complete: bool

    @classmethod
    def of(cls, words: Sequence[str], described: Sequence[Described]) -> ParsedWords:
        """Divide words until one is not known, or is no option that is described."""
        options = [each for each in described if each.does == "add"]
        positional: list[str] = []
        found: dict[str, str] = {}
        waiting = [*reversed(words)]
        is_known = True
        while waiting and is_known:
            name, equals, value = waiting[-1].partition("=")
            option = next((each for each in options if name in each.spellings), None)
            if option is not None:
                waiting.pop()
                found[name], is_known = (value, True) if equals else option.take(waiting)
            elif name and not name.startswith("-"):
                positional.append(waiting.pop())
            else:
                is_known = False
        return cls(described, tuple(positional), found, is_known)

    @property
    def _subcommands(self) -> frozenset[str]:
        return frozenset(name for each in self.described if each.does == "add-command" for name in each.names)

    @property
    def _is_nested(self) -> bool:
        """Whether subcommands can have subcommands."""
        return sum(each.does == "add-commands" for each in self.described) > 1

    def may_run(self, names: Sequence[str]) -> bool:
        """Return whether the words may name a subcommand, one of whose names is passed."""
        known = self._subcommands.intersection(self.positional[:1])
        if not known or (self._is_nested and not self.is_complete):
            return True
        return not set(names).isdisjoint(self.positional)

    def values(self, destination: str) -> Values:
        """Return the values that an attribute of the parsed arguments can have."""
        found: list[object] = []
        for each in self.described:
            if each.does == "set-defaults" and each.passes(destination):
                values = each.constants(destination)
            elif each.does in {"add", "add-commands"} and each.destination == destination:
                values = self._of_option(each) if each.spellings else self._of_positional(each)
            else:
                continue
            if not values:
                return ()
            found += values
        return tuple(found)

    def _of_option(self, option: Described) -> Values:
        given = tuple(self.options[name] for name in option.spellings if name in self.options)
        if given and option.flag is not None:
            return (option.flag,)
        if given:
            return given if all(given) and not option.passes("type", "nargs", "action") else ()
        return option.default if self.is_complete and not option.passes("required") else ()

    def _of_positional(self, argument: Described) -> Values:
        """Return the first positional word, if it must be this argument."""
        first = self.positional[:1] if argument.is_first else ()
        if argument.does == "add":
            choices = argument.constants("choices")
            is_only = not self._subcommands and not argument.passes("nargs", "type", "choices")
            return first if is_only or set(first) <= set(choices) else ()
        return first if not self._is_nested and self._subcommands.issuperset(first) else ()
