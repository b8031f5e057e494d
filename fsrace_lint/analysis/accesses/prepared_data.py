"""Data that a hook for one process has fetched, before all processes fetch what is missing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.accesses.model import ASKING
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import implied, last_name, setting_of
from fsrace_lint.syntax.traversal import within

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from fsrace_lint.analysis.accesses.effects import Effects
    from fsrace_lint.analysis.accesses.model import Access
    from fsrace_lint.analysis.callgraph.entry_states import EntryStates
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite, PathCondition
    from fsrace_lint.program.modules import LinkedFunction

_NAME: Final = re.compile(r"\w+")


class PreparedData:
    """Finds hooks such as `prepare_data()`, after which the processes find what they would fetch."""

    def __init__(self, entry_states: EntryStates, effects: Effects) -> None:
        """Initialize for a project."""
        self.hooks = entry_states.hooks
        self.flows = entry_states.flows
        self.effects = effects

    def holds(self, access: Access) -> bool:
        """Return whether one process has run an access in a hook before all processes run it in another.

        The hook makes the same object with the same arguments, and an access that needs a setting only if the
        hook asks for it too. The code of the access must check what is missing.
        """
        chain = (*reversed(access.inlined_chain), *access.call_chain)
        for place, made in enumerate(chain):
            hook = self.hooks.of(made.function)
            if hook is not None and hook.runs == "every":
                before = [literal for each in chain[:place] for literal in each.state.conditions]
                return any(map(self._asks, before)) and any(
                    self._is_made(each, made, before, access)
                    for prepare in self._preparing(made.function)
                    for each in self.flows.call_sites(prepare)
                )
        return False

    def _preparing(self, function: LinkedFunction) -> Iterator[LinkedFunction]:
        """Yield the hooks of the class of a hook that all processes wait for, while one runs them."""
        for class_ in () if function.owner is None else (function.owner, *function.owner.ancestors()):
            for method in class_.methods.values():
                hook = self.hooks.of(method)
                if hook is not None and hook.barrier and hook.runs != "every":
                    yield method

    def _is_made(
        self, call_site: CallSite, made: CallSite, before: Sequence[PathCondition], access: Access
    ) -> bool:
        """Return whether a call makes the same as another one, as far as an access depends on it.

        The class may be unknown, but both calls unpack the same arguments.
        """
        call, other = call_site.call, made.call
        spread = [each.value for each in call.keywords if each.name is None]
        if not any(each.name is None and each.value in spread for each in other.keywords):
            return False
        given = {each.name for each in other.keywords if each not in call.keywords}
        used = () if access.path is None else (symbol.text for symbol in access.path.variables())
        if not given.isdisjoint(name for text in used for name in _NAME.findall(text)):
            return False
        asked = [_settings(literal) for literal in call_site.state.conditions]
        wanted = {name for literal in before for name in _settings(literal)}
        return all(names and wanted.issuperset(names) for names in asked)

    def _asks(self, literal: PathCondition) -> bool:
        """Return whether a condition checks for files, also in a function that it calls."""
        for part in within(literal.test):
            if isinstance(part, m.Call):
                operation = self.effects.operation(part, literal.scope)
                callee = self.flows.resolver.callee(part, literal.scope)
                inside = () if callee is None else self.flows.call_sites(callee)
                if (operation is not None and operation.op in ASKING) or any(map(self.effects.looks, inside)):
                    return True
        return False


def _settings(literal: PathCondition) -> Collection[str]:
    """Return the names of the settings that are on if a condition holds."""
    tests = (test for test, truth in implied(literal.test, truth=literal.truth) if truth)
    return {setting_of(test) or last_name(test) for test in tests if not isinstance(test, m.Compare)}
