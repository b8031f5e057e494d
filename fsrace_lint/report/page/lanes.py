"""The failing interleaving: one lane for each process, and the path of time through them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fsrace_lint.report.page.markup import Markup, join, prose, tag

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fsrace_lint.findings.finding import Witness, WitnessStep

_RAISED: Final = re.compile(r"[A-Z]\w*(?:Error|Exception|Timeout)\b")
_COLORS: Final = 4
"""The number of lane colors before they repeat."""
_FEW: Final = 4
"""The maximum number of lanes next to each other on a wide page."""
_LEFT: Final = 8
"""The horizontal position of the line within a lane."""
_DOT: Final = 20
"""The distance of the dot from the top of its row; a turn is at a third of it."""


def timeline(witness: Witness) -> Markup:
    """Draw a failing interleaving: a row for each step, from top to bottom, and the outcome."""
    processes = sorted({step.process for step in witness.steps})
    if not processes:
        return tag("figure", _outcome(witness), class_="lanes")
    heads = [
        tag("span", f"process {process}", class_=f"p{index % _COLORS}")
        for index, process in enumerate(processes)
    ]
    rows = [_row(number, witness.steps, processes) for number in range(len(witness.steps))]
    size = f"of{len(processes)}" if len(processes) <= _FEW else "many"
    grid = tag(
        "div",
        tag("div", *heads, class_="heads", aria_hidden="true"),
        tag("ol", *rows),
        class_=f"grid {size}",
        tabindex="0",
        role="group",
        aria_label="Steps of each process, in chronological order",
    )
    return tag("figure", grid, _outcome(witness), class_="lanes")


def _outcome(witness: Witness) -> Markup:
    return tag("figcaption", tag("b", "Outcome"), " ", prose(witness.outcome), class_="outcome")


def _row(number: int, steps: Sequence[WitnessStep], processes: Sequence[int]) -> Markup:
    step = steps[number]
    lane = processes.index(step.process)
    before = processes.index(steps[number - 1].process) if number else None
    after = number + 1 < len(steps)
    result = ""
    if step.result:
        raised = "raised" if _RAISED.match(step.result) else "result"
        result = join([" ", tag("span", "\u2192 ", tag("span", prose(step.result)), class_=raised)])
    said = tag(
        "div",
        tag("span", f"process {step.process}: ", class_="sr"),
        prose(step.action) if "`" in step.action else tag("code", step.action),
        result,
        class_=f"act at{lane}" if len(processes) <= _FEW else "act",
    )
    style = f"p{lane % _COLORS}" + ("" if after else " last")
    return tag("li", _drawing(lane, before, len(processes), goes_on=after), said, class_=style)


def _drawing(lane: int, before: int | None, lanes: int, *, goes_on: bool) -> Markup:
    """Draw one row: the lanes, the path from the previous step, and the dot of this step."""
    if lanes > _FEW:
        lane, before, lanes = 0, None if before is None else 0, 1
    here = _percent(lane, lanes)
    drawn = [
        _line("lane", _percent(each, lanes), "0", _percent(each, lanes), "100%") for each in range(lanes)
    ]
    if before is not None:
        there, turn = _percent(before, lanes), str(_DOT // 3)
        drawn += [_line("way", there, "0", there, turn), _line("way", there, turn, here, turn)]
        drawn.append(_line("way", here, turn, here, str(_DOT)))
    if goes_on:
        drawn.append(_line("way", here, str(_DOT), here, "100%"))
    drawn.append(tag("circle", class_="dot", cx=here, cy=str(_DOT), r="5"))
    shift = f"translate({_LEFT} 0)"
    return tag("svg", tag("g", *drawn, transform=shift), aria_hidden="true", focusable="false")


def _percent(lane: int, lanes: int) -> str:
    return f"{100 * lane / lanes:g}%"


def _line(kind: str, x1: str, y1: str, x2: str, y2: str) -> Markup:
    return tag("line", class_=kind, x1=x1, y1=y1, x2=x2, y2=y2)
