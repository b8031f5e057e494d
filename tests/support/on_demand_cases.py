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
    "a local variable": ("make", "m = make\nm('x')"),
    "a variable of a module": ("make", "m = make\ndef go():\n    m('x')"),
    "an attribute of a module": ("make", "m = lib.make\ndef go():\n    m('x')"),
    "a module in a variable": ("make", "l = lib\nm = l.make\nm('x')"),
    "an import under another name": ("make", "from lib import make as mk\ndef go():\n    mk('x')"),
    "an import in a function": (
        "make",
        "def go():\n    from lib import make as mk\n    f = mk\n    f('x')",
    ),
    "a variable with the name itself": ("make", "def go():\n    make = lib.make\n    f = make\n    f('x')"),
    "a parameter with the name itself": ("make", "def go(make):\n    pass\nf = make\nf('x')"),
    "a function of its own with the name, bound anew": (
        "make",
        "def make(x): pass\nmake = lib.make\nmake('x')",
    ),
    "a function of the name that calls it": ("make", "def make():\n    lib.make('x')"),
    "a class of its own with the name": ("Store.__init__", "class Store(lib.Store): pass\nStore('x')"),
    "self": ("Store.put", "class A(Store):\n    def go(self):\n        self.put('x')"),
    "super, called at once": ("Store.put", "class A(Store):\n    def go(self):\n        super().put('x')"),
    "a self that is bound anew": (
        "Store.put",
        "class A:\n    def go(self):\n        self = Store('x')\n        self.put('y')",
    ),
    "the self of a comprehension": (
        "Store.put",
        "class A:\n    def go(self):\n        return [self.put('y') for self in [Store('x')]]",
    ),
    "the self of a lambda": (
        "Store.put",
        "class A:\n    def go(self):\n        f = lambda self=Store('x'): self.put('y')\n        f()",
    ),
    "the self of a function in a method": (
        "Store.put",
        "class A(Store):\n    def go(self):\n        def f():\n            self.put('y')\n        f()",
    ),
    "the first parameter of a static method": (
        "Store.put",
        "class A:\n    @staticmethod\n    def go(s: Store):\n        s.put('y')",
    ),
    "the first parameter of a function": ("Store.put", "def go(s: Store):\n    s.put('y')"),
    "several targets": ("make", "a = b = make\nb('x')"),
    "an annotated target": ("make", "m: object = make\nm('x')"),
    "unpacked": ("make", "(a, (b, c)) = (sync, (make, Store))\nb('x')"),
    "unpacked into a list": ("make", "[a, b] = [sync, make]\nb('x')"),
    "a walrus": ("make", "if (m := make):\n    m('y')"),
    "a walrus in a variable": ("make", "m = (w := make)\nm('x')"),
    "a class with its parameter in brackets": ("Store.__init__", "K = Store[int]\nK('x')"),
    "a conditional expression": ("make", "m = make if flag else sync\nm('x')"),
    "the second of or": ("make", "m = None or make\nm('x')"),
    "entered": ("make", "with make as m:\n    m('x')"),
    "a closure": ("make", "def outer():\n    m = make\n    def inner():\n        m('x')\n    inner()"),
    "a nested function under another name": (
        "make",
        (
            "def outer():\n    def inner(f):\n        g = f\n        make('x')\n    k = inner\n"
            "    k(1)\nouter()"
        ),
    ),
    "returned": ("make", "def get():\n    return make\nf = get()\nf('x')"),
    "returned from a variable": ("make", "def get():\n    m = make\n    return m\nf = get()\nf('x')"),
    "returned in two steps": (
        "make",
        "def get():\n    return make\ndef further():\n    return get\ng = further()()\ng('x')",
    ),
    "returned by a lambda": ("make", "get = lambda: make\nf = get()\nf('x')"),
    "returned by a method": (
        "make",
        "class A:\n    def get(self):\n        return make\ndef go(a: A):\n    f = a.get()\n    f('x')",
    ),
    "an object of a property": (
        "Store.put",
        (
            "class A:\n    @property\n    def p(self):\n        return Store('x')\ndef go(a: A):\n"
            "    f = a.p.put\n    f('x')"
        ),
    ),
    "an attribute of a class": ("make", "class A:\n    f = make\n    def go(self):\n        self.f('x')"),
    "an attribute of an object": (
        "make",
        (
            "class A:\n    def __init__(self):\n        self.f = make\nclass B(A):\n    def go(self):\n"
            "        self.f('x')"
        ),
    ),
    "an attribute that a derived class sets": (
        "make",
        (
            "class A:\n    def go(self):\n        self.f('x')\nclass B(A):\n    def __init__(self):\n"
            "        self.f = make"
        ),
    ),
    "an attribute of an object in a variable": (
        "make",
        "class A:\n    pass\ndef go(a: A):\n    a.f = make\n    a.f('x')",
    ),
    "a method in an attribute": (
        "Store.put",
        (
            "class A(Store):\n    def __init__(self):\n        self.f = self.put\n    def go(self):\n"
            "        self.f('x')"
        ),
    ),
    "a method of another object in an attribute": (
        "Store.put",
        (
            "class A:\n    def __init__(self, s: Store):\n        self.s = s\n"
            "        self.f = self.s.put\n    def go(self):\n        self.f('x')"
        ),
    ),
    "a method of a base class": (
        "Store.put",
        "class A(Store):\n    e = Store.put\ndef go(a: A):\n    a.e('x')",
    ),
    "super": (
        "Store.put",
        "class A(Store):\n    def put(self, out):\n        p = super().put\n        p(out)",
    ),
    "a constructor by super": (
        "Store.__init__",
        "class A(Store):\n    def __init__(self):\n        super().__init__('x')",
    ),
    "a constructor by the base class": (
        "Store.__init__",
        "class A(Store):\n    def __init__(self):\n        Store.__init__(self, 'x')",
    ),
    "a derived class": (
        "Store.__init__",
        "class A(Store):\n    pass\nclass B(A):\n    pass\nK = B\nK('x')",
    ),
    "a class in an attribute": (
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
    "an object that a class method makes": ("Store.put", "s = Store.build('x')\np = s.put\np('y')"),
    "an object of an annotated parameter": (
        "Store.put",
        "def go(s: 'lib.Store'):\n    p = s.put\n    p('y')",
    ),
    "in a lambda": ("make", "f = lambda x: make(x)\nf('x')"),
    "in a lambda that a function calls": ("make", "f = lambda x: make(x)\ndef go():\n    f('x')"),
    "in a lambda that is a default": ("make", "def go(f=lambda x: make(x)):\n    f('x')\ngo()"),
    "in a lambda in a class": ("make", "class A:\n    f = lambda self, x: make(x)"),
    "in a lambda in a dict": ("make", "d = {'a': lambda x: make(x)}"),
    "handed over under another name": (
        "make",
        "def on_main(f):\n    if dist.get_rank() == 0:\n        f('x')\nh = on_main\nm = make\nh(f=m)",
    ),
    "handed to partial under another name": ("make", "P = functools.partial\nm = make\np = P(m, 'x')\np()"),
    "handed to what starts processes": (
        "make",
        "import torch.multiprocessing as mp\nm = make\nmp.spawn(m, nprocs=4)",
    ),
}
"""For each way: the function of the library, and code that calls it or passes it on."""

MEANT: Final[dict[str, tuple[str, str]]] = {
    "an act under another name": (
        "FSR101",
        "mk = os.makedirs\ndef go(out):\n    if not os.path.exists(out):\n        mk(out)",
    ),
    "an act imported under another name": (
        "FSR101",
        "from os import makedirs as mk\ndef go(out):\n    if not os.path.exists(out):\n        mk(out)",
    ),
    "an act alone under another name": ("FSR105", "mk = os.makedirs\ndef go():\n    mk('x')"),
    "a lock of the kernel under another name": (
        "FSR506",
        (
            "import fcntl\nk = fcntl.flock\ndef go():\n    f = open('x.txt', 'w')\n"
            "    k(f, fcntl.LOCK_EX)\n    f.write('q')"
        ),
    ),
    "a barrier under another name": ("FSR402", "bar = dist.barrier\nif dist.get_rank() == 0:\n    bar()"),
    "a barrier in a function under another name": (
        "FSR402",
        "bar = dist.barrier\ndef meet():\n    bar()\nm = meet\nif dist.get_rank() == 0:\n    m()",
    ),
    "a barrier by a walrus": ("FSR402", "if dist.get_rank() == 0:\n    (w := sync)()"),
    "a barrier by one of two": ("FSR402", "if dist.get_rank() == 0:\n    (sync if flag else None)()"),
    "a barrier by a result": (
        "FSR402",
        "def get():\n    return sync\nif dist.get_rank() == 0:\n    get()()",
    ),
    "a barrier in a lambda": ("FSR402", "if dist.get_rank() == 0:\n    (lambda: dist.barrier())()"),
    "a function that a decorator makes a barrier": (
        "FSR402",
        (
            "from speechbrain.utils.distributed import main_process_only as m\n@m\ndef count():\n"
            "    return 1\nif dist.get_rank() == 0:\n    count()"
        ),
    ),
    "a lock under another name": ("FSR410", "L = FileLock\ndef go():\n    L('x.lock')"),
    "a context of the project under another name": (
        "FSR410",
        (
            "import contextlib, fcntl\n@contextlib.contextmanager\ndef held(path):\n"
            "    with open(path, 'w') as file:\n        fcntl.flock(file, fcntl.LOCK_EX)\n"
            "        yield\nh = held\ndef go():\n    h('x')"
        ),
    ),
    "a class that locks under another name": (
        "FSR410",
        (
            "import fcntl\nclass Held:\n    def __enter__(self):\n"
            "        fcntl.flock(self.file, fcntl.LOCK_EX)\n    def __exit__(self, *_):\n        pass\n"
            "h = Held\ndef go():\n    h()"
        ),
    ),
    "what runs once under another name": ("FSR409", "o = once\no(make('x'))"),
    "what a library runs once in an attribute": (
        "FSR409",
        (
            "from accelerate import PartialState\nclass A:\n    def __init__(self):\n"
            "        self.first = PartialState().on_main_process\n    def go(self):\n"
            "        self.first(make('x'))"
        ),
    ),
    "what waits under another name": ("FSR407", "w = wait\nw(lambda: os.path.exists('x.pt'))"),
}
"""For each way: a finding that depends on the meaning of a name, and the code with the finding."""

SILENT: Final[dict[str, str]] = {
    "a lambda that ends the others": (
        "b = lambda: sys.exit(1)\nif dist.get_rank() != 0:\n    b()\nmake('x')"
    ),
    "a result that ends the others": (
        "def get():\n    return sys.exit\nif dist.get_rank() != 0:\n    get()(1)\nmake('x')"
    ),
    "exit under another name": "bail = sys.exit\nif dist.get_rank() != 0:\n    bail()\nmake('x')",
    "exit in an attribute": (
        "class A:\n    bail = sys.exit\n    def go(self):\n        if dist.get_rank() != 0:\n"
        "            self.bail(1)\n        make('x')"
    ),
    "a function that ends the others": "l = leave\nl()\nmake('x')",
    "one of two that ends the others": "(leave if flag else leave)()\nmake('x')",
    "a constructor that ends the others": (
        "class A:\n    def __init__(self):\n        if dist.get_rank() != 0:\n            sys.exit(0)\n"
        "class B(A):\n    pass\nB()\nmake('x')"
    ),
    "a predicate under another name": "m = is_main\nif m():\n    make('x')",
    "a lock by two names": "L = FileLock\nK = L\nwith K('x.lock'):\n    make('x')",
}
"""Code in which only one process calls `make`, or one process at a time."""
