"""The files of a project that can contain launch commands, read only if the project is linked."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from fsrace_lint.files import source
from fsrace_lint.launches.kinds import relevant
from fsrace_lint.launches.model import Launch, Origin, Target, shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fsrace_lint.config.settings import Settings
    from fsrace_lint.config.tables import ProgramSettings
    from fsrace_lint.engine import store
    from fsrace_lint.pipeline.discover import Found


class Commands(msgspec.Struct, frozen=True):
    """How a repository starts its programs.

    Attributes:
        launches: The launch commands in its files, with paths as reported.
        installed: The installed commands, each with `module:function`.
    """

    launches: tuple[Launch, ...] = ()
    installed: dict[str, str] = {}


NONE: Final = Commands()
_TABLE: Final = re.compile(r"\s*\[\[\s*tool\s*\.\s*[\"']?fsrace-lint[\"']?\s*\.\s*programs\s*\]\]")
_commands_of: Final = msgspec.msgpack.Decoder(Commands).decode


class LaunchFiles:
    """The files that can contain launch commands."""

    def __init__(self, settings: Settings, found: Iterable[Found]) -> None:
        """Remember the files, without reading them.

        Args:
            settings: The settings of the project.
            found: The files.
        """
        self._settings = settings
        self._files = sorted({(item.relative, item.path) for item in found})

    @functools.cached_property
    def digest(self) -> bytes:
        """A digest of the content of the files that mention a launcher."""
        digest = hashlib.blake2b(digest_size=32)
        for relative, data in relevant(self._settings.root, self._paths):
            digest.update(f"{relative}\0{len(data)}\0".encode("utf-8", "surrogatepass"))
            digest.update(data)
        digest.update(repr([launch.line for launch in self._set]).encode())
        return digest.digest()

    @property
    def paths(self) -> frozenset[str]:
        """The paths of the files, as reported."""
        found = {self._reported(relative) for relative, _ in self._files}
        return frozenset(found | {launch.reported for launch in self._set})

    def commands(self, cached: store.Results | None) -> Commands:
        """Read the commands of the files, or return the cached ones.

        Args:
            cached: The commands of other runs, by digest. New commands are added.
        """
        data = None if cached is None else cached.get(self.digest)
        try:
            known = None if data is None else _commands_of(data)
        except (msgspec.DecodeError, ValueError, RecursionError):
            known = None
        if known is None:
            from fsrace_lint.launches import reading  # noqa: PLC0415  # loads parsers, if any file has a launch

            installed = reading.read_installed(self._settings.root, self._paths)
            known = Commands(reading.read_launches(self._settings.root, self._paths, installed), installed)
            if cached is not None:
                # a cache that cannot be written, which is noted elsewhere, or a name that does not decode
                with contextlib.suppress(OSError, ValueError):
                    cached.put(self.digest, msgspec.msgpack.encode(known))
        read = tuple(
            msgspec.structs.replace(launch, reported=self._reported(launch.path)) for launch in known.launches
        )
        return Commands((*self._set, *read), known.installed)

    @functools.cached_property
    def _set(self) -> tuple[Launch, ...]:
        """The launches in the settings."""
        tables = {one.programs_file: one.programs for one in self._settings.every if one.programs}
        return tuple(
            launch for file, programs in tables.items() for launch in self._set_in(Path(file), programs)
        )

    def _set_in(self, file: Path, programs: Sequence[ProgramSettings]) -> Iterator[Launch]:
        """Yield the launches in one table."""
        shown, _, relative = source.names_of(file, self._settings.root)
        lines = _lines_of_tables(file)
        for place, program in enumerate(programs):
            yield Launch(
                path=relative,
                line=lines[place] if place < len(lines) else 1,
                origin=Origin.SETTINGS,
                command=_command(program),
                folder="",
                launcher=program.launcher,
                target=Target(*program.target),
                processes=program.processes,
                several=program.processes != 1,
                role="worker" if program.role == "worker" else "rank",
                arguments=("",),
                on_one_node=program.processes == 1,
                reported=shown,
            )

    @property
    def _paths(self) -> list[Path]:
        return [Path(path) for _, path in self._files]

    def _reported(self, relative: str) -> str:
        return source.names_of(self._settings.root / relative, self._settings.root)[0]


def _command(program: ProgramSettings) -> str:
    """Return the command of a program in the settings, to show in reports."""
    kind, name = program.target
    name = f"-m {name}" if kind == "module" else name
    words = [program.launcher or ("" if kind == "command" else "python"), name]
    return shortened(" ".join(words))


def _lines_of_tables(file: Path) -> list[int]:
    """Return the lines where the tables of programs begin in a settings file."""
    try:
        text = file.read_text("utf-8", "replace")
    except OSError:  # deleted since the settings were read
        return []
    return [number for number, line in enumerate(text.splitlines(), 1) if _TABLE.match(line)]
