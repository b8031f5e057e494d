"""Operations that Python cannot observe: other programs, and writers in other languages. Each is one call."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from fsrace_lint.instrument.interception import Calls
from fsrace_lint.instrument.kernel import posix

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fsrace_lint.instrument.model import Answer
    from fsrace_lint.instrument.recorder import Recorder

WRITERS: Final = (("sqlite3", "connect", 0), ("torch", "save", 1))
"""Functions that write by themselves if they get a path, and the index of this argument."""
BYPASSES: Final = ("numpy.lib.format", "numpy.lib._format_impl", "numpy.lib.npyio", "numpy.lib._npyio_impl")
"""Modules whose `isfileobj` tells whether a file can be written past Python."""
_REPLACED: Final = "fsrace_original"
UNOBSERVED: Final = {"sqlite3.connect": "only opening a SQLite database is controlled, not the calls on it"}


class OpaqueCalls(Calls):
    """Treats each operation that cannot be observed as one call."""

    def replacements(self) -> dict[Any, Any]:
        """Return the replacement of each original function."""
        made: dict[Callable[..., Any], Callable[..., Any]] = {
            subprocess.run: self.opaque(subprocess.run, "subprocess"),
            subprocess.call: self.opaque(subprocess.call, "subprocess"),
            subprocess.Popen.__init__: self._starting(subprocess.Popen.__init__),
            posix.posix_spawn: self.opaque(posix.posix_spawn, "posix_spawn"),
            posix.posix_spawnp: self.opaque(posix.posix_spawnp, "posix_spawnp"),
            posix.system: self.opaque(posix.system, "system"),
        }
        return made | {original: made_for for _, _, original, made_for in self._of_libraries()}

    def _of_libraries(self) -> Iterator[tuple[str, str, Any, Any]]:
        """Find the loaded functions that write by themselves, which have not been replaced."""
        for module, name, place in WRITERS:
            original = getattr(sys.modules.get(module), name, None)
            if original is not None and not hasattr(original, _REPLACED):
                yield module, name, original, self._writer(original, f"{module}.{name}", place)
        for module in BYPASSES:
            original = getattr(sys.modules.get(module), "isfileobj", None)
            if original is not None and not hasattr(original, _REPLACED):
                yield module, "isfileobj", original, self._never_past(original)

    def replace_late(self) -> None:
        """Replace the functions of modules that were loaded after all others were replaced."""
        for module, name, _, replacement in self._of_libraries():
            setattr(sys.modules[module], name, replacement)

    def _writer(self, original: Callable[..., Any], name: str, place: int) -> Callable[..., Any]:
        def write(*args: Any, **options: Any) -> Any:
            given = args[place] if len(args) > place else next(iter(options.values()), None)
            if isinstance(given, (str, bytes, os.PathLike)):
                if self._tree.place(given) is None and self._interceptor.is_active():
                    sys.audit("open", given, "w", os.O_WRONLY)
                return self.opaque(original, name, os.fsdecode(given))(*args, **options)
            return original(*args, **options)

        setattr(write, _REPLACED, original)
        return write

    def _never_past(self, original: Callable[[Any], bool]) -> Callable[[Any], bool]:
        def is_file(file: Any) -> bool:
            return not self._interceptor.is_active() and original(file)

        setattr(is_file, _REPLACED, original)
        return is_file

    def _starting(self, original: Callable[..., None]) -> Callable[..., None]:
        return lambda process, *args, **options: self.opaque(partial(original, process), "subprocess")(
            *args, **options
        )

    def opaque(self, original: Callable[..., Any], name: str, target: str = "") -> Callable[..., Any]:
        """Treat everything that a function does as one call.

        Args:
            original: The function.
            name: The name of the call.
            target: The subject of the call; if empty, the first argument of the function.

        Returns:
            The replacement of the function.
        """

        def call(*args: Any, **options: Any) -> Any:
            if not self._interceptor.is_active():
                return original(*args, **options)

            def act(recorder: Recorder, _: Answer | None) -> Any:
                recorder.happens_unseen()
                if name in UNOBSERVED:
                    recorder.unobserved.append(UNOBSERVED[name])
                return original(*args, **options)

            return self._intercept(name, target or _shown(args[0] if args else options.get("args", "")), act)

        return call


def _shown(command: Any) -> str:
    text = " ".join(map(str, command)) if isinstance(command, (list, tuple)) else str(command)
    return text if len(text) <= 60 else text[:57] + "..."
