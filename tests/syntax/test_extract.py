"""Fact extraction: what is kept of each kind of syntax, its position, and unusual code."""

from __future__ import annotations

import ast
import gc
import re
import sys
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.linked import facts, source

from fsrace_lint.files.source import of_text
from fsrace_lint.files.spans import Span
from fsrace_lint.syntax import limits
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.annotations import class_names
from fsrace_lint.syntax.ast_names import dotted, last_name
from fsrace_lint.syntax.expressions import FSTRING_POSITIONS_ARE_EXACT
from fsrace_lint.syntax.extract import Extractor, SyntaxProblem, extract
from fsrace_lint.syntax.unparse import LONGEST, spell
from fsrace_lint.syntax.unsupported_syntax import hint, located

if TYPE_CHECKING:
    from collections.abc import Iterator

X, Y, Z = m.Name("x"), m.Name("y"), m.Name("z")
NOWHERE = Span(0, 0, 0, 0)


def problem(text: str) -> SyntaxProblem:
    found = extract(source(text))
    assert isinstance(found, SyntaxProblem)
    return found


def nodes(value: Any) -> Iterator[Any]:
    """All nodes of a fact, starting with the fact itself."""
    if isinstance(value, tuple):
        for item in value:
            yield from nodes(item)
    elif isinstance(value, msgspec.Struct):
        yield value
        for name in value.__struct_fields__:
            yield from nodes(getattr(value, name))


def without_positions(value: Any) -> Any:
    """The same facts without positions."""
    if isinstance(value, tuple):
        return tuple(without_positions(item) for item in value)
    if isinstance(value, Span):
        return NOWHERE
    if isinstance(value, msgspec.Struct):
        return type(value)(*(without_positions(getattr(value, name)) for name in value.__struct_fields__))
    return value


ONE = m.Compare(X, ("==",), (m.Constant(1),))


def body(text: str) -> tuple[m.Statement, ...]:
    found: tuple[m.Statement, ...] = without_positions(facts(dedent(text)).functions[0].body)
    return found


def expr(text: str) -> m.Expr:
    (statement,) = body(f"_ = {text}")
    assert isinstance(statement, m.Assign)
    assert statement.value is not None
    return statement.value


def call(name: m.Expr, *arguments: m.Expr, **keywords: m.Expr) -> m.Call:
    return m.Call(name, arguments, tuple(m.Keyword(key, value) for key, value in keywords.items()), NOWHERE)


def do(name: str) -> m.Evaluate:
    return m.Evaluate(call(m.Name(name)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x", X),
        ("x.y.z", m.Attribute(m.Attribute(X, "y"), "z")),
        ("1", m.Constant(1)),
        ("-1", m.Constant(-1)),
        ("-1.5", m.Constant(-1.5)),
        ("True", m.Constant(True)),
        ("None", m.Constant(None)),
        ("'a' 'b'", m.Constant("ab")),
        ("b'a'", m.Opaque()),
        ("1j", m.Opaque()),
        ("...", m.Opaque()),
        (f"{1 << 80}", m.Opaque()),
        ("-x", m.Opaque((X,))),
        ("~x", m.Opaque((X,))),
        ("x()", call(X)),
        (
            "x(y, *z, a=y, **z)",
            m.Call(X, (Y, m.Starred(Z)), (m.Keyword("a", Y), m.Keyword(None, Z)), NOWHERE),
        ),
        ("x < y <= z", m.Compare(X, ("<", "<="), (Y, Z))),
        ("x is not y", m.Compare(X, ("is not",), (Y,))),
        ("x not in y", m.Compare(X, ("not in",), (Y,))),
        ("x and y and z", m.Boolean("and", (X, Y, Z))),
        ("x or y", m.Boolean("or", (X, Y))),
        ("not x", m.Not(X)),
        ("x + y", m.Binary("+", X, Y)),
        ("x / y", m.Binary("/", X, Y)),
        ("x // y", m.Binary("//", X, Y)),
        ("x % y", m.Binary("%", X, Y)),
        ("x | y", m.Binary("|", X, Y)),
        ("x & y", m.Binary("&", X, Y)),
        ("x @ y", m.Binary("?", X, Y)),
        ("x ** y", m.Binary("?", X, Y)),
        ("x if y else z", m.Conditional(Y, X, Z)),
        ("f'a{x}b'", m.Format((m.Constant("a"), X, m.Constant("b")))),
        ("f'{x!s}'", m.Format((X,))),
        ("f'{x!r}'", m.Format((m.Opaque((X,)),))),
        ("f'{x:>{y}}'", m.Format((m.Opaque((X, m.Format((m.Constant(">"), Y)))),))),
        ("x[y]", m.Subscript(X, Y)),
        ("x[y:z]", m.Subscript(X, m.Opaque((Y, Z)))),
        ("x[y, z]", m.Subscript(X, m.Sequence("tuple", (Y, Z)))),
        ("(x, y)", m.Sequence("tuple", (X, Y))),
        ("[x, *y]", m.Sequence("list", (X, m.Starred(Y)))),
        ("{x, y}", m.Sequence("set", (X, Y))),
        ("[x for y in z if y]", m.Comprehension((X,), (m.Generator(Y, Z, (Y,)),))),
        ("{x for y in z}", m.Comprehension((X,), (m.Generator(Y, Z, ()),))),
        ("{x: y for y in z}", m.Comprehension((X, Y), (m.Generator(Y, Z, ()),))),
        ("(x for x in y for z in x)", m.Comprehension((X,), (m.Generator(X, Y, ()), m.Generator(Z, X, ())))),
        ("(x := y)", m.Walrus("x", Y)),
        ("{x: y}", m.Opaque((X, Y))),
        ("{x: y, **z}", m.Opaque((X, Y, Z))),
        ("lambda: x", m.Lambda(1)),
        ("x(y(z))", call(X, call(Y, Z))),
        ("x[y()].z()", call(m.Attribute(m.Subscript(X, call(Y)), "z"))),
    ],
)
def test_expressions(text: str, expected: m.Expr) -> None:
    assert expr(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("async def f(): await x()", call(X)),
        ("def f(): yield x", m.Yield(X)),
        ("def f(): yield", m.Yield()),
        ("def f(): yield from x", m.Opaque((X,))),
        ("async def f(): [y async for y in x]", m.Comprehension((Y,), (m.Generator(Y, X, ()),))),
    ],
)
def test_expressions_of_functions(text: str, expected: m.Expr) -> None:
    function = without_positions(facts(text).functions[1])
    assert function.body == (m.Evaluate(expected),)
    assert function.is_generator == ("yield" in text)


S = NOWHERE


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x()", (do("x"),)),
        ("'a docstring'", ()),
        ("pass", ()),
        ("...", ()),
        ("x = y", (m.Assign((X,), Y),)),
        ("x = y = z", (m.Assign((X, Y), Z),)),
        ("x, y = z", (m.Assign((m.Sequence("tuple", (X, Y)),), Z),)),
        ("x.y = z", (m.Assign((m.Attribute(X, "y"),), Z),)),
        ("x[y] = z", (m.Assign((m.Subscript(X, Y),), Z),)),
        ("x: y = z", (m.Assign((X,), Z, Y),)),
        ("x: y", (m.Assign((X,), None, Y),)),
        ("x += y", (m.Assign((X,), m.Binary("+", X, Y)),)),
        ("x /= y", (m.Assign((X,), m.Binary("/", X, Y)),)),
        ("del x, y[z]", (m.Evaluate(m.Opaque((X, m.Subscript(Y, Z)))),)),
        ("raise x from y", (m.Raise(X, S),)),
        ("assert x, y", (m.Assert(X),)),
        ("if x: y()", (m.If(X, (do("y"),), (), S),)),
        (
            "if x: y()\nelif y: z()\nelse: x()",
            (m.If(X, (do("y"),), (m.If(Y, (do("z"),), (do("x"),), S),), S),),
        ),
        ("while x: y()\nelse: z()", (m.While(X, (do("y"),), (do("z"),), S),)),
        ("for x in y: z()\nelse: y()", (m.For(X, Y, (do("z"),), (do("y"),), S, ("x",)),)),
        ("for x in y: break", (m.For(X, Y, (m.Break(),), (), S, ("x",)),)),
        ("for x in y: continue", (m.For(X, Y, (m.Continue(),), (), S, ("x",)),)),
        (
            "try: x()\nexcept y as e: y()\nexcept (y, z): raise\nexcept: z()\nelse: y()\nfinally: z()",
            (
                m.Try(
                    (do("x"),),
                    (
                        m.Handler(Y, "e", (do("y"),), S),
                        m.Handler(m.Sequence("tuple", (Y, Z)), None, (m.Raise(None, S),), S),
                        m.Handler(None, None, (do("z"),), S),
                    ),
                    (do("y"),),
                    (do("z"),),
                    ("e",),
                ),
            ),
        ),
        (
            "with x() as y, z: y()",
            (m.With((m.WithItem(call(X), Y), m.WithItem(Z, None)), (do("y"),), S, ("y",)),),
        ),
        ("with (x, y): z()", (m.With((m.WithItem(X, None), m.WithItem(Y, None)), (do("z"),), S),)),
        (
            "match x:\n case 1 if y: y()\n case [a, *b]: pass\n case z: z()",
            (
                m.Match(
                    X,
                    (
                        m.Case((), m.Boolean("and", (ONE, Y)), True, (do("y"),)),
                        m.Case(("a", "b"), None, False, ()),
                        m.Case(("z",), None, True, (do("z"),)),
                    ),
                    ("a", "b", "z"),
                ),
            ),
        ),
        ("match x:\n case 1: pass", (m.Match(X, (m.Case((), ONE, True, ()),)),)),
        (
            "match x:\n case 1 | 'a': pass",
            (
                m.Match(
                    X,
                    (
                        m.Case(
                            (),
                            m.Compare(X, ("in",), (m.Sequence("tuple", (m.Constant(1), m.Constant("a"))),)),
                            True,
                            (),
                        ),
                    ),
                ),
            ),
        ),
        ("match x:\n case 1 | None: pass", (m.Match(X, (m.Case((), None, False, ()),)),)),
        ("match x():\n case 1: pass", (m.Match(call(X), (m.Case((), None, False, ()),)),)),
        ("match x:\n case _ if y: pass", (m.Match(X, (m.Case((), Y, True, ()),)),)),
        ("match x:\n case C(a=1) as b: pass", (m.Match(X, (m.Case(("b",), None, False, ()),), ("b",)),)),
        ("import x", (m.Evaluate(m.Opaque()),)),
        ("from x import y", (m.Evaluate(m.Opaque()),)),
        ("def f(): pass", (m.DefineFunction(1),)),
        ("class A: x = y", (m.DefineClass(0, (m.Assign((X,), Y),)),)),
    ],
)
def test_statements(text: str, expected: tuple[m.Statement, ...]) -> None:
    assert body(text) == expected


def test_statements_of_asynchronous_functions() -> None:
    text = "async def f():\n async with x as y: y()\n async for x in y: z()\n return x\n"
    assert without_positions(facts(text).functions[1].body) == (
        m.With((m.WithItem(X, Y),), (do("y"),), S, ("y",)),
        m.For(X, Y, (do("z"),), (), S, ("x",)),
        m.Return(X, S),
    )


@pytest.mark.skipif(sys.version_info < (3, 11), reason="except* came with Python 3.11")
def test_try_star() -> None:
    assert body("try: x()\nexcept* y: z()") == (
        m.Try((do("x"),), (m.Handler(Y, None, (do("z"),), S),), (), ()),
    )


def test_every_statement_type_is_handled() -> None:
    """A new statement type in Python must be added here, or its calls are lost."""
    from fsrace_lint.syntax.extract import STATEMENTS

    known = {kind.__name__ for kind in STATEMENTS}
    assert {kind.__name__ for kind in ast.stmt.__subclasses__()} - known <= {"Pass", "TypeAlias"}


def test_calls_in_every_expression_type_are_kept() -> None:
    kinds = {
        "Await": "await x()",
        "Yield": "(yield x())",
        "Dict": "{x(): 1}",
        "Slice": "y[x():]",
        "BinOp": "x() ** 2",
        "UnaryOp": "-x()",
        "JoinedStr": "f'{x()!r:>{y}}'",
        "FormattedValue": "f'{y:{x()}}'",
        "Starred": "[*x()]",
        "ListComp": "[y for y in z if x()]",
        "DictComp": "{y: x() for y in z}",
        "GeneratorExp": "(x() for y in z)",
        "SetComp": "{x() for y in z}",
        "NamedExpr": "(y := x())",
        "Compare": "1 < 2 < x()",
        "Lambda": "lambda: x()",
        "IfExp": "1 if x() else 2",
        "Attribute": "x().y",
        "Subscript": "x()[0]",
        "Call": "y(a=x())",
        "BoolOp": "y or x()",
        "Tuple": "(x(),)",
        "List": "[x()]",
        "Set": "{x()}",
        "Name": "x()",
        "Constant": "x()",
        "YieldFrom": "(yield from x())",
        "TemplateStr": "x()",
        "Interpolation": "x()",
    }
    assert {kind.__name__ for kind in ast.expr.__subclasses__()} <= kinds.keys()
    for text in kinds.values():
        found = facts(
            f"async def f():\n    _ = {text}\n" if "yield from" not in text else f"def f():\n    _ = {text}\n"
        )
        assert any(isinstance(node, m.Call) and node.function == X for node in nodes(found.functions)), text


@pytest.mark.parametrize(
    ("line", "columns"),
    [
        ("x()", (1, 4)),
        ("é = x()", (5, 8)),
        ("'日本', x()", (7, 10)),
        ("'🎉🎉'; x('ü')", (7, 13)),
        ("\tx()", (2, 5)),
    ],
)
def test_columns_count_characters(line: str, columns: tuple[int, int]) -> None:
    text = f"if 1:\n\n{line}\n" if line.startswith("\t") else f"y\n\n{line}\n"
    (found,) = [node for node in nodes(facts(text).functions) if isinstance(node, m.Call)]
    assert found.span == Span(3, columns[0], 3, columns[1])


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_positions_with_any_newline(newline: str) -> None:
    text = newline.join(["# é", "'''日", "本'''; x(", "    'ü',", ")", ""])
    (found,) = [node for node in nodes(facts(text).functions) if isinstance(node, m.Call)]
    assert found.span == Span(3, 7, 5, 2)


@pytest.mark.parametrize("text", ["x = '\ud800'\n", "x = '\0'\n"])
def test_surrogates_and_null_bytes_are_syntax_problems(text: str) -> None:
    """Another tool may decode a file to such text; Python rejects it with different exceptions."""
    found = extract(of_text(text, Path("/p/a.py"), Path("/p")))
    assert isinstance(found, SyntaxProblem)
    assert re.search("surrogates not allowed|null bytes", found.reason)
    assert (found.line, found.column) == (1, 1)


def test_branch_position_is_that_of_its_test() -> None:
    text = "if é(x): pass\nfor x in yy: pass\nwith zz as x, y: pass\nwhile  x: pass\n"
    spans = [node.span for node in facts(text).functions[0].body if not isinstance(node, m.Evaluate)]  # type: ignore[union-attr]  # all have one
    assert spans == [Span(1, 4, 1, 8), Span(2, 10, 2, 12), Span(3, 6, 3, 8), Span(4, 8, 4, 9)]


def test_call_positions_in_f_strings_are_exact_since_python_3_12() -> None:
    text = "y(f'{x()} {a:{b()}}', f'a', x())\nx()\n"
    exact = {(node.function.id, node.span.column): node.exact for node in nodes(facts(text).functions[0].body)
             if isinstance(node, m.Call) and isinstance(node.function, m.Name)}  # fmt: skip
    outer = [flag for (name, column), flag in exact.items() if name == "y" or column in {1, 29}]
    assert outer == [True] * len(outer)
    inner = [
        node.exact
        for node in nodes(facts("y(f'{x()} {a:{b()}}')").functions[0].body)
        if isinstance(node, m.Call)
    ]
    assert inner == [True, FSTRING_POSITIONS_ARE_EXACT, FSTRING_POSITIONS_ARE_EXACT]
    assert FSTRING_POSITIONS_ARE_EXACT is (sys.version_info >= (3, 12))


def test_functions() -> None:
    text = '''
    @deco(x)
    @other
    async def f(a, /, b: int, c=1, *d, e, f=2, **g):
        """Doc."""
        global h, i
        def inner(): return a
        return inner
    '''
    found = facts(dedent(text))
    module, outer, inner = found.functions
    assert (module.name, module.qualname, module.parent, module.owner) == ("<module>", "<module>", -1, -1)
    assert (outer.name, outer.qualname, outer.parent, outer.owner) == ("f", "f", 0, -1)
    assert (inner.name, inner.qualname, inner.parent) == ("inner", "f.inner", 1)
    assert without_positions(outer.decorators) == (call(m.Name("deco"), X), m.Name("other"))
    assert [(p.name, p.kind, p.default, p.annotation) for p in outer.parameters] == [
        ("a", "positional", None, None),
        ("b", "positional", None, m.Name("int")),
        ("c", "positional", m.Constant(1), None),
        ("d", "args", None, None),
        ("e", "keyword", None, None),
        ("f", "keyword", m.Constant(2), None),
        ("g", "kwargs", None, None),
    ]
    assert outer.outer_names == ("h", "i")
    assert outer.span.line == 4
    assert without_positions(outer.body) == (m.DefineFunction(2), m.Return(m.Name("inner"), S))
    assert outer.referenced_names == ("inner",)
    assert inner.referenced_names == ("a",)
    assert set(module.referenced_names) >= {"deco", "other", "x"}


def test_lambda_names_also_count_for_the_enclosing_scope() -> None:
    module, found = facts("f = lambda a, b=x: y(a)").functions
    assert (found.name, [p.name for p in found.parameters]) == ("<lambda>", ["a", "b"])
    assert without_positions(found.body) == (m.Return(call(Y, m.Name("a")), S),)
    assert set(module.referenced_names) >= {"f", "x", "y"}


def test_kinds_of_name_use_are_distinguished() -> None:
    text = """
    class C(B):
        def m(self, x):
            self.own(x); super().own(); x.other(self.kept); bare(key=given)
            both(); x.both(both)
            rows[0](); made()(); (lambda s: s.inner())(x)
            read
        @staticmethod
        def s(x): x.other()
        def anew(self):
            self = B(); self.other()
        def each(self, rows): return [self.other() for self in rows]
    """
    module, method, inner, static, anew, each = facts(dedent(text)).functions
    assert {name: method.use(name) for name in method.called} == {
        "": m.BARE,
        "bare": m.BARE,
        "both": m.BARE | m.OF_OTHER | m.HANDED,
        "given": m.HANDED,
        "inner": m.OF_OTHER,
        "kept": m.HANDED,
        "made": m.BARE,
        "other": m.OF_OTHER,
        "own": m.OF_OWN,
        "rows": m.BARE,
        "super": m.BARE,
        "x": m.HANDED,
    }
    assert method.only_read == ("read", "s", "self")
    assert method.referenced_names == method.called + method.only_read
    assert method.use("read") == 0
    assert [each.use("other") for each in (anew, each)] == [m.OF_OTHER] * 2
    assert (static.use("other"), inner.use("inner"), module.called) == (m.OF_OWN, m.OF_OWN, ())


def test_generators_are_recognized() -> None:
    texts = ["yield", "x = yield", "await x", "return x", "def g(): yield", "lambda: (yield)", "[(yield)]"]
    flags = [
        facts(
            f"async def f():\n    {text}\n" if "[" not in text else "def f():\n    x = (yield)\n"
        ).functions[1]
        for text in texts
    ]
    assert [function.is_generator for function in flags] == [True, True, False, False, False, False, True]


def test_classes() -> None:
    text = """
    @deco
    class A(x.B, C[int], metaclass=M):
        y: int = 1
        def f(self): self.z = self.w, self.v = 1, 2
        if x:
            def g(self): pass
        else:
            def h(self): pass
        class Inner:
            def i(self): pass
    def outer():
        class Local:
            def f(self): pass
    """
    found = facts(dedent(text))
    a, inner, local = found.classes
    assert (a.name, a.qualname, a.parent) == ("A", "A", 0)
    assert (inner.qualname, local.qualname) == ("A.Inner", "outer.Local")
    assert a.bases == (m.Attribute(X, "B"), m.Subscript(m.Name("C"), m.Name("int")))
    assert a.decorators == (m.Name("deco"),)
    names = {name: found.functions[index] for name, index in a.methods}
    assert list(names) == ["f", "g", "h"]
    assert [function.qualname for function in names.values()] == ["A.f", "A.g", "A.h"]
    assert all(function.owner == 0 and function.parent == 0 for function in names.values())
    assert set(names["f"].attributes) >= {"z"}
    assert found.functions[inner.methods[0][1]].qualname == "A.Inner.i"
    assert found.functions[local.methods[0][1]].parent == [f.name for f in found.functions].index("outer")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import a", m.Import("a", "a", None, 0)),
        ("import a.b as c", m.Import("c", "a.b", None, 0)),
        ("from a import b", m.Import("b", "a", "b", 0)),
        ("from a.b import c as d", m.Import("d", "a.b", "c", 0)),
        ("from a import *", m.Import("*", "a", "*", 0)),
        ("from . import a", m.Import("a", "", "a", 1)),
        ("from ..a import b", m.Import("b", "a", "b", 2)),
        ("def f():\n    import a", m.Import("a", "a", None, 0, later=True)),
        ("class C:\n    import a", m.Import("a", "a", None, 0)),
        ("if TYPE_CHECKING: import a", m.Import("a", "a", None, 0, later=True)),
        ("if typing.TYPE_CHECKING: pass\nelse: import a", m.Import("a", "a", None, 0)),
        ("try: import a\nexcept ImportError: pass", m.Import("a", "a", None, 0, tried=True)),
        ("try: pass\nexcept ImportError: import a", m.Import("a", "a", None, 0, tried=True)),
        ("try: pass\nexcept ImportError: pass\nelse: import a", m.Import("a", "a", None, 0)),
        ("try: import a\nfinally: pass", m.Import("a", "a", None, 0)),
    ],
)
def test_imports(text: str, expected: m.Import) -> None:
    assert facts(text).imports == (expected,)


def test_asynchronous_functions() -> None:
    found = facts("async def a(): pass\ndef b(): pass").functions
    assert [function.is_async for function in found] == [False, True, False]


def test_import_of_a_module_in_a_package() -> None:
    found = facts("import a.b.c").imports
    assert found == (m.Import("a", "a", None, 0), m.Import("a.b.c", "a.b.c", None, 0))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("if __name__ == '__main__': x()", True),
        ("if '__main__' == __name__: x()", True),
        ("x()\nif __name__ == '__main__':\n    x()\n", True),
        ("if __name__ == '__main__' and y: x()", True),
        ("if y:\n    pass\nelif __name__ == '__main__': x()", True),
        ("try:\n    if __name__ == '__main__': x()\nfinally: y()", True),
        ("with y:\n    if __name__ == '__main__': x()", True),
        ("for y in z:\n    if __name__ == '__main__': x()", False),
        ("x()", False),
        ("if x == '__main__': x()", False),
        ("def f():\n    if __name__ == '__main__': x()", False),
    ],
)
def test_scripts(text: str, expected: bool) -> None:
    assert facts(text).is_script is expected


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("x = = 1\n", 1, 5),
        ("def f(:\n    pass\n", 1, 7),
        ("x()\n  y()\n", 2, None),
        ("é = (\n", 1, 5),
        ("print 'a'\n", 1, None),
        ("'abc\n", 1, 1),
        ("def f():\n\treturn 1\n        return 2\n", 3, None),
        ("async x\n", 1, None),
        ("return = 3\n", 1, None),
        ("x = 0777\n", 1, None),
        ("f(**x, *y)\n", 1, None),
    ],
)
def test_syntax_error_is_returned(text: str, line: int, column: int | None) -> None:
    found = problem(text)
    assert found.line == line
    assert column in {None, found.column}
    assert found.column >= 1
    assert found.reason


def test_pattern_binds_all_its_names() -> None:
    (found,) = [node for node in nodes(facts("match x:\n case {'a': a, **b} | C(a, b=[*b]): pass").functions)
                if isinstance(node, m.Case)]  # fmt: skip
    assert set(found.names) == {"a", "b"}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("x" + ".y()" * 3000, id="calls"),
        pytest.param("(" * 5000 + ")" * 5000, id="parentheses"),
        pytest.param("[" * 5000 + "]" * 5000, id="brackets"),
        pytest.param("-" * 20000 + "1", id="minus signs"),
        pytest.param("x = " + "not " * 20000 + "y", id="not"),
        pytest.param("x = " + "lambda: " * 2000 + "1", id="lambdas"),
        pytest.param("x = " + "y if y else " * 20000 + "y", id="conditional expressions"),
        pytest.param("if x: pass\n" + "elif x: pass\n" * 5000, id="elif"),
        pytest.param("".join(f"{' ' * i}if x:\n" for i in range(150)), id="indentation"),
        pytest.param("x = " + "y[" * 3000 + "0" + "]" * 3000, id="subscripts"),
    ],
)
def test_deep_nesting_is_a_syntax_problem(text: str) -> None:
    assert problem(text + "\n").reason


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("x = " + " + ".join(["y"] * 200), id="additions"),
        pytest.param("x = " + "y." * 150 + "z", id="attributes"),
        pytest.param("if x: pass\n" + "elif x: pass\n" * 150, id="elif"),
        pytest.param("x = [" + "y, " * 20000 + "]", id="long list"),
        pytest.param("x = 1\n" * 20000, id="long file"),
        pytest.param("".join(f"{'  ' * i}if x:\n" for i in range(60)) + "  " * 60 + "y()", id="indentation"),
    ],
)
def test_realistic_nesting_is_accepted(text: str) -> None:
    assert facts(text + "\n").functions[0].body


EVERYTHING = """\
from __future__ import annotations
import os.path as p, sys
from . import *
@d
class A(B, metaclass=M):
    x: int
    async def f(self, a, /, b=1, *c, d: str = "x", **e) -> None:
        global g
        async with a as b, c: await b
        async for i in a: yield i
    def h(self): return (yield from self.x)
def main(rank=-1):
    try:
        for i, (j, *k) in enumerate([1, 2.5, None, True, b"x", "é", ...]):
            while not i < 3 <= j is not k or i in k and j:
                if i: continue
                elif j: break
                else: raise X from y
            else: del k[0], j
    except (A, B) as error: assert error, "m"
    except: pass
    else: x = y = lambda *a, b=1: {a: b, **c}
    finally: x @= -y[1:2, ::3] ** ~z
    with open(f"{x!r:>{y}}") as f: print(f.read(), file=sys.stderr, *a, **b)
    match x:
        case {"a": [1, *r], **s} | A(b=1) as t if (u := t): pass
        case _: nonlocal_ = {i: j for i in x if i async_for} if False else {1}
    return [i for i in x for j in i if j], {i for i in x}, (i for i in x), {1: 2}
if __name__ == "__main__": main()
""".replace(" if i async_for", "")


def test_facts_round_trip_through_msgpack() -> None:
    found = facts(EVERYTHING)
    again = msgspec.msgpack.decode(msgspec.msgpack.encode(found), type=m.FileFacts)
    assert again == found
    assert hash(again) == hash(found)
    kinds = {type(node) for node in nodes(found)}
    leaves = {kind for kind in vars(m).values() if isinstance(kind, type) and issubclass(kind, m.Node)} - {
        m.Node
    }
    assert {kind.__name__ for kind in leaves - kinds} == set()


def test_facts_of_this_project_round_trip_through_msgpack() -> None:
    files = sorted(Path(extract.__code__.co_filename).parent.parent.rglob("*.py"))
    assert len(files) > 40
    for file in files:
        found = facts(file.read_text(encoding="utf-8"))
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(found), type=m.FileFacts) == found


@given(st.text(alphabet="abf():=.,'\"{}[] \n\t#\\é\x0c日", max_size=40))
def test_any_text_yields_facts_or_a_problem(text: str) -> None:
    found = extract(source(text))
    if isinstance(found, SyntaxProblem):
        assert found.line >= 1
        assert found.column >= 1


@given(st.recursive(
    st.sampled_from(["x", "1", "'a'", "x.y"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda two: f"({two[0]} + {two[1]})"),
        st.tuples(inner, inner).map(lambda two: f"{two[0]}.f({two[1]}, k={two[0]})"),
        inner.map(lambda one: f"[{one} for x in {one} if {one}]"),
        inner.map(lambda one: f"({one})[{one}]"),
        inner.map(lambda one: f"(lambda: {one})"),
        inner.map(lambda one: f"('日', {one})"),
    ),
    max_leaves=12,
))  # fmt: skip
def test_all_calls_are_found_at_their_positions(text: str) -> None:
    code = f"é = {text}\n".replace("1.", "x.").replace("'a'.", "x.")
    wanted = sorted(
        (node.lineno, len(code.encode()[: node.col_offset].decode()) + 1)
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Call)
    )
    found = [node.span for node in nodes(facts(code).functions) if isinstance(node, m.Call)]
    assert sorted((span.line, span.column) for span in found) == wanted


@pytest.mark.parametrize(
    ("text", "name", "last"),
    [
        ("x", "x", "x"),
        ("x.y.z", "x.y.z", "z"),
        ("x().y", None, "y"),
        ("x.y()", None, "y"),
        ("x[0]", None, "x"),
        ("1", None, ""),
    ],
)
def test_dotted_and_last_names(text: str, name: str | None, last: str) -> None:
    assert dotted(expr(text)) == name
    assert last_name(expr(text)) == last


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("A", ["A"]),
        ("a.B", ["a.B"]),
        ("'A'", ["A"]),
        ("'a.B'", ["a.B"]),
        ("A | None", ["A"]),
        ("None | A", ["A"]),
        ("'A | B'", ["A", "B"]),
        ("Optional[A]", ["A"]),
        ("t.Optional['A']", ["A"]),
        ("Union[A, B, None]", ["A", "B"]),
        ("Annotated[A, 'text with blanks']", ["A"]),
        ("Final[A]", ["A"]),
        ("list[A]", []),
        ("dict[str, A]", []),
        ("Callable[[A], B]", []),
        ("None", []),
        ("'not a name'", []),
        ("1", []),
        ("'Optional[A]'", ["A"]),
        ("a[0].B", []),
        ("a[0].B | C", ["C"]),
    ],
)
def test_class_names_in_annotations(text: str, names: list[str]) -> None:
    assert list(class_names(expr(text))) == names


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("os.path.join(a, 'b', c=1, **d)", "os.path.join(a, 'b', c=1, **d)"),
        ("not x", "not x"),
        ("x == 0", "x == 0"),
        ("x < y < z", "x < y < z"),
        ("x and y", "x and y"),
        ("x / 'a'", "x / 'a'"),
        ("x[0]", "x[0]"),
        ("f'{x}/a'", 'f"{x}/a"'),
        ("(x, y)", "(x, y)"),
        ("x if y else z", "x if y else z"),
        ("lambda: x", "…"),
        ("[x for x in y]", "…"),
        ("x" * 200, "x" * (LONGEST - 1) + "…"),
        ("x" + ".y" * 100, None),
    ],
)
def test_spell_expression(text: str, spelled: str | None) -> None:
    found = spell(expr(text))
    assert len(found) <= LONGEST
    assert spelled in {None, found}


NEWER = [
    ((3, 11), "except* ValueError:", "invalid syntax", "except*"),
    ((3, 11), "x = a[*b]", "invalid syntax", "star in an index"),
    ((3, 11), "x: tuple[int, *Ts] = 1", "invalid syntax", "star in an index"),
    ((3, 11), "def f(*args: *Ts): pass", "invalid syntax", "star in an annotation"),
    ((3, 12), "async def f[T](x): pass", "expected '('", "type parameters"),
    ((3, 12), "class C[T: (int, str)]:", "invalid syntax", "type parameters"),
    ((3, 12), "type X[T] = list[T]", "invalid syntax", "type parameters"),
    ((3, 12), "type X = int", "invalid syntax", "type statement"),
    ((3, 13), "def f[T = int](x): pass", "expected '('", "type parameter default"),
    ((3, 14), "x = t'{a}'", "invalid syntax", "template string"),
    ((3, 14), "except A, B:", "multiple exception types", "multiple exceptions without parentheses"),
]


class TestNewerSyntax:
    @pytest.mark.parametrize(
        ("since", "line", "message"), [row[:3] for row in NEWER], ids=[row[3] for row in NEWER]
    )
    def test_newer_syntax_names_the_required_python(
        self, since: tuple[int, int], line: str, message: str
    ) -> None:
        before = (since[0], since[1] - 1)
        version = ".".join(map(str, since))
        assert hint(message, line, before) == (
            f"syntax requires Python {version}; fsrace-lint is running on Python {before[0]}.{before[1]}"
            " (file skipped)"
        )
        assert hint(message, line, since) == ""

    @pytest.mark.parametrize(
        ("line", "message", "is_certain"),
        [
            ("""x = f"{a["b"]}\"""", "f-string: unmatched '['", True),
            ("""x = f"{"\\n".join(a)}\"""", "unexpected character after line continuation character", False),
            ('x = f"{', "unterminated string literal (detected at line 1)", False),
        ],
    )
    def test_newer_f_string_syntax(self, line: str, message: str, is_certain: bool) -> None:
        assert hint(message, line, (3, 11)) == (
            "syntax requires Python 3.12; fsrace-lint is running on Python 3.11 (file skipped)"
            if is_certain
            else f"{message}; this may require Python 3.12 (fsrace-lint is running on Python 3.11)"
        )
        assert hint(message, line, (3, 12)) == ""

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ('print "a"', "Missing parentheses in call to 'print'. Did you mean print(...)?"),
            ("x = (1", "'(' was never closed"),
            ("def f(:", "invalid syntax"),
            ("type(x) = y", "cannot assign to function call here"),
            ("x = a[b * c d]", "invalid syntax"),
            ("except (A, B) e:", "expected ':'"),
            ('x = "abc', "unterminated string literal (detected at line 1)"),
        ],
    )
    def test_syntax_invalid_in_every_python_has_no_hint(self, line: str, message: str) -> None:
        assert hint(message, line, (3, 10)) == ""

    @pytest.mark.skipif(sys.version_info >= (3, 14), reason="this Python reads it")
    def test_file_with_newer_syntax_has_the_hint(self) -> None:
        found = problem("x = 1\ny = t'{x}'\n")
        running = ".".join(map(str, sys.version_info[:2]))
        assert (found.line, found.column) == (2, 6)
        assert found.reason == (
            f"syntax requires Python 3.14; fsrace-lint is running on Python {running} (file skipped)"
        )

    def test_error_position_past_the_text_is_clamped(self) -> None:
        error = SyntaxError("broken", ("a.py", 7, 40, ""))
        assert located(error, "x = 1\ny = (\n") == ("broken", 3, 1)
        error = SyntaxError("broken", ("a.py", 2, 40, ""))
        assert located(error, "x = 1\ny = (\n") == ("broken", 2, 6)


class TestBounds:
    """Code that would take too long or too many stack frames is reported and not analyzed."""

    def test_too_many_statements_in_a_function(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(limits, "MOST_STATEMENTS", 5)
        facts("def f():\n" + "    x()\n" * 5)
        found = problem("a = 1\nclass C:\n    def f(self):\n" + "        x()\n" * 6)
        assert (found.line, found.column) == (3, 1)
        assert found.reason == "function `C.f` has 6 statements and 0 tests; the limits are 5 and 1000"

    def test_nested_statements_count(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(limits, "MOST_STATEMENTS", 3)
        facts("if a:\n    x()\n    y()\n")
        reason = problem("if a:\n    x()\n    y()\n    z()\n").reason
        assert reason == "module-level code has 4 statements and 1 test; the limits are 3 and 1000"

    def test_too_many_tests_in_a_function(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(limits, "MOST_TESTS", 3)
        text = "if a:\n    x()\nassert b\ntry:\n    y()\nfinally:\n    z()\n"
        facts(text)
        assert "has 7 statements and 4 tests" in problem(f"{text}assert c\n").reason

    def test_nested_function_counts_separately(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(limits, "MOST_STATEMENTS", 3)
        facts("def f():\n    def g():\n        a()\n        b()\n    c()\n    d()\n")

    @pytest.mark.parametrize(("before", "after"), [("", ".a"), ("not ", ""), ("b if c else ", "")])
    def test_too_deep_expression(self, before: str, after: str) -> None:
        facts(f"f({before * 200}x{after * 200})")
        found = problem(f"f({before * 1200}x{after * 1200})")
        assert found.reason == "code is nested too deeply to analyze"

    def test_too_many_elif_branches(self) -> None:
        def text(count: int) -> str:
            return "if a:\n    x()\n" + "".join(f"elif a == {n}:\n    x()\n" for n in range(count))

        facts(text(300))
        assert problem(text(1200)).reason == "code is nested too deeply to analyze"

    def test_long_sum_is_flattened(self) -> None:
        """Generated polynomials have thousands of terms; calls in them are still found."""
        [statement] = facts("x = " + "a + " * 2000 + "f(b)\n").functions[0].body
        assert isinstance(statement, m.Assign)
        assert isinstance(statement.value, m.Opaque)
        assert len(statement.value.parts) == 2001
        assert isinstance(statement.value.parts[-1], m.Call)

    def test_short_sum_is_kept_as_is(self) -> None:
        [statement] = facts("x = " + "a + " * 99 + "b\n").functions[0].body
        assert isinstance(statement, m.Assign)
        assert isinstance(statement.value, m.Binary)


def test_with_statement_depth_counts_its_items() -> None:
    facts(f"with {', '.join('a' * 50)}:\n    x()\n")
    found = problem(f"with {', '.join('a' * 5000)}:\n    x()\n")
    assert found.reason == "code is nested too deeply to analyze"


@pytest.mark.parametrize("text", ["f = lambda x: x\nclass C:\n    def m(self): pass\n", "if x: y()\n" * 1001])
def test_extraction_leaves_no_reference_cycles(text: str) -> None:
    """The garbage collector is disabled during a run, so cycles would leak."""
    gc.collect()
    gc.disable()
    try:
        extract(of_text(text, Path("a.py"), Path()))
        assert not any(isinstance(each, Extractor) for each in gc.get_objects())
    finally:
        gc.enable()
