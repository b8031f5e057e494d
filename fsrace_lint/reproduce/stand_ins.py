"""Stand-ins: objects for arguments that nothing describes, and modules that are not installed."""

from __future__ import annotations

import contextlib
import importlib
import importlib.machinery
import inspect
import operator
import os
import sys
import types
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


_OF_IMPORTS: Final = (
    __file__,
    importlib.__file__,
    "<frozen importlib._bootstrap>",
    "<frozen importlib._bootstrap_external>",
)
"""The files whose code runs between an import and a finder."""


class StandIn(dict[Any, Any]):
    """An object that does nothing: a function, an object with any attributes, a decorator, or a base class.

    It is an empty dictionary, so that it can be iterated over, pickled, and written as JSON.
    """

    def __init__(self, *_: Any, **__: Any) -> None:
        """Accept any arguments."""
        super().__init__()

    def __init_subclass__(cls, **_: Any) -> None:
        """Accept any class arguments."""

    def __mro_entries__(self, _: tuple[object, ...]) -> tuple[type]:
        # two bases must differ
        return (type("StandIn", (StandIn,), {}),)

    def __instancecheck__(self, _: object) -> bool:
        return False

    __subclasscheck__ = __instancecheck__

    def __missing__(self, _: object) -> StandIn:
        return StandIn()

    def __call__(self, *given: Any, **_: Any) -> Any:
        """Return a decorated function as it is."""
        return given[0] if len(given) == 1 and isinstance(given[0], types.FunctionType | type) else StandIn()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn()

    def __bool__(self) -> bool:
        return True

    def __hash__(self) -> int:  # type: ignore[override]
        return 1

    def __enter__(self) -> StandIn:  # noqa: PYI034  # Python 3.10 has no Self
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __index__(self) -> int:
        return 1

    def __float__(self) -> float:
        return 1.0


def _same(self: StandIn, *_: object) -> StandIn:
    return self


def _no(*_: object) -> bool:
    return False


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "or", "and"):
    setattr(StandIn, f"__{_name}__", _same)
    setattr(StandIn, f"__r{_name}__", _same)
# names of methods of dictionaries are attributes of other objects too; called, each gives nothing
for _name in ("clear", "copy", "get", "items", "keys", "pop", "popitem", "setdefault", "update", "values"):
    setattr(StandIn, _name, property(lambda _: StandIn()))
for _compare in (operator.lt, operator.le, operator.gt, operator.ge):
    setattr(StandIn, f"__{_compare.__name__}__", _no)


class _StandInModule(types.ModuleType):
    __version__ = "0"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn()


class _Finder:
    """The last finder of imports: it finds what no other one has found, for the code of a project.

    A library that looks for an optional module must not find a stand-in.
    """

    def __init__(self, project: Path) -> None:
        self.missing: dict[str, None] = {}
        self._project = project

    def find_spec(
        self, name: str, _path: Sequence[str] | None = None, _target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return a stand-in for a module that is not installed, and for all modules below it."""
        top = name.partition(".")[0]
        if top not in self.missing:
            is_own = (self._project / top).exists() or (self._project / f"{top}.py").exists()
            if top != name or top in sys.stdlib_module_names or is_own or not self._is_asked_by_project():
                return None
            self.missing[top] = None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

    def _is_asked_by_project(self) -> bool:
        frame = inspect.currentframe()
        while frame is not None and frame.f_code.co_filename in _OF_IMPORTS:
            frame = frame.f_back
        return frame is not None and frame.f_code.co_filename.startswith(f"{self._project}{os.sep}")

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """Return the stand-in."""
        return _StandInModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Do nothing: a stand-in has no code."""


@contextlib.contextmanager
def for_missing_modules(project: Path) -> Iterator[dict[str, None]]:
    """Replace modules that are not installed and that the code of a project imports.

    Args:
        project: The root of the project; its own modules are not replaced.

    Yields:
        The top-level modules that are replaced, to be read later.
    """
    finder = _Finder(project.resolve())
    sys.meta_path.append(finder)
    try:
        yield finder.missing
    finally:
        sys.meta_path.remove(finder)
