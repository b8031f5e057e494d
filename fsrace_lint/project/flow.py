"""Follow one function's code: every call, with what must have happened to reach it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from fsrace_lint.facts import model as m
from fsrace_lint.project.processes import ALL, NOBODY, Processes
from fsrace_lint.project.values import Argument, Element, Entered, Scope, Unknown, Value, merge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fsrace_lint.project.guards import Split
    from fsrace_lint.project.modules import LinkedFunction
    from fsrace_lint.project.values import Binding

_REPEATED_FINALLY: Final = 3


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """A test that came out one way before this point.

    `exit` says how the other way left the code (`return`, `raise`, `exit`,
    `break` or `continue`), or is empty where it stands in a branch of its own;
    `branch` is that branch.
    """

    test: m.Expr
    truth: bool
    scope: Scope
    branch: m.If | None = None
    exit: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """What holds at one point: who can be here, what was tested, what names mean, what is locked."""

    processes: Processes
    literals: tuple[Literal, ...]
    scope: Scope
    locks: tuple[m.Expr, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Net:
    """What catches an exception around a call: handlers of a `try`, or the types a context suppresses."""

    handlers: tuple[m.Handler, ...]
    suppressed: tuple[m.Expr, ...]
    scope: Scope


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """A call, and the circumstances in which it runs."""

    function: LinkedFunction
    call: m.Call
    state: State
    nets: tuple[Net, ...]
    contexts: tuple[Value, ...]
    order: int


@dataclass(frozen=True, slots=True, eq=False)
class Exit:
    """A way out of the function: the value returned (None at the end of the code) and the state there."""

    value: m.Expr | None
    state: State


@dataclass(frozen=True, slots=True, eq=False)
class Flow:
    """All that was found while following one function."""

    events: tuple[Event, ...]
    exits: tuple[Exit, ...]
    scope: Scope
    tests_ranks: bool


@dataclass(slots=True)
class _Loop:
    """The loop being followed: the states in which `break` leaves it, and the names it binds."""

    breaks: list[State] = field(default_factory=list)


class Walker:
    """Follows the code of one function."""

    def __init__(
        self,
        function: LinkedFunction,
        split: Callable[[m.Expr, Scope], Split],
        qualify: Callable[[m.Expr, Scope], str | None],
        kind: Callable[[str | None], str],
    ) -> None:
        """Prepare for one function.

        Args:
            function: The function.
            split: Which processes can see a test true, and which false.
            qualify: Gives the qualified name of a callee.
            kind: Gives the role of a qualified name in control flow: `exit`,
                `suppressor`, `acquire`, `release`, or the empty text.
        """
        self.function = function
        self.split = split
        self.qualify = qualify
        self.kind = kind
        self.events: list[Event] = []
        self.exits: list[Exit] = []
        self.nets: list[Net] = []
        self.contexts: list[Value] = []
        self.loops: list[_Loop] = []
        self.silent = 0
        self.how_left = ""
        self.tests_ranks = False
        self.latest = Scope(function, {p.name: Argument(function, p) for p in function.facts.parameters})

    def follow(self) -> Flow:
        """Follow the whole body."""
        end = self.block(self.function.facts.body, State(ALL, (), self.latest))
        if end is not None:
            self.exits.append(Exit(None, end))
        return Flow(tuple(self.events), tuple(self.exits), self._final_scope(), self.tests_ranks)

    def _final_scope(self) -> Scope:
        if not self.exits:
            return self.latest
        names = bound_names(self.function.facts.body)
        scope = self.exits[-1].state.scope
        for earlier in self.exits[-2::-1]:
            scope = merge(earlier.state.scope, scope, names)
        return scope

    def block(self, statements: Sequence[m.Statement], state: State | None) -> State | None:
        """Follow a suite; the answer is None where its end cannot be reached."""
        for statement in statements:
            if state is None:
                return None
            self.latest = state.scope
            state = _STATEMENTS[type(statement)](self, statement, state)
        return state

    def assume(
        self, state: State | None, test: m.Expr, *, truth: bool, branch: m.If | None = None
    ) -> State | None:
        """Give the state after a test came out one way, or None where it cannot."""
        if state is None:
            return None
        possible = self.split(test, state.scope)[0 if truth else 1]
        self.tests_ranks = self.tests_ranks or possible not in {ALL, NOBODY}
        processes = state.processes & possible
        if processes == NOBODY:
            return None
        literals = (*state.literals, Literal(test, truth, state.scope, branch))
        return replace(state, processes=processes, literals=literals)

    def evaluate(self, expr: m.Expr | None, state: State | None) -> State | None:
        """Follow an expression; the answer is None where it never finishes."""
        if state is None or expr is None:
            return state
        method = _EXPRESSIONS.get(type(expr))
        return state if method is None else method(self, expr, state)

    def _several(self, exprs: Iterable[m.Expr], state: State | None) -> State | None:
        for expr in exprs:
            state = self.evaluate(expr, state)
        return state

    def _attribute(self, expr: m.Attribute, state: State) -> State | None:
        return self.evaluate(expr.value, state)

    def _call(self, expr: m.Call, state: State) -> State | None:
        after = self.evaluate(expr.function, state)
        after = self._several(expr.arguments, after)
        after = self._several((keyword.value for keyword in expr.keywords), after)
        if after is None:
            return None
        if not self.silent:
            nets, contexts = tuple(self.nets), tuple(self.contexts)
            self.events.append(Event(self.function, expr, after, nets, contexts, len(self.events)))
        match self.kind(self.qualify(expr.function, after.scope)):
            case "exit":
                self.how_left = "exit"
                return None
            case "acquire":
                return replace(after, locks=(*after.locks, _lock_key(expr)))
            case "release":
                return replace(after, locks=tuple(lock for lock in after.locks if lock != _lock_key(expr)))
            case _:
                return after

    def _compare(self, expr: m.Compare, state: State) -> State | None:
        return self._several(expr.rights, self.evaluate(expr.left, state))

    def _boolean(self, expr: m.Boolean, state: State) -> State | None:
        after = self.evaluate(expr.values[0], state)
        inner = after
        for previous, value in zip(expr.values, expr.values[1:], strict=False):
            inner = self.evaluate(value, self.assume(inner, previous, truth=expr.operator == "and"))
        return after

    def _not(self, expr: m.Not, state: State) -> State | None:
        return self.evaluate(expr.value, state)

    def _binary(self, expr: m.Binary, state: State) -> State | None:
        return self.evaluate(expr.right, self.evaluate(expr.left, state))

    def _conditional(self, expr: m.Conditional, state: State) -> State | None:
        after = self.evaluate(expr.test, state)
        self.evaluate(expr.body, self.assume(after, expr.test, truth=True))
        self.evaluate(expr.orelse, self.assume(after, expr.test, truth=False))
        return after

    def _format(self, expr: m.Format, state: State) -> State | None:
        return self._several(expr.parts, state)

    def _subscript(self, expr: m.Subscript, state: State) -> State | None:
        return self.evaluate(expr.index, self.evaluate(expr.value, state))

    def _sequence(self, expr: m.Sequence, state: State) -> State | None:
        return self._several(expr.items, state)

    def _starred(self, expr: m.Starred, state: State) -> State | None:
        return self.evaluate(expr.value, state)

    def _opaque(self, expr: m.Opaque, state: State) -> State | None:
        return self._several(expr.parts, state)

    def _comprehension(self, expr: m.Comprehension, state: State) -> State | None:
        inner: State | None = state
        for generator in expr.generators:
            inner = self.evaluate(generator.iterable, inner)
            if inner is None:
                break
            element = Element(Value(generator.iterable, inner.scope))
            inner = replace(inner, scope=inner.scope.bind(_targets(generator.target, element)))
            for condition in generator.conditions:
                inner = self.assume(self.evaluate(condition, inner), condition, truth=True)
        self._several(expr.results, inner)
        return state

    def _walrus(self, expr: m.Walrus, state: State) -> State | None:
        after = self.evaluate(expr.value, state)
        if after is None:
            return None
        return replace(after, scope=after.scope.bind({expr.name: Value(expr.value, after.scope)}))

    def _evaluate_statement(self, statement: m.Evaluate, state: State) -> State | None:
        return self.evaluate(statement.value, state)

    def _assign(self, statement: m.Assign, state: State) -> State | None:
        after = self.evaluate(statement.value, state)
        if after is None or statement.value is None:
            return after
        names: dict[str, Binding] = {}
        for target in statement.targets:
            if isinstance(target, (m.Attribute, m.Subscript)):
                after = self.evaluate(target.value, after) or after
            names.update(_assigned(target, statement.value, after.scope))
        return replace(after, scope=after.scope.bind(names))

    def _return(self, statement: m.Return, state: State) -> State | None:
        after = self.evaluate(statement.value, state)
        if after is not None and not self.silent:
            self.exits.append(Exit(statement.value, after))
        self.how_left = "return"
        return None

    def _raise(self, statement: m.Raise, state: State) -> State | None:
        self.evaluate(statement.value, state)
        self.how_left = "raise"
        return None

    def _break(self, _statement: m.Break, state: State) -> State | None:
        if self.loops:
            self.loops[-1].breaks.append(state)
        self.how_left = "break"
        return None

    def _continue(self, _statement: m.Continue, _state: State) -> State | None:
        self.how_left = "continue"
        return None

    def _assert(self, statement: m.Assert, state: State) -> State | None:
        return self.assume(self.evaluate(statement.test, state), statement.test, truth=True)

    def _if(self, statement: m.If, state: State) -> State | None:
        before = self.evaluate(statement.test, state)
        if before is None:
            return None
        self.how_left = ""
        then = self.block(statement.body, self.assume(before, statement.test, truth=True, branch=statement))
        left_then, self.how_left = self.how_left, ""
        other = self.block(
            statement.orelse, self.assume(before, statement.test, truth=False, branch=statement)
        )
        if then is None and other is not None:
            return _mark_exit(other, len(before.literals), left_then)
        if other is None and then is not None:
            return _mark_exit(then, len(before.literals), self.how_left)
        names = (*bound_names(statement.body), *bound_names(statement.orelse))
        return join(then, other, names, Value(statement.test, before.scope))

    def _while(self, statement: m.While, state: State) -> State | None:
        names = bound_names((statement,))
        entry = self.evaluate(statement.test, replace(state, scope=state.scope.forget(names)))
        loop = self._loop(statement.body, self.assume(entry, statement.test, truth=True))
        after = self.block(statement.orelse, self.assume(entry, statement.test, truth=False))
        return _join_all([after, *loop.breaks], names)

    def _for(self, statement: m.For, state: State) -> State | None:
        before = self.evaluate(statement.iterable, state)
        if before is None:
            return None
        names = bound_names((statement,))
        entry = replace(before, scope=before.scope.forget(names))
        element = Element(Value(statement.iterable, before.scope))
        inside = replace(entry, scope=entry.scope.bind(_targets(statement.target, element)))
        loop = self._loop(statement.body, inside)
        after = self.block(statement.orelse, entry)
        return _join_all([after, *loop.breaks], names)

    def _loop(self, body: Sequence[m.Statement], state: State | None) -> _Loop:
        loop = _Loop()
        self.loops.append(loop)
        self.block(body, state)
        self.loops.pop()
        return loop

    def _try(self, statement: m.Try, state: State) -> State | None:
        names = bound_names((statement,))
        interrupted = replace(state, scope=state.scope.forget(names))
        if statement.handlers:
            self.nets.append(Net(statement.handlers, (), state.scope))
        end = self.block(statement.body, state)
        if statement.handlers:
            self.nets.pop()
        ends = [self.block(statement.orelse, end)]
        for handler in statement.handlers:
            ends.append(self.block(handler.body, self.evaluate(handler.caught, interrupted)))
        after = _join_all(ends, names)
        if not statement.final:
            return after
        self.block(statement.final, interrupted)
        return self._after_finally(statement.final, after)

    def _after_finally(self, final: Sequence[m.Statement], after: State | None) -> State | None:
        """Follow `finally` once more, for those who came through undisturbed, without noting its calls."""
        if after is None:
            return None
        if self.silent >= _REPEATED_FINALLY:
            return replace(after, scope=after.scope.forget(bound_names(final)))
        self.silent += 1
        end = self.block(final, after)
        self.silent -= 1
        return end

    def _with(self, statement: m.With, state: State) -> State | None:
        inside: State | None = state
        suppressed: list[m.Expr] = []
        entered = 0
        for item in statement.items:
            inside = self.evaluate(item.context, inside)
            if inside is None:
                break
            context = Value(item.context, inside.scope)
            self.contexts.append(context)
            entered += 1
            if isinstance(item.context, m.Call):
                name = self.qualify(item.context.function, inside.scope)
                if self.kind(name) == "suppressor":
                    suppressed.extend(item.context.arguments)
            if item.target is not None:
                inside = replace(inside, scope=inside.scope.bind(_targets(item.target, Entered(context))))
        if suppressed:
            self.nets.append(Net((), tuple(suppressed), state.scope))
        end = self.block(statement.body, inside)
        del self.contexts[len(self.contexts) - entered :]
        if not suppressed:
            return end
        self.nets.pop()
        names = bound_names((statement,))
        return _join_all([end, replace(state, scope=state.scope.forget(names))], names)

    def _match(self, statement: m.Match, state: State) -> State | None:
        before = self.evaluate(statement.subject, state)
        if before is None:
            return None
        ends: list[State | None] = []
        rest: State | None = before
        for case in statement.cases:
            inside = None if rest is None else replace(rest, scope=rest.scope.forget(case.names))
            if case.guard is not None and inside is not None:
                inside = self.assume(self.evaluate(case.guard, inside), case.guard, truth=True)
            ends.append(self.block(case.body, inside))
            if case.irrefutable:
                rest = None
        return _join_all([*ends, rest], bound_names((statement,)))

    def _define_function(self, statement: m.DefineFunction, state: State) -> State | None:
        function = self.function.module.functions[statement.function]
        defaults = (p.default for p in function.facts.parameters if p.default is not None)
        return self._several((*function.facts.decorators, *defaults), state)

    def _define_class(self, statement: m.DefineClass, state: State) -> State | None:
        facts = self.function.module.classes[statement.index].facts
        before = self._several((*facts.bases, *facts.decorators), state)
        end = self.block(statement.body, before)
        if end is None or before is None:
            return None
        attributes: dict[str, Binding] = {}
        for name in bound_names(statement.body):
            bound = end.scope.get(name)
            if bound is not None:
                attributes[f"{facts.name}.{name}"] = bound
        return replace(end, scope=before.scope.bind(attributes))


def join(
    first: State | None, second: State | None, names: Iterable[str], test: Value | None = None
) -> State | None:
    """Join two ways that meet; a way that does not get here is None."""
    if first is None or second is None:
        return second if first is None else first
    return State(
        first.processes | second.processes,
        _common(first.literals, second.literals),
        merge(first.scope, second.scope, dict.fromkeys(names), test),
        tuple(lock for lock in first.locks if lock in second.locks),
    )


def _join_all(states: Iterable[State | None], names: Sequence[str]) -> State | None:
    joined: State | None = None
    for state in states:
        joined = join(joined, state, names)
    return joined


def _common(first: tuple[Literal, ...], second: tuple[Literal, ...]) -> tuple[Literal, ...]:
    length = 0
    for one, two in zip(first, second, strict=False):
        if one is not two:
            break
        length += 1
    return first[:length]


def _mark_exit(state: State, position: int, how: str) -> State:
    literals = list(state.literals)
    if position < len(literals):
        literals[position] = replace(literals[position], exit=how)
    return replace(state, literals=tuple(literals))


def _lock_key(call: m.Call) -> m.Expr:
    """What is locked: the object of `lock.acquire()`, the file of `flock(file, …)`."""
    if isinstance(call.function, m.Attribute) and call.function.name in {"acquire", "release"}:
        return call.function.value
    return call.arguments[0] if call.arguments else call.function


def target_name(target: m.Expr) -> str | None:
    """Give the name under which a target is bound: `x`, or `self.x`."""
    if isinstance(target, m.Name):
        return target.id
    if isinstance(target, m.Attribute) and isinstance(target.value, m.Name):
        return f"{target.value.id}.{target.name}"
    return None


def _targets(target: m.Expr, binding: Binding) -> dict[str, Binding]:
    name = target_name(target)
    if name is not None:
        return {name: binding}
    inner = (
        target.items
        if isinstance(target, m.Sequence)
        else (target.value,)
        if isinstance(target, m.Starred)
        else ()
    )
    return {
        name: Unknown() if not isinstance(binding, Element) else binding
        for item in inner
        for name in _targets(item, binding)
    }


def _assigned(target: m.Expr, value: m.Expr, scope: Scope) -> dict[str, Binding]:
    name = target_name(target)
    if name is not None:
        return {name: Value(value, scope)}
    if isinstance(target, m.Sequence):
        if isinstance(value, m.Sequence) and len(value.items) == len(target.items):
            found: dict[str, Binding] = {}
            for inner, part in zip(target.items, value.items, strict=True):
                found.update(_assigned(inner, part, scope))
            return found
        return {name: Unknown() for item in target.items for name in _targets(item, Unknown())}
    return dict.fromkeys(_targets(target, Unknown()), Unknown())


def bound_names(statements: Iterable[m.Statement]) -> tuple[str, ...]:
    """Give the names that some statements may bind, each once, in order.

    Args:
        statements: The statements; functions and classes defined in them are not entered.
    """
    names: dict[str, None] = {}
    for statement in statements:
        _collect(statement, names)
    return tuple(names)


def _collect(statement: m.Statement, names: dict[str, None]) -> None:
    match statement:
        case m.Assign(targets=targets):
            for target in targets:
                names.update(dict.fromkeys(_targets(target, Unknown())))
        case m.For(target=target):
            names.update(dict.fromkeys(_targets(target, Unknown())))
        case m.With(items=items):
            for item in items:
                if item.target is not None:
                    names.update(dict.fromkeys(_targets(item.target, Unknown())))
        case m.DefineClass(index=_):
            return
        case _:
            pass
    for expr in _tests(statement):
        _collect_walrus(expr, names)
    for inner in suites(statement):
        for child in inner:
            _collect(child, names)


def suites(statement: m.Statement) -> tuple[tuple[m.Statement, ...], ...]:
    """Give the suites a compound statement holds; class bodies count, function bodies do not."""
    match statement:
        case (
            m.If(body=body, orelse=orelse)
            | m.While(body=body, orelse=orelse)
            | m.For(body=body, orelse=orelse)
        ):
            return body, orelse
        case m.Try(body=body, handlers=handlers, orelse=orelse, final=final):
            return (body, *(handler.body for handler in handlers), orelse, final)
        case m.With(body=body) | m.DefineClass(body=body):
            return (body,)
        case m.Match(cases=cases):
            return tuple(case.body for case in cases)
        case _:
            return ()


def _tests(statement: m.Statement) -> tuple[m.Expr, ...]:
    match statement:
        case m.If(test=test) | m.While(test=test) | m.Assert(test=test):
            return (test,)
        case m.Evaluate(value=value):
            return (value,)
        case m.Assign(value=value) | m.Return(value=value) if value is not None:
            return (value,)
        case _:
            return ()


def _collect_walrus(expr: m.Expr, names: dict[str, None]) -> None:
    match expr:
        case m.Walrus(name=name, value=value):
            names[name] = None
            _collect_walrus(value, names)
        case m.Not(value=value) | m.Starred(value=value):
            _collect_walrus(value, names)
        case m.Boolean(values=parts) | m.Sequence(items=parts):
            for part in parts:
                _collect_walrus(part, names)
        case m.Compare(left=left, rights=rights):
            for part in (left, *rights):
                _collect_walrus(part, names)
        case m.Call(arguments=arguments):
            for part in arguments:
                _collect_walrus(part, names)
        case _:
            return


_STATEMENTS: Final[dict[type, Callable[..., State | None]]] = {
    m.Evaluate: Walker._evaluate_statement,
    m.Assign: Walker._assign,
    m.Return: Walker._return,
    m.Raise: Walker._raise,
    m.Break: Walker._break,
    m.Continue: Walker._continue,
    m.Assert: Walker._assert,
    m.If: Walker._if,
    m.While: Walker._while,
    m.For: Walker._for,
    m.Try: Walker._try,
    m.With: Walker._with,
    m.Match: Walker._match,
    m.DefineFunction: Walker._define_function,
    m.DefineClass: Walker._define_class,
}
_EXPRESSIONS: Final[dict[type, Callable[..., State | None]]] = {
    m.Attribute: Walker._attribute,
    m.Call: Walker._call,
    m.Compare: Walker._compare,
    m.Boolean: Walker._boolean,
    m.Not: Walker._not,
    m.Binary: Walker._binary,
    m.Conditional: Walker._conditional,
    m.Format: Walker._format,
    m.Subscript: Walker._subscript,
    m.Sequence: Walker._sequence,
    m.Starred: Walker._starred,
    m.Opaque: Walker._opaque,
    m.Comprehension: Walker._comprehension,
    m.Walrus: Walker._walrus,
}
