"""The kinds of catalog entries, by the names of their tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.catalog import entries as e

if TYPE_CHECKING:
    from fsrace_lint.catalog.entries import Entry

KINDS: Final[dict[str, type[Entry]]] = {
    "launch": e.Launch,
    "spawn": e.Spawn,
    "hook": e.Hook,
    "rank": e.Rank,
    "guard": e.Guard,
    "world": e.World,
    "variable": e.Variable,
    "environment": e.Environment,
    "decorator": e.Decorator,
    "run-once": e.RunOnce,
    "callback": e.Callback,
    "first": e.FirstContext,
    "barrier": e.Barrier,
    "collective": e.Collective,
    "collective-saver": e.CollectiveSaver,
    "lock": e.Lock,
    "in-process": e.InProcess,
    "effect": e.Effect,
    "response": e.Response,
    "program": e.Program,
    "private": e.Private,
    "random": e.Random,
    "seed": e.Seed,
    "node-local": e.NodeLocal,
    "path-word": e.PathWord,
    "idiom": e.Idiom,
    "sink": e.Sink,
    "object-store": e.ObjectStore,
    "returns": e.Returns,
    "sleep": e.Sleep,
    "suppressor": e.Suppressor,
    "exit": e.Exit,
}
