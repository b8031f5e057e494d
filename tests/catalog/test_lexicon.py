"""Words that give names and paths their meaning."""

from __future__ import annotations

from typing import get_args

import pytest

from fsrace_lint.catalog.lexicon import Meaning, meaning, says, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("FileLock", ["file", "lock"]),
        ("file_lock", ["file", "lock"]),
        ("HTTPServer", ["http", "server"]),
        ("out/model.lock", ["out", "model", "lock"]),
        ("self._rwlock", ["self", "rwlock"]),
        ("LOCK_2", ["lock"]),
        ("", []),
    ],
)
def test_text_is_split_into_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize("text", ["lock", "FileLock", "model.lock", "_locks", "lockfile", "a/LOCK", "rwlock"])
def test_lock_names(text: str) -> None:
    assert says(text, "lock")


@pytest.mark.parametrize("text", ["blocks.tmp", "clock.tmp", "block", "unlocked", "flocking", "deadlocks"])
def test_names_that_are_not_locks(text: str) -> None:
    assert not says(text, "lock")


@pytest.mark.parametrize("text", ["dp_process_group", "ParallelMode.DATA", "DeviceMesh", "self.tp_pg"])
def test_group_names(text: str) -> None:
    assert says(text, "group")


@pytest.mark.parametrize("text", ["grouped", "paralleled", "pgn", "meshed"])
def test_names_that_are_not_groups(text: str) -> None:
    assert not says(text, "group")


@pytest.mark.parametrize("text", ["dist.group.WORLD", "default_pg", "get_world_group"])
def test_world_group_names(text: str) -> None:
    assert says(text, "whole group")


@pytest.mark.parametrize("what", get_args(Meaning))
def test_every_meaning_has_single_words(what: Meaning) -> None:
    assert meaning(what)
    assert all(words(word) == [word] for word in meaning(what))
