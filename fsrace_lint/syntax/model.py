"""All that is ever remembered of a file: syntax, no judgement, no settings.

A FileFacts is a pruned copy of the syntax tree. What can carry a guard, a path,
a name or an order of events is kept; types, docstrings and positions of
anything but calls and branches are dropped. Everything is frozen and free of
cycles, so that it can be cached and sent between processes.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from fsrace_lint.files.spans import Span

LAMBDA: Final = "<lambda>"
"""The name of a function that has none; an alias adds its index."""
UNNAMED: Final = "?"
"""What has an attribute, in an alias, where that is no variable."""


class Node(msgspec.Struct, frozen=True, gc=False, array_like=True, tag=True):
    """One piece of syntax; an expression with parts keeps its hash, as it is a part of many keys."""


class Name(Node, frozen=True):
    """A name being read or bound."""

    id: str


class Attribute(Node, frozen=True, cache_hash=True):
    """`value.name`."""

    value: Expr
    name: str


class Constant(Node, frozen=True):
    """A literal; bytes, complex numbers and `...` become Opaque."""

    value: str | int | float | bool | None


class Keyword(Node, frozen=True):
    """A keyword argument; `name` is None for `**value`."""

    name: str | None
    value: Expr


class Call(Node, frozen=True, cache_hash=True):
    """A call.

    `exact` is false inside an f-string before Python 3.12, where the parser's
    columns cannot be trusted.
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
    """An arithmetic operation, also of an augmented assignment."""

    operator: str
    left: Expr
    right: Expr


class Conditional(Node, frozen=True, cache_hash=True):
    """`body if test else orelse`."""

    test: Expr
    body: Expr
    orelse: Expr


class Format(Node, frozen=True, cache_hash=True):
    """An f-string: its literal and its formatted parts, in order.

    A part whose text is changed by a conversion or a format specification is Opaque.
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
    """A lambda; `function` is its index in FileFacts.functions."""

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


class Opaque(Node, frozen=True):
    """Anything else: only what is evaluated in it counts."""

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

    `binds`, here and in the other compound statements, names the variables that
    something in it binds, and the attributes of variables as `x.name`; functions and
    classes defined there are not entered.
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
    """One case of a match.

    `names` are those its pattern binds; an irrefutable pattern matches anything,
    so that only the guard decides.
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
    """A `def`; `function` is its index in FileFacts.functions."""

    function: int


class DefineClass(Node, frozen=True):
    """A `class`, whose body runs here; `index` is its index in FileFacts.classes."""

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
    """A further name of what a name or an attribute may denote: `known_as = name`.

    `called` says that it is what a call of `name` gives, `returned` that it is what
    a call of `known_as` gives: the function `known_as` returns it. Where `name` is an
    attribute, `of` is the variable that has it, or UNNAMED. `kind` says what `known_as` is:
    a variable of the function (`local`), of a module or class (`name`), or an attribute
    of the object that the function is a method of (`own`) or of any other (`attribute`).
    """

    name: str
    known_as: str
    called: bool = False
    returned: bool = False
    of: str = ""
    kind: str = "name"


BARE: Final = 1
"""A name is called as it stands: `f()`."""
OF_OTHER: Final = 2
"""An attribute of anything is called: `x.f()`."""
OF_OWN: Final = 4
"""An attribute of the first parameter, in a method its object, or of `super()` is called: `self.f()`."""
HANDED: Final = 8
"""A name or an attribute is an argument: `g(f)`, `g(x.f)`."""


class Function(Node, frozen=True):
    """A function, a lambda (`LAMBDA`) or the module's own code (`<module>`).

    `parent` and `owner` index the enclosing function and class (-1: none).
    `referenced_names` holds every identifier its code reads; the empty one says that it calls
    what has no name, as in `(f or g)()`. The first ones name what it calls or hands on as
    an argument: the index by which callers are looked up; `uses` has a byte for each of
    these, the sum of BARE, OF_OTHER, OF_OWN and HANDED. `attributes` holds the names it assigns as attributes
    (`x` for `self.x = …`), sorted; `aliases` what else it calls what its names denote;
    `runs` the parameters that it calls, its own and those of functions around it.
    `returns` is the annotation of its result.
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

    @property
    def called(self) -> tuple[str, ...]:
        """The last names of what its code calls, and of what it hands on as an argument."""
        return self.referenced_names[: len(self.uses)]

    @property
    def only_read(self) -> tuple[str, ...]:
        """The other identifiers that its code reads."""
        return self.referenced_names[len(self.uses) :]

    def use(self, name: str) -> int:
        """Tell how its code calls what has a name, or hands it on; 0 where it does neither."""
        called = self.called
        return self.uses[called.index(name)] if name in called else 0


class Class(Node, frozen=True):
    """A class: its bases, and the functions defined in its body by name, setters as `name.setter`.

    `annotated` are the attributes that its body, or `self.x: …` in its methods, annotates, by name.
    """

    name: str
    qualname: str
    parent: int
    bases: tuple[Expr, ...]
    decorators: tuple[Expr, ...]
    methods: tuple[tuple[str, int], ...]
    annotated: tuple[tuple[str, Expr], ...] = ()


class Import(Node, frozen=True):
    """A name bound by an import.

    `import a.b` binds `a` to module `a`; `from m import n as l` binds `l` to
    name `n` of module `m`, `level` dots up. `name` is `*` for a star import.
    """

    local: str
    module: str
    name: str | None
    level: int


class FileFacts(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Everything remembered of one file; functions[0] is its module code."""

    functions: tuple[Function, ...]
    classes: tuple[Class, ...]
    imports: tuple[Import, ...]
    is_script: bool
