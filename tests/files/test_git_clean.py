"""What `--require-clean` checks with git, and that the check runs no code from the repository."""

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

NOTHING = "; no file was written\n"


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Isolate from the machine's git settings and from an enclosing repository."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(Path.cwd().parent))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "protocol.file.allow")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "always")


def git(*arguments: str, directory: str = ".") -> str:
    who = ("-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "init.defaultBranch=main")
    done = subprocess.run(
        ["git", *who, *arguments], cwd=directory, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def commit(files: dict[str, str], directory: str = ".") -> None:
    """Create a repository and commit files."""
    write({f"{directory}/{name}": text for name, text in files.items()})
    git("init", "--quiet", directory=directory)
    git("add", "--all", "--force", directory=directory)
    git("commit", "--quiet", "--no-verify", "--message=m", directory=directory)


def refusal(*arguments: str) -> str:
    """Run fix, expect a refusal, and return its reason."""
    message = run("fix", "--require-clean", *arguments, code=2).stderr
    assert message.startswith("Error: --require-clean: ")
    assert message.endswith(NOTHING)
    assert message.count("\n") == 1
    return message.removeprefix("Error: --require-clean: ").removesuffix(NOTHING)


def fixed(name: str = "a.py") -> bool:
    return "exist_ok" in Path(name).read_text()


def changed() -> None:
    write({"a.py": HAZARD + "# more\n"})


def staged() -> None:
    changed()
    git("add", "a.py")


def staged_and_reverted() -> None:
    staged()
    write({"a.py": HAZARD})


def removed_from_index() -> None:
    git("rm", "--quiet", "--cached", "a.py")


def assumed_unchanged() -> None:
    changed()
    git("update-index", "--assume-unchanged", "a.py")


def skip_worktree() -> None:
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


class TestFileState:
    @pytest.mark.parametrize("format_", ["sha1", "sha256"])
    def test_committed_file_is_fixed(self, format_: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GIT_DEFAULT_HASH", format_)
        commit({"a.py": HAZARD, "pkg/b.py": HAZARD})
        assert git("rev-parse", "--show-object-format").strip() == format_
        run("fix", "--require-clean", code=0)
        assert (fixed(), fixed("pkg/b.py")) == (True, True)

    @pytest.mark.parametrize(
        "act",
        [changed, staged, staged_and_reverted, removed_from_index, assumed_unchanged, skip_worktree, merging],
    )
    def test_uncommitted_changes_are_refused(self, act: Callable[[], None]) -> None:
        commit({"a.py": HAZARD})
        act()
        assert refusal() == "a.py has uncommitted changes"
        assert not fixed()
        run("fix", code=0)

    @pytest.mark.parametrize("ignored", ["", "a.py\n"])
    def test_untracked_file_is_refused(self, ignored: str) -> None:
        commit({"b.py": "x = 1\n", ".gitignore": ignored})
        write({"a.py": HAZARD})
        assert refusal("a.py") == "a.py is not tracked by git"
        assert not fixed()

    def test_staged_new_file_is_refused(self) -> None:
        commit({"b.py": "x = 1\n"})
        write({"a.py": HAZARD})
        git("add", "a.py")
        assert refusal() == "a.py has uncommitted changes"

    def test_only_files_to_be_written_are_checked(self) -> None:
        commit({"a.py": HAZARD, "b.py": "x = 1\n"})
        write({"b.py": "x = 2\n", "c.py": "x = 3\n"})
        run("fix", "--require-clean", code=0)
        assert fixed()
        write({"a.py": "x = 4\n"})
        run("fix", "--require-clean", code=0)

    def test_one_dirty_file_refuses_all(self) -> None:
        commit({"a.py": HAZARD, "b.py": HAZARD, "c.py": HAZARD})
        write({"b.py": HAZARD + "\n", "c.py": HAZARD + "\n"})
        assert refusal() == "b.py has uncommitted changes, and 1 file more"
        assert not fixed()

    @pytest.mark.parametrize("text", ["a.py text eol=crlf\n", "* -text\n"])
    def test_checkout_line_endings_are_clean(self, text: str) -> None:
        data = HAZARD.replace("\n", "\r\n").encode()
        Path("a.py").write_bytes(data)
        commit({".gitattributes": text})
        assert Path("a.py").read_bytes() == data
        run("fix", "--require-clean", code=0)
        assert fixed()

    def test_names_that_need_quoting(self) -> None:
        names = ["-a.py", "b c.py", "ä*.py", ":(top)d.py"]
        commit({f"x/{name}": HAZARD for name in names})
        run("fix", "--require-clean", code=0)
        assert all(fixed(f"x/{name}") for name in names)

    def test_link_checks_its_target(self) -> None:
        write({"pyproject.toml": '[tool.fsrace-lint]\nexclude = ["real/"]\n'})
        Path("a.py").symlink_to("real/a.py")
        commit({"real/a.py": HAZARD})
        write({"real/a.py": HAZARD + "\n"})
        assert refusal() == "a.py has uncommitted changes"

    def test_change_after_the_git_check_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        commit({"a.py": HAZARD})
        whole = git_clean.uncommitted

        def late(held: dict[Path, bytes]) -> dict[Path, str]:
            found = whole(held)
            changed()
            return found

        monkeypatch.setattr(git_clean, "uncommitted", late)
        assert "changed by another process" in run("fix", "--require-clean", code=1).stderr

    def test_add_noqa_requires_clean_files(self) -> None:
        commit({"a.py": HAZARD})
        changed()
        message = run("check", "--add-noqa", "--require-clean", code=2).stderr
        assert message == f"Error: --require-clean: a.py has uncommitted changes{NOTHING}"
        git("checkout", "--quiet", "a.py")
        run("check", "--add-noqa", "--require-clean", code=0)
        assert "# noqa: FSR101" in Path("a.py").read_text()


class TestRepository:
    def test_no_repository_is_refused(self) -> None:
        write({"a.py": HAZARD})
        assert refusal().startswith("a.py cannot be checked with git: not a git repository")

    def test_repository_without_commits_is_refused(self) -> None:
        write({"a.py": HAZARD})
        git("init", "--quiet")
        assert "HEAD" in refusal()

    def test_missing_git_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        commit({"a.py": HAZARD})
        monkeypatch.setenv("PATH", str(Path.cwd()))
        assert refusal() == "git is not installed"
        assert run("fix", "--require-clean", "--silent", code=2).output == ""

    def test_submodule_checks_its_own_files(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        other = str(tmp_path_factory.mktemp("other"))
        commit({"b.py": HAZARD}, other)
        commit({"a.py": HAZARD})
        git("submodule", "--quiet", "add", other, "sub")
        git("commit", "--quiet", "--all", "--message=sub")
        write({"sub/b.py": HAZARD + "\n"})
        assert refusal() == "sub/b.py has uncommitted changes"
        git("checkout", "--quiet", "b.py", directory="sub")
        run("fix", "--require-clean", code=0)
        assert fixed("sub/b.py")

    def test_linked_worktree(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        commit({"a.py": HAZARD})
        place = str(tmp_path_factory.mktemp("place") / "tree")
        git("worktree", "add", "--quiet", place)
        run("fix", "--require-clean", place, code=0)
        assert fixed(f"{place}/a.py")

    def test_repository_of_another_user_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        commit({"a.py": HAZARD})
        monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
        assert "a.py cannot be checked with git: detected dubious ownership" in refusal()

    def test_git_dir_of_a_hook_is_ignored(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        other = tmp_path_factory.mktemp("other")
        commit({"a.py": HAZARD + "# more\n"}, str(other))
        commit({"a.py": HAZARD})
        changed()
        monkeypatch.setenv("GIT_DIR", str(other / ".git"))
        monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git" / "index"))
        assert refusal() == "a.py has uncommitted changes"

    def test_configured_programs_are_not_run(self) -> None:
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

    def test_embedded_bare_repository_is_refused(self) -> None:
        """Its configuration could come from a commit and must not be trusted."""
        ran = Path("ran").resolve()
        commit({"a.py": HAZARD})
        git("init", "--quiet", "--bare", "data")
        git("config", "core.fsmonitor", f"echo x > {ran}; false", directory="data")
        git("config", "core.bare", "false", directory="data")
        git("config", "core.worktree", "..", directory="data")
        write({"data/a.py": HAZARD})
        assert "data/a.py cannot be checked with git: cannot use bare repository" in refusal("data/a.py")
        assert not ran.exists()

    def test_partial_clone_does_not_fetch_missing_objects(
        self, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        other = tmp_path_factory.mktemp("other")
        commit({"a.py": HAZARD, "pkg/b.py": HAZARD}, str(other))
        git("config", "uploadpack.allowFilter", "true", directory=str(other))
        git("clone", "--quiet", "--filter=tree:0", "--no-checkout", f"file://{other}", "clone")
        ran, program = Path("ran").resolve(), Path("program").resolve()
        program.write_text(f"#!/bin/sh\necho x > {ran}\n")
        program.chmod(0o755)
        git("config", "remote.origin.url", f"ext::{program}", directory="clone")
        git("config", "protocol.ext.allow", "always", directory="clone")
        write({"clone/pyproject.toml": "", "clone/a.py": HAZARD})
        assert "clone/a.py cannot be checked with git" in refusal("clone/a.py")
        assert not ran.exists()
        subprocess.run(["git", "ls-tree", "HEAD"], cwd="clone", capture_output=True, check=False)
        assert ran.exists(), "and git alone would have run it"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fix", "--diff"), "--require-clean cannot be used with --diff, which does not write files"),
        (("fix", "-"), "--require-clean cannot be used with standard input, which does not write files"),
        (
            ("fix", "--stdin-filename=a.py"),
            "--require-clean cannot be used with standard input, which does not write files",
        ),
        (("check",), "--require-clean requires --add-noqa or --fix"),
    ],
)
def test_require_clean_needs_a_command_that_writes(arguments: tuple[str, ...], message: str) -> None:
    assert run(*arguments, "--require-clean", code=2).stderr.endswith(f"Error: {message}\n")


def test_help_lists_require_clean_under_fixes() -> None:
    text = run("fix", "--help", code=0).stdout
    assert "--require-clean" in text.partition("Fixes:")[2].partition("Messages:")[0]
