"""The facts of a file: its syntax, independent of settings and library models.

A `FileFacts` is a pruned copy of the syntax tree. It keeps what can affect a rank check, a path, a name, or
the order of events. It drops docstrings, and the positions of nodes other than functions, calls, branches,
`return`, and `raise`. Everything is frozen and free of reference cycles, so that it can be cached and sent
between processes.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from fsrace_lint.files.spans import Span

LAMBDA: Final = "<lambda>"
"""The name of a lambda. Aliases append its index."""
UNNAMED: Final = "?"
"""The owner of an attribute in an alias, if the owner is not a variable."""


class Node(msgspec.Struct, frozen=True, gc=False, array_like=True, tag=True):
    """A syntax node. Expressions with parts cache their hash, because they are parts of many keys."""


class Name(Node, frozen=True):
    """A name that is read or bound."""

    id: str


class Attribute(Node, frozen=True, cache_hash=True):
    """`value.name`."""

    value: Expr
    name: str


class Constant(Node, frozen=True):
    """A literal; bytes, complex numbers, huge integers, and `...` become `Opaque`."""

    value: str | int | float | bool | None


class Keyword(Node, frozen=True):
    """A keyword argument; `name` is None for `**value`."""

    name: str | None
    value: Expr


class Call(Node, frozen=True, cache_hash=True):
    """A call.

    `exact` is false inside an f-string before Python 3.12, where the columns that the parser reports are
    unreliable.
    """

    function: Expr
    arguments: tuple[Expr, ...]
    keywords: tuple[Keyword, ...]
    span: Span
    exact: bool = True


class Compare(Node, frozen=True, cache_hash=True):
    """`left op right op right …`."""

    left: Expr
    operators: tuple[str, ...]
    rights: tuple[Expr, ...]


class Boolean(Node, frozen=True, cache_hash=True):
    """`a and b and …` or `a or b or …`."""

    operator: str
    values: tuple[Expr, ...]


class Not(Node, frozen=True, cache_hash=True):
    """`not value`."""

    value: Expr


class Binary(Node, frozen=True, cache_hash=True):
    """An arithmetic operation, or that of an augmented assignment."""

    operator: str
    left: Expr
    right: Expr


class Conditional(Node, frozen=True, cache_hash=True):
    """`body if test else orelse`."""

    test: Expr
    body: Expr
    orelse: Expr


class Format(Node, frozen=True, cache_hash=True):
    """An f-string: its literal and formatted parts, in order.

    A part with a conversion other than `!s`, or with a format specification, is `Opaque`.
    """

    parts: tuple[Expr, ...]


class Subscript(Node, frozen=True, cache_hash=True):
    """`value[index]`."""

    value: Expr
    index: Expr


class Sequence(Node, frozen=True, cache_hash=True):
    """A tuple, list or set display."""

    kind: str
    items: tuple[Expr, ...]


class Starred(Node, frozen=True):
    """`*value`."""

    value: Expr


class Lambda(Node, frozen=True):
    """A lambda; `function` is its index in `FileFacts.functions`."""

    function: int


class Generator(Node, frozen=True):
    """`for target in iterable if condition …` of a comprehension."""

    target: Expr
    iterable: Expr
    conditions: tuple[Expr, ...]


class Comprehension(Node, frozen=True, cache_hash=True):
    """A comprehension or generator expression."""

    results: tuple[Expr, ...]
    generators: tuple[Generator, ...]


class Walrus(Node, frozen=True):
    """`name := value`."""

    name: str
    value: Expr


class Yield(Node, frozen=True):
    """`yield value`; the value is None for a bare `yield`."""

    value: Expr | None = None


class Opaque(Node, frozen=True):
    """Any other expression, reduced to the expressions evaluated in it."""

    parts: tuple[Expr, ...] = ()


Expr: TypeAlias = (
    Name
    | Attribute
    | Constant
    | Call
    | Compare
    | Boolean
    | Not
    | Binary
    | Conditional
    | Format
    | Subscript
    | Sequence
    | Starred
    | Lambda
    | Comprehension
    | Walrus
    | Yield
    | Opaque
)


class Evaluate(Node, frozen=True):
    """An expression evaluated for its effect."""

    value: Expr


class Assign(Node, frozen=True):
    """`target = … = value`; a bare annotation has no value."""

    targets: tuple[Expr, ...]
    value: Expr | None
    annotation: Expr | None = None


class Return(Node, frozen=True):
    """`return value`."""

    value: Expr | None
    span: Span


class Raise(Node, frozen=True):
    """`raise value`."""

    value: Expr | None
    span: Span


class Break(Node, frozen=True):
    """`break`."""


class Continue(Node, frozen=True):
    """`continue`."""


class Assert(Node, frozen=True):
    """`assert test`."""

    test: Expr


class If(Node, frozen=True):
    """A two-way branch; `span` is the span of the test.

    `binds`, in all compound statements, contains the variables that the statement binds, and the attributes
    of variables that it binds as `x.name`. Nested functions and classes are excluded.
    """

    test: Expr
    body: tuple[Statement, ...]
    orelse: tuple[Statement, ...]
    span: Span
    binds: tuple[str, ...] = ()


class While(Node, frozen=True):
    """A loop with a test; `span` is the span of the test."""

    test: Expr
    body: tuple[Statement, ...]
    orelse: tuple[Statement, ...]
    span: Span
    binds: tuple[str, ...] = ()


class For(Node, frozen=True):
    """A loop over an iterable; `span` is the span of the iterable."""

    target: Expr
    iterable: Expr
    body: tuple[Statement, ...]
    orelse: tuple[Statement, ...]
    span: Span
    binds: tuple[str, ...] = ()


class Handler(Node, frozen=True):
    """An `except` clause; `caught` is None for a bare one."""

    caught: Expr | None
    name: str | None
    body: tuple[Statement, ...]
    span: Span


class Try(Node, frozen=True):
    """`try`, its handlers, `else` and `finally`."""

    body: tuple[Statement, ...]
    handlers: tuple[Handler, ...]
    orelse: tuple[Statement, ...]
    final: tuple[Statement, ...]
    binds: tuple[str, ...] = ()


class WithItem(Node, frozen=True):
    """`context as target`."""

    context: Expr
    target: Expr | None


class With(Node, frozen=True):
    """A `with` block; `span` is the span of its first context expression."""

    items: tuple[WithItem, ...]
    body: tuple[Statement, ...]
    span: Span
    binds: tuple[str, ...] = ()


class Case(Node, frozen=True):
    """A case of a `match` statement.

    `names` are the names that the pattern binds. An irrefutable pattern matches anything, so that only the
    guard decides.
    """

    names: tuple[str, ...]
    guard: Expr | None
    irrefutable: bool
    body: tuple[Statement, ...]


class Match(Node, frozen=True):
    """A `match` statement."""

    subject: Expr
    cases: tuple[Case, ...]
    binds: tuple[str, ...] = ()


class DefineFunction(Node, frozen=True):
    """A `def`; `function` is its index in `FileFacts.functions`."""

    function: int


class DefineClass(Node, frozen=True):
    """A `class`, whose body runs here; `index` is its index in `FileFacts.classes`."""

    index: int
    body: tuple[Statement, ...]


Statement: TypeAlias = (
    Evaluate
    | Assign
    | Return
    | Raise
    | Break
    | Continue
    | Assert
    | If
    | While
    | For
    | Try
    | With
    | Match
    | DefineFunction
    | DefineClass
)


class Parameter(Node, frozen=True):
    """A parameter; `kind` is `positional`, `keyword`, `args` or `kwargs`."""

    name: str
    kind: str
    default: Expr | None = None
    annotation: Expr | None = None


class Alias(Node, frozen=True):
    """Another name for what a name or an attribute may denote: `known_as = name`.

    Attributes:
        name: The original name.
        known_as: The other name.
        called: Whether the alias is of the result of calling `name`.
        returned: Whether the alias is the result of calling `known_as`: the function `known_as` returns it.
        of: If `name` is an attribute, the variable that owns it, or `UNNAMED`.
        kind: The kind of `known_as`: a variable of the function (`local`), a variable of a module or class
            (`name`), an attribute of the object that the method belongs to (`own`), or of any other object
            (`attribute`).
    """

    name: str
    known_as: str
    called: bool = False
    returned: bool = False
    of: str = ""
    kind: str = "name"


BARE: Final = 1
"""A bare name is called: `f()`."""
OF_OTHER: Final = 2
"""An attribute of any object is called: `x.f()`."""
OF_OWN: Final = 4
"""An attribute of the first parameter (in a method, its object) or of `super()` is called: `self.f()`."""
HANDED: Final = 8
"""A name or an attribute is passed as an argument: `g(f)`, `g(x.f)`."""


class Function(Node, frozen=True):
    """A function, a lambda (`LAMBDA`), or the code of the module (`<module>`).

    Attributes:
        parent: The index of the enclosing function, or -1.
        owner: The index of the enclosing class, or -1.
        outer_names: The names declared `global` or `nonlocal`.
        referenced_names: The identifiers that the code reads or binds: those of `called`, then those of
            `only_read`. An empty name means that the code calls an unnamed callee, as in `(f or g)()`.
        uses: A byte per name of `called`: the sum of `BARE`, `OF_OTHER`, `OF_OWN`, and `HANDED`.
        attributes: The names that the code assigns as attributes (`x` for `self.x = …`), sorted.
        runs: The parameters that the code calls, its own and those of enclosing functions.
        aliases: The aliases that the code creates.
        returns: The annotation of the result.
    """

    name: str
    qualname: str
    parent: int
    owner: int
    parameters: tuple[Parameter, ...]
    decorators: tuple[Expr, ...]
    body: tuple[Statement, ...]
    span: Span
    outer_names: tuple[str, ...]
    referenced_names: tuple[str, ...]
    uses: bytes = b""
    attributes: tuple[str, ...] = ()
    is_generator: bool = False
    has_loop: bool = False
    has_context: bool = False
    runs: tuple[str, ...] = ()
    aliases: tuple[Alias, ...] = ()
    returns: Expr | None = None
    has_walrus: bool = False
    is_async: bool = False

    @property
    def called(self) -> tuple[str, ...]:
        """The last names of the functions that the code calls, and of those it passes as arguments."""
        return self.referenced_names[: len(self.uses)]

    @property
    def only_read(self) -> tuple[str, ...]:
        """The other identifiers that the code reads or binds."""
        return self.referenced_names[len(self.uses) :]

    def use(self, name: str) -> int:
        """Return how the code calls or passes a name, as a sum of flags; 0 if it does neither."""
        called = self.called
        return self.uses[called.index(name)] if name in called else 0


class Class(Node, frozen=True):
    """A class.

    Attributes:
        methods: The functions defined in the class body, by name; setters as `name.setter`.
        annotated: The attributes annotated in the class body, or as `self.x: …` in methods, by name.
    """

    name: str
    qualname: str
    parent: int
    bases: tuple[Expr, ...]
    decorators: tuple[Expr, ...]
    methods: tuple[tuple[str, int], ...]
    annotated: tuple[tuple[str, Expr], ...] = ()


class Import(Node, frozen=True):
    """A name that an import binds.

    `import a.b` binds `a` to the module `a`; a second record has `a.b` as `local` and as `module`.
    `from m import n as l` binds `l` to the name `n` of the module `m`, with `level` leading dots. The `name`
    of a star import is `*`. `later` says that importing the file does not run the statement, because it is in
    a function or for type checkers; `tried` that a handler around it can replace the module.
    """

    local: str
    module: str
    name: str | None
    level: int
    later: bool = False
    tried: bool = False


class FileFacts(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The facts of a file; `functions[0]` is the code of the module."""

    functions: tuple[Function, ...]
    classes: tuple[Class, ...]
    imports: tuple[Import, ...]
    is_script: bool
    texts: tuple[str, ...] = ()
    """The string constants that can be names, sorted."""
