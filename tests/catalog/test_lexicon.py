"""Words that give names and paths their meaning."""

from __future__ import annotations

from typing import get_args

import pytest

from fsrace_lint.catalog.lexicon import (
    Meaning,
    asks_whether_distributed,
    checks_first_process,
    identifies_process,
    meaning,
    says,
    words,
)


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


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("is_world_master", "global"),
        ("is_root_worker", "global"),
        ("is_rank_0", "global"),
        ("isMaster", "global"),
        ("get_is_master", "global"),
        ("_is_main_process", "global"),
        ("is_zero_rank", "global"),
        ("is_local_root_worker", "local"),
        ("is_node_leader", "local"),
        ("is_data_parallel_master", "group"),
        ("is_model_parallel_rank_0", "group"),
        ("is_main_replica", "group"),
        ("is_rank_10", None),
        ("is_zero", None),
        ("is_not_main", None),
        ("is_main_module", None),
        ("is_root_path", None),
        ("is_root_node", None),
        ("is_master_node", None),
        ("main_process", None),
        ("get", None),
        ("", None),
    ],
)
def test_names_of_rank_checks(name: str, expected: str | None) -> None:
    assert checks_first_process(name) == expected


@pytest.mark.parametrize(
    "name", ["use_ddp", "is_horovod", "is_distributed_mode", "use_hvd", "is_dist_available"]
)
def test_names_of_flags_of_distributed_jobs(name: str) -> None:
    assert asks_whether_distributed(name)


@pytest.mark.parametrize(
    "name", ["use_distance", "use_distributed_optimizer", "ddp_main", "is_training", "use_deepspeed", ""]
)
def test_names_that_are_no_flags_of_distributed_jobs(name: str) -> None:
    assert not asks_whether_distributed(name)


@pytest.mark.parametrize(
    "name", ["rank", "my_rank", "current_endpoint", "trainer_id", "rank_id_curr_node", "workerIndex"]
)
def test_names_that_tell_processes_apart(name: str) -> None:
    assert identifies_process(name)


@pytest.mark.parametrize("name", ["lora_rank", "num_workers", "node", "worker", "index", "user_id", ""])
def test_names_that_tell_no_processes_apart(name: str) -> None:
    assert not identifies_process(name)
