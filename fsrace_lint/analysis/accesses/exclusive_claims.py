"""What a process does first, so that it goes on alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from fsrace_lint.syntax.ast_names import last_name
from fsrace_lint.syntax.builtin_exceptions import handles

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fsrace_lint.analysis.accesses.model import Access
    from fsrace_lint.analysis.paths.abstract_path import AbstractPath
    from fsrace_lint.analysis.paths.path_normal_form import PathNormalizer

_TAKING: Final = frozenset({"delete", "rename"})


class ExclusiveClaims:
    """Finds, for the acts of a function, what was done before and leaves nothing to race for."""

    def __init__(self, paths: PathNormalizer) -> None:
        """Prepare for a project."""
        self.paths = paths

    def of(self, accesses: Iterable[Access]) -> Iterator[Access]:
        """Give the sites of a function in their order, each with what makes it one process's own."""
        made: list[Access] = []
        before: list[Access] = []
        for each in accesses:
            left = (claim for claim in made if _leaves_nothing(claim, each))
            won = (taken for taken in before if self._is_won(taken, each, before))
            access = replace(each, claimed_by=next(left, None) or next(won, None))
            yield access
            before.append(access)
            claims = access.op == "mkdir" or (access.operation.exclusive and access.op != "link")
            made = [*made, access] if claims else [claim for claim in made if not _gives_back(access, claim)]

    def _is_won(self, taken: Access, access: Access, before: Sequence[Access]) -> bool:
        """Tell whether one process alone comes to an act: the one that took away a file that belongs to it.

        All others fail there, as long as nobody makes that file again.
        """
        states = taken.call_site.state.conditions, access.call_site.state.conditions
        always = states[0] == states[1][: len(states[0])] and len(taken.call_site.loops) <= len(
            access.call_site.loops
        )
        if taken.path is None or not always or taken.op not in _TAKING or taken.operation.tolerant:
            return False
        if taken.tolerates("FileNotFoundError") or any(_makes(other, taken.path) for other in before):
            return False
        target = taken.operation.target
        arrived = None if target is None else self.paths.normalize(target, taken.call_site.state.scope)
        follows = arrived is not None and access.path is not None and access.path.is_within(arrived)
        return follows or (access.path is not None and access.path.is_suffixed(taken.path))


def _leaves_nothing(made: Access, access: Access) -> bool:
    """Tell whether what is made before an act leaves nothing to race for.

    It is the folder that the act makes; or it is made by one process alone, which goes on to what
    lies in it, or to anything where its name says that it is a lock. Not so in a folder for what is
    unpacked or downloaded: those that find the folder and skip that work on half of it.
    """
    before, here = made.call_site.state.conditions, access.call_site.state.conditions
    if made.path is None:
        return False
    always = before == here[: len(before)]
    if always and made.op == access.op == "mkdir" and access.path and made.path.is_within(access.path):
        return True
    inside = access.path is not None and access.path.is_within(made.path)
    fits = made.path.names_a_lock or (inside and access.op not in {"extract", "download"})
    if not fits or not made.is_surely_a_path:
        return False
    return _losers_leave(made, access) or (always and not made.tolerates("FileExistsError"))


def _makes(access: Access, path: AbstractPath) -> bool:
    return access.op not in _TAKING and access.path == path


def _gives_back(access: Access, made: Access) -> bool:
    """Tell whether a lock that was made is taken away."""
    lock = made.path
    return access.op == "delete" and lock is not None and access.path == lock and lock.names_a_lock


def _losers_leave(made: Access, access: Access) -> bool:
    """Tell whether a process that finds there what is to be made never comes to an act behind it."""
    return any(
        literal.attempt is not None
        and literal.exit != ""
        and not literal.truth
        and handles((last_name(literal.test),), "FileExistsError")
        and any(net.handlers is literal.attempt.handlers for net in made.call_site.exception_contexts)
        for literal in access.call_site.state.conditions
    )
