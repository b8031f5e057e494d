"""The page of `prove --html`."""

from __future__ import annotations

import re
from typing import Any

import pytest
from support import html
from support.html import elements, only, parsed, text_of

from fsrace_lint.report import proof

CODE = ["import os\n", "\n", "def save(path):\n", "    if not path.exists():\n", "        os.mkdir(path)\n"]


def step(number: int, process: int, call: str, result: str = "", **more: Any) -> dict[str, Any]:
    stack = [{"file": "/lib/code.py", "line": 4 + (call == "mkdir"), "function": "save"}]
    return {
        "number": number,
        "process": process,
        "call": call,
        "target": "out",
        "result": result,
        "stale": False,
        "killed": False,
        "clock": 0.0,
        "where": f"lib/code.py:{stack[0]['line']}",
        "stack": stack,
        **more,
    }


STEPS = [
    step(1, 0, "exists", "False"),
    step(2, 1, "exists", "False"),
    step(3, 1, "mkdir"),
    step(4, 0, "mkdir", "FileExistsError"),
]


def data(**more: Any) -> dict[str, Any]:
    failure = {
        "kind": "exception",
        "text": "FileExistsError in process 0",
        "details": "Traceback (most recent call last):\nFileExistsError",
        "token": "fsr1.2posix.ab2a.e797",
        "reasons": [
            {"text": "process 1 created out (step 3) after (step 1) and (step 4)", "steps": [1, 3, 4]}
        ],
        "processes": 2,
        "output": ["", "hello"],
        "steps": STEPS,
        **more,
    }
    return {
        "ok": False,
        "exhaustive": False,
        "schedules": 2,
        "runs": 9,
        "seconds": 0.5,
        "bound": "",
        "notes": [],
        "assumed": [],
        "failure": failure,
    }


def page(result: dict[str, Any]) -> Any:
    lines = {"/lib/code.py": CODE}
    return parsed(proof.render(result, "scenario.py::save", "1.0", lambda path: lines.get(path, [])))


def test_each_step_is_in_the_lane_of_its_process_with_its_code() -> None:
    root = page(data())
    rows = elements(only(root, "figure", "lanes"), "li")
    assert [row.get("id") for row in rows] == [f"step-{number}" for number in range(1, 5)]
    assert [only(row, "div", "act").get("class") for row in rows] == [
        "act at0",
        "act at1",
        "act at1",
        "act at0",
    ]
    marked = [text_of(only(row, "span", "here")) for row in rows]
    assert marked == [f"{4 + (line > 2)}{CODE[3 + (line > 2)]}" for line in (1, 2, 3, 4)]
    assert [text_of(only(row, "span", "place")) for row in rows[2:]] == ["lib/code.py:5"] * 2
    assert text_of(only(rows[3], "span", "raised")) == "\u2192 FileExistsError"


def test_steps_of_the_reason_are_open_connected_and_linked() -> None:
    root = page(data())
    rows = elements(only(root, "figure", "lanes"), "li")
    assert ["why" in row.get("class", "").split() for row in rows] == [True, False, True, True]
    assert [only(row, "details").get("open") is not None for row in rows] == [True, False, True, True]
    assert [len(elements(row, "line", "tie")) for row in rows] == [1, 1, 1, 1]
    assert [link.get("href") for link in elements(only(root, "ol", "reasons"), "a")] == [
        "#step-3",
        "#step-1",
        "#step-4",
    ]


def test_page_shows_traceback_output_and_token() -> None:
    root = page(data())
    titles = [text_of(title) for title in elements(only(root, "main"), "h2")]
    assert titles == [
        "Result",
        "Why",
        "Failing interleaving",
        "Traceback",
        "Output of process 1",
        "Replay",
    ]
    assert "--replay fsr1.2posix.ab2a.e797" in text_of(root)
    assert {pre.get("tabindex") for pre in elements(root, "pre")} == {"0"}


@pytest.mark.parametrize(
    ("exhaustive", "headline"),
    [
        (True, "5 distinct interleavings passed: all that can differ"),
        (False, "No failure in 5 interleavings; the search is incomplete"),
    ],
)
def test_result_without_failure(exhaustive: bool, headline: str) -> None:
    result = data() | {
        "failure": None,
        "ok": True,
        "exhaustive": exhaustive,
        "schedules": 5,
        "bound": "it stopped early",
        "notes": ["`read` of <b>"],
        "assumed": [],
    }
    root = page(result)
    assert text_of(only(root, "h1")) == headline
    assert ("it stopped early" in text_of(root)) is not exhaustive
    assert "read of <b>" in text_of(root)


def test_assumption_is_in_the_headline_and_named() -> None:
    result = data() | {"failure": None, "ok": True, "exhaustive": True, "assumed": ["the loop ends"]}
    root = page(result)
    assert text_of(only(root, "h1")).endswith(" passed: all that can differ, under an assumption")
    assert "the loop ends" in text_of(root)


def test_untrusted_text_is_escaped() -> None:
    evil = "<script>alert(1)</script>\x1b[31m&amp;"
    steps = [
        step(1, 0, evil, evil, target=evil, where=evil),
        step(2, 1, "x", killed=True, stack=[{"file": evil, "line": 1, "function": evil}]),
    ]
    result = data(
        text=evil, details=evil, output=[evil, evil], steps=steps, reasons=[{"text": evil, "steps": []}]
    )
    text = proof.render(result, evil, "1.0", lambda _: [evil])
    assert "<script>alert" not in text
    assert "\x1b" not in text
    assert len(elements(parsed(text), "script")) == 1


def test_many_processes_are_named_in_each_row() -> None:
    steps = [step(number + 1, number, "mkdir") for number in range(6)]
    root = page(data(processes=6, steps=steps, reasons=[{"text": "", "steps": [1, 2, 1]}]))
    assert "many" in only(root, "div", "grid").get("class", "")
    assert [text_of(only(row, "span", "sr")) for row in elements(only(root, "figure", "lanes"), "li")] == [
        f"process {number}: " for number in range(6)
    ]
    assert elements(root, "line", "tie") == []


def test_page_is_complete() -> None:
    text = proof.render(data(), "scenario.py::save", "1.0", lambda _: [])
    assert html.parsed(text) is not None
    assert not re.search(r"https?://", text)
