"""The words by which names and paths tell what they stand for."""

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
def test_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize("text", ["lock", "FileLock", "model.lock", "_locks", "lockfile", "a/LOCK", "rwlock"])
def test_a_lock(text: str) -> None:
    assert says(text, "lock")


@pytest.mark.parametrize("text", ["blocks.tmp", "clock.tmp", "block", "unlocked", "flocking", "deadlocks"])
def test_no_lock(text: str) -> None:
    assert not says(text, "lock")


@pytest.mark.parametrize("text", ["dp_process_group", "ParallelMode.DATA", "DeviceMesh", "self.tp_pg"])
def test_a_group(text: str) -> None:
    assert says(text, "group")


@pytest.mark.parametrize("text", ["grouped", "paralleled", "pgn", "meshed"])
def test_no_group(text: str) -> None:
    assert not says(text, "group")


@pytest.mark.parametrize("text", ["dist.group.WORLD", "default_pg", "get_world_group"])
def test_the_group_of_all(text: str) -> None:
    assert says(text, "whole group")


@pytest.mark.parametrize("what", get_args(Meaning))
def test_every_meaning_has_words_that_can_be_found(what: Meaning) -> None:
    assert meaning(what)
    assert all(words(word) == [word] for word in meaning(what))
