"""Ways to call the functions of a library under different names."""

from __future__ import annotations

from typing import Final

IMPORTS: Final = """\
import functools, os, sys, time
import torch
import torch.distributed as dist
from filelock import FileLock
"""
LIBRARY: Final = (
    IMPORTS
    + """\

flag = len(sys.argv)


def make(out):
    if not os.path.exists(out):
        os.makedirs(out)


def is_main():
    return dist.get_rank() == 0


def leave():
    if dist.get_rank() != 0:
        sys.exit(0)


def sync():
    dist.barrier()


def once(function):
    if dist.get_rank() == 0:
        function()


def only(function):
    @functools.wraps(function)
    def wrapped(*args):
        if dist.get_rank() == 0:
            return function(*args)
    return wrapped


def wait(done):
    while not done():
        time.sleep(1)


class Store:
    def __init__(self, out):
        if not os.path.exists(out):
            os.makedirs(out)

    def put(self, out):
        torch.save({}, out)

    def again(self, out):
        alias = self.put
        alias(out)

    @classmethod
    def build(cls, out):
        return cls(out)


class Child(Store):
    def put(self, out):
        super().put(out)
"""
)

CALLS: Final = """\
from lib import make, once, sync
def prepare(first=once, meet=sync):
    mk = make
    first(mk('x'))
    if dist.get_rank() == 0:
        meet()
        (sync or meet)()
if not os.path.exists('y'):
    (mk := os.makedirs)('y')
"""

WAYS: Final[dict[str, tuple[str, str]]] = {
    "variable": ("make", "m = make\nm('x')"),
    "module variable": ("make", "m = make\ndef go():\n    m('x')"),
    "module attribute in a variable": ("make", "m = lib.make\ndef go():\n    m('x')"),
    "module in a variable": ("make", "l = lib\nm = l.make\nm('x')"),
    "import alias": ("make", "from lib import make as mk\ndef go():\n    mk('x')"),
    "import alias in a function": (
        "make",
        "def go():\n    from lib import make as mk\n    f = mk\n    f('x')",
    ),
    "variable with the same name": ("make", "def go():\n    make = lib.make\n    f = make\n    f('x')"),
    "parameter with the same name": ("make", "def go(make):\n    pass\nf = make\nf('x')"),
    "local function with the same name, rebound": (
        "make",
        "def make(x): pass\nmake = lib.make\nmake('x')",
    ),
    "calling function with the same name": ("make", "def make():\n    lib.make('x')"),
    "subclass with the same name": ("Store.__init__", "class Store(lib.Store): pass\nStore('x')"),
    "self": ("Store.put", "class A(Store):\n    def go(self):\n        self.put('x')"),
    "direct super call": ("Store.put", "class A(Store):\n    def go(self):\n        super().put('x')"),
    "rebound self": (
        "Store.put",
        "class A:\n    def go(self):\n        self = Store('x')\n        self.put('y')",
    ),
    "self bound in a comprehension": (
        "Store.put",
        "class A:\n    def go(self):\n        return [self.put('y') for self in [Store('x')]]",
    ),
    "self as a lambda parameter": (
        "Store.put",
        "class A:\n    def go(self):\n        f = lambda self=Store('x'): self.put('y')\n        f()",
    ),
    "self in a nested function": (
        "Store.put",
        "class A(Store):\n    def go(self):\n        def f():\n            self.put('y')\n        f()",
    ),
    "first parameter of a static method": (
        "Store.put",
        "class A:\n    @staticmethod\n    def go(s: Store):\n        s.put('y')",
    ),
    "first parameter of a function": ("Store.put", "def go(s: Store):\n    s.put('y')"),
    "multiple assignment targets": ("make", "a = b = make\nb('x')"),
    "annotated assignment": ("make", "m: object = make\nm('x')"),
    "tuple unpacking": ("make", "(a, (b, c)) = (sync, (make, Store))\nb('x')"),
    "list unpacking": ("make", "[a, b] = [sync, make]\nb('x')"),
    "assignment expression": ("make", "if (m := make):\n    m('y')"),
    "assignment expression in a variable": ("make", "m = (w := make)\nm('x')"),
    "subscripted class": ("Store.__init__", "K = Store[int]\nK('x')"),
    "conditional expression": ("make", "m = make if flag else sync\nm('x')"),
    "second operand of or": ("make", "m = None or make\nm('x')"),
    "with target": ("make", "with make as m:\n    m('x')"),
    "closure": ("make", "def outer():\n    m = make\n    def inner():\n        m('x')\n    inner()"),
    "alias of a nested function": (
        "make",
        (
            "def outer():\n    def inner(f):\n        g = f\n        make('x')\n    k = inner\n"
            "    k(1)\nouter()"
        ),
    ),
    "returned function": ("make", "def get():\n    return make\nf = get()\nf('x')"),
    "returned variable": ("make", "def get():\n    m = make\n    return m\nf = get()\nf('x')"),
    "returned by a returned function": (
        "make",
        "def get():\n    return make\ndef further():\n    return get\ng = further()()\ng('x')",
    ),
    "returned by a lambda": ("make", "get = lambda: make\nf = get()\nf('x')"),
    "returned by a method": (
        "make",
        "class A:\n    def get(self):\n        return make\ndef go(a: A):\n    f = a.get()\n    f('x')",
    ),
    "object from a property": (
        "Store.put",
        (
            "class A:\n    @property\n    def p(self):\n        return Store('x')\ndef go(a: A):\n"
            "    f = a.p.put\n    f('x')"
        ),
    ),
    "class attribute": ("make", "class A:\n    f = make\n    def go(self):\n        self.f('x')"),
    "instance attribute set in a base class": (
        "make",
        (
            "class A:\n    def __init__(self):\n        self.f = make\nclass B(A):\n    def go(self):\n"
            "        self.f('x')"
        ),
    ),
    "instance attribute set in a subclass": (
        "make",
        (
            "class A:\n    def go(self):\n        self.f('x')\nclass B(A):\n    def __init__(self):\n"
            "        self.f = make"
        ),
    ),
    "attribute of a parameter": (
        "make",
        "class A:\n    pass\ndef go(a: A):\n    a.f = make\n    a.f('x')",
    ),
    "method in an attribute": (
        "Store.put",
        (
            "class A(Store):\n    def __init__(self):\n        self.f = self.put\n    def go(self):\n"
            "        self.f('x')"
        ),
    ),
    "method of another object in an attribute": (
        "Store.put",
        (
            "class A:\n    def __init__(self, s: Store):\n        self.s = s\n"
            "        self.f = self.s.put\n    def go(self):\n        self.f('x')"
        ),
    ),
    "base class method in a class attribute": (
        "Store.put",
        "class A(Store):\n    e = Store.put\ndef go(a: A):\n    a.e('x')",
    ),
    "super method in a variable": (
        "Store.put",
        "class A(Store):\n    def put(self, out):\n        p = super().put\n        p(out)",
    ),
    "constructor through super": (
        "Store.__init__",
        "class A(Store):\n    def __init__(self):\n        super().__init__('x')",
    ),
    "constructor through the base class": (
        "Store.__init__",
        "class A(Store):\n    def __init__(self):\n        Store.__init__(self, 'x')",
    ),
    "constructor of a subclass alias": (
        "Store.__init__",
        "class A(Store):\n    pass\nclass B(A):\n    pass\nK = B\nK('x')",
    ),
    "class in an attribute": (
        "Store.__init__",
        "class A:\n    kind = Store\n    def go(self):\n        self.kind('x')",
    ),
    "cls": (
        "Store.__init__",
        "class A(Store):\n    @classmethod\n    def new(cls):\n        return cls('x')",
    ),
    "cls in a variable": (
        "Store.__init__",
        "class A(Store):\n    @classmethod\n    def new(cls):\n        k = cls\n        return k('x')",
    ),
    "cls in a closure": (
        "Store.__init__",
        (
            "class A(Store):\n    @classmethod\n    def new(cls):\n        def go():\n"
            "            cls('x')\n        go()"
        ),
    ),
    "object from a class method": ("Store.put", "s = Store.build('x')\np = s.put\np('y')"),
    "annotated parameter": (
        "Store.put",
        "def go(s: 'lib.Store'):\n    p = s.put\n    p('y')",
    ),
    "called in a lambda": ("make", "f = lambda x: make(x)\nf('x')"),
    "called in a lambda that a function calls": ("make", "f = lambda x: make(x)\ndef go():\n    f('x')"),
    "called in a lambda default argument": ("make", "def go(f=lambda x: make(x)):\n    f('x')\ngo()"),
    "called in a lambda class attribute": ("make", "class A:\n    f = lambda self, x: make(x)"),
    "called in a lambda in a dict": ("make", "d = {'a': lambda x: make(x)}"),
    "alias passed to a function alias": (
        "make",
        "def on_main(f):\n    if dist.get_rank() == 0:\n        f('x')\nh = on_main\nm = make\nh(f=m)",
    ),
    "alias passed to a partial alias": ("make", "P = functools.partial\nm = make\np = P(m, 'x')\np()"),
    "alias passed to a process launcher": (
        "make",
        "import torch.multiprocessing as mp\nm = make\nmp.spawn(m, nprocs=4)",
    ),
}
"""For each way: the function of the library, and code that calls it or passes it on."""

MEANT: Final[dict[str, tuple[str, str]]] = {
    "alias of a filesystem call": (
        "FSR101",
        "mk = os.makedirs\ndef go(out):\n    if not os.path.exists(out):\n        mk(out)",
    ),
    "import alias of a filesystem call": (
        "FSR101",
        "from os import makedirs as mk\ndef go(out):\n    if not os.path.exists(out):\n        mk(out)",
    ),
    "alias of an unchecked filesystem call": ("FSR105", "mk = os.makedirs\ndef go():\n    mk('x')"),
    "alias of flock": (
        "FSR506",
        (
            "import fcntl\nk = fcntl.flock\ndef go():\n    f = open('x.txt', 'w')\n"
            "    k(f, fcntl.LOCK_EX)\n    f.write('q')"
        ),
    ),
    "alias of a barrier": ("FSR402", "bar = dist.barrier\nif dist.get_rank() == 0:\n    bar()"),
    "alias of a function with a barrier": (
        "FSR402",
        "bar = dist.barrier\ndef meet():\n    bar()\nm = meet\nif dist.get_rank() == 0:\n    m()",
    ),
    "barrier through an assignment expression": ("FSR402", "if dist.get_rank() == 0:\n    (w := sync)()"),
    "barrier through a conditional expression": (
        "FSR402",
        "if dist.get_rank() == 0:\n    (sync if flag else None)()",
    ),
    "barrier through a returned function": (
        "FSR402",
        "def get():\n    return sync\nif dist.get_rank() == 0:\n    get()()",
    ),
    "barrier in a lambda": ("FSR402", "if dist.get_rank() == 0:\n    (lambda: dist.barrier())()"),
    "function with a decorator that adds a barrier": (
        "FSR402",
        (
            "from speechbrain.utils.distributed import main_process_only as m\n@m\ndef count():\n"
            "    return 1\nif dist.get_rank() == 0:\n    count()"
        ),
    ),
    "alias of a lock class": ("FSR410", "L = FileLock\ndef go():\n    L('x.lock')"),
    "alias of a context manager function": (
        "FSR410",
        (
            "import contextlib, fcntl\n@contextlib.contextmanager\ndef held(path):\n"
            "    with open(path, 'w') as file:\n        fcntl.flock(file, fcntl.LOCK_EX)\n"
            "        yield\nh = held\ndef go():\n    h('x')"
        ),
    ),
    "alias of a context manager class": (
        "FSR410",
        (
            "import fcntl\nclass Held:\n    def __enter__(self):\n"
            "        fcntl.flock(self.file, fcntl.LOCK_EX)\n    def __exit__(self, *_):\n        pass\n"
            "h = Held\ndef go():\n    h()"
        ),
    ),
    "alias of a run-once helper": ("FSR409", "o = once\no(make('x'))"),
    "library run-once helper in an attribute": (
        "FSR409",
        (
            "from accelerate import PartialState\nclass A:\n    def __init__(self):\n"
            "        self.first = PartialState().on_main_process\n    def go(self):\n"
            "        self.first(make('x'))"
        ),
    ),
    "alias of a polling helper": ("FSR407", "w = wait\nw(lambda: os.path.exists('x.pt'))"),
}
"""For each way: a finding that depends on the meaning of a name, and the code with the finding."""

SILENT: Final[dict[str, str]] = {
    "lambda that exits the other ranks": (
        "b = lambda: sys.exit(1)\nif dist.get_rank() != 0:\n    b()\nmake('x')"
    ),
    "returned function that exits the other ranks": (
        "def get():\n    return sys.exit\nif dist.get_rank() != 0:\n    get()(1)\nmake('x')"
    ),
    "alias of exit": "bail = sys.exit\nif dist.get_rank() != 0:\n    bail()\nmake('x')",
    "exit in an attribute": (
        "class A:\n    bail = sys.exit\n    def go(self):\n        if dist.get_rank() != 0:\n"
        "            self.bail(1)\n        make('x')"
    ),
    "alias of a function that exits the other ranks": "l = leave\nl()\nmake('x')",
    "conditional expression that exits the other ranks": "(leave if flag else leave)()\nmake('x')",
    "inherited constructor that exits the other ranks": (
        "class A:\n    def __init__(self):\n        if dist.get_rank() != 0:\n            sys.exit(0)\n"
        "class B(A):\n    pass\nB()\nmake('x')"
    ),
    "alias of a rank predicate": "m = is_main\nif m():\n    make('x')",
    "alias of a lock alias": "L = FileLock\nK = L\nwith K('x.lock'):\n    make('x')",
}
"""Code in which only one process calls `make`, or one process at a time."""
