"""Operations by which one process claims a path exclusively."""

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
    """Finds earlier accesses in a function that leave nothing to race for."""

    def __init__(self, paths: PathNormalizer) -> None:
        """Initialize for a project."""
        self.paths = paths

    def of(self, accesses: Iterable[Access]) -> Iterator[Access]:
        """Yield the accesses of a function, in source order, with `claimed_by` set."""
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
        """Return whether only the process that deleted or renamed `taken` reaches an access.

        All other processes fail at that point, unless something in between recreates the file.
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
    """Return whether an earlier creation leaves nothing to race for.

    It created the same directory or one in it. Or only one process can create it, and that process goes on
    to files in it, or to anything if its name is that of a lock. Extractions and downloads into such a
    directory are excluded, because a process that finds the directory uses incomplete files.
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
    return _losers_leave(made, access) or (always and not _losers_go_on(made, access))


def _losers_go_on(made: Access, access: Access) -> bool:
    """Return whether a process that gets `FileExistsError` from the creation may still reach the access.

    If the same `try` statements are around both, their handlers do not lead to the access.
    """
    nets = made.call_site.exception_contexts
    skips = nets != () and nets == access.call_site.exception_contexts[: len(nets)]
    return made.operation.tolerant if skips else made.tolerates("FileExistsError")


def _makes(access: Access, path: AbstractPath) -> bool:
    return access.op not in _TAKING and access.path == path


def _gives_back(access: Access, made: Access) -> bool:
    """Return whether an access deletes a lock that was created."""
    lock = made.path
    return access.op == "delete" and lock is not None and access.path == lock and lock.names_a_lock


def _losers_leave(made: Access, access: Access) -> bool:
    """Return whether a process that gets `FileExistsError` from the creation leaves before the access."""
    return any(
        literal.attempt is not None
        and literal.exit != ""
        and not literal.truth
        and handles((last_name(literal.test),), "FileExistsError")
        and any(net.handlers is literal.attempt.handlers for net in made.call_site.exception_contexts)
        for literal in access.call_site.state.conditions
    )
