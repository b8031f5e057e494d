"""`--min-severity`, `--min-confidence`, and `--fail-on`, and the settings of the same names."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cli import reported, run, write

ERROR = 'import os\n\nimport torch.distributed as dist\n\ndist.init_process_group("nccl")\nos.mkdir("a")\n'
"""An error with high confidence."""
WARNING = "import os\n\n\ndef make_cache(out):\n    if not os.path.exists(out):\n        os.makedirs(out)\n"
"""A warning with medium confidence."""
OTHER = {"error": "note", "warning": "error", "note": "error", "high": "low", "medium": "high", "low": "high"}
"""For each value, one with a different result."""
BOTH = ["job.py:6 FSR105", "library.py:6 FSR101"]


@pytest.fixture(autouse=True)
def hazards(here: Path) -> None:
    write({"job.py": ERROR, "library.py": WARNING})


def configure(*lines: str) -> None:
    Path("pyproject.toml").write_text("\n".join(["[tool.fsrace-lint]", *lines, ""]))


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("min-severity", "error", BOTH[:1]),
        ("min-severity", "warning", BOTH),
        ("min-severity", "note", BOTH),
        ("min-confidence", "high", BOTH[:1]),
        ("min-confidence", "medium", BOTH),
        ("min-confidence", "low", BOTH),
    ],
)
class TestWhatIsReported:
    def test_option(self, key: str, value: str, expected: list[str]) -> None:
        assert reported(f"--{key}={value}") == expected

    def test_setting(self, key: str, value: str, expected: list[str]) -> None:
        configure(f'{key} = "{value}"')
        assert reported() == expected

    def test_option_overrides_setting(self, key: str, value: str, expected: list[str]) -> None:
        configure(f'{key} = "{OTHER[value]}"')
        assert reported(f"--{key}={value}") == expected


class TestFailOn:
    def test_warnings_alone_do_not_fail(self) -> None:
        Path("job.py").unlink()
        assert reported("--fail-on=error", code=0) == BOTH[1:]
        assert reported("--fail-on=warning") == BOTH[1:]
        assert reported() == BOTH[1:]

    def test_errors_fail(self) -> None:
        assert reported("--fail-on=error") == BOTH

    def test_findings_that_are_not_reported_do_not_fail(self) -> None:
        Path("job.py").unlink()
        assert reported("--min-severity=error", "--fail-on=note", code=0) == []

    def test_setting_and_option(self) -> None:
        Path("job.py").unlink()
        configure('fail-on = "error"')
        assert reported(code=0) == BOTH[1:]
        assert reported("--fail-on=warning") == BOTH[1:]

    def test_each_project_has_its_own_setting(self) -> None:
        write({"one/library.py": WARNING, "two/library.py": WARNING, "two/pyproject.toml": ""})
        write({"one/pyproject.toml": '[tool.fsrace-lint]\nfail-on = "error"\n'})
        reported("one", code=0)
        assert len(reported("one", "two")) == 2

    def test_failed_run_has_status_2(self) -> None:
        run("check", "nowhere", "library.py", "--fail-on=error", code=2)


@pytest.mark.parametrize("option", ["--min-severity=warn", "--min-confidence=sure", "--fail-on=high"])
def test_unknown_values_are_rejected(option: str) -> None:
    assert "Invalid value" in run("check", option, code=2).stderr


def test_effective_settings_show_the_source() -> None:
    configure('fail-on = "error"')
    text = run("check", "--show-settings", "--min-severity=note", code=0).stdout
    assert 'min-severity = "note"  # command line\n' in text
    assert 'fail-on = "error"  # pyproject.toml\n' in text
    assert "# min-confidence is not set  # default\n" in text
