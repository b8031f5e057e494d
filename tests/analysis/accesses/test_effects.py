"""Filesystem effects of calls: every catalog entry, and the arguments that decide."""

from __future__ import annotations

import importlib.resources
from textwrap import indent
from typing import TYPE_CHECKING

import pytest
from support.linked import project

from fsrace_lint import catalog
from fsrace_lint.analysis.accesses.effects import Effects
from fsrace_lint.analysis.values.call_arguments import library_argument
from fsrace_lint.catalog import Effect, argument
from fsrace_lint.catalog import flags as flags_of
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.unparse import spell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.model import Operation

HEAD = """\
import bz2, codecs, gzip, io, lzma
import glob
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
import torch

class Mine:
    def mkdir(self): pass
    def exists(self): pass
    def open(self, mode): pass

"""


def effect_of_call(call: str, code: str = "", head: str = HEAD) -> Operation | None:
    """The effect of the last call in a function."""
    body = indent(f"{code}\n{call}\n", "    ")
    linked = project({"main.py": f"{head}\ndef main(p, q, thing, mode, flag, args):\n{body}"})
    flow = linked.flows.flow(linked.targets[0].top_functions["main"])
    assert flow is not None
    event = flow.call_sites[-1]
    flows = linked.flows
    effects = Effects(flows.resolver, flows.catalog, flows.relevance)
    return effects.operation(event.call, event.state.scope)


def operation_and_path(call: str, code: str = "") -> tuple[str, str] | None:
    """The operation of a call, and its path."""
    found = effect_of_call(call, code)
    return None if found is None else (found.op, spell(found.path))


# Calls generated from every catalog entry.


def entries() -> Iterator[tuple[str, Effect]]:
    for kind, name, entry in rows():
        if kind == "effect":
            assert isinstance(entry, Effect)
            yield name, entry


def rows() -> Iterator[tuple[str, str, object]]:
    for file in sorted(importlib.resources.files(catalog).iterdir(), key=lambda file: file.name):
        if file.name.endswith(".toml"):
            for kind, entry in catalog.parse(file.read_text(encoding="utf-8"), file.name):
                for name in entry.names:
                    yield kind, name, entry


LIBRARIES: dict[str, list[tuple[str, Effect]]] = {}
for each, effect in entries():
    LIBRARIES.setdefault(each.partition(".")[0], []).append((each, effect))
of_each_library = pytest.mark.parametrize("known", LIBRARIES.values(), ids=LIBRARIES.keys())


def is_method(name: str) -> bool:
    owner = name.rpartition(".")[0].rpartition(".")[2]
    return owner == "*" or owner[:1].isupper()


def keyword_arguments(entry: Effect, keys: str) -> list[str]:
    """Keyword arguments that a call needs, besides its path, to have the effect of this entry."""
    values = {"mode": "'w'", "flags": "os.O_WRONLY", "condition": "True", "target": "t"}
    return [
        f"{argument(getattr(entry, key)).keyword}={values[key]}"
        for key in keys.split()
        if getattr(entry, key)
    ]


def generated_call(name: str, entry: Effect, *extra: str) -> tuple[str, str, str]:
    """Generate a call from an entry: its imports, the call, and the path in it."""
    owner, _, last = name.rpartition(".")
    module = owner.rpartition(".")[0] if is_method(name) else owner
    head = f"import {module}\n" if module and owner != "*" else ""
    receiver = "thing" if owner == "*" else f"{owner}(q)"
    which = argument(entry.path)
    values = [] if which.is_self or which.position is None else [f"x{i}" for i in range(which.position)]
    if not which.is_self:
        values.append("p" if which.position is not None else f"{which.keyword}=p")
    values += extra or keyword_arguments(entry, "mode flags condition target")
    called = f"{receiver}.{last}" if is_method(name) else name
    return f"import os\n{head}", f"{called}({', '.join(values)})", receiver if which.is_self else "p"


def holds_by_default(flag: bool | str) -> bool:
    """Whether the property holds for a call that passes none of the flags."""
    return flag is True or any(which.default for which in flags_of(flag))


def within(entry: Effect, path: str) -> str:
    """Return how a path is spelled that names a file in the directory of an entry."""
    return f'f"{entry.within}/{{{path}}}"' if entry.within else path


@of_each_library
def test_every_effect_is_recognized(known: list[tuple[str, Effect]]) -> None:
    for name, entry in known:
        head, call, path = generated_call(name, entry)
        found = effect_of_call(call, head=head)
        assert found is not None, name
        assert (found.op, spell(found.path), found.api) == (entry.op, within(entry, path), name)
        assert found.tolerant is holds_by_default(entry.tolerant), name
        assert found.exclusive is holds_by_default(entry.exclusive), name
        assert found.atomic is holds_by_default(entry.atomic), name
        assert found.synchronized is holds_by_default(entry.synchronized), name
        assert found.only == entry.guard, name
        target = None if found.target is None else spell(found.target)
        assert target == ("t" if entry.target else None), name


@of_each_library
def test_every_effect_finds_its_path_by_keyword(known: list[tuple[str, Effect]]) -> None:
    for name, entry in known:
        which = argument(entry.path)
        if which.is_self:
            continue
        head, call, _ = generated_call(name, entry)
        prefix, _, _ = call.rpartition("(")
        values = [f"{which.keyword}=p", *keyword_arguments(entry, "mode flags condition target")]
        found = effect_of_call(f"{prefix}({', '.join(values)})", head=head)
        assert found is not None, name
        assert spell(found.path) == within(entry, "p"), name


@pytest.mark.parametrize(
    ("name", "entry", "key", "flag"),
    [
        pytest.param(name, entry, key, word, id=f"{name}-{key}-{word}")
        for name, entry in entries()
        for key in ("tolerant", "exclusive", "atomic")
        if isinstance(getattr(entry, key), str) and not (key == "tolerant" and entry.tree)
        for word in getattr(entry, key).split()
    ],
)
def test_every_flag_is_recognized(name: str, entry: Effect, key: str, flag: str) -> None:
    which = argument(flag)
    answers = {}
    for value in ("True", "False", "flag"):
        head, call, _ = generated_call(name, entry, f"{which.keyword}={value}")
        found = effect_of_call(call, head=head)
        assert found is not None
        answers[value] = getattr(found, key)
    assert answers == {"True": True, "False": False, "flag": True}
    if which.position is not None and not name.startswith("*."):
        before = 0 if argument(entry.path).is_self else (argument(entry.path).position or 0) + 1
        head, call, _ = generated_call(
            name, entry, *(f"y{i}" for i in range(which.position - before)), "True"
        )
        found = effect_of_call(call, head=head)
        assert found is not None
        assert getattr(found, key)


@pytest.mark.parametrize(
    ("name", "entry"),
    [pytest.param(name, entry, id=name) for name, entry in entries() if entry.condition],
)
def test_every_condition_is_recognized(name: str, entry: Effect) -> None:
    which = argument(entry.condition)
    head, call, _ = generated_call(name, entry, f"{which.keyword}=flag")
    found = effect_of_call(call, head=head)
    assert found is not None
    assert found.condition is not None
    assert spell(found.condition) == "flag"


@pytest.mark.parametrize("name", [name for kind, name, _ in rows() if kind == "program"])
def test_every_program_runner_is_recognized(name: str) -> None:
    head = f"import {name.rpartition('.')[0]}\n"
    words = "'tar', 'xf', 'a.tar'" if catalog.load().exact("program", name).spread else "'tar xf a.tar'"
    found = effect_of_call(f"{name}({words})", head=head)
    assert found is not None
    assert (found.op, found.api) == ("extract", name)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("os.makedirs(p)", ("mkdir", "p")),
        ("os.makedirs(name=p)", ("mkdir", "p")),
        ("os.makedirs(os.path.join(p, 'a'))", ("mkdir", "os.path.join(p, 'a')")),
        ("Path(p).mkdir()", ("mkdir", "Path(p)")),
        ("(Path(p) / 'a').mkdir(parents=True)", ("mkdir", "Path(p) / 'a'")),
        ("Path(p).parent.mkdir()", ("mkdir", "Path(p).parent")),
        ("shutil.copytree(q, p)", ("mkdir", "p")),
        ("shutil.copytree(q, p, dirs_exist_ok=False)", ("mkdir", "p")),
        ("shutil.copytree(q, p, dirs_exist_ok=True)", ("copy", "p")),
        ("shutil.rmtree(p)", ("delete", "p")),
        ("os.remove(p)", ("delete", "p")),
        ("Path(p).unlink()", ("delete", "Path(p)")),
        ("os.path.exists(p)", ("probe", "p")),
        ("Path(p).exists()", ("probe", "Path(p)")),
        ("os.listdir(p)", ("list", "p")),
        ("os.walk(p)", ("list", "p")),
        ("Path(p).glob('*')", ("list", "Path(p)")),
        ("os.rename(p, q)", ("rename", "p")),
        ("Path(p).rename(q)", ("rename", "Path(p)")),
        ("os.symlink(q, p)", ("link", "p")),
        ("os.symlink(src=q, dst=p)", ("link", "p")),
        ("Path(p).symlink_to(q)", ("link", "Path(p)")),
        ("shutil.copy(q, p)", ("copy", "p")),
        ("Path(p).touch()", ("create", "Path(p)")),
        ("os.mkfifo(p)", ("create", "p")),
        ("os.truncate(p, 0)", ("write", "p")),
        ("shutil.make_archive(p, 'zip')", ("write", "p")),
        ("zipfile.ZipFile(p, 'w')", ("write", "p")),
        ("zipfile.ZipFile(p)", ("read", "p")),
        ("tarfile.open(p, 'w:gz')", ("write", "p")),
        ("tarfile.open(p)", ("read", "p")),
        ("tempfile.mktemp()", ("name", "'.'")),
        ("tempfile.mktemp('.bin', dir=p)", ("name", "p")),
        ("torch.save(q, p)", ("write", "p")),
        ("torch.save(q, f=p)", ("write", "p")),
        ("shutil.unpack_archive(q, p)", ("extract", "p")),
        ("shutil.unpack_archive(q)", ("extract", "'.'")),
        ("tarfile.open(q).extractall(p)", ("extract", "p")),
        ("tarfile.open(q).extractall()", ("extract", "'.'")),
        ("zipfile.ZipFile(q).extractall(path=p)", ("extract", "p")),
        ("zipfile.ZipFile(q).extract('a', p)", ("extract", "p")),
        ("os.makedirs(*args)", ("mkdir", "…")),
        ("os.makedirs(**args)", ("mkdir", "…")),
        ("os.path.join(p, q)", None),
        ("os.getcwd()", None),
        ("print(p)", None),
        ("thing(p)", None),
        ("Mine().mkdir()", None),
        ("Mine().exists()", None),
        ("Mine.mkdir(p)", None),
    ],
)
def test_operation_and_path_of_calls(call: str, expected: tuple[str, str] | None) -> None:
    assert operation_and_path(call) == expected


@pytest.mark.parametrize(
    ("call", "tolerant"),
    [
        ("os.makedirs(p, exist_ok=True)", True),
        ("os.makedirs(p, exist_ok=False)", False),
        ("os.makedirs(p, 0o777, True)", True),
        ("os.makedirs(p, 0o777, False)", False),
        ("os.makedirs(p, exist_ok=flag)", True),
        ("os.makedirs(p, **args)", True),
        ("os.mkdir(p)", False),
        ("Path(p).mkdir(exist_ok=True)", True),
        ("Path(p).mkdir(0o777, True, True)", True),
        ("Path(p).mkdir(parents=True)", False),
        ("thing.mkdir(exist_ok=True)", True),
        ("Path(p).unlink(missing_ok=True)", True),
        ("Path(p).unlink(True)", True),
        ("Path(p).unlink()", False),
        ("shutil.rmtree(p, ignore_errors=True)", True),
        ("shutil.rmtree(p, True)", True),
        ("shutil.rmtree(p, onerror=q)", True),
        ("shutil.rmtree(p, onerror=None)", False),
        ("shutil.rmtree(p, onexc=q)", True),
        ("shutil.copytree(q, p, dirs_exist_ok=True)", False),
        ("Path(p).touch()", True),
        ("Path(p).touch(exist_ok=True)", True),
        ("Path(p).touch(exist_ok=flag)", True),
        ("Path(p).touch(exist_ok=False)", False),
        ("Path(p).touch(0o666, False)", False),
        ("os.symlink(q, p)", False),
    ],
)
def test_tolerant_calls(call: str, tolerant: bool) -> None:
    found = effect_of_call(call)
    assert found is not None
    assert found.tolerant is tolerant


@pytest.mark.parametrize(
    ("call", "op", "appends"),
    [
        ("open(p)", "read", False),
        ("open(p, 'r')", "read", False),
        ("open(p, 'rb')", "read", False),
        ("open(p, encoding='utf-8')", "read", False),
        ("open(p, 'x')", "write", False),
        ("open(p, mode='xb')", "write", False),
        ("open(p, 'w')", "write", False),
        ("open(p, 'wb')", "write", False),
        ("open(p, mode='wt')", "write", False),
        ("open(p, 'w+')", "write", False),
        ("open(p, 'a')", "write", True),
        ("open(p, 'ab')", "write", True),
        ("open(p, 'r+b')", "write", True),
        ("open(file=p, mode='w')", "write", False),
        ("io.open(p, 'w')", "write", False),
        ("codecs.open(p, 'w', 'utf-8')", "write", False),
        ("gzip.open(p, 'wb')", "write", False),
        ("gzip.open(p)", "read", False),
        ("bz2.open(p, 'wt')", "write", False),
        ("lzma.open(p, 'wb')", "write", False),
        ("Path(p).open('w')", "write", False),
        ("Path(p).open(mode='w')", "write", False),
        ("Path(p).open()", "read", False),
        ("Path(p).open('a')", "write", True),
        ("open(p, mode)", None, False),
        ("open(p, writing)", "write", False),
        ("Mine().open('w')", None, False),
        ("thing.open('w')", None, False),
    ],
)
def test_open_modes(call: str, op: str | None, appends: bool) -> None:
    found = effect_of_call(call, "writing = 'w'")
    assert op == (None if found is None else found.op)
    if found is not None and op == "write":
        assert spell(found.path) in {"p", "Path(p)"}
        assert found.appends is appends
        assert found.exclusive is ("'x" in call)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("os.O_RDONLY", None),
        ("os.O_RDONLY | os.O_NOFOLLOW", None),
        ("flag", None),
        ("0", None),
        ("os.O_WRONLY", (False, False)),
        ("os.O_RDWR | os.O_CREAT", (False, False)),
        ("os.O_CREAT | os.O_WRONLY | os.O_TRUNC", (False, False)),
        ("os.O_CREAT | os.O_EXCL", (True, False)),
        ("os.O_CREAT | os.O_EXCL | os.O_WRONLY", (True, False)),
        ("os.O_WRONLY | os.O_APPEND", (False, True)),
    ],
)
def test_os_open_flags(flags: str, expected: tuple[bool, bool] | None) -> None:
    for call in (f"os.open(p, {flags})", f"os.open(path=p, flags={flags})"):
        found = effect_of_call(call)
        assert (None if found is None else (found.exclusive, found.appends)) == expected
        assert found is None or (found.op, spell(found.path)) == ("create", "p")


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("os.rename(p, q)", "q"),
        ("os.replace(src=p, dst=q)", "q"),
        ("os.renames(p, q)", "q"),
        ("shutil.move(p, str(q))", "str(q)"),
        ("Path(p).rename(q)", "q"),
        ("Path(p).replace(target=q)", "q"),
        ("os.replace(p, *args)", "…"),
        ("os.remove(p)", None),
        ("shutil.copy(q, p)", None),
    ],
)
def test_rename_targets(call: str, expected: str | None) -> None:
    found = effect_of_call(call)
    assert found is not None
    assert (None if found.target is None else spell(found.target)) == expected


@pytest.mark.parametrize("module", ["gzip", "bz2", "lzma", "codecs"])
def test_open_compressed_file_by_keyword(module: str) -> None:
    assert operation_and_path(f"{module}.open(filename=p, mode='w')") == ("write", "p")


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("thing.exists()", "probe"),
        ("thing.is_dir()", "probe"),
        ("thing.mkdir()", "mkdir"),
        ("thing.mkdir(parents=True, exist_ok=True)", "mkdir"),
        ("thing.unlink()", "delete"),
        ("thing.unlink(missing_ok=True)", "delete"),
        ("thing.rmdir()", "delete"),
        ("thing.write_text('a')", "write"),
        ("thing.write_text('a', encoding='utf-8')", "write"),
        ("thing.extractall(p)", "extract"),
        ("thing.iterdir()", "list"),
        ("args.out.mkdir()", "mkdir"),
        ("args['out'].mkdir()", "mkdir"),
        ("thing().mkdir()", "mkdir"),
        ("thing.to_csv(p)", "write"),
        ("thing.to_csv(path_or_buf=p, index=False)", "write"),
        ("thing.savefig(p, dpi=300)", "write"),
        ("thing.plot().savefig(p)", "write"),
        ("args['frame'].to_parquet(p)", "write"),
        ("thing.to_csv()", None),
        ("thing.to_csv(index=False)", None),
        ("fs.to_parquet(p)", None),
        ("thing.rename(p)", None),
        ("thing.replace('a', 'b')", None),
        ("thing.touch()", None),
        ("thing.glob('*')", None),
        ("thing.exists(p)", None),
        ("thing.mkdir(p, mode, flag)", None),
        ("thing.write_text('a', 'b')", None),
        ("thing.unlink(force=True)", None),
        ("fs.exists(p)", None),
        ("thing.fs.exists()", None),
        ("self_fs().gfile.mkdir()", None),
        ("tf.io.gfile.exists(p)", None),
        ("gfile.mkdir()", None),
        ("thing.client.exists()", None),
        ("redis.exists()", None),
        ("PathManager.exists()", None),
        ("thing.bucket.unlink()", None),
        ("thing.anything()", None),
        ("Mine().to_csv(p)", None),
        ("torch.to_frame.to_csv(p)", "write"),
        ("torch.to_frame.touch()", None),
    ],
)
def test_methods_of_unknown_objects(call: str, expected: str | None) -> None:
    setup = "fs, gfile, tf, redis, PathManager, self_fs = args"
    found = operation_and_path(call, setup)
    assert (None if found is None else found[0]) == expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("subprocess.run(['tar', 'xf', p])", "'.'"),
        ("subprocess.run(['tar', '-xf', p])", "'.'"),
        ("subprocess.run(['tar', '-xzf', p, '-C', q])", "q"),
        ("subprocess.run(['tar', 'xzf', p, '-C', q], check=True)", "q"),
        ("subprocess.run(('tar', '-zxvf', p, '-C', q))", "q"),
        ("subprocess.run(['tar', '--extract', '--file', p, '--directory', q])", "q"),
        ("subprocess.run(['tar', '--extract', '-f', p, '--directory=out'])", "'out'"),
        ("subprocess.run(['/bin/tar', '-xf', p])", "'.'"),
        ("subprocess.run(['bsdtar', '-xf', p])", "'.'"),
        ("subprocess.check_call(['tar', '-xf', p, '-C', str(q)])", "q"),
        ("subprocess.Popen(['tar', '-x', '-f', p])", "'.'"),
        ("subprocess.run('tar -xzf a.tgz -C out', shell=True)", "'out'"),
        ("subprocess.run(\"tar -xzf 'a b.tgz' -C 'my out'\", shell=True)", "'my out'"),
        ("subprocess.run(f'tar -xzf {p} -C {q}', shell=True)", "q"),
        ("subprocess.run(f'tar -xzf {p} -C {q}/a', shell=True)", 'f"{q}/a"'),
        ("os.system('tar xf a.tar')", "'.'"),
        ("os.system(f'tar xf {p} -C {q}')", "q"),
        ("os.popen(f'tar -xf {p}')", "'.'"),
        ("os.system(f'unzip {p}')", "'.'"),
        ("os.system(f'unzip -q {p} -d {q}')", "q"),
        ("subprocess.run(['unzip', '-o', p, '-d', q])", "q"),
        ("subprocess.run(['unzip', p])", "'.'"),
        ("subprocess.run(['tar', '-tf', p])", None),
        ("subprocess.run(['tar', 'tf', p])", None),
        ("subprocess.run(['tar', '-czf', p, q])", None),
        ("subprocess.run(['tar', '-cf', 'x.tar', q])", None),
        ("subprocess.run(['tar', '--list', '-f', p])", None),
        ("subprocess.run(['tar', '--exclude', 'x', '-cf', p, q])", None),
        ("subprocess.run(['tar', '--version'])", None),
        ("subprocess.run(['tar'])", None),
        ("subprocess.run(['unzip', '-l', p])", None),
        ("subprocess.run(['unzip', '-t', p])", None),
        ("os.system('unzip -p a.zip')", None),
        ("subprocess.run(['ls', 'tar', 'xf'])", None),
        ("subprocess.run(['echo', 'tar xf a'])", None),
        ("subprocess.run([])", None),
        ("subprocess.run('')", None),
        ("subprocess.run(p)", None),
        ("subprocess.run([p, 'xf', q])", None),
        ("subprocess.run()", None),
        ("os.system(\"tar 'xf\")", None),
        ("os.system('tar xOf a.tar')", None),
        ("subprocess.run(['tar', '--to-stdout', '-xf', p])", None),
        ("os.system('tar xf {} -C {}'.format(p))", None),
        ("os.system('tar xf %s -C %s' % p)", None),
        ("thing.run(['tar', 'xf', p])", None),
    ],
)  # fmt: skip
def test_extraction_commands(call: str, expected: str | None) -> None:
    found = operation_and_path(call)
    assert found == (None if expected is None else ("extract", expected))


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        pytest.param("subprocess.run(['tar', '-C', q, '-xzf', p])", "q", id="-C before the archive"),
        pytest.param("subprocess.run(['tar', '-v', '-xf', p])", "'.'", id="option before the archive"),
        pytest.param(
            "subprocess.run(['tar', '--gzip', '-xf', p])", "'.'", id="long option before the archive"
        ),
        pytest.param("os.system(f'tar -xzf {p} -C \\'{q}\\'')", "q", id="quotes in an f-string"),
        pytest.param("os.system(f'cd {q} && tar xf {p}')", "q", id="cd"),
        pytest.param("os.system('tar xf {} -C {}'.format(p, q))", "q", id="format"),
        pytest.param("os.system('tar xf %s -C %s' % (p, q))", "q", id="percent"),
        pytest.param("os.system('tar xf ' + p + ' -C ' + q)", "q", id="concatenation"),
        pytest.param("subprocess.run(args=['tar', 'xf', p, '-C', q])", "q", id="keyword argument"),
        pytest.param("subprocess.run(['tar', 'xf', p], cwd=q)", "q", id="cwd"),
        pytest.param(
            "subprocess.run(['tar', 'xf', p, f'--directory={q}'])", "q", id="--directory= in an f-string"
        ),
        pytest.param("subprocess.run(f'tar xf {p} -C {q}'.split())", "q", id="split"),
        pytest.param("subprocess.run(shlex.split(f'tar xf {p} -C {q}'))", "q", id="shlex.split"),
    ],
)
def test_extraction_commands_in_other_spellings(call: str, expected: str) -> None:
    assert operation_and_path(call) == ("extract", expected)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        pytest.param("os.system(f'wget {u} -O {p}')", "p", id="wget -O"),
        pytest.param("os.system('wget -O' + p + ' ' + u)", "p", id="wget -Ofile"),
        pytest.param("os.system('wget -qO data.bin ' + u)", "'data.bin'", id="wget, bundled options"),
        pytest.param("subprocess.run(['wget', '-P', q, u])", "q", id="wget -P"),
        pytest.param("subprocess.run(['wget', f'--output-document={p}', u])", "p", id="wget, long option"),
        pytest.param("os.system('wget ' + u)", "'.'", id="wget to the current directory"),
        pytest.param("os.system(f'cd {q}; wget {u}')", "q", id="wget after cd"),
        pytest.param("os.system(f'wget {u} -O -')", None, id="wget to standard output"),
        pytest.param("subprocess.run(['curl', '-sSL', u, '-o', p])", "p", id="curl -o"),
        pytest.param("subprocess.run(['curl', '-fsSLo', p, u])", "p", id="curl, bundled options"),
        pytest.param("subprocess.run(['curl', '-odata.bin', u])", "'data.bin'", id="curl -ofile"),
        pytest.param("subprocess.run(['curl', '-O', u], cwd=q)", "q", id="curl -O"),
        pytest.param("subprocess.run(['curl', '--output', p, u])", "p", id="curl, long option"),
        pytest.param("subprocess.check_output(['curl', '-s', u])", None, id="curl to standard output"),
        pytest.param("os.system(f'aws s3 cp s3://bucket/a {p}')", "p", id="aws"),
        pytest.param("os.system(f'aws s3 cp {p} s3://bucket/a')", None, id="aws upload"),
        pytest.param("os.system(f'aws s3 cp {p} {q}')", None, id="aws, unknown direction"),
        pytest.param("os.system(f'aws s3 mv {p} s3://b/{q} --quiet')", None, id="aws upload, option last"),
        pytest.param("os.system(f'aws s3 cp {u} s3://b/a --region r')", None, id="aws upload, value last"),
        pytest.param("os.system(f'aws s3 mv s3://b/{q} {p} --quiet')", "p", id="aws, option last"),
        pytest.param("os.system(f'aws s3 cp s3://b/{q} {p} --region r')", "p", id="aws, value last"),
        pytest.param("os.system(f'aws s3 cp s3://b/a --quiet {p}')", "p", id="aws, option between"),
        pytest.param("os.system(f'aws s3 sync --exclude x s3://b/a {p}')", "p", id="aws, option first"),
        pytest.param("os.system(f'aws --profile x s3 cp s3://b/a {p}')", "p", id="aws, option of aws"),
        pytest.param("os.system(f'aws s3 cp s3://b/a {p} > log')", "p", id="aws, redirection"),
        pytest.param("os.system(f'aws s3 cp s3://b/a {p} 2>/dev/null &')", "p", id="aws, in background"),
        pytest.param("os.system('aws s3 cp s3://b/a -')", None, id="aws to standard output"),
        pytest.param("os.system('aws s3 cp s3://b/a')", None, id="aws without destination"),
        pytest.param("os.system('aws s3 ls s3://b/a')", None, id="aws, no copy"),
        pytest.param("subprocess.run(['gsutil', '-m', 'cp', f'gs://{b}/a', p])", "p", id="gsutil"),
        pytest.param("os.system(f'gsutil -m cp -r {p} gs://b/a -n')", None, id="gsutil upload, option last"),
        pytest.param("os.system(f'hdfs dfs -get {u} {p}')", "p", id="hdfs"),
        pytest.param("os.system('git clone ' + u)", "'.'", id="git clone to the current directory"),
        pytest.param("os.system(f'git clone --depth 1 {u} {p}')", "p", id="git clone to a path"),
        pytest.param(
            "subprocess.run(['git', '-C', q, 'clone', u, p])", 'f"{q}/{p}"', id="git -C, relative path"
        ),
        pytest.param(
            "subprocess.run(['git', 'clone', u, '/opt/x'], cwd=q)",
            "'/opt/x'",
            id="git clone to an absolute path",
        ),
        pytest.param("subprocess.run(['git', '-C', q, 'clone', '-b', 'main', u])", "q", id="git -C, no path"),
        pytest.param("os.system('git pull')", None, id="git pull"),
        pytest.param("os.system('rsync ' + u)", None, id="unknown program"),
    ],
)
def test_download_commands(call: str, expected: str | None) -> None:
    assert operation_and_path(call) == (None if expected is None else ("download", expected))


def test_extraction_takes_precedence_over_download() -> None:
    assert operation_and_path("os.system(f'curl -L {u} | tar xz -C {q}')") == ("extract", "q")
    assert operation_and_path("os.system(f'wget {u} -O {p} && tar xf {p} -C {q}')") == ("extract", "q")


def test_command_in_a_variable() -> None:
    assert operation_and_path("subprocess.run(command)", "command = ['tar', 'xf', p, '-C', q]") == (
        "extract",
        "q",
    )


@pytest.mark.parametrize(
    ("call", "which", "expected"),
    [
        ("f(a, b)", "0:x", "a"),
        ("f(a, b)", "1:x", "b"),
        ("f(a, b)", "2:x", None),
        ("f(a, x=b)", "1:x", "b"),
        ("f(a, x=b)", ":x", "b"),
        ("f(a, y=b)", ":x", None),
        ("f(a, b)", ":x", None),
        ("f(*a)", "0:x", "…"),
        ("f(a, *b)", "0:x", "a"),
        ("f(a, *b)", "1:x", "…"),
        ("f(*a, b)", "1:x", "…"),
        ("f(**a)", "0:x", "…"),
        ("f(x=a, **b)", "0:x", "a"),
        ("f(a, **b)", "1:x", "…"),
        ("o.f(a)", "self", "o"),
        ("f(a)", "self", None),
        ("o.p.f()", "self", "o.p"),
    ],
)
def test_library_argument(call: str, which: str, expected: str | None) -> None:
    linked = project({"main.py": call})
    (statement,) = linked.targets[0].code.facts.body
    assert isinstance(statement, m.Evaluate)
    assert isinstance(statement.value, m.Call)
    found = library_argument(statement.value, which)
    assert (None if found is None else spell(found)) == expected
