"""Functions that return the same value in all processes that call them with equal arguments.

Examples are the highest number in the file names of a directory, or a name without the
characters that filesystems reject. Such a function reads only its arguments and
directory listings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.catalog.lexicon import checks_first_process
from fsrace_lint.engine.query import lazy, query
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name

if TYPE_CHECKING:
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.values.abstract_values import Environment
    from fsrace_lint.analysis.values.resolve import Resolver
    from fsrace_lint.program.modules import LinkedFunction

_DEEPEST: Final = 2
_PLAIN: Final = frozenset(
    {
        "abs", "all", "any", "bool", "dict", "enumerate", "filter", "float", "frozenset", "int",
        "isinstance", "len", "list", "map", "max", "min", "print", "range", "reversed", "round", "set",
        "sorted", "str", "sum", "tuple", "zip", "os.fspath", "os.getcwd", "copy.copy", "copy.deepcopy",
        "json.dumps", "json.loads", "zlib.adler32", "zlib.crc32",
    }
)  # fmt: skip
_PLAIN_MODULES: Final = (
    "re.", "os.path.", "pathlib.", "string.", "operator.", "math.", "hashlib.", "base64.",
)  # fmt: skip
_PLAIN_METHODS: Final = frozenset(
    {
        "add", "append", "as_posix", "count", "date", "decode", "digest", "encode", "endswith", "extend",
        "find", "format", "group", "groups", "hexdigest", "index", "isalnum", "isdecimal",
        "isdigit", "isnumeric", "isoformat", "items", "join", "keys", "lower", "lstrip", "partition",
        "removeprefix", "removesuffix", "replace", "rfind", "rpartition", "rsplit", "rstrip",
        "sort", "split", "startswith", "strftime", "strip", "title", "upper", "values", "with_name",
        "with_stem", "with_suffix", "zfill", "debug", "error", "info", "warn", "warning",
    }
)  # fmt: skip
_LOOKING: Final = frozenset({"probe", "list"})
_ELSEWHERE: Final = frozenset({"environ", "getenv", "random", "next", "open"})
"""Identifiers that can give each process a different value, in addition to those of the library models."""


class ReplicatedCalls:
    """Finds the functions that return equal values for equal arguments."""

    def __init__(self, resolver: Resolver) -> None:
        """Initialize with the resolver of a project."""
        self.resolver = resolver
        self.interpretation = resolver.interpretation
        self.catalog = resolver.catalog

    def is_pure(self, call: m.Call, scope: Environment) -> bool:
        """Return whether the result of a library call depends only on its arguments."""
        name = self._name(call, scope)
        return self.catalog.find("effect", name) is None and _is_plain(name, call.function)

    def follow(self, function: LinkedFunction, depth: int = 0) -> bool:
        """Return whether the result of a function depends only on its arguments and on directory listings.

        Args:
            function: The function.
            depth: The number of calls from the original function to this one.

        Returns:
            Whether it does. False if the function contains an unknown call.
        """
        return depth <= _DEEPEST and self._find(function, depth)

    @query(provisional=False)
    def _find(self, function: LinkedFunction, depth: int) -> bool:
        names = function.facts.referenced_names
        if function.facts.is_generator or not self._telling.isdisjoint(names):
            return False
        return not any(map(checks_first_process, names)) and all(
            self._gives_the_same(call_site, depth) for call_site in self.interpretation.call_sites(function)
        )

    def _gives_the_same(self, call_site: CallSite, depth: int) -> bool:
        callee = self.resolver.callee(call_site.call, call_site.state.scope)
        if callee is not None:
            return self.follow(callee, depth + 1)
        name = self._name(call_site.call, call_site.state.scope)
        effect = self.catalog.find("effect", name)
        return _is_plain(name, call_site.call.function) if effect is None else effect.op in _LOOKING

    def _name(self, call: m.Call, scope: Environment) -> str:
        return self.resolver.qualify(call.function, scope) or f"*.{last_name(call.function)}"

    @lazy
    def _telling(self) -> frozenset[str]:
        """The identifiers of values that differ between processes."""
        kinds = (self.catalog.last_names[kind] for kind in ("rank", "guard", "private"))
        variables = (
            name.rpartition(".")[2]
            for name in self.catalog.names("variable")
            if self.catalog.exact("variable", name).means in {"rank", "guard"}
        )
        return _ELSEWHERE.union(*kinds, variables)


def _is_plain(name: str, called: m.Expr) -> bool:
    """Return whether a library function returns equal values for equal arguments, or an unused value."""
    if name in _PLAIN or name.startswith(_PLAIN_MODULES) or name.endswith("Error"):
        return True
    return isinstance(called, m.Attribute) and called.name in _PLAIN_METHODS
