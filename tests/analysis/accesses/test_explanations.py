"""Reasons why accesses are not reported, with their locations; and evidence for multiple processes.

Shows: `analysis/accesses/explanation_places.py`, `analysis/accesses/explanations.py`
"""

from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING, NamedTuple

import pytest
from support.mdtest import relative

from fsrace_lint import rules
from fsrace_lint.config import settings
from fsrace_lint.pipeline import check as checking

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fsrace_lint.files.spans import Place
    from fsrace_lint.findings.finding import Finding, Silenced
    from fsrace_lint.report import Outcome

MYLIB = """\
[[tool.fsrace-lint.catalog.effect]]
names = ["mylib.make"]
op = "mkdir"
path = "0"

[[tool.fsrace-lint.catalog.effect]]
names = ["mylib.fetch"]
op = "write"
path = "0"
synchronized = true

[[tool.fsrace-lint.catalog.effect]]
names = ["mylib.save_once"]
op = "write"
path = "0"
guard = "global"

[[tool.fsrace-lint.catalog.effect]]
names = ["mylib.save"]
op = "write"
path = "0"
condition = ":is_main=true"

[[tool.fsrace-lint.catalog.effect]]
names = ["mylib.merge"]
op = "rename"
path = "0"
tolerant = true

[[tool.fsrace-lint.catalog.spawn]]
names = ["mylib.launch"]
passes-rank = true

[[tool.fsrace-lint.catalog.hook]]
names = ["mylib.Callback.on_save"]
runs = "every"

[[tool.fsrace-lint.catalog.hook]]
names = ["mylib.Callback.on_item"]
runs = "worker"

[[tool.fsrace-lint.catalog.hook]]
names = ["mylib.Callback.on_start"]
runs = "global"
"""
HEAD = """\
import contextlib, os, shutil, tempfile
import mylib
import torch
import torch.distributed as dist
from filelock import FileLock
from mylib import Callback
from pathlib import Path
"""


class Case(NamedTuple):
    """A small project: `# SITE` marks the call in question, `# CAUSE` the expected location of the reason."""

    name: str
    kind: str
    message: str
    files: Mapping[str, str]


def write(root: Path, files: Mapping[str, str]) -> dict[str, str]:
    """Write a project; every file starts with HEAD."""
    (root / "pyproject.toml").write_text(MYLIB, "utf-8")
    texts = {path: HEAD + dedent(text) for path, text in files.items()}
    for path, text in texts.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, "utf-8")
    return texts


def check(root: Path, *, profile: str = "default", **changes: object) -> Outcome:
    chosen = settings.with_overrides(settings.load(root, rules.names()), profile=profile, **changes)
    ((_, checked),) = checking.check([root], lambda _: chosen, silenced=True)
    assert checked.outcome.errors == ()
    return checked.outcome


def marked(texts: Mapping[str, str], mark: str) -> list[str]:
    """The lines that a comment marks, as `file:line`."""
    return [
        f"{path}:{number}"
        for path, text in texts.items()
        for number, line in enumerate(text.splitlines(), start=1)
        if f"# {mark}" in line
    ]


def at(place: Place | None, root: Path) -> list[str]:
    return [] if place is None else [f"{relative(place.path, root)}:{place.span.line}"]


def silenced_at(root: Path, where: str, outcome: Outcome) -> list[Silenced]:
    assert outcome.silenced is not None
    return [each for each in outcome.silenced if at(each.place, root) == [where]]


def assert_not_reported(case: Case, root: Path, **changes: object) -> None:
    """Assert that the site of a case is not reported, with the expected reason and location."""
    texts = write(root, case.files)
    (where,) = marked(texts, "SITE")
    outcome = check(root, **changes)  # type: ignore[arg-type]
    assert where not in [at(finding.place, root)[0] for finding in outcome.findings]
    (found,) = silenced_at(root, where, outcome)
    assert (found.reason, found.message) == (case.kind, case.message)
    assert at(found.cause, root) == marked(texts, "CAUSE")


def cases(*rows: Case) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", [pytest.param(row, id=f"{row.kind}: {row.name}") for row in rows])


def one(name: str, kind: str, message: str, code: str, **others: str) -> Case:
    """A case with `main.py` and other files, given as keywords without `.py`."""
    return Case(name, kind, message, {"main.py": code, **{f"{key}.py": text for key, text in others.items()}})


@cases(
    one(
        "a directory",
        "tolerant",
        "an existing directory is accepted",
        "dist.barrier()\nos.makedirs('/tmp/d', exist_ok=True)  # SITE\n",
    ),
    one(
        "a delete",
        "tolerant",
        "a missing path is accepted",
        "dist.barrier()\nPath('d').unlink(missing_ok=True)  # SITE\n",
    ),
    one(
        "a library's own way",
        "tolerant",
        "the result of another process is accepted",
        "dist.barrier()\nmylib.merge('d')  # SITE\n",
    ),
    one(
        "a library's own lock",
        "synchronized",
        "`mylib.fetch()` coordinates processes itself",
        "dist.barrier()\nmylib.fetch('d')  # SITE\n",
    ),
    one(
        "seen from a call",
        "synchronized",
        "`mylib.fetch()` coordinates processes itself",
        """\
        def get(path):
            mylib.fetch(path)
        dist.barrier()
        get('d')  # SITE
        """,
    ),
    one(
        "a new file",
        "exclusive",
        "only one process can create it; the other processes fail",
        "dist.barrier()\nopen('d', 'x').close()  # SITE\n",
    ),
    one(
        "an empty file",
        "empty",
        "the file is empty, so no process can read a part of it",
        "dist.barrier()\nopen('d', 'w').close()  # SITE\n",
    ),
)
def test_harmless_calls(case: Case, tmp_path: Path) -> None:
    assert_not_reported(case, tmp_path)


@cases(
    one(
        "a test",
        "guard",
        "only one process runs this",
        """\
        if dist.get_rank() == 0:  # CAUSE
            os.mkdir('d')  # SITE
        """,
    ),
    one(
        "an early return",
        "guard",
        "only one process runs this",
        """\
        def prepare(rank):
            if rank != 0:  # CAUSE
                return
            os.mkdir('d')  # SITE
        """,
    ),
    one(
        "one of each node",
        "guard",
        "only one process on each node runs this",
        """\
        def prepare(local_rank):
            if local_rank == 0:  # CAUSE
                os.mkdir('/tmp/d')  # SITE
        """,
    ),
    one(
        "the only caller",
        "guard",
        "only one process runs this",
        """\
        def prepare():
            os.mkdir('d')  # SITE
        """,
        train="""\
        from main import prepare
        if dist.get_rank() == 0:  # CAUSE
            prepare()
        """,
    ),
    one(
        "the caller of the caller",
        "guard",
        "only one process runs this",
        """\
        def prepare():
            os.mkdir('d')  # SITE
        """,
        setup="""\
        from main import prepare
        def setup():
            print('once')
            prepare()
        """,
        train="""\
        from setup import setup
        def train():
            if dist.get_rank() > 0:  # CAUSE
                return
            setup()
        """,
    ),
    one(
        "an object of rank 0",
        "guard",
        "only one process runs this",
        """\
        class Maker:
            def make(self):
                os.mkdir('d')  # SITE
        def train():
            other = Maker()
            maker = Maker() if dist.get_rank() == 0 else None
            maker.make()  # CAUSE
        """,
    ),
    one(
        "every caller",
        "guard",
        "only one process runs this, regardless of the caller",
        """\
        def prepare():
            os.mkdir('d')  # SITE
        """,
        train="""\
        from main import prepare
        def train(rank):
            if rank == 0:  # CAUSE
                prepare()
        def evaluate(rank):
            if rank == 0:
                prepare()
        """,
    ),
    one(
        "a known decorator",
        "guard",
        "only one process runs this",
        """\
        from lightning.pytorch.utilities import rank_zero_only
        @rank_zero_only
        def prepare():  # CAUSE
            os.mkdir('d')  # SITE
        """,
    ),
    one(
        "a decorator of the project",
        "guard",
        "only one process runs this",
        """\
        from helpers import alone
        @alone
        def prepare():  # CAUSE
            os.mkdir('d')  # SITE
        """,
        helpers="""\
        def alone(function):
            def inner(*args):
                if dist.get_rank() == 0:
                    return function(*args)
            return inner
        """,
    ),
    one(
        "a decorated caller",
        "guard",
        "only one process runs this",
        """\
        def prepare():
            os.mkdir('d')  # SITE
        """,
        train="""\
        from lightning.pytorch.utilities import rank_zero_only
        from main import prepare
        @rank_zero_only
        def setup():  # CAUSE
            prepare()
        """,
    ),
    one(
        "a helper that exits",
        "guard",
        "only one process runs this",
        """\
        from helpers import leave
        def prepare():
            print('everybody')
            leave()  # CAUSE
            print('one')
            os.mkdir('d')  # SITE
        """,
        helpers="""\
        import sys
        def leave():
            if dist.get_rank() != 0:
                sys.exit(0)
        """,
    ),
    one(
        "a test whose outcome is kept nowhere",
        "guard",
        "only one process runs this",
        """\
        def prepare(rank, items):
            for item in items:
                if item:
                    if rank != 0:  # CAUSE
                        return
                elif rank != 0:
                    return
                os.mkdir('d')  # SITE
        """,
    ),
    one(
        "two tests together",
        "guard",
        "only one process runs this",
        """\
        def build(cache, hit, rank):
            if not cache or (not hit and rank == 0):  # CAUSE
                log()
                if cache:
                    log()
                    os.mkdir('d')  # SITE
        def log():
            print('hello')
        """,
    ),
    one(
        "handed to a helper",
        "guard",
        "only one process runs this",
        """\
        def prepare():
            os.mkdir('d')  # SITE
        """,
        train="""\
        from main import prepare
        from speechbrain.utils.distributed import run_on_main
        run_on_main(prepare)  # CAUSE
        """,
    ),
    one(
        "a hook",
        "guard",
        "the framework calls `on_start()` in one process",
        """\
        class Mine(Callback):
            def on_start(self):  # CAUSE
                os.mkdir('d')  # SITE
        """,
    ),
    one(
        "a hook of each node",
        "guard",
        "the framework calls `prepare_data()` in one process on each node",
        """\
        class Data(torch.nn.Module):
            def prepare_data(self):  # CAUSE
                mylib.make('d')  # SITE
        """,
    ),
    one(
        "what a hook calls",
        "guard",
        "the framework calls `on_start()` in one process",
        """\
        def prepare():
            os.mkdir('d')  # SITE
        """,
        callback="""\
        from main import prepare
        class Mine(Callback):
            def on_start(self):  # CAUSE
                prepare()
        """,
    ),
    one(
        "in the function that writes",
        "guard",
        "only one process reaches `torch.save()`",
        """\
        from saving import save
        dist.barrier()
        save('d')  # SITE
        """,
        saving="""\
        def save(path):
            if dist.get_rank() == 0:  # CAUSE
                torch.save({}, path)
        """,
    ),
    one(
        "in a function between",
        "guard",
        "only one process reaches `torch.save()`",
        """\
        from saving import save_all
        dist.barrier()
        save_all('d')  # SITE
        """,
        saving="""\
        def save(path):
            torch.save({}, path)
        def save_all(folder):
            if dist.get_rank() == 0:  # CAUSE
                save(folder + '/model.bin')
        def save_here():
            if dist.get_rank() == 0:
                save('model.pt')
        """,
    ),
    one(
        "around a call that writes",
        "guard",
        "only one process runs this",
        """\
        from saving import save
        if dist.get_rank() == 0:  # CAUSE
            save('d')  # SITE
        save('e')
        """,
        saving="""\
        def save(path):
            torch.save({}, path)
        """,
    ),
    one(
        "by nature",
        "guard",
        "`mylib.save_once()` does it on one process only",
        "dist.barrier()\nmylib.save_once('d')  # SITE\n",
    ),
    one(
        "by nature, seen from a call",
        "guard",
        "`mylib.save_once()` does it on one process only",
        """\
        def save(path):
            mylib.save_once(path)  # CAUSE
        dist.barrier()
        save('d')  # SITE
        """,
    ),
    one(
        "an argument",
        "guard",
        "`dist.get_rank() == 0` lets only one process do it",
        """\
        dist.barrier()
        mylib.save('d', is_main=dist.get_rank() == 0)  # CAUSE # SITE
        """,
    ),
    one(
        "a caller of a function that calls itself",
        "guard",
        "only one process runs this, regardless of the caller",
        """\
        def prepare(depth):
            os.mkdir(f'd{depth}')  # SITE
            if depth:
                prepare(depth - 1)
        def train():
            if dist.get_rank() == 0:  # CAUSE
                prepare(3)
        """,
    ),
    one(
        "two tests together, after one of something else",
        "guard",
        "only one process runs this",
        """\
        def build(cache, hit, rank, ready):
            if ready:
                if not cache or (not hit and rank == 0):  # CAUSE
                    log()
                    if cache:
                        log()
                        os.mkdir('d')  # SITE
        def log():
            print('hello')
        """,
    ),
    one(
        "in the function that a function between calls",
        "guard",
        "only one process reaches `torch.save()`",
        """\
        from saving import save_all
        dist.barrier()
        save_all('d')  # SITE
        """,
        saving="""\
        def save(path):
            if dist.get_rank() == 0:  # CAUSE
                torch.save({}, path)
        def save_all(folder):
            save(folder + '/model.bin')
        """,
    ),
    one(
        "two that leave one process only together",
        "guard",
        "only one process runs this",
        """\
        def save(path):
            if dist.get_rank() != 0:
                torch.save({}, path)
        def train():
            dist.barrier()
            if dist.get_rank() == 0 or dist.get_rank() == dist.get_world_size() - 1:
                save('d')  # SITE
        """,
    ),
)
def test_rank_checks(case: Case, tmp_path: Path) -> None:
    assert_not_reported(case, tmp_path)


@cases(
    one(
        "a rank that is asked for",
        "private",
        "each process has its own path: `dist.get_rank()` differs",
        "os.mkdir(f'd{dist.get_rank()}')  # CAUSE # SITE\n",
    ),
    one(
        "a rank that was asked for",
        "private",
        "each process has its own path: `number` differs",
        """\
        number = dist.get_rank()  # CAUSE
        os.mkdir(f'd{number}')  # SITE
        """,
    ),
    one(
        "a rank by its name",
        "private",
        "each process has its own path: `rank` differs",
        """\
        def prepare(rank):
            os.mkdir(f'd{rank}')  # SITE
        """,
    ),
    one(
        "a temporary folder",
        "private",
        "each process has its own path: `tempfile.mkdtemp()` differs",
        """\
        dist.barrier()
        folder = tempfile.mkdtemp()  # CAUSE
        torch.save({}, folder + '/d')  # SITE
        """,
    ),
    one(
        "a function that calls itself, and is handed nothing of its own",
        "private",
        "each process has its own path: `os.getpid()` differs",
        """\
        def prepare(depth):
            with open(f'/tmp/d{os.getpid()}-{depth}', 'w'):  # CAUSE # SITE
                pass
            if depth:
                prepare(depth - 1)
        dist.barrier()
        prepare(3)
        """,
    ),
    one(
        "an attribute of what is one of its kind",
        "private",
        "each process has its own path: `uuid.uuid4().hex` differs",
        """\
        import uuid
        dist.barrier()
        torch.save({}, f'd-{uuid.uuid4().hex}')  # CAUSE # SITE
        """,
    ),
    one(
        "a property of the project",
        "private",
        "each process has its own path: `worker.name` differs",
        """\
        class Worker:
            @property
            def name(self):
                return f'w{os.getpid()}'
        def save(worker: Worker):
            dist.barrier()
            torch.save({}, f'd-{worker.name}')  # SITE
        """,
    ),
    one(
        "one of several names",
        "private",
        "each process has its own path: `path` differs",
        """\
        def save(several):
            dist.barrier()
            if several:
                path = str(dist.get_rank())  # CAUSE
            else:
                path = 'd'
            torch.save({}, path)  # SITE
        """,
    ),
    one(
        "what a function of another file returns",
        "private",
        "each process has its own path: `own_folder()` differs",
        """\
        from paths import own_folder
        os.mkdir(own_folder())  # SITE
        """,
        paths="""\
        def own_folder():
            print('asked')
            return f'd{dist.get_rank()}'  # CAUSE
        """,
    ),
    one(
        "passed by its name",
        "private",
        "each process has its own path: `folder` differs",
        """\
        def save(folder):
            torch.save({}, folder + '/d')
        def train():
            dist.barrier()
            with tempfile.TemporaryDirectory() as folder:  # CAUSE
                save(folder=folder)  # SITE
        """,
    ),
    one(
        "the caller's",
        "private",
        "each process has its own path: the caller passes it",
        """\
        def prepare(folder):
            os.mkdir(folder)  # SITE
        """,
        train="""\
        from main import prepare
        dist.barrier()
        prepare(f'd{dist.get_rank()}')  # CAUSE
        """,
    ),
    one(
        "every caller's",
        "private",
        "each process has its own path: every caller passes one",
        """\
        def prepare(folder):
            os.mkdir(folder)  # SITE
        """,
        train="""\
        from main import prepare
        dist.barrier()
        prepare(tempfile.mkdtemp())  # CAUSE
        prepare(f'd{dist.get_rank()}')
        """,
    ),
    one(
        "passed to a call",
        "private",
        "each process has its own path: `tempfile.mkdtemp()` differs",
        """\
        def save(folder):
            torch.save({}, folder + '/d')
        dist.barrier()
        save(tempfile.mkdtemp())  # CAUSE # SITE
        """,
    ),
    one(
        "chosen below a call",
        "private",
        "each process has its own path: `dist.get_rank()` differs",
        """\
        def save(folder):
            torch.save({}, f'{folder}/{dist.get_rank()}')  # CAUSE
        dist.barrier()
        save('d')  # SITE
        """,
    ),
    one(
        "a rank from the caller",
        "private",
        "each process has its own path: `folder` differs",
        """\
        def prepare(folder):
            os.mkdir(folder)  # SITE
        """,
        train="""\
        from main import prepare
        dist.barrier()
        prepare(str(dist.get_rank()))  # CAUSE
        """,
    ),
    one(
        "the number of a process that is started",
        "private",
        "each process has its own path: `index` differs",
        """\
        def work(index, folder):
            os.mkdir(f'{folder}{index}')  # SITE
        def main():
            mylib.launch(work, 4)  # CAUSE
        """,
    ),
    one(
        "a rename of what is private",
        "private",
        "each process has its own path: `rank` differs",
        """\
        def move(rank):
            dist.barrier()
            os.rename(f'a{rank}', f'b{rank}')  # SITE
        """,
    ),
    one(
        "a rename to what is shared",
        "unexposed",
        "no rule reports a rename of a private path",
        """\
        def move(rank):
            dist.barrier()
            os.rename(f'a{rank}', 'b')  # SITE
        """,
    ),
)
def test_private_paths(case: Case, tmp_path: Path) -> None:
    assert_not_reported(case, tmp_path)


@cases(
    one(
        "here",
        "lock",
        "`FileLock('l')` is held",
        """\
        with FileLock('l'):  # CAUSE
            os.mkdir('d')  # SITE
        """,
    ),
    one(
        "by its name",
        "lock",
        "`lock` is held",
        """\
        lock = FileLock('l')  # CAUSE
        with lock:
            os.mkdir('d')  # SITE
        """,
    ),
    one(
        "acquired",
        "lock",
        "`lock` is held",
        """\
        def prepare():
            lock = FileLock('l')  # CAUSE
            lock.acquire()
            os.mkdir('d')  # SITE
            lock.release()
        """,
    ),
    one(
        "of unknown make",
        "lock",
        "`file_lock` is held",
        """\
        def prepare(file_lock):
            with file_lock:
                os.mkdir('d')  # CAUSE # SITE
        """,
    ),
    one(
        "the caller's",
        "lock",
        "the caller holds a lock",
        """\
        def prepare():
            os.mkdir('d')  # SITE
        """,
        train="""\
        from main import prepare
        with FileLock('l'):  # CAUSE
            prepare()
        """,
    ),
    one(
        "every caller's",
        "lock",
        "every caller holds a lock",
        """\
        def prepare():
            os.mkdir('d')  # SITE
        """,
        train="""\
        from main import prepare
        with FileLock('l'):  # CAUSE
            prepare()
        with FileLock('m'):
            prepare()
        """,
    ),
    one(
        "below a call",
        "lock",
        "`FileLock('l')` is held",
        """\
        def save(path):
            with FileLock('l'):  # CAUSE
                torch.save({}, path)
        dist.barrier()
        save('d')  # SITE
        """,
    ),
)
def test_held_locks(case: Case, tmp_path: Path) -> None:
    assert_not_reported(case, tmp_path)


@cases(
    one(
        "here",
        "handled",
        "`FileExistsError` is handled",
        """\
        try:
            os.mkdir('d')  # SITE
        except FileExistsError:  # CAUSE
            pass
        """,
    ),
    one(
        "not by the nearest",
        "handled",
        "`FileNotFoundError` is handled",
        """\
        try:
            try:
                os.remove('d')  # SITE
            except PermissionError:
                pass
        except ValueError:
            pass
        except OSError:  # CAUSE
            pass
        """,
    ),
    one(
        "suppressed",
        "handled",
        "`FileNotFoundError` is handled",
        """\
        with contextlib.suppress(FileNotFoundError):  # CAUSE
            os.remove('d')  # SITE
        """,
    ),
    one(
        "suppressed by one of several contexts",
        "handled",
        "`FileNotFoundError` is handled",
        """\
        with (
            contextlib.suppress(PermissionError),
            contextlib.suppress(FileNotFoundError),  # CAUSE
            contextlib.suppress(),
        ):
            os.remove('d')  # SITE
        """,
    ),
    one(
        "by the caller",
        "handled",
        "`FileNotFoundError` is handled",
        """\
        def clean():
            os.remove('d')  # SITE
        """,
        train="""\
        from main import clean
        try:
            clean()
        except FileNotFoundError:  # CAUSE
            pass
        """,
    ),
    one(
        "by every caller",
        "handled",
        "`FileExistsError` is handled by every caller",
        """\
        def prepare():
            os.mkdir('d')  # SITE
        """,
        train="""\
        from main import prepare
        try:
            prepare()
        except OSError:  # CAUSE
            pass
        with contextlib.suppress(OSError):
            prepare()
        """,
    ),
    one(
        "the main process of the job",
        "first",
        "rank 0 finishes this before the other processes start",
        """\
        def prepare(accelerator):
            with accelerator.main_process_first():  # CAUSE
                if not os.path.exists('d'):
                    os.mkdir('d')  # SITE
        """,
    ),
    one(
        "one process alone goes on",
        "preceded",
        "`os.mkdir()` runs first and leaves nothing to race for",
        """\
        def prepare():
            dist.barrier()
            os.mkdir('d')  # CAUSE
            torch.save({}, 'd/a.pt')  # SITE
        """,
    ),
    one(
        "made before it is tested",
        "preceded",
        "`os.makedirs()` runs first and leaves nothing to race for",
        """\
        def prepare():
            os.makedirs('d/parts', exist_ok=True)  # CAUSE
            if not os.path.exists('d'):
                os.mkdir('d')  # SITE
        """,
    ),
    one(
        "the main process of each node",
        "first",
        "local rank 0 of each node finishes this before the other processes start",
        """\
        def prepare(accelerator):
            with contextlib.nullcontext(), accelerator.local_main_process_first():  # CAUSE
                if not os.path.exists('d'):
                    os.mkdir('d')  # SITE
        """,
    ),
    one(
        "the callers let one process go first",
        "first",
        "rank 0 finishes this before the other processes start",
        """\
        def prepare():
            if not os.path.exists('d'):
                os.mkdir('d')  # SITE
        """,
        train="""\
        from main import prepare
        def train(accelerator):
            with accelerator.main_process_first():  # CAUSE
                prepare()
        """,
    ),
    one(
        "handed to a helper that lets one process go first",
        "first",
        "rank 0 finishes this before the other processes start",
        """\
        from fastai.distributed import rank0_first
        def prepare():
            if not os.path.exists('d'):
                os.mkdir('d')  # SITE
        def train():
            rank0_first(prepare)  # CAUSE
        """,
    ),
)
def test_handlers_and_synchronization(case: Case, tmp_path: Path) -> None:
    assert_not_reported(case, tmp_path)


@cases(
    one(
        "the path is a parameter",
        "callers",
        "callers determine the path, and are checked instead",
        """\
        def save(path):
            torch.save({}, path)  # SITE
        dist.barrier()
        save('d')  # CAUSE
        """,
    ),
    one(
        "a copy after a test",
        "unproven",
        "nothing shows that multiple processes run this code",
        """\
        def copy(source):
            if os.path.isdir('d'):
                shutil.copytree(source, 'd')  # SITE
        """,
    ),
    one(
        "a copy after a test in a script",
        "unproven",
        "nothing shows that multiple processes run this script",
        """\
        if __name__ == '__main__':
            if os.path.isdir('d'):
                shutil.copytree('s', 'd')  # SITE
        """,
    ),
    one(
        "a loop that counts",
        "strict",
        'FSR201: every caller writes `f"{number}.txt"`',
        """\
        def save(items):
            number = 0
            for item in items:
                open(f'{number}.txt', 'w').write(item)  # SITE
                number += 1
        """,
    ),
    one(
        "a delete of what is unpacked",
        "unknown",
        "the value of `first` is unknown",
        """\
        def clean(store):
            dist.barrier()
            first, second = store.pair
            os.remove(first)  # SITE
        """,
    ),
    one(
        "a delete, only by the strict profile",
        "strict",
        "FSR202: every caller deletes `'d'`",
        "def clean():\n    os.remove('d')  # SITE\n",
    ),
    one(
        "a delete after a test whose other branch raises",
        "unexposed",
        "no enabled rule reports this delete",
        """\
        dist.barrier()
        if not os.path.exists('d'):
            raise SystemExit('nothing to do')
        os.remove('d')  # SITE
        """,
    ),
    one(
        "a lock by its name",
        "lock",
        "`'d.lock'` is a lock file, or is locked once it is open",
        """\
        def claim():
            open('d.lock', 'w').write('1')  # SITE
        """,
    ),
    one(
        "what is locked once it is open",
        "lock",
        "`path` is a lock file, or is locked once it is open",
        """\
        import fcntl
        def claim(path):
            with open(path, 'w') as file:  # SITE
                fcntl.flock(file, fcntl.LOCK_EX)
        """,
    ),
    one(
        "a file that is only opened",
        "unexposed",
        "no rule reports a create",
        "dist.barrier()\nos.close(os.open('d', os.O_WRONLY | os.O_CREAT))  # SITE\n",
    ),
    one(
        "a link",
        "unexposed",
        "no rule reports a link without a check or a removal before it",
        "dist.barrier()\nos.symlink('d', 'e')  # SITE\n",
    ),
    one(
        "a test whose other branch raises before all meet",
        "unexposed",
        "no enabled rule reports this mkdir",
        """\
        if os.path.exists('d'):
            raise SystemExit('in use')
        dist.barrier()
        os.mkdir('d')  # SITE
        """,
    ),
    one(
        "only by the strict profile",
        "strict",
        "FSR201: every caller writes `'d'`",
        """\
        def save():
            torch.save({}, 'd')  # SITE
        """,
    ),
    one(
        "a comment",
        "suppressed",
        "FSR105 is suppressed by a comment",
        "dist.barrier()\nos.mkdir('d')  # noqa: FSR105 # SITE\n",
    ),
)
def test_weak_reasons(case: Case, tmp_path: Path) -> None:
    assert_not_reported(case, tmp_path)


def test_disabled_rule_is_a_reason(tmp_path: Path) -> None:
    case = one(
        "off", "unexposed", "no enabled rule reports this mkdir", "dist.barrier()\nos.mkdir('d')  # SITE\n"
    )
    assert_not_reported(case, tmp_path, ignore=["FSR105"])


def test_strict_profile_reports_instead_of_listing(tmp_path: Path) -> None:
    write(tmp_path, {"main.py": "def save():\n    torch.save({}, 'd')\n"})
    outcome = check(tmp_path, profile="strict")
    assert [finding.code for finding in outcome.findings] == ["FSR201"]
    assert outcome.silenced == ()


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("dist.barrier()\nos.mkdir('d')", id="reported call"),
        pytest.param(
            "dist.barrier()\nif not os.path.exists('d'):\n    os.mkdir('d')", id="reported call and its check"
        ),
        pytest.param(
            "def save(p):\n    torch.save({}, p)\nsave(tempfile.mkdtemp())", id="private path from the caller"
        ),
        pytest.param("os.path.exists('d')\nPath('d').is_dir()\nos.listdir('d')", id="existence checks"),
        pytest.param("dist.barrier()\nopen('d').read()", id="read"),
        pytest.param("dist.barrier()\nopen('/dev/null', 'w')", id="device file"),
        pytest.param("dist.barrier()\nprint('d')", id="no file access"),
    ],
)
def test_calls_that_are_not_listed(code: str, tmp_path: Path) -> None:
    texts = write(tmp_path, {"main.py": code + "\n"})
    outcome = check(tmp_path)
    assert outcome.silenced is not None
    listed = [each.place.span.line for each in outcome.silenced]
    found = [finding.place.span.line for finding in outcome.findings]
    assert not set(listed) & set(found)
    first = HEAD.count("\n") + 1
    expected = [first + 1, first + 2] if "save(p)" in texts["main.py"] else []
    assert listed == expected


def test_nothing_is_listed_by_default(tmp_path: Path) -> None:
    write(tmp_path, {"main.py": "os.mkdir('d')\n"})
    ((_, checked),) = checking.check([tmp_path], lambda _: settings.load(tmp_path, rules.names()))
    assert checked.outcome.silenced is None


def test_reasons_are_listed_in_source_order(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "b.py": "def save(p):\n    torch.save({}, p)\n    os.remove('x')\nsave('d')\nos.remove('y')\n",
            "a.py": "os.remove('x')\n",
        },
    )
    outcome = check(tmp_path)
    assert outcome.silenced is not None
    listed = [
        (at(each.place, tmp_path)[0], each.function, each.operation, each.call) for each in outcome.silenced
    ]
    first = HEAD.count("\n") + 1
    assert listed == [
        (f"a.py:{first}", "<module>", "delete", "os.remove('x')"),
        (f"b.py:{first + 1}", "save", "write", "torch.save(..., p)"),
        (f"b.py:{first + 2}", "save", "delete", "os.remove('x')"),
        (f"b.py:{first + 3}", "<module>", "write", "save('d')"),
        (f"b.py:{first + 4}", "<module>", "delete", "os.remove('y')"),
    ]


class Sign(NamedTuple):
    """A project with a finding at `# SITE`; `# SIGN` marks the evidence, `# CALL` the call chain."""

    name: str
    message: str
    files: Mapping[str, str]


def sign(name: str, message: str, code: str, **others: str) -> Sign:
    return Sign(name, message, {"main.py": code, **{f"{key}.py": text for key, text in others.items()}})


LIKELY = "ranks of one job probably run this: "
EVIDENT = "ranks of one job run this: "
COME = "called from "


def related(root: Path, files: Mapping[str, str]) -> tuple[dict[str, str], Finding]:
    texts = write(root, files)
    outcome = check(root)
    (where,) = marked(texts, "SITE")
    (finding,) = [each for each in outcome.findings if at(each.place, root) == [where]]
    return texts, finding


@pytest.mark.parametrize(
    "case",
    [
        sign(
            "a barrier",
            f"{LIKELY}`dist.barrier()` waits for all ranks",
            """\
            def train():
                os.mkdir('d')  # SITE
                dist.barrier()  # SIGN
            """,
        ),
        sign(
            "a launch",
            f"{EVIDENT}`dist.init_process_group()` joins a distributed job",
            """\
            dist.init_process_group('nccl')  # SIGN
            os.mkdir('d')  # SITE
            """,
        ),
        sign(
            "a test of a rank",
            f"{LIKELY}the code distinguishes ranks with `rank == 0`",
            """\
            def train(rank):
                os.mkdir('d')  # SITE
                if rank == 0:  # SIGN
                    print('hello')
            """,
        ),
        sign(
            "a rank that is asked for",
            f"{LIKELY}the code gets the rank with `dist.get_rank()`",
            """\
            def train():
                number = dist.get_rank()  # SIGN
                os.mkdir('d')  # SITE
                return number
            """,
        ),
        sign(
            "processes that are started",
            f"{EVIDENT}`mp.spawn()` starts the processes that run it",
            """\
            def work(index):
                os.mkdir('d')  # SITE
            """,
            launch="""\
            import torch.multiprocessing as mp
            from main import work
            def launch():
                mp.spawn(work, nprocs=4)  # SIGN
            """,
        ),
        sign(
            "a hook",
            f"{LIKELY}the framework calls `on_save()` in every process",
            """\
            class Mine(Callback):
                def on_save(self):  # SIGN
                    os.mkdir('d')  # SITE
            """,
        ),
        sign(
            "a hook of workers",
            "worker processes probably run this: the framework calls `on_item()` in every worker process",
            """\
            class Mine(Callback):
                def on_item(self):  # SIGN
                    os.mkdir('d')  # SITE
            """,
        ),
        sign(
            "another method of the class",
            f"{LIKELY}`dist.barrier()` waits for all ranks",
            """\
            class Trainer:
                def fit(self):
                    dist.barrier()  # SIGN
                def save(self):
                    os.mkdir('d')  # SITE
            """,
        ),
        sign(
            "the caller",
            f"{LIKELY}`dist.barrier()` waits for all ranks",
            """\
            def prepare():
                os.mkdir('d')  # SITE
            """,
            train="""\
            from main import prepare
            def train():
                prepare()  # CALL
                dist.barrier()  # SIGN
            """,
        ),
        sign(
            "the caller's class",
            f"{LIKELY}the code distinguishes ranks with `dist.get_rank() == 0`",
            """\
            def prepare():
                os.mkdir('d')  # SITE
            """,
            train="""\
            from main import prepare
            class Trainer:
                def setup(self):
                    prepare()  # CALL
                def log(self, text):
                    if dist.get_rank() == 0:  # SIGN
                        print(text)
            """,
        ),
        sign(
            "a file that imports it by way of one that it imports itself",
            f"{LIKELY}the code distinguishes ranks with `dist.get_rank() == 0`",
            """\
            import between
            os.mkdir('d')  # SITE
            """,
            between="import main\n",
            train="""\
            import between
            if dist.get_rank() == 0:  # SIGN
                print('hello')
            """,
        ),
        sign(
            "a file beside the package that is the root",
            f"{LIKELY}the code distinguishes ranks with `dist.get_rank() == 0`",
            "import config",
            __init__="os.mkdir('d')  # SITE",
            train="""\
            from . import config
            if dist.get_rank() == 0:  # SIGN
                print(config)
            """,
        ),
    ],
    ids=lambda case: case.name,
)
def test_evidence_for_multiple_processes(case: Sign, tmp_path: Path) -> None:
    texts, finding = related(tmp_path, case.files)
    *calls, reason = finding.related
    assert [at(each.place, tmp_path)[0] for each in calls] == marked(texts, "CALL")
    assert all(each.message.startswith(COME) for each in calls)
    assert at(reason.place, tmp_path) == marked(texts, "SIGN")
    assert reason.message == case.message
    assert finding.evidence == ("evident" if case.message.startswith(EVIDENT) else "likely")


def test_evidence_in_a_helper_of_another_file(tmp_path: Path) -> None:
    texts, finding = related(
        tmp_path,
        {
            "main.py": """\
            from helpers import start
            def train():
                start()  # SIGN
                os.mkdir('d')  # SITE
            """,
            "helpers.py": """\
            def start():
                join()
            def join():
                dist.init_process_group('nccl')
            """,
        },
    )
    (evidence,) = finding.related
    assert at(evidence.place, tmp_path) == marked(texts, "SIGN")
    called = "`dist.init_process_group()`, which `start()` calls, joins a distributed job"
    assert evidence.message == f"{EVIDENT}{called}"


def test_call_chain_is_shown_nearest_first(tmp_path: Path) -> None:
    texts, finding = related(
        tmp_path,
        {
            "main.py": """\
            def prepare():
                if not os.path.exists('d'):  # TEST
                    os.mkdir('d')  # SITE
            """,
            "a.py": "from main import prepare\ndef setup():\n    prepare()  # CALL\n",
            "b.py": "from a import setup\ndef start():\n    setup()  # CALL\n",
            "c.py": "from b import start\ndef train():\n    dist.barrier()  # SIGN\n    start()  # CALL\n",
        },
    )
    related_lines = [(at(each.place, tmp_path)[0], each.message) for each in finding.related]
    assert related_lines == [
        (marked(texts, "TEST")[0], "multiple processes can find it missing"),
        *zip(
            marked(texts, "CALL"), (f"{COME}`{name}()`" for name in ("setup", "start", "train")), strict=True
        ),
        (marked(texts, "SIGN")[0], f"{LIKELY}`dist.barrier()` waits for all ranks"),
    ]


def test_all_calls_of_the_chain_are_related(tmp_path: Path) -> None:
    calls = [f"def f{number}():\n    f{number - 1}()\n" for number in range(1, 11)]
    code = "def f0():\n    os.mkdir('d')  # SITE\n" + "".join(calls) + "dist.barrier()\nf10()\n"
    _, finding = related(tmp_path, {"main.py": code})
    assert [each.message for each in finding.related][:-1] == [
        *(f"{COME}`f{n}()`" for n in range(1, 11)),
        f"{COME}the module",
    ]


def test_import_cycle_without_evidence(tmp_path: Path) -> None:
    text = "if not os.path.exists('d'):\n    os.mkdir('d')  # SITE"
    _, finding = related(tmp_path, {"main.py": f"import other\n{text}", "other.py": "import main\n"})
    assert finding.evidence == "plausible"
    assert [each.message for each in finding.related] == ["multiple processes can find it missing"]


def test_caller_without_evidence(tmp_path: Path) -> None:
    texts, finding = related(
        tmp_path,
        {
            "main.py": """\
            def prepare():
                if not os.path.exists('d'):
                    os.mkdir('d')  # SITE
            """,
            "train.py": "from main import prepare\ndef train():\n    prepare()  # CALL\n",
        },
    )
    assert finding.evidence == "plausible"
    related_lines = [(at(each.place, tmp_path), each.message) for each in finding.related[1:]]
    assert related_lines == [(marked(texts, "CALL"), "called from `train()`")]


def test_related_paths_after_the_same_check(tmp_path: Path) -> None:
    """Excludes paths in other directories, and deletions in the same directory."""
    code = """\
    def prepare():
        dist.init_process_group('nccl')  # SIGN
        if not os.path.exists('out/words.txt'):  # TEST
            open('out/words.txt', 'w').write('a')  # SITE
            open('out/counts.txt', 'w').write('b')  # BESIDE
            open('elsewhere/counts.txt', 'w').write('c')
            os.remove('out/old.txt')
    """
    texts, finding = related(tmp_path, {"main.py": code})
    related_lines = [(at(each.place, tmp_path)[0], each.message) for each in finding.related]
    assert related_lines == [
        (marked(texts, "TEST")[0], "multiple processes can find it missing"),
        (marked(texts, "BESIDE")[0], "created after the same check"),
        (marked(texts, "SIGN")[0], f"{EVIDENT}`dist.init_process_group()` joins a distributed job"),
    ]
