"""Which functions give the same to all processes that call them at once with the same.

The highest number in the names of the files in a folder, for instance, or a name cleaned of what no
file system takes. What such a function reads is what it is given, and what lies in a folder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

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
        "add", "append", "as_posix", "count", "decode", "digest", "encode", "endswith", "extend",
        "find", "format", "group", "groups", "hexdigest", "index", "isalnum", "isdecimal",
        "isdigit", "isnumeric", "items", "join", "keys", "lower", "lstrip", "partition",
        "removeprefix", "removesuffix", "replace", "rfind", "rpartition", "rsplit", "rstrip",
        "sort", "split", "startswith", "strip", "title", "upper", "values", "with_name",
        "with_stem", "with_suffix", "zfill", "debug", "error", "info", "warn", "warning",
    }
)  # fmt: skip
_LOOKING: Final = frozenset({"probe", "list"})
_ELSEWHERE: Final = frozenset({"environ", "getenv", "random", "next", "open"})
"""Identifiers of what can give each process something of its own, besides those in the catalog."""


class ReplicatedCalls:
    """Tells which functions make the same of the same."""

    def __init__(self, resolver: Resolver) -> None:
        """Prepare for a project whose names `resolver` resolves."""
        self.resolver = resolver
        self.interpretation = resolver.interpretation
        self.catalog = resolver.catalog

    def is_pure(self, call: m.Call, scope: Environment) -> bool:
        """Tell whether what a call gives follows from what it is given; it leads into no function here."""
        name = self._name(call, scope)
        return self.catalog.find("effect", name) is None and _is_plain(name, call.function)

    def follow(self, function: LinkedFunction, depth: int = 0) -> bool:
        """Tell whether what a function returns follows from what it is given and from what lies in a folder.

        Args:
            function: The function.
            depth: How many calls lead to it from the one that is asked about.

        Returns:
            False also where a call in it is not known.
        """
        return depth <= _DEEPEST and self._find(function, depth)

    @query(provisional=False)
    def _find(self, function: LinkedFunction, depth: int) -> bool:
        facts = function.facts
        if facts.is_generator or not self._telling.isdisjoint(facts.referenced_names):
            return False
        return all(
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
        """The identifiers of what differs from process to process."""
        kinds = (self.catalog.last_names[kind] for kind in ("rank", "guard", "private"))
        variables = (
            name.rpartition(".")[2]
            for name in self.catalog.names("variable")
            if self.catalog.exact("variable", name).means in {"rank", "guard"}
        )
        return _ELSEWHERE.union(*kinds, variables)


def _is_plain(name: str, called: m.Expr) -> bool:
    """Tell whether a function of a library makes the same of the same, or makes nothing that is used."""
    if name in _PLAIN or name.startswith(_PLAIN_MODULES) or name.endswith("Error"):
        return True
    return isinstance(called, m.Attribute) and called.name in _PLAIN_METHODS
