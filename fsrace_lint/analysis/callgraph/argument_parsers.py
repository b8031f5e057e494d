"""The arguments that a program describes, and the values that the words of a command give them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name
from fsrace_lint.syntax.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fsrace_lint.analysis.values.constants import Values

_FLAGS: Final = {"store_true": True, "store_false": False}
"""The actions of flags, and the values that the flags set."""
_WITHOUT_VALUE: Final = frozenset({*_FLAGS, "store_const", "append_const", "count"})
_WITH_VALUE: Final = frozenset({"store", "append", "extend"})
_MANY: Final = frozenset({"+", "*"})
_BOOLEANS: Final = {
    **dict.fromkeys(("true", "t", "1", "yes", "y", "on"), True),
    **dict.fromkeys(("false", "f", "0", "no", "n", "off"), False),
}
"""The words for the values of a flag, in lower case."""
_SWITCH: Final = "BooleanOptionalAction"
"""The action of a flag that `--no-name` switches off."""
_OTHER: Final = object()
"""A value that differs from all constants in the code."""


class Described(Record, frozen=True, eq=False):
    """A call that describes arguments of a program.

    Attributes:
        does: What the call does, as in the library models.
        call: The call.
        is_first: Whether no other positional argument precedes it in its function.
        choices: The only values that it accepts, if the call names them.
    """

    does: str
    call: m.Call
    is_first: bool = False
    choices: Values = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The spellings of an option, or the names of a subcommand."""
        literal = (each.value for each in self.call.arguments if isinstance(each, m.Constant))
        return tuple(map(str, (*literal, *self.constants("aliases"))))

    @property
    def spellings(self) -> tuple[str, ...]:
        """The spellings of an option."""
        return tuple(name for name in (*self.names, *self.negated) if name.startswith("-"))

    @property
    def negated(self) -> tuple[str, ...]:
        """The spellings that switch a flag off."""
        long = (f"--no-{name[2:]}" for name in self.names if name.startswith("--"))
        return tuple(long) if self.is_switch else ()

    @property
    def is_switch(self) -> bool:
        """Whether the option is a flag that a command can switch on and off."""
        return self._name("action") == _SWITCH

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

    def _keyword(self, name: str) -> m.Expr | None:
        return next((each.value for each in self.call.keywords if each.name == name), None)

    def _name(self, keyword: str) -> str:
        """Return the last name of what a keyword argument refers to, or an empty string."""
        value = self._keyword(keyword)
        return "" if value is None else last_name(value)

    @property
    def converts(self) -> bool:
        """Whether the call may pass a function that converts the words."""
        return any(
            each.name is None or (each.name == "type" and each.value != m.Name("str"))
            for each in self.call.keywords
        )

    def constants(self, keyword: str) -> Values:
        """Return the constants in a keyword argument."""
        value = self._keyword(keyword)
        items = value.items if isinstance(value, m.Sequence) else (value,)
        return tuple(each.value for each in items if isinstance(each, m.Constant))

    def take(self, waiting: list[str]) -> tuple[str, bool]:
        """Take the value of an option from the end of a list.

        Returns:
            The value, empty if it is not known, and whether it is known where the value ends.
        """
        if self.is_switch:
            return "true", True
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
            return () if self.converts else self.constants("default")
        return (None, _OTHER) if self.flag is None else (not self.flag,)

    @property
    def allowed(self) -> Values:
        """The values that it can have, whatever the command, or nothing if it can have any value.

        The default need not be one of the choices.
        """
        if not self.choices or self.action != "store" or self.passes("nargs"):
            return ()
        default = self.constants("default") if self.passes("default") else (None,)
        return (*self.choices, *default) if default else ()

    def values(self, options: Mapping[str, str], *, is_complete: bool) -> Values:
        """Return the values that an option can have.

        Args:
            options: The values of the options in a command, by spelling. An empty value is not known.
            is_complete: Whether the command contains no further options.
        """
        given = {name: options[name] for name in self.spellings if name in options}
        if not given:
            return self.default if is_complete and not self.passes("required") else ()
        if self.flag is not None:
            return (self.flag,)
        if self.is_switch or (self._reads_boolean and not self.passes("nargs", "action")):
            words = {name: _BOOLEANS.get(word.lower()) for name, word in given.items()}
            is_known = None not in words.values()
            return tuple(word is not (name in self.negated) for name, word in words.items() if is_known)
        texts = tuple(given.values())
        return texts if all(texts) and self._is_text else ()

    @property
    def _is_text(self) -> bool:
        """Whether the value is the word in the command."""
        return not (self.converts or self.passes("nargs", "action"))

    @property
    def _reads_boolean(self) -> bool:
        """Whether a function such as `str2bool` reads the value. `bool` is true for any word."""
        name = self._name("type")
        return "bool" in name.lower() and name != "bool"


class DefinedFlag(Described, frozen=True, eq=False):
    """A call that describes an option of the whole program, by its name and its default.

    Attributes:
        value: What the option holds, as in the library models.
    """

    value: str = "other"

    @property
    def names(self) -> tuple[str, ...]:
        """The spellings, but not those that switch a flag off."""
        name = next((each.value for each in self.call.arguments[:1] if isinstance(each, m.Constant)), "")
        return (f"--{name}", f"-{name}") if name else ()

    @property
    def negated(self) -> tuple[str, ...]:
        """The spellings that switch a flag off."""
        dashes = ("--", "-") if self.is_switch else ()
        return tuple(f"{each}no{name.lstrip('-')}" for name in self.names[:1] for each in dashes)

    @property
    def is_switch(self) -> bool:
        """Whether the option is a flag that a command can switch on and off."""
        return self.value == "flag"

    @property
    def default(self) -> Values:
        """The default, if it is a constant. Without one, a command in documentation can omit the option."""
        second = (each.value for each in self.call.arguments[1:2] if isinstance(each, m.Constant))
        known = () if self.value == "other" else (*second, *self.constants("default"))
        return (None, _OTHER) if known == (None,) else known

    @property
    def _is_text(self) -> bool:
        """Whether the value is the word in the command."""
        return self.value == "text"


class ParsedWords(Record, frozen=True, eq=False):
    """The words of a command, divided by what a program describes.

    Attributes:
        described: What the program describes.
        positional: The first words that belong to no option.
        options: The values of the options, by spelling. An empty value is not known.
        is_complete: Whether no further arguments are possible.
        has_all_options: Whether no further options that are described are possible.
    """

    described: Sequence[Described]
    positional: tuple[str, ...]
    options: Mapping[str, str]
    is_complete: bool
    has_all_options: bool

    @classmethod
    def of(cls, words: Sequence[str], described: Sequence[Described]) -> ParsedWords:
        """Divide words. After one that is not known, only options count."""
        options = [each for each in described if each.does in {"add", "define"}]
        positional: list[str] = []
        found: dict[str, str] = {}
        waiting = [*reversed(words)]
        is_complete = has_all_options = True
        while waiting:
            name, equals, value = waiting[-1].partition("=")
            option = next((each for each in options if name in each.spellings), None)
            if option is not None:
                waiting.pop()
                found[name], is_known = (value, True) if equals else option.take(waiting)
                is_complete = is_complete and is_known
                has_all_options = has_all_options and is_known
            elif is_complete and name and not name.startswith("-"):
                positional.append(waiting.pop())
            else:
                waiting.pop()
                is_complete = False
                has_all_options = has_all_options and _is_other(name, options)
        return cls(described, tuple(positional), found, is_complete, has_all_options)

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
            elif each.does in {"add", "add-commands", "define"} and each.destination == destination:
                if each.spellings:
                    values = each.values(self.options, is_complete=self.has_all_options)
                else:
                    values = self._of_positional(each)
            else:
                continue
            if not values:
                return ()
            found += values
        return tuple(found)

    def _of_positional(self, argument: Described) -> Values:
        """Return the first positional word, if it must be this argument."""
        first = self.positional[:1] if argument.is_first else ()
        if argument.does == "add":
            choices = argument.constants("choices")
            is_only = not (self._subcommands or argument.converts or argument.passes("nargs", "choices"))
            return first if is_only or set(first) <= set(choices) else ()
        return first if not self._is_nested and self._subcommands.issuperset(first) else ()


def allowed_values(described: Iterable[Described], destination: str) -> Values:
    """Return the values that an attribute of the parsed arguments can have, whatever the command.

    The result is empty if it can have any value.
    """
    found: list[object] = []
    for each in described:
        if each.does == "set-defaults" and each.passes(destination):
            values = each.constants(destination)
        elif each.does in {"add", "add-commands", "define"} and each.destination == destination:
            values = each.allowed
        else:
            continue
        if not values:
            return ()
        found += values
    return tuple(found)


def _is_other(word: str, options: Sequence[Described]) -> bool:
    """Return whether a word is known, and cannot be the short form of one of some options."""
    return bool(word) and not any(name.startswith(word) for each in options for name in each.spellings)
