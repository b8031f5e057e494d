"""The kinds of library models, by the names of their tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.catalog import entries as e

if TYPE_CHECKING:
    from fsrace_lint.catalog.entries import CatalogEntry

KINDS: Final[dict[str, type[CatalogEntry]]] = {
    "launch": e.Launch,
    "spawn": e.Spawn,
    "remote": e.Remote,
    "driver": e.Driver,
    "rerun": e.Rerun,
    "hook": e.Hook,
    "rank": e.RankEntry,
    "guard": e.Guard,
    "world": e.World,
    "variable": e.Variable,
    "environment": e.EnvironmentEntry,
    "decorator": e.Decorator,
    "run-once": e.RunOnce,
    "callback": e.Callback,
    "first": e.FirstContext,
    "barrier": e.Barrier,
    "collective": e.Collective,
    "agreement": e.Agreement,
    "signal": e.Signal,
    "collective-saver": e.CollectiveSaver,
    "lock": e.LockEntry,
    "in-process": e.InProcess,
    "effect": e.Effect,
    "response": e.Response,
    "program": e.Program,
    "command": e.CommandEntry,
    "argument-parser": e.ArgumentParser,
    "private": e.Private,
    "random": e.Random,
    "seed": e.Seed,
    "node-local": e.NodeLocalEntry,
    "path-word": e.PathWord,
    "idiom": e.IdiomEntry,
    "sink": e.Sink,
    "object-store": e.ObjectStore,
    "returns": e.Returns,
    "sleep": e.SleepEntry,
    "suppressor": e.Suppressor,
    "exit": e.Exit,
    "iterator": e.IteratorEntry,
    "field": e.Field,
    "pure": e.Pure,
}
