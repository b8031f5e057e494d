"""How certain it is that multiple processes run an access to one path in ordinary use."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final, Protocol

from fsrace_lint.analysis.accesses.model import Access
from fsrace_lint.analysis.callgraph.concurrency import Doubt, Entry, Evidence
from fsrace_lint.analysis.paths.purpose import Purpose, purpose
from fsrace_lint.analysis.paths.work_items import Share
from fsrace_lint.analysis.values.abstract_values import Expression
from fsrace_lint.catalog.lexicon import says
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import implied, last_name, setting_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.callgraph.concurrency import ConcurrencyMarker
    from fsrace_lint.analysis.paths.abstract_path import AbstractPath
    from fsrace_lint.analysis.values.abstract_values import Binding
    from fsrace_lint.catalog import Op

_SHARING: Final[frozenset[Op]] = frozenset({"extract", "download", "poll"})


class Confidence(enum.IntEnum):
    """How certain it is that the failing interleaving can occur in ordinary use.

    `HIGH`: ranks of one job are started on the call chain, which is certain, and the path is known.
    `MEDIUM`: worker processes are started, the code checks ranks or synchronizes them, or a library function
    uses a cache or a download.
    `LOW`: nothing shows that multiple processes run it, except that two users could start it at once; or each
    process usually gets other items of the work, and the path depends on the item; or the code compares
    something of the process with a value that is not known; or nothing runs the file.
    """

    LOW = 0
    MEDIUM = 1
    HIGH = 2


class Shown(Protocol):
    """What a rule found: an access, an item of a sequence, or a misuse."""

    @property
    def evidence(self) -> Evidence:
        """What shows that multiple processes run it."""

    @property
    def marker(self) -> ConcurrencyMarker | None:
        """The marker at the end of the call chain."""

    @property
    def doubt(self) -> Doubt:
        """Why the call chain is not certain."""


def confidence(found: Shown) -> Confidence:
    """Return how certain it is that multiple processes run what a rule found on one path, in ordinary use."""
    if found.doubt >= Doubt.PROCESS:
        return Confidence.LOW
    if isinstance(found, Access) and _is_unusual(found):
        return Confidence.LOW
    if found.evidence is Evidence.EVIDENT:
        is_certain = found.doubt is Doubt.NONE and _is_by_ranks(found)
        is_known = not isinstance(found, Access) or _is_known(found)
        return Confidence.HIGH if is_certain and is_known else Confidence.MEDIUM
    if found.evidence is Evidence.LIKELY:
        return Confidence.MEDIUM
    if found.evidence is Evidence.PLAUSIBLE and isinstance(found, Access) and _is_for_many(found):
        return Confidence.MEDIUM
    return Confidence.LOW


def _is_unusual(access: Access) -> bool:
    """Return whether several processes come to one path only in a special case."""
    if _is_divided(access) or _is_rehearsed(access):
        return True
    return access.runs_several and access.is_shared and access.is_off_by_default


def _is_divided(access: Access) -> bool:
    """Return whether each process usually gets other items of the work, and one of them names the path.

    The number of a job is the same in all processes of the job. If each process is started with other
    arguments, these name everything that is not the same in all runs of the program.
    """
    if access.trace.varies and (access.path is None or not _is_without_arguments(access.path)):
        return True
    share = access.share
    return share >= Share.FEW or (share is Share.JOB and access.evidence is Evidence.PLAUSIBLE)


def _is_by_ranks(found: Shown) -> bool:
    return found.marker is not None and found.marker.role == "rank"


def _is_known(access: Access) -> bool:
    return access.certain and access.path is not None and access.path.is_known


def _is_for_many(access: Access) -> bool:
    """Return whether jobs or workers share the path of an access that any process can reach.

    The code of a module runs in every process that imports it. What a function of a library waits for,
    downloads, or extracts is usually for all processes, and so is a cache. Anything else belongs to one
    caller. A script is started by hand, and so is a command, but its runs share a path in a fixed directory,
    and it waits for another process. Code that nothing calls does not run.
    """
    entry = access.trace.entry
    if entry in {Entry.SCRIPT, Entry.NEVER}:
        return False
    if entry is Entry.IMPORT or _is_fixed(access.path):
        return True
    if entry is Entry.COMMAND:
        return access.op == "poll"
    text = "" if access.path is None else access.path.text
    leaf = access.leaf_call.function
    named = (leaf.module.name, leaf.facts.qualname, access.function, *_calling(access))
    shares = purpose((access.path_source, text, access.callee), named) is Purpose.CACHE
    return shares or access.op in _SHARING


def _is_rehearsed(access: Access) -> bool:
    """Return whether a setting such as `dry_run` is on where an access or its callers run."""
    for call_site in (access.leaf_call, access.call_site, *access.call_chain):
        for literal in call_site.state.conditions:
            for test, truth in implied(literal.test, truth=literal.truth):
                if truth and says(setting_of(test) or last_name(test), "rehearsal"):
                    return True
    return False


def _is_fixed(path: AbstractPath | None) -> bool:
    """Return whether a path is the same in all processes on a machine, whatever arguments they get."""
    first = next(iter(() if path is None else path.pieces()), "")
    is_anchored = not isinstance(first, str) or first.startswith(("/", "~"))
    return is_anchored and _is_without_arguments(path)


def _is_without_arguments(path: AbstractPath | None) -> bool:
    """Return whether a path does not depend on the arguments of a program or a function."""
    known = () if path is None else path.variables()
    return all(not symbol.rank_dependent and _is_without_input(symbol.definition) for symbol in known)


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
