"""Extraction of `FileFacts` from a `Source`, with the standard parser."""

from __future__ import annotations

import ast
import contextlib
import warnings
from typing import TYPE_CHECKING, Final

import msgspec

from fsrace_lint.files.source import Columns
from fsrace_lint.files.spans import Span
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax import recursion_limit
from fsrace_lint.syntax.ast_names import last_name, only_result, setting_role
from fsrace_lint.syntax.expressions import Expressions, Scope, binary_operator
from fsrace_lint.syntax.limits import TESTS, TooLongError, check_length
from fsrace_lint.syntax.main_guard import tests_main
from fsrace_lint.syntax.targets import pattern_names, target_names
from fsrace_lint.syntax.unsupported_syntax import located

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fsrace_lint.files.source import Source


class SyntaxProblem(msgspec.Struct, frozen=True):
    """The reason and the position of a syntax error."""

    reason: str
    line: int
    column: int


def extract(source: Source) -> m.FileFacts | SyntaxProblem:
    """Extract the facts of a file.

    Args:
        source: The file.

    Returns:
        The facts, or the reason why the file cannot be parsed.
    """
    text = source.text
    try:
        with recursion_limit.frames(recursion_limit.SYNTAX):
            return _read(text)
    except SyntaxError as error:
        return SyntaxProblem(*located(error, text))
    except TooLongError as error:
        return SyntaxProblem(str(error), error.line, 1)
    except ValueError as error:
        return SyntaxProblem(str(error), 1, 1)
    except (RecursionError, MemoryError):
        return SyntaxProblem(recursion_limit.TOO_DEEP, 1, 1)


def _read(text: str) -> m.FileFacts:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(text)
    with contextlib.closing(Extractor(Columns(text))) as extractor:
        return extractor.module(tree)


class Extractor:
    """A converter from a syntax tree to facts, statement by statement."""

    def __init__(self, columns: Columns) -> None:
        """Initialize for one file.

        Args:
            columns: Converts the positions of nodes to spans.
        """
        self.columns = columns
        self.functions: list[m.Function | None] = [None]
        self.classes: list[m.Class | None] = []
        self.class_names: list[str] = []
        self.annotated: list[dict[str, m.Expr]] = []
        self.method_of = -1
        self.imports: list[m.Import] = []
        self.tries = self.typings = 0
        self.expressions = Expressions(columns, self._lambda)

    def close(self) -> None:
        """Break a reference cycle through this object: garbage collection is disabled during a run."""
        del self.expressions

    @property
    def scope(self) -> Scope:
        """The function whose code is being read."""
        return self.expressions.scope

    def module(self, tree: ast.Module) -> m.FileFacts:
        """Convert the whole file."""
        body = self.block(tree.body)
        check_length(self.scope, 1)
        start = Span(1, 1, 1, 1)
        referenced_names, uses = self.scope.indexed()
        self.functions[0] = m.Function(
            "<module>",
            "<module>",
            -1,
            -1,
            (),
            (),
            body,
            start,
            (),
            referenced_names,
            uses,
            has_loop=self.scope.has_loop,
            has_context=self.scope.has_context,
            aliases=tuple(self.scope.aliases),
            has_walrus=self.scope.has_walrus,
        )
        return m.FileFacts(
            tuple(function for function in self.functions if function is not None),
            tuple(class_ for class_ in self.classes if class_ is not None),
            tuple(self.imports),
            any(map(tests_main, tree.body)),
            self.expressions.names_in_texts(),
        )

    def block(self, nodes: Iterable[ast.stmt]) -> tuple[m.Statement, ...]:
        """Convert a suite; statements without effect on the facts are left out."""
        read: list[m.Statement] = []
        scope = self.scope
        for node in nodes:
            scope.statements += 1
            scope.tests += isinstance(node, TESTS)
            method = STATEMENTS.get(type(node))
            statement = None if method is None else method(self, node)
            if statement is not None:
                read.append(statement)
        return tuple(read)

    def _expression(self, node: ast.Expr) -> m.Statement | None:
        return None if isinstance(node.value, ast.Constant) else m.Evaluate(self.expressions.read(node.value))

    def _assign(self, node: ast.Assign) -> m.Statement:
        value = self.expressions.read(node.value)
        targets = tuple(self._target(target) for target in node.targets)
        for target in targets:
            self.expressions.bound(target, value)
        return m.Assign(targets, value)

    def _annotated(self, node: ast.AnnAssign) -> m.Statement:
        value = self.expressions.optional(node.value)
        target = self._target(node.target)
        self.expressions.bound(target, value)
        annotation = self.expressions.read(node.annotation)
        if self.scope.owner >= 0 and isinstance(target, m.Name):
            self.annotated[self.scope.owner].setdefault(target.id, annotation)
        elif (
            isinstance(target, m.Attribute)
            and target.value == m.Name(self.scope.first)
            and self.method_of >= 0
        ):
            self.annotated[self.method_of].setdefault(target.name, annotation)
        return m.Assign((target,), value, annotation)

    def _augmented(self, node: ast.AugAssign) -> m.Statement:
        target = self._target(node.target)
        value = m.Binary(binary_operator(node.op), target, self.expressions.read(node.value))
        return m.Assign((target,), value)

    def _target(self, node: ast.expr) -> m.Expr:
        for part in node.elts if isinstance(node, (ast.Tuple, ast.List)) else (node,):
            if isinstance(part, ast.Attribute):
                self.scope.attributes.add(part.attr)
        self.scope.bound.extend(target_names(node))
        return self.expressions.read(node)

    def _return(self, node: ast.Return) -> m.Statement:
        return m.Return(self.expressions.optional(node.value), self.columns.span(node))

    def _raise(self, node: ast.Raise) -> m.Statement:
        return m.Raise(self.expressions.optional(node.exc), self.columns.span(node))

    def _break(self, _node: ast.Break) -> m.Statement:
        return m.Break()

    def _continue(self, _node: ast.Continue) -> m.Statement:
        return m.Continue()

    def _assert(self, node: ast.Assert) -> m.Statement:
        return m.Assert(self.expressions.read(node.test))

    def _delete(self, node: ast.Delete) -> m.Statement:
        return m.Evaluate(m.Opaque(self.expressions.several(node.targets)))

    def _if(self, node: ast.If) -> m.Statement:
        mark = len(self.scope.bound)
        test = self.expressions.read(node.test)
        is_typing = last_name(test) == "TYPE_CHECKING"
        self.typings += is_typing
        body = self.block(node.body)
        self.typings -= is_typing
        orelse = self.block(node.orelse)
        return m.If(test, body, orelse, self.columns.span(node.test), self.scope.bound_since(mark))

    def _while(self, node: ast.While) -> m.Statement:
        self.scope.has_loop = True
        mark = len(self.scope.bound)
        test, body, orelse = self.expressions.read(node.test), self.block(node.body), self.block(node.orelse)
        return m.While(test, body, orelse, self.columns.span(node.test), self.scope.bound_since(mark))

    def _for(self, node: ast.For | ast.AsyncFor) -> m.Statement:
        self.scope.has_loop = True
        mark = len(self.scope.bound)
        iterable = self.expressions.read(node.iter)
        target = self._target(node.target)
        body, orelse = self.block(node.body), self.block(node.orelse)
        binds = self.scope.bound_since(mark)
        return m.For(target, iterable, body, orelse, self.columns.span(node.iter), binds)

    def _try(self, node: ast.Try) -> m.Statement:
        mark = len(self.scope.bound)
        self.tries += len(node.handlers)
        body = self.block(node.body)
        handlers = tuple(self._handler(handler) for handler in node.handlers)
        self.tries -= len(node.handlers)
        orelse, final = self.block(node.orelse), self.block(node.finalbody)
        return m.Try(body, handlers, orelse, final, self.scope.bound_since(mark))

    def _handler(self, node: ast.ExceptHandler) -> m.Handler:
        caught = self.expressions.optional(node.type)
        self.scope.bound += () if node.name is None else (node.name,)
        return m.Handler(caught, node.name, self.block(node.body), self.columns.span(node))

    def _with(self, node: ast.With | ast.AsyncWith) -> m.Statement:
        self.scope.has_context = True
        if len(node.items) > recursion_limit.SYNTAX // 2:
            raise RecursionError("each item of a `with` is a level")
        mark = len(self.scope.bound)
        items = tuple(map(self._item, node.items))
        body = self.block(node.body)
        span = self.columns.span(node.items[0].context_expr)
        return m.With(items, body, span, self.scope.bound_since(mark))

    def _item(self, node: ast.withitem) -> m.WithItem:
        context = self.expressions.read(node.context_expr)
        target = None
        if node.optional_vars is not None:
            self.scope.bound.extend(target_names(node.optional_vars))
            target = self.expressions.read(node.optional_vars)
            self.expressions.bound(target, context)
        return m.WithItem(context, target)

    def _match(self, node: ast.Match) -> m.Statement:
        mark = len(self.scope.bound)
        subject = self.expressions.read(node.subject)
        cases = tuple(self._case(case, node.subject) for case in node.cases)
        return m.Match(subject, cases, self.scope.bound_since(mark))

    def _case(self, node: ast.match_case, subject: ast.expr) -> m.Case:
        names = tuple(pattern_names(node.pattern))
        self.scope.bound.extend(names)
        compared = _comparison(node.pattern, subject)
        tests = [test for test in (compared, node.guard) if test is not None]
        guards = tuple(map(self.expressions.read, tests))
        guard = m.Boolean("and", guards) if len(guards) > 1 else next(iter(guards), None)
        catches_all = isinstance(node.pattern, ast.MatchAs) and node.pattern.pattern is None
        return m.Case(names, guard, catches_all or compared is not None, self.block(node.body))

    def _outer(self, node: ast.Global | ast.Nonlocal) -> None:
        self.scope.outer_names.extend(node.names)

    def _import(self, node: ast.Import) -> m.Statement:
        for alias in node.names:
            if alias.asname is None:
                top = alias.name.partition(".")[0]
                self._imported(top, top, None, 0)
            if alias.asname is not None or "." in alias.name:
                self._imported(alias.asname or alias.name, alias.name, None, 0)
        return m.Evaluate(m.Opaque())

    def _import_from(self, node: ast.ImportFrom) -> m.Statement:
        for alias in node.names:
            self._imported(alias.asname or alias.name, node.module or "", alias.name, node.level)
        return m.Evaluate(m.Opaque())

    def _imported(self, local: str, module: str, name: str | None, level: int) -> None:
        later = self.scope.index > 0 or self.typings > 0
        self.imports.append(m.Import(local, module, name, level, later, self.tries > 0))

    def _lambda(self, node: ast.Lambda) -> m.Lambda:
        result = ast.copy_location(ast.Return(value=node.body), node.body)
        index, function = self._function(node, m.LAMBDA, [result], ())
        self.scope.takes_up(function)
        return m.Lambda(index)

    def _define_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> m.Statement:
        decorators = self.expressions.several(node.decorator_list)
        index, _ = self._function(node, node.name, node.body, decorators)
        return m.DefineFunction(index)

    def _function(
        self,
        node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda,
        name: str,
        body: Sequence[ast.stmt],
        decorators: tuple[m.Expr, ...],
    ) -> tuple[int, m.Function]:
        index = len(self.functions)
        self.functions.append(None)
        parameters = self._parameters(node.args)
        returns = None if isinstance(node, ast.Lambda) else self._result_of(node)
        enclosing, outer_class = self.scope, self.method_of
        scope = Scope(index, self._qualname(name))
        scope.first = parameters[0].name if parameters else ""
        scope.parameters = enclosing.parameters.union(parameter.name for parameter in parameters)
        self.expressions.scope, self.method_of = scope, enclosing.owner
        for parameter in parameters:
            self.expressions.bound(m.Name(parameter.name), parameter.default)
        statements = self.block(body)
        check_length(scope, node.lineno)
        if not scope.yields:
            self.expressions.returned(only_result(statements))
        self.expressions.scope, self.method_of = enclosing, outer_class
        referenced_names, uses = scope.indexed()
        self.functions[index] = function = m.Function(
            name,
            scope.qualname,
            enclosing.index,
            enclosing.owner,
            parameters,
            decorators,
            statements,
            self.columns.span(node),
            tuple(scope.outer_names),
            referenced_names,
            uses,
            tuple(sorted(scope.attributes)),
            scope.yields,
            scope.has_loop,
            scope.has_context,
            tuple(scope.runs),
            tuple(scope.aliases),
            returns,
            scope.has_walrus,
            isinstance(node, ast.AsyncFunctionDef),
        )
        return index, function

    def _result_of(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> m.Expr | None:
        """Return the annotation of the result of a function, unless it is missing or None."""
        returns = self.expressions.optional(node.returns)
        return None if returns == m.Constant(None) else returns

    def _parameters(self, arguments: ast.arguments) -> tuple[m.Parameter, ...]:
        positional = [*arguments.posonlyargs, *arguments.args]
        missing = len(positional) - len(arguments.defaults)
        defaults: list[ast.expr | None] = [*[None] * missing, *arguments.defaults]
        rows = [
            (argument, "positional", default) for argument, default in zip(positional, defaults, strict=True)
        ]
        if arguments.vararg:
            rows.append((arguments.vararg, "args", None))
        rows += [
            (argument, "keyword", default)
            for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        ]
        if arguments.kwarg:
            rows.append((arguments.kwarg, "kwargs", None))
        read = self.expressions.optional
        return tuple(
            m.Parameter(argument.arg, kind, read(default), read(argument.annotation))
            for argument, kind, default in rows
        )

    def _define_class(self, node: ast.ClassDef) -> m.Statement:
        bases = self.expressions.several(node.bases)
        decorators = self.expressions.several(node.decorator_list)
        index = len(self.classes)
        self.classes.append(None)
        self.annotated.append({})
        qualname = self._qualname(node.name)
        self.class_names.append(qualname)
        scope, outer_owner, mark = self.scope, self.scope.owner, len(self.scope.bound)
        scope.owner = index
        body = self.block(node.body)
        scope.owner = outer_owner
        del scope.bound[mark:]
        methods = tuple(
            (_key(function), statement.function)
            for statement in _definitions(body)
            if (function := self.functions[statement.function]) is not None
        )
        annotated = tuple(self.annotated[index].items())
        self.classes[index] = m.Class(node.name, qualname, scope.index, bases, decorators, methods, annotated)
        return m.DefineClass(index, body)

    def _qualname(self, name: str) -> str:
        scope = self.scope
        if scope.owner >= 0:
            return f"{self.class_names[scope.owner]}.{name}"
        return name if scope.index == 0 else f"{scope.qualname}.{name}"


def _definitions(body: Iterable[m.Statement]) -> Iterable[m.DefineFunction]:
    for statement in body:
        if isinstance(statement, m.DefineFunction):
            yield statement
        elif isinstance(statement, m.If):
            yield from _definitions(statement.body)
            yield from _definitions(statement.orelse)


def _comparison(pattern: ast.pattern, subject: ast.expr) -> ast.expr | None:
    """Return the comparison of a variable that a pattern of values is, such as `case "a" | "b"`, or None."""
    patterns = pattern.patterns if isinstance(pattern, ast.MatchOr) else [pattern]
    values = [each.value for each in patterns if isinstance(each, ast.MatchValue)]
    if len(values) < len(patterns) or not isinstance(subject, (ast.Name, ast.Attribute)):
        return None
    if len(values) == 1:
        return ast.Compare(subject, [ast.Eq()], values)
    return ast.Compare(subject, [ast.In()], [ast.Tuple(values, ast.Load())])


def _key(function: m.Function) -> str:
    """Return the name of a method in its class; setters and deleters do not replace the getter."""
    role = setting_role(function)
    return f"{function.name}.{role}" if role else function.name


STATEMENTS: Final[dict[type[ast.AST], Callable[..., m.Statement | None]]] = {
    ast.Expr: Extractor._expression,
    ast.Assign: Extractor._assign,
    ast.AnnAssign: Extractor._annotated,
    ast.AugAssign: Extractor._augmented,
    ast.Return: Extractor._return,
    ast.Raise: Extractor._raise,
    ast.Break: Extractor._break,
    ast.Continue: Extractor._continue,
    ast.Assert: Extractor._assert,
    ast.Delete: Extractor._delete,
    ast.If: Extractor._if,
    ast.While: Extractor._while,
    ast.For: Extractor._for,
    ast.AsyncFor: Extractor._for,
    ast.Try: Extractor._try,
    getattr(ast, "TryStar", ast.Try): Extractor._try,  # since Python 3.11
    ast.With: Extractor._with,
    ast.AsyncWith: Extractor._with,
    ast.Match: Extractor._match,
    ast.Global: Extractor._outer,
    ast.Nonlocal: Extractor._outer,
    ast.Import: Extractor._import,
    ast.ImportFrom: Extractor._import_from,
    ast.FunctionDef: Extractor._define_function,
    ast.AsyncFunctionDef: Extractor._define_function,
    ast.ClassDef: Extractor._define_class,
}
