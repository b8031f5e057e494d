"""Launches of a scratch repository, in one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.launches import reading

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from fsrace_lint.launches.model import Launch


def read(root: Path, files: dict[str, str], commands: Collection[str] = ()) -> tuple[Launch, ...]:
    """Write files, and read their launches."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return reading.read_launches(root, [root / name for name in files], commands)


def brief(launch: Launch) -> str:
    """Return a launch as `launcher count target [@directory] [arguments...]`.

    The count is `?` if it is not known, with `w` for workers, and `~` if each of them gets other arguments. A
    module is `-m NAME`, a console script `$NAME`. Arguments that are not known are `_`.
    """
    assert launch.several is (launch.processes != 1)
    count = "?" if launch.processes is None else str(launch.processes)
    prefix = {"file": "", "module": "-m ", "command": "$"}[launch.target.kind]
    place = f" @{launch.folder}" if launch.folder else ""
    words = "".join(f" {word or '_'}" for word in launch.arguments)
    role = ("w" if launch.role == "worker" else "") + "~" * launch.varies
    return f"{launch.launcher} {count}{role} {prefix}{launch.target.name}{place}{words}"


def of_shell(root: Path, text: str, commands: Collection[str] = ()) -> list[str]:
    """Return the launches of a shell script."""
    return [brief(launch) for launch in read(root, {"run.sh": text}, commands)]
