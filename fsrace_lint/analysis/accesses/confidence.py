"""How certain it is that multiple processes run an access to one path in ordinary use."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final, Protocol

from fsrace_lint.analysis.accesses.model import Access
from fsrace_lint.analysis.callgraph.concurrency import Entry, Evidence
from fsrace_lint.analysis.paths.purpose import Purpose, purpose
from fsrace_lint.analysis.values.abstract_values import Expression
from fsrace_lint.syntax import model as m

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.paths.abstract_path import AbstractPath
    from fsrace_lint.analysis.values.abstract_values import Binding
    from fsrace_lint.catalog import Op

_SHARING: Final[frozenset[Op]] = frozenset({"extract", "download", "poll"})
_REMOVING: Final[frozenset[Op]] = frozenset({"delete", "rename"})


class Confidence(enum.IntEnum):
    """How certain it is that the failing interleaving can occur in ordinary use.

    `HIGH`: multiple processes are started on the call chain, and the path is known. `MEDIUM`: the code checks
    ranks or synchronizes them, or a library function uses a cache or a download. `LOW`: nothing shows that
    multiple processes run it, except that two users could start it at once.
    """

    LOW = 0
    MEDIUM = 1
    HIGH = 2


class Shown(Protocol):
    """What a rule found: an access, an item of a sequence, or a misuse."""

    @property
    def evidence(self) -> Evidence:
        """What shows that multiple processes run it."""


def confidence(found: Shown) -> Confidence:
    """Return how certain it is that multiple processes run what a rule found."""
    if found.evidence is Evidence.EVIDENT:
        is_known = not isinstance(found, Access) or (found.path is not None and found.certain)
        return Confidence.HIGH if is_known else Confidence.MEDIUM
    if found.evidence is Evidence.LIKELY:
        return Confidence.MEDIUM
    if found.evidence is Evidence.PLAUSIBLE and isinstance(found, Access) and _is_for_many(found):
        return Confidence.MEDIUM
    return Confidence.LOW


def _is_for_many(access: Access) -> bool:
    """Return whether jobs or workers share the path of an access that any process can reach.

    The code of a module runs in every process that imports it, and any process can call a function of a
    library. But a file that a library deletes usually belongs to one caller, unless it is in a cache. All
    processes of a command share what it waits for, downloads, caches, or creates in a fixed directory.
    """
    entry = access.trace.entry
    if entry is Entry.IMPORT or (entry is Entry.CALL and access.op not in _REMOVING):
        return True
    if entry is Entry.COMMAND and (access.op in _SHARING or _is_fixed(access.path)):
        return True
    text = "" if access.path is None else access.path.text
    leaf = access.leaf_call.function
    named = (leaf.module.name, leaf.facts.qualname, access.function, *_calling(access))
    names = () if entry is Entry.COMMAND else named
    return purpose((access.path_source, text, access.callee), names) is Purpose.CACHE


def _is_fixed(path: AbstractPath | None) -> bool:
    """Return whether a path is the same in all processes on a machine, whatever arguments they get."""
    first = next(iter(() if path is None else path.pieces()), "")
    is_anchored = not isinstance(first, str) or first.startswith(("/", "~"))
    known = () if path is None else path.variables()
    return is_anchored and all(_is_without_input(symbol.definition) for symbol in known)


def _is_without_input(value: Binding | None) -> bool:
    """Return whether a value is the result of a call with constants, as for an environment variable."""
    if not isinstance(value, Expression) or not isinstance(value.expr, m.Call):
        return False
    given = (*value.expr.arguments, *(keyword.value for keyword in value.expr.keywords))
    names = [each.id for each in given if isinstance(each, m.Name)]
    return all(isinstance(each, (m.Constant, m.Name)) for each in given) and all(map(str.isupper, names))


def _calling(access: Access) -> Iterator[str]:
    """Yield the names of the functions in the call chain to an access."""
    return (call_site.function.facts.qualname for call_site in access.call_chain)
