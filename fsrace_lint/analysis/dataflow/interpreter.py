"""Interprets the code of one function: every call, with the conditions under which it is reached."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from msgspec.structs import replace

from fsrace_lint.analysis.dataflow.abstract_state import (
    AbstractState,
    ExceptionContext,
    ExitPoint,
    FlowResult,
    LoopExit,
    PathCondition,
    caught_by,
    join,
    join_all,
)
from fsrace_lint.analysis.dataflow.loops import amid_rounds, calls_in
from fsrace_lint.analysis.dataflow.process_set import MAIN, TOP
from fsrace_lint.analysis.dataflow.rank_partition import UNPARTITIONED
from fsrace_lint.analysis.dataflow.transfer import Loop, TransferFunctions, is_file
from fsrace_lint.analysis.values.abstract_values import (
    Annotated,
    ContextResult,
    Expression,
    IterationElement,
    merge,
)
from fsrace_lint.analysis.values.assignment import assigned, targets_of
from fsrace_lint.analysis.values.type_hints import narrowed_by
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.traversal import bound_in, bound_names, target_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fsrace_lint.analysis.interpretation import Interpretation
    from fsrace_lint.analysis.values.abstract_values import Binding, Environment
    from fsrace_lint.program.modules import LinkedFunction

_REPEATED_FINALLY: Final = 3


class Interpreter(TransferFunctions):
    """Interprets the statements of one function."""

    def __init__(self, function: LinkedFunction, interpretation: Interpretation) -> None:
        """Initialize for one function."""
        super().__init__(function, interpretation)
        self._annotations: dict[str, m.Expr] = {}
        """The annotations of local names so far."""
        self.exits: list[ExitPoint] = []
        self.raises: list[ExitPoint] = []
        self.loop_exits: list[LoopExit] = []

    def interpret(self) -> FlowResult:
        """Interpret the whole body."""
        end = self.block(self.function.facts.body, AbstractState(TOP, (), self.latest))
        if end is not None:
            self.exits.append(ExitPoint(None, end, len(self.call_sites)))
        ways_out = tuple(self.exits), tuple(self.raises), tuple(self.loop_exits), tuple(self.yields)
        alone = self.refuses_several and all(way.state.processes == MAIN for way in self.exits)
        return FlowResult(
            tuple(self.call_sites), *ways_out, self._final_scope(), tuple(self.rank_tests), alone
        )

    def _final_scope(self) -> Environment:
        if not self.exits:
            return self.latest
        scope = self.exits[-1].state.scope
        names = bound_in(self.function.facts) if len(self.exits) > 1 else ()
        for earlier in self.exits[-2::-1]:
            scope = merge(earlier.state.scope, scope, names)
        return scope

    def block(self, statements: Sequence[m.Statement], state: AbstractState | None) -> AbstractState | None:
        """Interpret a suite; return None if its end cannot be reached."""
        for statement in statements:
            if state is None:
                return None
            self.latest = state.scope
            state = _STATEMENTS[type(statement)](self, statement, state)
        return state

    def _evaluate_statement(self, statement: m.Evaluate, state: AbstractState) -> AbstractState | None:
        return self.evaluate(statement.value, state)

    def _assign(self, statement: m.Assign, state: AbstractState) -> AbstractState | None:
        if statement.annotation is not None:
            self._annotations |= dict.fromkeys(
                filter(None, map(target_name, statement.targets)), statement.annotation
            )
        after = self.evaluate(statement.value, state)
        if after is None or statement.value is None:
            return after
        names: dict[str, Binding] = {}
        for target in statement.targets:
            if not _is_augmented(target, statement.value):
                after = self._stored(target, after)
            if after is None:
                return None
            names.update(self._assigned(target, statement.value, after.scope))
        for name in names.keys() & self._annotations.keys():
            names[name] = _annotated(names[name], self._annotations[name])
        return replace(after, scope=after.scope.bind(names))

    def _assigned(self, target: m.Expr, value: m.Expr, scope: Environment) -> dict[str, Binding]:
        """Return the bindings of an assignment; `x = stack.enter_context(y)` binds as `with y as x` does."""
        if (
            isinstance(value, m.Call)
            and value.arguments
            and (self.interpretation.control_role(value.function, scope) == "enter")
        ):
            return targets_of(target, ContextResult(Expression(value.arguments[0], scope)))
        return assigned(target, value, scope)

    def _stored(self, target: m.Expr, state: AbstractState | None) -> AbstractState | None:
        """Evaluate the parts of an assignment target: the object and the index of `item[index] = …`."""
        match target:
            case m.Sequence(items=items):
                for item in items:
                    state = self._stored(item, state)
                return state
            case m.Starred(value=value):
                return self._stored(value, state)
            case m.Attribute(value=value):
                return self.evaluate(value, state)
            case m.Subscript(value=value, index=index):
                return self.evaluate(index, self.evaluate(value, state))
            case _:
                return state

    def _return(self, statement: m.Return, state: AbstractState) -> AbstractState | None:
        after = self.evaluate(statement.value, state)
        if after is not None and not self.silent:
            self.exits.append(ExitPoint(statement.value, after, len(self.call_sites)))
        self.how_left = "return"
        return None

    def _raise(self, statement: m.Raise, state: AbstractState) -> AbstractState | None:
        after = self.evaluate(statement.value, state)
        self.can_fail(after)
        if after is not None and not self.silent and not self.exception_contexts:
            self.raises.append(ExitPoint(statement.value, after, len(self.call_sites)))
        self.how_left = "raise"
        return None

    def _break(self, _statement: m.Break, state: AbstractState) -> AbstractState | None:
        if self.loops:
            self.loops[-1].breaks.append(state)
        self._iteration_ends(state, "break")
        self.how_left = "break"
        return None

    def _continue(self, _statement: m.Continue, state: AbstractState) -> AbstractState | None:
        self._iteration_ends(state, "continue")
        self.how_left = "continue"
        return None

    def _iteration_ends(self, state: AbstractState | None, how: Literal["break", "continue", ""]) -> None:
        """Record that the iteration of the innermost loop ends in a state."""
        if self.loops and state is not None and not self.silent:
            loop = self.loops[-1]
            self.loop_exits.append(LoopExit(None, state, len(self.call_sites), loop.over, loop.start, how))

    def _assert(self, statement: m.Assert, state: AbstractState) -> AbstractState | None:
        before = self.test(statement.test, state)
        self.can_fail(self.assume(before, statement.test, truth=False))
        held = self.assume(before, statement.test, truth=True)
        self.take_back(before, statement.test, truth=True)
        return None if before is None or held is None else _mark_exit(held, len(before.conditions), "raise")

    def _if(self, statement: m.If, state: AbstractState) -> AbstractState | None:
        around, self.within = self.within, statement.span
        before = self.test(statement.test, state)
        self.within = around
        if before is None:
            return None
        self.how_left = ""
        then = self.block(statement.body, self.assume(before, statement.test, truth=True, branch=statement))
        left_then, self.how_left = self.how_left, ""
        otherwise = self.assume(before, statement.test, truth=False, branch=statement)
        if then is None and left_then == "raise":
            self.take_back(before, statement.test, truth=False)
        other = self.block(statement.orelse, otherwise)
        if then is None and other is not None:
            return _mark_exit(other, len(before.conditions), left_then)
        if other is None and then is not None:
            return _mark_exit(then, len(before.conditions), self.how_left)
        after = join(then, other, statement.binds, Expression(statement.test, before.scope))
        if after is not None and (told := narrowed_by(statement.test, before.scope, truth=True)):
            told |= narrowed_by(statement.test, before.scope, truth=False)
            after = replace(after, scope=after.scope.forget(told))
        if after is None or self.partition(statement.test, before.scope) == UNPARTITIONED:
            return after
        implied = (
            *_implications(then, before, m.Not(statement.test)),
            *_implications(other, before, statement.test),
        )
        return replace(after, implied_conditions=(*after.implied_conditions, *implied)) if implied else after

    def _while(self, statement: m.While, state: AbstractState) -> AbstractState | None:
        names = statement.binds
        entry = self.test(statement.test, replace(state, scope=amid_rounds(statement, state.scope)))
        over = Expression(statement.test, state.scope)
        loop, _ = self._loop(over, statement.body, self.assume(entry, statement.test, truth=True))
        after = self.block(statement.orelse, self.assume(entry, statement.test, truth=False))
        return join_all([after, *loop.breaks], names)

    def _for(self, statement: m.For, state: AbstractState) -> AbstractState | None:
        before = self.evaluate(statement.iterable, state)
        if before is None:
            return None
        names = statement.binds
        entry = replace(before, scope=amid_rounds(statement, before.scope))
        iterable = Expression(statement.iterable, before.scope)
        inside = replace(
            entry, scope=entry.scope.bind(targets_of(statement.target, IterationElement(iterable)))
        )
        loop, end = self._loop(iterable, statement.body, inside)
        after = self.block(statement.orelse, _with_locks_of(end, entry))
        return join_all([after, *loop.breaks], names)

    def _loop(
        self, over: Expression, body: Sequence[m.Statement], state: AbstractState | None
    ) -> tuple[Loop, AbstractState | None]:
        """Interpret the body of a loop, and return its state at the end too."""
        loop = Loop(over, over.scope if state is None else state.scope)
        self.loops.append(loop)
        end = self.block(body, state)
        self._iteration_ends(end, "")
        self.loops.pop()
        return loop, end

    def _try(self, statement: m.Try, state: AbstractState) -> AbstractState | None:
        if not statement.final:
            return self._handled(statement, state)
        breaks = self.loops[-1].breaks if self.loops else []
        broken, exited, thrown = len(breaks), len(self.exits), len(self.raises)
        ended, around = len(self.loop_exits), [loop.over for loop in self.loops]
        self.interrupted.append(None)
        after = self._handled(statement, state)
        raised = self.interrupted.pop()
        breaking, exiting, raising = breaks[broken:], self.exits[exited:], self.raises[thrown:]
        del breaks[broken:], self.exits[exited:], self.raises[thrown:]
        self.block(statement.final, _amid(statement, state, state))
        self.can_fail(self._after_finally(statement.final, raised))
        here = len(self.call_sites)
        self.raises += [replace(way, position=here) for way in raising]
        ending = self.loop_exits[ended:]
        del self.loop_exits[ended:]
        self.loop_exits += [replace(way, position=here) if way.loop in around else way for way in ending]
        for way in breaking:
            end = self._after_finally(statement.final, way)
            breaks += [] if end is None else [end]
        for out in exiting:
            end = self._after_finally(statement.final, out.state)
            if end is not None:
                left = replace(out.state, processes=end.processes)
                self.exits.append(replace(out, state=left, position=here))
        return self._after_finally(statement.final, after)

    def _handled(self, statement: m.Try, state: AbstractState) -> AbstractState | None:
        """Interpret a `try` without its `finally`."""
        if not statement.handlers:
            return self.block(statement.orelse, self.block(statement.body, state))
        self.exception_contexts.append(ExceptionContext(statement.handlers, None, state.scope))
        self.interrupted.append(None)
        end = self.block(statement.body, state)
        raised = self.interrupted.pop()
        self.exception_contexts.pop()
        if all(handler.caught is not None for handler in statement.handlers):
            self.can_fail(raised)
        caught = self._caught_in(statement, _amid(statement, state, raised))
        ends = [self.block(statement.orelse, end)]
        for handler in statement.handlers:
            self.how_left = ""
            ends.append(self._catch(statement, handler, self.evaluate(handler.caught, caught)))
            if ends[-1] is None and ends[0] is not None:
                passed = _caught(statement, handler, ends[0], truth=False)
                ends[0] = replace(
                    ends[0], conditions=(*ends[0].conditions, replace(passed, exit=self.how_left))
                )
        return join_all(ends, statement.binds)

    def _caught_in(self, attempt: m.Try, state: AbstractState | None) -> AbstractState | None:
        """Return the state in the handlers of a `try`; if it only asks for the group, there is none."""
        calls = list(calls_in(attempt.body))
        if state is None or not calls or len(attempt.body) > 1:
            return state
        if all(self.interpretation.asks_about_group(call, state.scope) for call in calls):
            return replace(state, processes=state.processes & MAIN or state.processes)
        return state

    def _catch(self, attempt: m.Try, handler: m.Handler, state: AbstractState | None) -> AbstractState | None:
        """Interpret a handler."""
        if state is None:
            return None
        literal = _caught(attempt, handler, state, truth=True)
        return self.block(handler.body, replace(state, conditions=(*state.conditions, literal)))

    def _after_finally(
        self, final: Sequence[m.Statement], after: AbstractState | None
    ) -> AbstractState | None:
        """Interpret a `finally` again for one state that enters it, without recording its calls."""
        if after is None:
            return None
        if self.silent >= _REPEATED_FINALLY:
            return replace(after, scope=after.scope.forget(bound_names(final)))
        self.silent += 1
        end = self.block(final, after)
        self.silent -= 1
        return end

    def _with(self, statement: m.With, state: AbstractState) -> AbstractState | None:
        return self._within(statement, statement.items, state)

    def _within(
        self, statement: m.With, items: Sequence[m.WithItem], state: AbstractState
    ) -> AbstractState | None:
        """Interpret a `with` from one of its items; `with a, b:` is `with a:` that contains `with b:`."""
        if not items:
            return self.block(statement.body, state)
        item, rest = items[0], items[1:]
        inside = self.evaluate(item.context, state)
        if inside is None:
            return None
        context = Expression(item.context, inside.scope)
        if item.target is not None:
            inside = replace(inside, scope=inside.scope.bind(targets_of(item.target, ContextResult(context))))
        suppressor = self._suppressor(context)
        if suppressor is not None:
            self.exception_contexts.append(ExceptionContext((), suppressor, context.scope))
            self.interrupted.append(None)
        self.contexts.append(context)
        end = _left(item, state, inside, self._within(statement, rest, inside))
        self.contexts.pop()
        if suppressor is None:
            return end
        self.exception_contexts.pop()
        raised = self.interrupted.pop()
        self.can_fail(raised)
        return join(end, _amid(statement, state, raised), statement.binds)

    def _suppressor(self, context: Expression) -> m.Call | None:
        """Return the call that creates a context, if the context suppresses exceptions."""
        call = context.expr
        if not isinstance(call, m.Call) or not call.arguments:
            return None
        return (
            call if self.interpretation.control_role(call.function, context.scope) == "suppressor" else None
        )

    def _match(self, statement: m.Match, state: AbstractState) -> AbstractState | None:
        before = self.evaluate(statement.subject, state)
        if before is None:
            return None
        ends: list[AbstractState | None] = []
        rest: AbstractState | None = before
        for case in statement.cases:
            inside = None if rest is None else replace(rest, scope=rest.scope.forget(case.names))
            after = None if case.irrefutable else rest
            if case.guard is not None:
                asked = self.test(case.guard, inside)
                inside = self.assume(asked, case.guard, truth=True)
                after = self.assume(asked, case.guard, truth=False) if case.irrefutable else rest
            ends.append(self.block(case.body, inside))
            rest = after
        return join_all([*ends, rest], statement.binds)

    def _define_function(self, statement: m.DefineFunction, state: AbstractState) -> AbstractState | None:
        function = self.function.module.functions[statement.function]
        defaults = (p.default for p in function.facts.parameters if p.default is not None)
        return self._several((*function.facts.decorators, *defaults), state)

    def _define_class(self, statement: m.DefineClass, state: AbstractState) -> AbstractState | None:
        facts = self.function.module.classes[statement.index].facts
        before = self._several((*facts.bases, *facts.decorators), state)
        end = self.block(statement.body, before)
        if end is None or before is None:
            return None
        attributes: dict[str, Binding] = {}
        for name in bound_names(s for s in statement.body if not _declares_field(s)):
            bound = end.scope.get(name)
            if bound is not None:
                attributes[f"{facts.name}.{name}"] = bound
        return replace(end, scope=before.scope.bind(attributes))


def _annotated(bound: Binding, annotation: m.Expr) -> Binding:
    """Return the binding of a name with an annotation."""
    return Annotated(bound.expr, bound.scope, annotation) if type(bound) is Expression else bound


def _with_locks_of(end: AbstractState | None, entry: AbstractState) -> AbstractState:
    """Return the state after a loop, which acquires or releases the locks of its iterable."""
    return entry if end is None else replace(entry, locks=end.locks, entered=end.entered)


def _left(
    item: m.WithItem, before: AbstractState, inside: AbstractState, end: AbstractState | None
) -> AbstractState | None:
    """Return the state after a context is left: its locks, those on its file, and what it entered."""
    if end is None:
        return None
    taken = [lock for lock in inside.locks if lock not in before.locks]
    files = item.target, item.context
    kept = (
        lock for lock in end.locks if lock not in taken and not any(is_file(lock, each) for each in files)
    )
    entered = (each for each in end.entered if each[0] != item.target)
    return replace(end, locks=tuple(kept), entered=tuple(entered))


def _caught(attempt: m.Try, handler: m.Handler, state: AbstractState, *, truth: bool) -> PathCondition:
    return PathCondition(caught_by(handler), truth, state.scope, attempt=attempt)


def _amid(
    statement: m.Try | m.With, before: AbstractState, raised: AbstractState | None
) -> AbstractState | None:
    """Return the state after an exception inside a statement: the names that it binds are unknown."""
    if raised is None:
        return None
    return replace(raised, scope=before.scope.forget(statement.binds))


def _declares_field(statement: m.Statement) -> bool:
    """Return whether a statement of a class body declares a field of its objects, other than by a call."""
    if not isinstance(statement, m.Assign) or statement.annotation is None:
        return False
    return not isinstance(statement.value, m.Call)


def _mark_exit(state: AbstractState, position: int, how: str) -> AbstractState:
    """Return the state with the exit of the other branch recorded in the condition at a position."""
    conditions = list(state.conditions)
    conditions[position] = replace(conditions[position], exit=how)
    return replace(state, conditions=tuple(conditions))


def _implications(
    end: AbstractState | None, before: AbstractState, otherwise: m.Expr
) -> Iterator[PathCondition]:
    """Yield what holds after an `if` if one of its branches can be left early.

    Either the other branch is taken, or the conditions for not leaving hold.

    Args:
        end: The state at the end of the branch.
        before: The state before the `if`.
        otherwise: The test by which the other branch is taken.

    Yields:
        Each condition, with the bindings before the `if`.
    """
    for literal in () if end is None else end.conditions[len(before.conditions) + 1 :]:
        if literal.exit:
            held = literal.test if literal.truth else m.Not(literal.test)
            yield PathCondition(m.Boolean("or", (otherwise, held)), truth=True, scope=before.scope)


def _is_augmented(target: m.Expr, value: m.Expr) -> bool:
    """Return whether the value of an assignment reads its target, as in `target += …`."""
    return isinstance(value, m.Binary) and value.left == target


_STATEMENTS: Final[dict[type, Callable[..., AbstractState | None]]] = {
    m.Evaluate: Interpreter._evaluate_statement,
    m.Assign: Interpreter._assign,
    m.Return: Interpreter._return,
    m.Raise: Interpreter._raise,
    m.Break: Interpreter._break,
    m.Continue: Interpreter._continue,
    m.Assert: Interpreter._assert,
    m.If: Interpreter._if,
    m.While: Interpreter._while,
    m.For: Interpreter._for,
    m.Try: Interpreter._try,
    m.With: Interpreter._with,
    m.Match: Interpreter._match,
    m.DefineFunction: Interpreter._define_function,
    m.DefineClass: Interpreter._define_class,
}
