"""Markdown, reStructuredText, and notebooks.

Shows: `launches/documents.py`.
"""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING

import pytest
from support.launching import brief, read

from fsrace_lint.launches.model import Origin

if TYPE_CHECKING:
    from pathlib import Path


def of(root: Path, name: str, text: str) -> list[str]:
    """Return the launches of one file, with their lines."""
    return [f"{launch.line}: {brief(launch)}" for launch in read(root, {name: textwrap.dedent(text)})]


class TestMarkdown:
    @pytest.mark.parametrize(
        "language", ["", "bash", "sh", "shell", "console", "Bash", "{.bash}", "bash title='x'"]
    )
    def test_block(self, tmp_path: Path, language: str) -> None:
        text = f"# Title\n\ntext `python no.py`\n\n```{language}\npip install x\npython t.py \\\n  --x\n```\n"
        (launch,) = read(tmp_path, {"README.md": text})
        assert (launch.line, launch.origin, brief(launch)) == (7, Origin.DOCUMENTATION, "python 1 t.py --x")

    @pytest.mark.parametrize("language", ["json", "yaml", "diff", "c++", "toml"])
    def test_other_languages(self, tmp_path: Path, language: str) -> None:
        assert of(tmp_path, "a.md", f"```{language}\npython t.py\n```\n") == []

    def test_other_blocks(self, tmp_path: Path) -> None:
        text = """\
            text

                python indented.py

            * item:
              ~~~
              python item.py
              ~~~

            === "Tab"

                ```bash
                python tab.py
                ```

            > ```
            > python quoted.py
            > ```

            <details>

            ```
            python details.py
            ```
            </details>

            python prose.py
            """
        assert of(tmp_path, "a.md", text) == [
            "3: python 1 indented.py",
            "7: python 1 item.py",
            "13: python 1 tab.py",
            "17: python 1 quoted.py",
            "23: python 1 details.py",
        ]

    def test_prompts(self, tmp_path: Path) -> None:
        text = """\
            ```console
            $ cd x
            (env) user@host:~/x$ python a.py \\
            >   --x 1
            python output.py
            $ python b.py
            ```
            """
        assert of(tmp_path, "a.md", text) == ["3: python 1 a.py --x 1", "6: python 1 b.py"]

    def test_placeholders(self, tmp_path: Path) -> None:
        text = "```\ntorchrun --nproc_per_node=<N> t.py --data <DATA PATH> --x\n```\n"
        assert of(tmp_path, "a.md", text) == ["2: torchrun ? t.py --data _ --x"]

    def test_listing_of_files_is_no_command(self, tmp_path: Path) -> None:
        text = "```\nproject\n├── train.py  # main\ntrain.py    # main\nsrc/train.py\n```\n"
        assert of(tmp_path, "a.md", text) == []

    def test_directory_ends_with_the_section(self, tmp_path: Path) -> None:
        (tmp_path / "examples").mkdir()
        text = "```\ncd examples\n```\n\n```\npython a.py\n```\n\n## Next\n\n```\npython b.py\n```\n"
        assert of(tmp_path, "a.md", text) == ["6: python 1 a.py @examples", "12: python 1 b.py"]

    def test_cells(self, tmp_path: Path) -> None:
        text = "```python\nimport os\n!torchrun --nproc_per_node 2 t.py\n```\n"
        assert of(tmp_path, "a.md", text) == ["3: torchrun 2 t.py"]

    def test_preformatted_html(self, tmp_path: Path) -> None:
        text = """\
            1. Train:

            <pre>python a.py --x &amp;&amp; <b>torchrun</b> --nproc_per_node=8 b.py </pre>

            <div>
            <pre><code>
            python c.py
            </code></pre>
            <p>python d.py</p>
            </div>
            """
        assert of(tmp_path, "a.md", text) == [
            "3: python 1 a.py --x",
            "3: torchrun 8 b.py",
            "7: python 1 c.py",
        ]

    def test_windows_line_ends(self, tmp_path: Path) -> None:
        assert of(tmp_path, "a.md", "a\r\n\r\n```\r\npython t.py \\\r\n  -x\r\n```\r\n") == [
            "4: python 1 t.py -x"
        ]


class TestRst:
    def test_blocks(self, tmp_path: Path) -> None:
        text = """\
            Title
            =====

            .. code-block:: bash
               :linenos:

               torchrun --nproc_per_node 2 a.py \\
                   --x

            Run::

                $ python b.py

            .. code:: json

               python no.py

            .. note::
                text

                .. code-block:: console

                    python c.py

            python prose.py
            """
        assert of(tmp_path, "docs/a.rst", text) == [
            "7: torchrun 2 a.py --x",
            "12: python 1 b.py",
            "23: python 1 c.py",
        ]

    def test_long_line(self, tmp_path: Path) -> None:
        assert of(tmp_path, "a.rst", f"{' ' * 500_000}::python") == []


def notebook(*cells: str | list[str], kind: str = "code") -> str:
    """Return a notebook with these cells."""
    return json.dumps({"cells": [{"cell_type": kind, "source": cell} for cell in cells]}, indent=1)


class TestNotebooks:
    def test_cells(self, tmp_path: Path) -> None:
        (tmp_path / "sub").mkdir()
        text = notebook(
            ["import os\n", "!python a.py --x {value} \\\n", "   --y\n", "x = 'python no.py'"],
            "%%bash\nN=2\ntorchrun --nproc_per_node $N b.py",
            ["%cd sub\n", "!accelerate launch c.py"],
            "%run d.py --z",
        )
        found = read(tmp_path, {"n.ipynb": text})
        assert [brief(launch) for launch in found] == [
            "python 1 a.py --x _ --y",
            "torchrun 2 b.py",
            "accelerate launch ? c.py @sub",
            "python 1 d.py @sub --z",
        ]
        lines = text.split("\n")
        assert "!python a.py" in lines[found[0].line - 1]
        assert "!accelerate launch" in lines[found[2].line - 1]

    def test_text_is_not_read(self, tmp_path: Path) -> None:
        assert of(tmp_path, "n.ipynb", notebook("!python a.py", kind="markdown")) == []

    @pytest.mark.parametrize(
        "text", ["{", "[]", "3", '{"cells": 3}', '{"cells": [3, {"cell_type": "code"}]}', "[" * 9999]
    )
    def test_malformed_notebook(self, tmp_path: Path, text: str) -> None:
        assert of(tmp_path, "n.ipynb", f"{text} python") == []
        assert of(tmp_path, "n.ipynb", text.replace("3", '"!python"')) == []
