"""Runs of a scenario without the search of `explore()`."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from fsrace_lint.explore.process.install import installed
from fsrace_lint.explore.running import jobs
from fsrace_lint.explore.running.stage import Stage, scratch
from fsrace_lint.explore.search.director import Director

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.explore.scenario import Scenario


@contextlib.contextmanager
def directed(scenario: Scenario) -> Iterator[Director]:
    with scratch() as directory, jobs.together():
        stage = Stage(directory, scenario.setup, scenario.check, scenario.step_timeout)
        with contextlib.closing(stage.watch), installed(1e9, str(stage.top), stage.watch) as gate:
            yield Director(scenario, stage, gate)
