"""Tiers, `check --fix`, `fix --interactive` on a pseudo-terminal, and `fix --commit` with git."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import msgspec
import pytest
from support.mdtest import run as check

from fsrace_lint.findings.finding import Tier
from fsrace_lint.pipeline import repair, tiers
from fsrace_lint.rules import remedies

if TYPE_CHECKING:
    from pathlib import Path

SAFE = "import os\n\ndef a(d):\n    if not os.path.isdir(d):\n        os.makedirs(d)\n"
DELETE = "import os\n\ndef b(p):\n    if os.path.islink(p):\n        os.remove(p)\n"
LOCAL = "import filelock\n\ndef c(p):\n    with filelock.FileLock(p):\n        pass\n"


def run(folder: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fsrace_lint", *words],
        cwd=folder,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text('[tool.fsrace-lint]\nprofile = "strict"\n', "utf-8")
    (tmp_path / "one.py").write_text(SAFE, "utf-8")
    (tmp_path / "two.py").write_text(DELETE + SAFE.replace("import os\n", ""), "utf-8")
    return tmp_path


def test_each_recipe_has_one_tier() -> None:
    templates = [one for one in vars(remedies).values() if isinstance(one, remedies.FixTemplate)]
    tiers: dict[str, set[object]] = {}
    for template in templates:
        tiers.setdefault(template.recipe, set()).add(template.tier)
    assert all(len(found) == 1 for found in tiers.values())
    assert [name for name, found in tiers.items() if found == {None}] == [remedies.SKETCH]
    others = {template.otherwise for template in templates} - {""}
    assert {tier.value for name in others for tier in tiers[name] if isinstance(tier, Tier)} <= {
        "coordination"
    }


class TestTiers:
    def test_option_chooses(self, tmp_path: Path) -> None:
        (tmp_path / "lock.py").write_text(LOCAL, "utf-8")
        shown = run(tmp_path, "check", "--profile", "strict", "lock.py").stdout
        assert "(unsafe: local)" in shown
        few: list[list[str]] = [[], ["--tier", "atomic,coordination"], ["--tier", "safe"]]
        for words in few:
            assert "up to 1 fixable" in run(tmp_path, "fix", "--profile", "strict", "--diff", *words).stderr
        for words in (["--tier", "atomic", "--tier", "Local"], ["--unsafe-fixes"]):
            assert "timeout=600" in run(tmp_path, "fix", "--profile", "strict", "--diff", *words).stdout

    def test_setting_chooses(self, tmp_path: Path) -> None:
        (tmp_path / "lock.py").write_text(LOCAL, "utf-8")
        (tmp_path / "pyproject.toml").write_text('[tool.fsrace-lint]\nfix-tiers = ["local"]\n', "utf-8")
        assert "timeout=600" in run(tmp_path, "fix", "--profile", "strict", "--diff").stdout
        assert not run(tmp_path, "fix", "--profile", "strict", "--diff", "--tier", "safe").stdout
        (tmp_path / "pyproject.toml").write_text('[tool.fsrace-lint]\nfix-tiers = ["loca"]\n', "utf-8")
        assert "did you mean `local`" in run(tmp_path, "fix").stderr

    def test_doubtful_coordination_is_refused(self, tmp_path: Path) -> None:
        code = "import json\nimport torch.distributed as dist\n\ndist.init_process_group()\n"
        code += 'with open("config.json", "w") as out:\n    json.dump({}, out)\n'
        (tmp_path / "a.py").write_text(code, "utf-8")
        ran, checked = check(tmp_path)
        (finding,) = checked.outcome.findings
        assert tiers.doubt(finding) == ""
        doubtful = msgspec.structs.replace(finding, evidence="plausible")
        assert "but this finding has `plausible` evidence" in tiers.doubt(doubtful)
        outcome = msgspec.structs.replace(checked.outcome, findings=(doubtful,))
        (patch,) = repair.repair(ran, msgspec.structs.replace(checked, outcome=outcome), unsafe=True)
        assert [refusal.reason for refusal in patch.refused] == [tiers.doubt(doubtful)]
        assert patch.before == patch.after
        assert doubtful.fix_within([Tier.LOCAL, Tier.ATOMIC]) is None

    @pytest.mark.parametrize("words", [("--tier", "x"), ("--tier", "local", "--unsafe-fixes")])
    def test_mistakes(self, project: Path, words: tuple[str, ...]) -> None:
        assert run(project, "fix", *words).returncode == 2


class TestCheckFix:
    def test_fixes_and_reports_the_rest(self, project: Path) -> None:
        (project / "lock.py").write_text(LOCAL, "utf-8")
        done = run(project, "check", "--fix", "--profile", "strict", "--output-format", "concise")
        assert done.returncode == 1
        assert "exist_ok=True" in (project / "one.py").read_text("utf-8")
        assert "FSR503" in done.stdout
        assert "FSR101" not in done.stdout
        assert "Fixed 3 findings in 2 files." in done.stderr
        assert run(project, "check", "--fix", "--profile", "strict", "--tier", "local").returncode == 0

    def test_diff_writes_nothing(self, project: Path) -> None:
        done = run(project, "check", "--diff")
        assert done.returncode == 1
        assert "+    os.makedirs(d, exist_ok=True)" in done.stdout
        assert (project / "one.py").read_text("utf-8") == SAFE
        assert run(project, "check", "--diff", "--fix").stdout == done.stdout

    @pytest.mark.parametrize(
        "words",
        [
            ("--tier", "local"),
            ("--unsafe-fixes",),
            ("--diff", "--statistics"),
            ("--fix", "--add-noqa"),
            ("--fix", "-"),
        ],
    )
    def test_mixtures_are_refused(self, project: Path, words: tuple[str, ...]) -> None:
        done = run(project, "check", *words)
        assert done.returncode == 2
        assert done.stderr.startswith("Usage:")
        assert (project / "one.py").read_text("utf-8") == SAFE


_INTERRUPTED = """
import os, signal, sys
from fsrace_lint.cli import main
from fsrace_lint.pipeline import repair, run

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may ignore it
place, name = {place}
real = getattr(place, name)

def interrupted(*arguments, **options):
    done = real(*arguments, **options)
    os.kill(os.getpid(), signal.SIGINT)
    return done

setattr(place, name, interrupted)
main.main(["fix", *sys.argv[1:]])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent as POSIX does")
class TestInterrupt:
    def interrupt(self, folder: Path, place: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run `fix`, and send SIGINT when a function has done its work the first time."""
        return subprocess.run(
            [sys.executable, "-c", _INTERRUPTED.format(place=place), *words],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )

    def test_while_files_are_written(self, project: Path) -> None:
        done = self.interrupt(project, "repair, 'write'")
        assert done.returncode == 130
        assert done.stderr == "Interrupted: 1 file written: one.py; 1 not written: two.py\n"
        assert "exist_ok" in (project / "one.py").read_text("utf-8")
        assert "exist_ok" not in (project / "two.py").read_text("utf-8")
        assert not [*project.glob(".fsrace-lint.*")]
        assert run(project, "fix").returncode == 0

    @pytest.mark.parametrize("words", [(), ("--diff",), ("--commit",)])
    def test_while_fixes_are_verified(self, repository: Path, words: tuple[str, ...]) -> None:
        done = self.interrupt(repository, "run.Run, 'everything'", *words)
        assert done.returncode == 130
        assert done.stderr == "Interrupted: no file was written\n"
        assert not git(repository, "status", "--porcelain", "-uno")

    def test_silent(self, project: Path) -> None:
        done = self.interrupt(project, "run.Run, 'everything'", "--silent")
        assert (done.returncode, done.stderr) == (130, "")

    def test_commit_is_finished(self, repository: Path) -> None:
        """The first commit is finished, and the second one is never begun."""
        done = self.interrupt(repository, "repair, 'write'", "--commit")
        assert done.returncode == 130
        assert done.stderr == "Interrupted: 1 commit made; nothing else was written\n"
        assert git(repository, "log", "--format=%s", "-1").startswith("Fix FSR101")
        assert not git(repository, "status", "--porcelain", "-uno")

    def test_commit_that_git_gives_up_is_undone(self, repository: Path) -> None:
        hook = repository / ".git" / "hooks" / "pre-commit"
        hook.write_text("#!/bin/sh\nexit 1\n", "utf-8")
        hook.chmod(0o755)
        done = self.interrupt(repository, "repair, 'write'", "--commit")
        assert done.returncode == 130
        assert done.stderr == "Interrupted: 0 commits made; nothing else was written\n"
        assert not git(repository, "status", "--porcelain", "-uno")


def play(folder: Path, *answers: str) -> tuple[int, str]:
    """Run `fix --interactive` on a pseudo-terminal, and type the answers to its questions."""
    import pty  # not on Windows

    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.environ["NO_COLOR"] = "1"
        os.execv(sys.executable, [sys.executable, "-m", "fsrace_lint", "fix", "--interactive"])
    shown, left = b"", [*answers]
    while True:
        try:
            data = os.read(terminal, 65536)
        except OSError:
            break
        if not data:
            break
        shown += data
        if left and shown.endswith((b"[q]uit: ", b"none): ")):
            os.write(terminal, left.pop(0).encode())
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), shown.decode()


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
class TestInteractive:
    def test_yes_and_no(self, project: Path) -> None:
        code, shown = play(project, "y\n", "?\n", "n\n", "n\n")
        assert code == 1
        assert "directory `d` is created" in shown
        assert "Fixed 1, suppressed 0, 2 remaining." in shown
        assert "exist_ok" in (project / "one.py").read_text("utf-8")
        assert "exist_ok" not in (project / "two.py").read_text("utf-8")

    def test_all_of_a_rule(self, project: Path) -> None:
        code, shown = play(project, "a\n", "n\n")
        assert code == 1
        assert "Fixed 2, suppressed 0, 1 remaining." in shown
        assert "os.makedirs(d, exist_ok=True)" in (project / "two.py").read_text("utf-8")
        assert "suppress" not in (project / "two.py").read_text("utf-8")

    def test_suppress(self, project: Path) -> None:
        code, shown = play(project, "s\n", "# noqa\n", "one process\n", "s\n", "\n", "y\n")
        assert code == 0
        assert "Fixed 1, suppressed 2, 0 remaining." in shown
        assert "os.makedirs(d)  # noqa: FSR101 -- one process\n" in (project / "one.py").read_text("utf-8")
        text = (project / "two.py").read_text("utf-8")
        assert "# noqa: FSR103\n" in text
        assert "exist_ok=True" in text
        assert run(project, "check").returncode == 0

    @pytest.mark.parametrize("end", ["q\n", "\x04"])
    def test_end_keeps_what_was_accepted(self, project: Path, end: str) -> None:
        code, _ = play(project, "y\n", end)
        assert code == 1
        assert "exist_ok" in (project / "one.py").read_text("utf-8")
        assert "exist_ok" not in (project / "two.py").read_text("utf-8")

    def test_interrupt_writes_nothing(self, project: Path) -> None:
        code, shown = play(project, "y\n", "\x03")
        assert code == 130
        assert "Interrupted: no file was written" in shown
        assert (project / "one.py").read_text("utf-8") == SAFE

    @pytest.mark.parametrize("words", [(), ("--diff",), ("-",), ("--silent",), ("--commit",)])
    def test_usage(self, project: Path, words: tuple[str, ...]) -> None:
        done = run(project, "fix", "--interactive", *words)
        assert done.returncode == 2
        assert "cannot be used with" in done.stderr or "needs a terminal" in done.stderr


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def repository(project: Path) -> Path:
    git(project, "init", "-q")
    git(project, "config", "user.name", "A")
    git(project, "config", "user.email", "a@example.com")
    (project / ".gitignore").write_text(".fsrace_cache/\n.fsrace-cache/\n", "utf-8")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "start")
    return project


class TestCommit:
    def test_one_commit_for_each_rule(self, repository: Path) -> None:
        done = run(repository, "fix", "--commit")
        assert done.returncode == 0, done.stderr
        assert git(repository, "log", "--format=%s", "-2").splitlines() == [
            "Fix FSR103: path deleted after a separate existence check or listing",
            "Fix FSR101: directory created after a separate existence check",
        ]
        body = git(repository, "log", "--format=%b", "-1", "HEAD~1")
        assert "Two processes can both find the directory missing." in body
        assert "* pass `exist_ok=True`, and remove the check\n" in body
        assert "* one.py:5 in a\n* two.py:9 in a\n" in body
        assert not git(repository, "status", "--porcelain", "-uno")
        assert "Fixed 3 findings in 2 commits. 0 remaining." in done.stderr
        git(repository, "revert", "--no-edit", "HEAD")
        assert run(repository, "check").returncode == 1

    def test_changes_are_refused(self, repository: Path) -> None:
        (repository / "two.py").write_text(SAFE, "utf-8")
        done = run(repository, "fix", "--commit")
        assert done.returncode == 2
        assert "two.py has uncommitted changes" in done.stderr
        assert (repository / "one.py").read_text("utf-8") == SAFE

    def test_untracked_files_stay(self, repository: Path) -> None:
        (repository / "new.py").write_text(SAFE, "utf-8")
        done = run(repository, "fix", "--commit")
        assert done.returncode == 1
        assert "new.py:5:9: FSR101 not fixed: the file is not tracked by git" in done.stderr
        assert (repository / "new.py").read_text("utf-8") == SAFE

    def test_subdirectory_and_worktree(
        self, repository: Path, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        other = tmp_path_factory.mktemp("trees") / "other"
        git(repository, "worktree", "add", "-q", str(other))
        (other / "sub").mkdir()
        (other / "sub" / "a.py").write_text(SAFE, "utf-8")
        git(other, "add", "-A")
        git(other, "commit", "-qm", "more")
        done = run(other / "sub", "fix", "--commit", ".")
        assert done.returncode == 0, done.stderr
        assert git(other, "show", "--format=", "--name-only", "HEAD").split() == ["sub/a.py"]
        assert git(repository, "log", "--format=%s", "-1") == "start\n"

    def test_failing_hook(self, repository: Path) -> None:
        hook = repository / ".git" / "hooks" / "commit-msg"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text('#!/bin/sh\nif grep -q FSR103 "$1"; then echo x >>two.py; echo no >&2; exit 1; fi\n')
        hook.chmod(0o755)
        done = run(repository, "fix", "--commit")
        assert done.returncode == 2
        assert "Error: --commit: no; 1 commit made before it" in done.stderr
        assert git(repository, "log", "--format=%s", "-1").startswith("Fix FSR101")
        assert not git(repository, "status", "--porcelain", "-uno")

    def test_missing_author(self, repository: Path) -> None:
        git(repository, "config", "--unset", "user.name")
        git(repository, "config", "--unset", "user.email")
        git(repository, "config", "user.useConfigOnly", "true")
        done = run(repository, "fix", "--commit", GIT_CONFIG_GLOBAL=os.devnull, HOME=str(repository))
        assert done.returncode == 2
        assert "git does not know the author of a commit" in done.stderr

    def test_outside_of_git(self, project: Path) -> None:
        done = run(project, "fix", "--commit", GIT_CEILING_DIRECTORIES=str(project.parent))
        assert done.returncode == 2
        assert "not a git repository" in done.stderr
