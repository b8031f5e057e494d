"""What `--require-clean` asks of git, and that asking runs nothing of the repository."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.cli import HAZARD, run, write

from fsrace_lint.files import git_clean

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.usefixtures("here"),
    pytest.mark.skipif(shutil.which("git") is None, reason="there is no git"),
]

NOTHING = "; nothing is written\n"


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No settings of the machine, and no repository above."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(Path.cwd().parent))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "protocol.file.allow")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "always")


def git(*arguments: str, folder: str = ".") -> str:
    who = ("-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "init.defaultBranch=main")
    done = subprocess.run(
        ["git", *who, *arguments], cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def commit(files: dict[str, str], folder: str = ".") -> None:
    """Make a repository with files."""
    write({f"{folder}/{name}": text for name, text in files.items()})
    git("init", "--quiet", folder=folder)
    git("add", "--all", "--force", folder=folder)
    git("commit", "--quiet", "--no-verify", "--message=m", folder=folder)


def refused(*arguments: str) -> str:
    """Give what is said where nothing is written."""
    told = run("fix", "--require-clean", *arguments, code=2).stderr
    assert told.startswith("Error: --require-clean: ")
    assert told.endswith(NOTHING)
    assert told.count("\n") == 1
    return told.removeprefix("Error: --require-clean: ").removesuffix(NOTHING)


def fixed(name: str = "a.py") -> bool:
    return "exist_ok" in Path(name).read_text()


def changed() -> None:
    write({"a.py": HAZARD + "# more\n"})


def staged() -> None:
    changed()
    git("add", "a.py")


def staged_and_taken_back() -> None:
    staged()
    write({"a.py": HAZARD})


def taken_out() -> None:
    git("rm", "--quiet", "--cached", "a.py")


def hidden() -> None:
    changed()
    git("update-index", "--assume-unchanged", "a.py")


def skipped() -> None:
    changed()
    git("update-index", "--skip-worktree", "a.py")


def merging() -> None:
    git("checkout", "--quiet", "-b", "other")
    changed()
    git("commit", "--quiet", "--all", "--message=other")
    git("checkout", "--quiet", "main")
    write({"a.py": HAZARD + "# another\n"})
    git("commit", "--quiet", "--all", "--message=another")
    subprocess.run(["git", "merge", "other"], capture_output=True, check=False)
    write({"a.py": HAZARD})


class TestAFile:
    @pytest.mark.parametrize("format_", ["sha1", "sha256"])
    def test_as_it_was_committed(self, format_: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GIT_DEFAULT_HASH", format_)
        commit({"a.py": HAZARD, "pkg/b.py": HAZARD})
        assert git("rev-parse", "--show-object-format").strip() == format_
        run("fix", "--require-clean", code=0)
        assert (fixed(), fixed("pkg/b.py")) == (True, True)

    @pytest.mark.parametrize(
        "act", [changed, staged, staged_and_taken_back, taken_out, hidden, skipped, merging]
    )
    def test_with_changes(self, act: Callable[[], None]) -> None:
        commit({"a.py": HAZARD})
        act()
        assert refused() == "a.py has uncommitted changes"
        assert not fixed()
        run("fix", code=0)

    @pytest.mark.parametrize("ignored", ["", "a.py\n"])
    def test_that_is_not_in_git(self, ignored: str) -> None:
        commit({"b.py": "x = 1\n", ".gitignore": ignored})
        write({"a.py": HAZARD})
        assert refused("a.py") == "a.py is not in git"
        assert not fixed()

    def test_that_is_added_but_in_no_commit(self) -> None:
        commit({"b.py": "x = 1\n"})
        write({"a.py": HAZARD})
        git("add", "a.py")
        assert refused() == "a.py has uncommitted changes"

    def test_only_files_that_would_be_written_count(self) -> None:
        commit({"a.py": HAZARD, "b.py": "x = 1\n"})
        write({"b.py": "x = 2\n", "c.py": "x = 3\n"})
        run("fix", "--require-clean", code=0)
        assert fixed()
        write({"a.py": "x = 4\n"})
        run("fix", "--require-clean", code=0)

    def test_all_or_nothing(self) -> None:
        commit({"a.py": HAZARD, "b.py": HAZARD, "c.py": HAZARD})
        write({"b.py": HAZARD + "\n", "c.py": HAZARD + "\n"})
        assert refused() == "b.py has uncommitted changes, and 1 file more"
        assert not fixed()

    @pytest.mark.parametrize("text", ["a.py text eol=crlf\n", "* -text\n"])
    def test_with_the_line_endings_of_the_checkout(self, text: str) -> None:
        data = HAZARD.replace("\n", "\r\n").encode()
        Path("a.py").write_bytes(data)
        commit({".gitattributes": text})
        assert Path("a.py").read_bytes() == data
        run("fix", "--require-clean", code=0)
        assert fixed()

    def test_whose_name_needs_quotes(self) -> None:
        names = ["-a.py", "b c.py", "ä*.py", ":(top)d.py"]
        commit({f"x/{name}": HAZARD for name in names})
        run("fix", "--require-clean", code=0)
        assert all(fixed(f"x/{name}") for name in names)

    def test_behind_a_link(self) -> None:
        write({"pyproject.toml": '[tool.fsrace-lint]\nexclude = ["real/"]\n'})
        Path("a.py").symlink_to("real/a.py")
        commit({"real/a.py": HAZARD})
        write({"real/a.py": HAZARD + "\n"})
        assert refused() == "a.py has uncommitted changes"

    def test_that_is_changed_after_git_was_asked(self, monkeypatch: pytest.MonkeyPatch) -> None:
        commit({"a.py": HAZARD})
        whole = git_clean.uncommitted

        def late(held: dict[Path, bytes]) -> dict[Path, str]:
            found = whole(held)
            changed()
            return found

        monkeypatch.setattr(git_clean, "uncommitted", late)
        assert "changed by somebody else" in run("fix", "--require-clean", code=1).stderr

    def test_for_comments(self) -> None:
        commit({"a.py": HAZARD})
        changed()
        told = run("check", "--add-noqa", "--require-clean", code=2).stderr
        assert told == f"Error: --require-clean: a.py has uncommitted changes{NOTHING}"
        git("checkout", "--quiet", "a.py")
        run("check", "--add-noqa", "--require-clean", code=0)
        assert "# noqa: FSR101" in Path("a.py").read_text()


class TestARepository:
    def test_there_is_none(self) -> None:
        write({"a.py": HAZARD})
        assert refused().startswith("a.py is unknown to git: not a git repository")

    def test_there_is_no_commit(self) -> None:
        write({"a.py": HAZARD})
        git("init", "--quiet")
        assert "HEAD" in refused()

    def test_there_is_no_git(self, monkeypatch: pytest.MonkeyPatch) -> None:
        commit({"a.py": HAZARD})
        monkeypatch.setenv("PATH", str(Path.cwd()))
        assert refused() == "git is needed, and is not there"
        assert run("fix", "--require-clean", "--silent", code=2).output == ""

    def test_a_submodule_answers_for_its_own(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        other = str(tmp_path_factory.mktemp("other"))
        commit({"b.py": HAZARD}, other)
        commit({"a.py": HAZARD})
        git("submodule", "--quiet", "add", other, "sub")
        git("commit", "--quiet", "--all", "--message=sub")
        write({"sub/b.py": HAZARD + "\n"})
        assert refused() == "sub/b.py has uncommitted changes"
        git("checkout", "--quiet", "b.py", folder="sub")
        run("fix", "--require-clean", code=0)
        assert fixed("sub/b.py")

    def test_a_worktree(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        commit({"a.py": HAZARD})
        place = str(tmp_path_factory.mktemp("place") / "tree")
        git("worktree", "add", "--quiet", place)
        run("fix", "--require-clean", place, code=0)
        assert fixed(f"{place}/a.py")

    def test_that_of_somebody_else_is_not_asked(self, monkeypatch: pytest.MonkeyPatch) -> None:
        commit({"a.py": HAZARD})
        monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
        assert "a.py is unknown to git: detected dubious ownership" in refused()

    def test_the_one_of_a_hook_is_not_taken_for_it(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        other = tmp_path_factory.mktemp("other")
        commit({"a.py": HAZARD + "# more\n"}, str(other))
        commit({"a.py": HAZARD})
        changed()
        monkeypatch.setenv("GIT_DIR", str(other / ".git"))
        monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git" / "index"))
        assert refused() == "a.py has uncommitted changes"

    def test_nothing_of_it_is_run_or_written(self) -> None:
        commit({"a.py": HAZARD, ".gitattributes": "*.py filter=evil diff=evil text\n"})
        ran = Path("ran").resolve()
        program = Path("program").resolve()
        program.write_text(f"#!/bin/sh\necho x >> {ran}\ncat\n")
        program.chmod(0o755)
        for key in (
            *("core.fsmonitor", "core.pager", "core.sshCommand", "core.editor", "pager.ls-tree"),
            *("filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "diff.evil.textconv"),
            *("diff.external", "alias.ls-files", "alias.ls-tree", "credential.helper"),
        ):
            git("config", key, f"!{program}" if key.startswith("alias") else str(program))
        hooks = Path("hooks")
        hooks.mkdir()
        for name in ("post-index-change", "fsmonitor-watchman", "reference-transaction"):
            shutil.copy(program, hooks / name)
        git("config", "core.hooksPath", str(hooks.resolve()))
        os.utime("a.py", (1, 1))
        ran.unlink(missing_ok=True)
        index = Path(".git/index").read_bytes()
        run("fix", "--require-clean", code=0)
        assert fixed()
        assert not ran.exists()
        assert Path(".git/index").read_bytes() == index
        subprocess.run(["git", "status"], capture_output=True, check=False)
        assert ran.exists(), "and git status would have run it"

    def test_one_without_a_work_tree_that_lies_among_the_files(self) -> None:
        """Its configuration is what somebody has committed."""
        ran = Path("ran").resolve()
        commit({"a.py": HAZARD})
        git("init", "--quiet", "--bare", "data")
        git("config", "core.fsmonitor", f"echo x > {ran}; false", folder="data")
        git("config", "core.bare", "false", folder="data")
        git("config", "core.worktree", "..", folder="data")
        write({"data/a.py": HAZARD})
        assert "data/a.py is unknown to git: cannot use bare repository" in refused("data/a.py")
        assert not ran.exists()

    def test_what_a_partial_clone_left_out_is_not_fetched(
        self, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        other = tmp_path_factory.mktemp("other")
        commit({"a.py": HAZARD, "pkg/b.py": HAZARD}, str(other))
        git("config", "uploadpack.allowFilter", "true", folder=str(other))
        git("clone", "--quiet", "--filter=tree:0", "--no-checkout", f"file://{other}", "clone")
        ran, program = Path("ran").resolve(), Path("program").resolve()
        program.write_text(f"#!/bin/sh\necho x > {ran}\n")
        program.chmod(0o755)
        git("config", "remote.origin.url", f"ext::{program}", folder="clone")
        git("config", "protocol.ext.allow", "always", folder="clone")
        write({"clone/pyproject.toml": "", "clone/a.py": HAZARD})
        assert "clone/a.py is unknown to git" in refused("clone/a.py")
        assert not ran.exists()
        subprocess.run(["git", "ls-tree", "HEAD"], cwd="clone", capture_output=True, check=False)
        assert ran.exists(), "and git alone would have run it"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("fix", "--diff"), "--require-clean and --diff do not go together"),
        (("fix", "-"), "--require-clean and standard input do not go together"),
        (("fix", "--stdin-filename=a.py"), "--require-clean and standard input do not go together"),
        (("check",), "--require-clean is for --add-noqa"),
    ],
)
def test_where_nothing_would_be_written(arguments: tuple[str, ...], told: str) -> None:
    assert told in run(*arguments, "--require-clean", code=2).stderr


def test_the_help_lists_it_among_the_fixes() -> None:
    text = run("fix", "--help", code=0).stdout
    assert "--require-clean" in text.partition("Fixes:")[2].partition("Messages:")[0]
