"""The name index is complete, and lets a run skip the facts of irrelevant files.

Shows: `program/grouping.py`, `program/name_index.py`, `program/name_lookup.py`
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import pytest
from support import ROOT
from support.linking import modules
from support.on_demand_cases import CALLS, IMPORTS, LIBRARY, MEANT, SILENT, WAYS

from fsrace_lint import catalog, rules
from fsrace_lint.analysis.queries.project import Project
from fsrace_lint.config import settings
from fsrace_lint.engine.store import Folder, PackedFacts, Row, Version
from fsrace_lint.files.source import digest_of, of_text
from fsrace_lint.pipeline import check
from fsrace_lint.pipeline.project_cache import CacheUse
from fsrace_lint.program.module_table import ModuleTable
from fsrace_lint.program.name_index import NameIndex
from fsrace_lint.program.name_lookup import IndexedLookup, NameLookup
from fsrace_lint.program.relevance import Relevance
from fsrace_lint.syntax.extract import extract
from fsrace_lint.syntax.model import LAMBDA, FileFacts
from fsrace_lint.syntax.name_index_entry import ComputedIndexEntry, NameIndexEntry, PackedIndexEntry, head_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fsrace_lint.pipeline.run import Checked, Run
    from fsrace_lint.program.modules import LinkedClass, Module

GUARDED: Final = """\
import os
from helper import lead
if lead():
    if not os.path.exists('a'):
        os.makedirs('a')
"""
HELPER: Final = "import torch.distributed as dist\ndef lead():\n    return dist.get_rank() == 0\n"
METHODS: Final = """\
class Store:
    @staticmethod
    def clear():
        pass

    def put(self, state):
        pass


def load(path):
    pass
"""
MAKING: Final = "import os\ndef make(out):\n    if not os.path.exists(out):\n        os.makedirs(out)\n"
LONG_AGO: Final = 1_500_000_000
RAWS: Final = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode
SIMILAR_NAMES: Final = {
    "pkg/__init__.py": "from . import base as first\nfrom .base import Base as Root\n",
    "pkg/base.py": "class Base:\n    def put(self): return open\n    run = put\n",
    "pkg/sub/__init__.py": "from .. import base\nfrom . import leaf\nclass Middle(base.Base): pass\n",
    "pkg/sub/leaf.py": "import pkg\nfrom pkg import Root as Other\n"
    "class Leaf(Other): pass\nclass Twin(pkg.Root): pass\n",
    "main.py": "import pkg.sub.leaf as leaf\nfrom pkg.sub import *\n"
    "class End(leaf.Leaf, Middle): pass\nwrite = open\n",
    "lonely.py": "kept = [open][0]\nf = lambda: kept()\n",
}
OWN: Final = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "fsrace_lint" / "explore").rglob("*.py"))
}


PROJECTS: Final = {
    "similar names": SIMILAR_NAMES,
    "aliased calls": {
        f"use_{n}.py": IMPORTS + code for n, (_, code) in enumerate((*WAYS.values(), *MEANT.values()))
    }
    | {f"silent_{n}.py": IMPORTS + code for n, code in enumerate(SILENT.values())}
    | {"lib.py": LIBRARY, "calls.py": IMPORTS + CALLS},
    "explorer": OWN,
}


@pytest.fixture(params=PROJECTS)
def linked(request: pytest.FixtureRequest) -> list[Module]:
    """The modules of a project, each with an index entry as if it came from a cache."""
    found = modules(PROJECTS[request.param])
    ModuleTable(found, {})  # assigns each module its position
    for module in found:
        module.head = PackedIndexEntry(RAWS(msgspec.msgpack.encode(head_of(module.facts))))
    return found


class TestCompleteness:
    def names(self, linked: list[Module]) -> set[str]:
        mentioned = {name for module in linked for f in module.functions for name in f.facts.referenced_names}
        given = {alias.name for module in linked for f in module.functions for alias in f.facts.aliases}
        return mentioned | given

    def test_readers_and_callers_equal_a_full_lookup(self, linked: list[Module]) -> None:
        few, all_ = (
            IndexedLookup(linked, NameIndex((each.relative, each.head) for each in linked)),
            NameLookup(linked),
        )
        names = self.names(linked)
        assert len(names) > 10
        assert {name: few.readers(name) for name in names} == {name: all_.readers(name) for name in names}
        assert {name: few.callers(name) for name in names} == {name: all_.callers(name) for name in names}
        assert any(all_.callers(name) for name in names)
        assert all(few.readers(name) is few.readers(name) for name in names)

    def test_aliases_equal_a_full_lookup(self, linked: list[Module]) -> None:
        few, all_ = (
            IndexedLookup(linked, NameIndex((each.relative, each.head) for each in linked)),
            NameLookup(linked),
        )
        seen = 0
        for name in self.names(linked):
            expected = all_.aliases(name, called=True)
            assert few.aliases(name, called=True) == expected
            own = [each for each in few.aliases(name, called=False) if not each[0].called]
            assert own == [each for each in expected if not each[0].called]
            seen += len(expected)
        assert seen > 2

    def test_names_that_denote_functions_are_included(self, linked: list[Module]) -> None:
        table = ModuleTable(linked, {})
        known, counted = Relevance(table).denoting, Relevance(table, targeted=True).denoting
        assert {name for name in known if not name.startswith(LAMBDA)} <= counted
        assert "print" not in counted

    def test_importers_and_subclasses_equal_a_full_lookup(
        self, linked: list[Module], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def related() -> tuple[list[tuple[Module, ...]], list[tuple[LinkedClass, ...]]]:
            resolver = Project(linked, catalog.load()).flows.resolver
            classes = [class_ for module in linked for class_ in module.classes]
            heirs = [resolver.hierarchy.subclasses(class_) for class_ in classes]
            return [resolver.importers(module) for module in linked], heirs

        found = related()
        monkeypatch.setattr(ModuleTable, "naming", lambda self, _: self.modules)
        monkeypatch.setattr(ModuleTable, "deriving", lambda self, _: self.modules)
        assert found == related()
        assert any(found[0])
        assert any(found[1])


def write(files: Mapping[str, str]) -> None:
    """Write files with an old modification time."""
    for name, text in {"pyproject.toml": "", **files}.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")
        os.utime(name, (LONG_AGO, LONG_AGO))


def checked(*paths: str, cached: CacheUse = CacheUse.FACTS) -> tuple[Run, Checked]:
    named = [Path(path) for path in paths or (".",)]
    load = settings.load(Path.cwd(), rules.names())
    ((run, found),) = check.check(named, lambda _: load, cache=cached)
    return run, found


def facts_read(run: Run) -> int:
    """The number of facts read from the cache."""
    assert run.memory is not None
    return run.memory.packed.hits


def whole(head: PackedIndexEntry | None) -> NameIndexEntry | None:
    return None if head is None else head.whole()


def packed() -> PackedFacts:
    version = Version.of()
    assert version is not None
    (file,) = Path(".fsrace_cache").glob("facts-*")
    return PackedFacts(Folder(Path(".fsrace_cache")), version, file.name)


@pytest.fixture
def many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A project with many files and a filled cache."""
    monkeypatch.chdir(tmp_path)
    bystanders = {
        f"other_{n}.py": f"import json\ndef f{n}(x):\n    return json.dumps(x)\n" for n in range(80)
    }
    files = {"main.py": GUARDED, "helper.py": HELPER, "broken.py": "def", **bystanders}
    write(files)
    checked()
    return files


class TestOneChangedFile:
    def test_facts_of_unrelated_files_are_not_read(self, many_files: dict[str, str]) -> None:
        write({"main.py": GUARDED + "# changed\n"})
        run, found = checked("main.py")
        assert found.outcome.findings == ()
        assert 1 <= facts_read(run) <= 3
        assert len(run.files) == len(many_files)

    @pytest.mark.parametrize(
        "code",
        [
            pytest.param("x = 1\n", id="no call"),
            pytest.param("import json\nprint(json.dumps([1]))\n", id="irrelevant calls"),
            pytest.param("import os\ndef f(a):\n    os.makedirs(a, exist_ok=True)\n", id="no race"),
            pytest.param(
                "import os\ndef f(a):\n    if os.path.exists(a):\n        return open(a).read()\n",
                id="path from the caller",
            ),
        ],
    )
    def test_irrelevant_code_reads_no_other_facts(self, many_files: dict[str, str], code: str) -> None:
        """Sleeps, deletions, and callers are searched for only if a finding depends on them."""
        away = {f"away_{n}.py": f"import os\ndef g{n}(p):\n    os.remove(p)\n" for n in range(5)}
        asleep = {f"sleeps_{n}.py": f"import time\ndef s{n}():\n    time.sleep(1)\n" for n in range(5)}
        write({**away, **asleep})
        checked()
        write({"new.py": code})
        run, found = checked("new.py")
        assert found.outcome.findings == ()
        assert facts_read(run) == 0

    def test_deletion_in_another_file_is_found(self, many_files: dict[str, str]) -> None:
        """Both files spell the file name; a bare parameter would match no other file."""
        strict = {"pyproject.toml": '[tool.fsrace-lint]\nprofile = "strict"\n'}
        read = "import os\ndef f(a):\n    p = %s\n    if os.path.exists(p):\n        return open(p).read()\n"
        write({**strict, "away.py": "import os\ndef g(b):\n    os.remove(os.path.join(b, 'state.json'))\n"})
        checked()
        write({**strict, "new.py": read % "os.path.join(a, 'state.json')"})
        run, found = checked("new.py")
        assert [finding.code for finding in found.outcome.findings] == ["FSR104"]
        assert facts_read(run) == 1
        write({**strict, "new.py": read % "os.path.join(a, 'b', 'c')"})
        run, found = checked("new.py")
        assert found.outcome.findings == ()
        assert facts_read(run) == 0

    def test_change_in_another_file_is_seen(self, many_files: dict[str, str]) -> None:
        write({"helper.py": HELPER.replace("== 0", "!= 3")})
        assert [finding.code for finding in checked("main.py")[1].outcome.findings] == ["FSR101"]

    def test_name_moved_to_a_new_file_is_found(self, many_files: dict[str, str]) -> None:
        write({"helper.py": "from moved import lead\n", "moved.py": HELPER.replace("== 0", "!= 3")})
        assert [finding.code for finding in checked("main.py")[1].outcome.findings] == ["FSR101"]
        write({"moved.py": HELPER})
        assert checked("main.py")[1].outcome.findings == ()

    def test_new_caller_in_another_file_is_found(self, many_files: dict[str, str]) -> None:
        write({"main.py": MAKING})
        one = "import torch.distributed as dist\nfrom main import make\n"
        write({"caller.py": f"{one}if dist.get_rank() == 0:\n    make('a')\n"})
        assert checked("main.py")[1].outcome.findings == ()
        write({"caller.py": f"{one}dist.barrier()\nmake('a')\n"})
        run, found = checked("main.py")
        assert [finding.code for finding in found.outcome.findings] == ["FSR101"]
        assert facts_read(run) < 5

    def test_index_entries_of_unread_facts_are_kept(self, many_files: dict[str, str]) -> None:
        for number in range(3):
            write({"main.py": f"{GUARDED}# {number}\n"})
            checked("main.py")
        store = packed()
        for name, text in many_files.items():
            if name not in {"main.py", "broken.py"}:
                digest = digest_of(text.encode())
                facts = store.load(name, digest)
                assert isinstance(facts, FileFacts)
                assert whole(store.head(name, digest)) == head_of(facts)
        assert store.head("broken.py", digest_of(b"def")) is None
        assert store.head("helper.py", digest_of(b"")) is None

    def test_index_entries_of_another_run_are_kept(self, many_files: dict[str, str]) -> None:
        digest = digest_of(many_files["helper.py"].encode())
        known = whole(packed().head("helper.py", digest))
        packed().save([Row("main.py", None, digest_of(b"new"))], lambda _: True)
        assert known is not None
        assert whole(packed().head("helper.py", digest)) == known

    def test_damaged_index_is_rebuilt_from_facts(self, many_files: dict[str, str]) -> None:
        (file,) = Path(".fsrace_cache").glob("facts-*")
        good, at = file.read_bytes(), packed().index
        for place in (at.offset, at.offset + at.length // 2, at.offset + at.length - 1):
            file.write_bytes(good[:place] + bytes([good[place] ^ 255]) + good[place + 1 :])
            assert packed().head("helper.py", digest_of(HELPER.encode())) is None
            write({"helper.py": HELPER})
            run, found = checked("main.py")
            assert found.outcome.findings == ()
            assert facts_read(run) == len(many_files) - 1

    def test_facts_that_contradict_the_index(self, many_files: dict[str, str]) -> None:
        """The run starts over without the cache."""
        broken, facts = "def lead(:", extract(of_text(HELPER, Path("/p/helper.py"), Path("/p")))
        store = packed()
        store.save([Row("helper.py", None, digest_of(broken.encode()), facts)], lambda _: True)
        (file,) = Path(".fsrace_cache").glob("facts-*")
        data, at = bytearray(file.read_bytes()), packed().entries["helper.py"].offset
        data[at] ^= 255
        file.write_bytes(data)
        write({"helper.py": broken, "main.py": GUARDED + "# changed\n"})
        assert packed().parsed("helper.py", digest_of(broken.encode()))
        run, found = checked("main.py")
        assert run.memory is None
        assert [finding.code for finding in found.outcome.findings] == ["FSR101"]


def test_computed_and_stored_entries_are_equal() -> None:
    facts = extract(of_text(SIMILAR_NAMES["main.py"], Path("/p/main.py"), Path("/p")))
    assert isinstance(facts, FileFacts)
    head, names = head_of(facts), ComputedIndexEntry(facts)
    assert head.imported == ("*", "leaf", "sub")
    assert head.bases == ("Leaf", "Middle")
    assert head.renamed == ()
    assert head.aliased == names.aliased == ("open",)
    assert json.dumps(head.denoting) == '["<module>", "End", "write"]'
    assert all(getattr(head, field) == getattr(names, field) for field in NameIndexEntry.__struct_fields__)


def test_fields_are_unpacked_lazily() -> None:
    facts = extract(of_text(OWN["fsrace_lint/explore/explorer.py"], Path("/p/main.py"), Path("/p")))
    assert isinstance(facts, FileFacts)
    head = PackedIndexEntry(RAWS(msgspec.msgpack.encode(head_of(facts))))
    assert all(head.may_reference(name) for name in ComputedIndexEntry(facts).referenced_names)
    assert not head.may_reference("nobody_has_this_name")
    assert "referenced_names" not in vars(head)
    assert head.classes == ComputedIndexEntry(facts).classes != ()
    assert "classes" in vars(head)
    assert head.whole() == head_of(facts)


def test_invalid_index_entry_is_an_error() -> None:
    with pytest.raises(ValueError, match="no head of a file"):
        PackedIndexEntry([])
    head = PackedIndexEntry(RAWS(msgspec.msgpack.encode(NameIndexEntry())))
    with pytest.raises(AttributeError, match="nothing"):
        _ = head.nothing


def test_method_without_parameters() -> None:
    facts = extract(of_text(METHODS, Path("/p/main.py"), Path("/p")))
    assert isinstance(facts, FileFacts)
    assert head_of(facts).denoting == ("<module>", "Store", "clear", "load", "put", "self")


class TestSettledNames:
    @pytest.mark.parametrize(
        ("code", "settled"),
        [
            ("def main(): pass\nmain()\n", {"main"}),
            ("def main(): pass\n", {"main"}),
            ("def main(): pass\nrun(main)\n", set()),
            ("def main(): pass\nthing.main()\n", set()),
            ("def main(): pass\nmain = other\nmain()\n", set()),
            ("def main(): pass\nif x:\n    main = other\nmain()\n", set()),
            ("def main(): pass\nfor main, *rest in x: pass\n", set()),
            ("def main(): pass\n[*main] = x\n", set()),
            ("def main(): pass\nuse(main := other)\n", set()),
            ("def main(): pass\ndef change():\n    global main\n    main = other\n", {"change"}),
            ("class main: pass\ndef main(): pass\n", set()),
            ("class Kept:\n    def main(self): pass\n", set()),
            ("def outer():\n    def main(): pass\n    main()\n", {"outer"}),
        ],
    )
    def test_function_bound_once_and_only_called_is_settled(self, code: str, settled: set[str]) -> None:
        (module,) = modules({"main.py": code})
        assert set(head_of(module.facts).settled) == settled

    def test_files_that_call_their_own_function_are_not_read(self) -> None:
        script = "def main():\n    pass\n\nif __name__ == '__main__':\n    main()\n"
        caller = "import a\n\ndef start():\n    a.main()\n"
        linked = modules({"a.py": script, "b.py": script, "c.py": script, "d.py": caller})
        for module in linked:
            module.head = PackedIndexEntry(RAWS(msgspec.msgpack.encode(head_of(module.facts))))
        relevance = Relevance(ModuleTable(linked, {}), targeted=True)
        for module in linked[1:3]:
            del module.facts
        (main,) = (function for function in linked[0].functions if function.facts.name == "main")
        assert {each.qualified for each in relevance.candidate_callers(main)} == {"a.<module>", "d.start"}
        assert ["facts" in vars(module) for module in linked[1:3]] == [False, False]
