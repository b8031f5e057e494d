"""Which exceptions a handler handles: over Python's own hierarchy."""

from __future__ import annotations

import pytest

from fsrace_lint.syntax.builtin_exceptions import handles, handles_any, is_os_error


@pytest.mark.parametrize(
    "caught",
    ["FileNotFoundError", "OSError", "IOError", "EnvironmentError", "Exception", "BaseException"],
)
def test_what_handles_a_file_that_is_missing(caught: str) -> None:
    assert handles([caught], "FileNotFoundError")
    assert handles(["KeyError", caught], "FileNotFoundError")


@pytest.mark.parametrize("caught", ["FileExistsError", "PermissionError", "LookupError", "Missing", "open"])
def test_what_does_not(caught: str) -> None:
    assert not handles([caught], "FileNotFoundError")


def test_nothing_handles_nothing() -> None:
    assert not handles([], "FileNotFoundError")


def test_one_of_the_project_handles_itself() -> None:
    assert handles(["Missing"], "Missing")
    assert not handles(["OSError"], "Missing")


def test_a_narrow_handler_does_not_handle_all_of_a_broader_exception() -> None:
    assert not handles(["FileNotFoundError"], "OSError")


def test_what_handles_any_error() -> None:
    assert handles_any(["KeyError", "Exception"])
    assert handles_any(["BaseException"])
    assert not handles_any(["OSError", "RuntimeError"])


def test_names_of_os_errors() -> None:
    names = ("OSError", "IOError", "EnvironmentError", "FileExistsError", "IsADirectoryError")
    assert all(map(is_os_error, names))
    assert not any(map(is_os_error, ("Exception", "ValueError", "Missing")))
