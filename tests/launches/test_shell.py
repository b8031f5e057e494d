"""Shell scripts: variables, directories, loops, branches, functions, and here documents.

Shows: `launches/shell.py`, `launches/expansion.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.launching import brief, of_shell, read

if TYPE_CHECKING:
    from pathlib import Path


class TestVariables:
    @pytest.mark.parametrize(
        ("script", "expected"),
        [
            ("N=8\ntorchrun --nproc_per_node $N t.py", "torchrun 8 t.py"),
            ("N=8; torchrun --nproc_per_node=${N} t.py", "torchrun 8 t.py"),
            ('export N="8"\ntorchrun --nproc_per_node="$N" t.py', "torchrun 8 t.py"),
            ("readonly N=8\ntorchrun --nproc_per_node $N t.py", "torchrun 8 t.py"),
            ("torchrun --nproc_per_node ${N:-8} t.py", "torchrun 8 t.py"),
            ("torchrun --nproc_per_node ${N-8} t.py", "torchrun 8 t.py"),
            ("torchrun --nproc_per_node ${1:-8} t.py", "torchrun 8 t.py"),
            ('N=${N:-"8"}\ntorchrun --nproc_per_node $N t.py', "torchrun 8 t.py"),
            ("M=4\ntorchrun --nproc_per_node ${N:-$M} t.py", "torchrun 4 t.py"),
            ("M=4\ntorchrun --nproc_per_node ${N:-${M:-2}} t.py", "torchrun 4 t.py"),
            (": ${N:=8}\ntorchrun --nproc_per_node $N t.py", "torchrun 8 t.py"),
            ("N=2\ntorchrun --nproc_per_node ${N:-8} t.py", "torchrun 2 t.py"),
            ("N=$1\ntorchrun --nproc_per_node ${N:-8} t.py", "torchrun 8 t.py"),
            ("torchrun --nproc_per_node ${N:?missing} t.py", "torchrun ? t.py"),
            (
                f"torchrun --nproc_per_node {'9' * 5000} t.py ${'9' * 5000} ${{A[{'9' * 5000}]}}",
                "torchrun ? t.py _ _",
            ),
            ("N=\ntorchrun --nproc_per_node ${N:-8} t.py", "torchrun 8 t.py"),
            ("N=2\nM=4\ntorchrun --nproc_per_node $((N * M)) t.py", "torchrun 8 t.py"),
            ("N=2\ntorchrun --nproc_per_node $(($N+1)) t.py", "torchrun 3 t.py"),
            ("torchrun --nproc_per_node $((X * 2)) t.py", "torchrun ? t.py"),
            ("torchrun --nproc_per_node $N t.py", "torchrun ? t.py"),
            ("torchrun --nproc_per_node $1 t.py", "torchrun ? t.py"),
            ("torchrun --nproc_per_node $(nvidia-smi -L | wc -l) t.py", "torchrun ? t.py"),
            ("torchrun --nproc_per_node `nproc` t.py", "torchrun ? t.py"),
            ("N=8\nN=$X\ntorchrun --nproc_per_node $N t.py", "torchrun ? t.py"),
            ("read N\nN=${N%G}\ntorchrun --nproc_per_node $N t.py", "torchrun ? t.py"),
            ('A="--a 1"\npython t.py $A', "python 1 t.py --a 1"),
            ('A="--a 1"\npython t.py "$A"', "python 1 t.py --a 1"),
            ('A="--a 1"\nA+=" --b"\npython t.py $A', "python 1 t.py --a 1 --b"),
            ('A=1\nB="$A $A  $C"\npython t.py $B', "python 1 t.py 1 1 _"),
            ("A=(--a 1)\nA+=(--b 'c d')\npython t.py \"${A[@]}\"", "python 1 t.py --a 1 --b c d"),
            ("A=(x y)\npython t.py ${A[1]} ${A[5]} ${A[*]}", "python 1 t.py y _ x y"),
            ("A=()\npython t.py ${A[@]} b", "python 1 t.py b"),
            ('python t.py "$@" $* b', "python 1 t.py _ _ b"),
            ("python t.py ${X:+--x $X} b", "python 1 t.py b"),
            ("X=1\npython t.py ${X:+--x=$X} b", "python 1 t.py --x=1 b"),
            ("python t.py ${#X} ${X%.py} ${X//a/b} ${!X}", "python 1 t.py _ _ _ _"),
            ("python t.py --out=$OUT/a a$ 'b $c' $'d\\te'", "python 1 t.py --out= a$ b $c d\te"),
            ("python t.py --log=%x_$NAME.log b", "python 1 t.py --log= b"),
            ('python t.py "a\\"b" a\\ b \\$c', 'python 1 t.py a"b a b $c'),
            ("S=train.py\npython $S", "python 1 train.py"),
            ("A[0]=x\npython t.py ${A[0]} $A", "python 1 t.py _ _"),
            ("A=(x y)\npython t.py $A", "python 1 t.py x"),
            ("A=(x y)\npython t.py ${A}", "python 1 t.py x"),
            ("A=\n$A\npython t.py", "python 1 t.py"),
            ("> out\npython t.py", "python 1 t.py"),
            ("python t.py <(cat x) $(ls)", "python 1 t.py _ _"),
            ('python t.py "$((1 + 1))" $((2))', "python 1 t.py 2 2"),
            ("python t.py $((1 / 0)) $((a ** b)) $0 $# $?", "python 1 t.py _ _ _ _ _"),
            ("python t.py ${X:-$(date)} ${X:1:2}", "python 1 t.py _ _"),
            ("D=$(dirname $(dirname $(dirname $0)))\npython $D/t.py", "python 1 t.py"),
            ("python ${S:-train.py}", "python 1 train.py"),
            ("PYTHON=/opt/bin/python3\n$PYTHON t.py", "python 1 t.py"),
            ("$(which python) t.py", "python 1 t.py"),
            ("`which torchrun` --nproc_per_node 2 t.py", "torchrun 2 t.py"),
            ('CMD="torchrun --nproc_per_node 2 t.py"\n$CMD --x', "torchrun 2 t.py --x"),
            ('CMD="torchrun --nproc_per_node 2 t.py"\neval $CMD', "torchrun 2 t.py"),
            ('CMD="A=1 torchrun --nproc_per_node 2 t.py"\neval "${CMD}"', "torchrun 2 t.py"),
            ("L='torchrun --nproc_per_node'\nsrun -n 1 bash -c \"$L 2 t.py\"", "torchrun 2 t.py"),
        ],
    )
    def test_value(self, tmp_path: Path, script: str, expected: str) -> None:
        assert of_shell(tmp_path, script) == [expected]

    def test_value_from_a_branch(self, tmp_path: Path) -> None:
        script = (
            "if [ $X ]; then\n  N=2\nelif a; then N=4\nelse\n  N=8\nfi\ntorchrun --nproc_per_node $N t.py"
        )
        assert of_shell(tmp_path, script) == ["torchrun ? t.py"]
        script = "N=8\nif [ $X ]; then N=8; fi\ntorchrun --nproc_per_node $N t.py"
        assert of_shell(tmp_path, script) == ["torchrun 8 t.py"]
        script = "N=8\nif [ $X ]; then N=4; fi\ntorchrun --nproc_per_node $N t.py"
        assert of_shell(tmp_path, script) == ["torchrun ? t.py"]
        script = "case $X in a) N=2;; b|c) N=2;; *) N=2;; esac\ntorchrun --nproc_per_node $N t.py"
        assert of_shell(tmp_path, script) == ["torchrun 2 t.py"]

    def test_words_that_all_branches_add(self, tmp_path: Path) -> None:
        text, array = (
            ('A="--nproc_per_node 2"', 'A="$A --role x"'),
            ("A=(--nproc_per_node 2)", "A+=(--role x)"),
        )
        for first, more in (text, array):
            script = f"{first}\nif [ $X ]; then {more}; fi\ntorchrun ${{A[@]}} t.py"
            assert of_shell(tmp_path, script) == ["torchrun 2 t.py"]
        script = "A=1\nif [ $X ]; then A='b c'; fi\npython t.py $A"
        assert of_shell(tmp_path, script) == ["python 1 t.py _"]

    def test_default(self, tmp_path: Path) -> None:
        command = "torchrun --nproc_per_node $N t.py"
        assert of_shell(tmp_path, f'if [ -z "$N" ]; then N=2; fi\n{command}') == ["torchrun 2 t.py"]
        assert of_shell(tmp_path, f"N=4\nif [[ -z $N ]]; then N=2; fi\n{command}") == ["torchrun 4 t.py"]
        assert of_shell(tmp_path, f'[ -z "$N" ] && N=2\n{command}') == ["torchrun 2 t.py"]

    def test_many_values(self, tmp_path: Path) -> None:
        branches = "".join(f"{i}) L='torchrun --nproc_per_node {i}';;\n" for i in range(2, 9))
        assert of_shell(tmp_path, f"case $X in\n{branches}esac\n$L t.py") == []

    @pytest.mark.parametrize(
        "command", ["$L t.py", "eval $L t.py", 'CMD="$L t.py"\n$CMD', 'bash -c "$L t.py"']
    )
    def test_launcher_from_a_branch(self, tmp_path: Path, command: str) -> None:
        """Each of the commands is a launch."""
        script = 'if [ $X ]; then L="torchrun --nproc_per_node 2"; else L="python -u"; fi\n'
        assert sorted(of_shell(tmp_path, script + command)) == ["python 1 t.py", "torchrun 2 t.py"]

    def test_variables_of_a_subshell_do_not_leave_it(self, tmp_path: Path) -> None:
        script = "N=2\n( N=4 )\ntorchrun --nproc_per_node $N t.py"
        assert of_shell(tmp_path, script) == ["torchrun 2 t.py"]

    def test_growing_value_is_bounded(self, tmp_path: Path) -> None:
        script = "A=aaaaaaaaaaaaaaaa\n" + 'A="$A$A"\n' * 200 + "python t.py $A"
        assert of_shell(tmp_path, script) == ["python 1 t.py _"]


class TestCommands:
    def test_line_and_text(self, tmp_path: Path) -> None:
        script = "#!/bin/bash\n\nA=1 torchrun --nproc_per_node 2 \\\n    t.py \\\n  --x\npython b.py\n"
        first, second = read(tmp_path, {"run.sh": script})
        assert (first.path, first.line, second.line) == ("run.sh", 3, 6)
        assert first.command == "A=1 torchrun --nproc_per_node 2 t.py --x"
        (launch,) = read(tmp_path, {"run.sh": "python t.py \x1b\x07 $A `b`"})
        assert launch.command == "python t.py $A `b`"
        (launch,) = read(tmp_path, {"run.sh": f"python t.py {'x' * 500}"})
        assert len(launch.command) == 160
        assert launch.command.endswith("xxx...")

    @pytest.mark.parametrize(
        "script",
        [
            "# python t.py",
            "echo 'python t.py'",
            'A="python t.py"',
            "alias p='python t.py'",
            "cat python t.py",
        ],
    )
    def test_text_is_no_command(self, tmp_path: Path, script: str) -> None:
        assert of_shell(tmp_path, script) == []

    @pytest.mark.parametrize(
        "script",
        [
            "a && python t.py",
            "a || python t.py",
            "a; python t.py",
            "a | python t.py > log",
            "while a; do python t.py; done",
            "until python t.py; do sleep 1; done",
            "for i in 1 2; do python t.py; done",
            "for i in 1 2; do python t.py; done &",
            "python t.py & wait",
            "case $X in a) python t.py;; esac",
            "{ python t.py; } 2>&1",
            "[[ -f x ]] || { python t.py; }",
            "f() { python t.py; }",
            "f() { python t.py; }; f; f",
            "function f { python t.py; }\nf",
            "trap 'x' EXIT\npython t.py",
            "python \\ # a comment\n  t.py",
            "python \\  \n  t.py",
        ],
    )
    def test_command_in_a_construct(self, tmp_path: Path, script: str) -> None:
        assert of_shell(tmp_path, script) == ["python 1 t.py"]

    def test_placeholders_are_unknown(self, tmp_path: Path) -> None:
        script = "python t.py --data <path/to data> --x ${{ matrix.x }} --y {{ y }} ... z < in > out"
        assert of_shell(tmp_path, script) == ["python 1 t.py --data _ --x _ --y _ _ z"]
        assert of_shell(tmp_path, "python [CHECKOUT]/t.py [A-Z]/x") == ["python 1 t.py [A-Z]/x"]

    @pytest.mark.parametrize(
        "script", ["python t.py\nif [", "python t.py\n'", ")) python", "\0", "é\xa0\ud7ff"]
    )
    def test_malformed_script_does_not_fail(self, tmp_path: Path, script: str) -> None:
        assert len(of_shell(tmp_path, script)) <= 1

    @pytest.mark.parametrize(
        "script", ["(" * 5000, "$(" * 5000, "{ " * 5000, "if a; then " * 3000, '"$(' * 3000]
    )
    def test_deep_script_does_not_fail(self, tmp_path: Path, script: str) -> None:
        assert len(of_shell(tmp_path, f"python t.py\n{script} python t.py")) <= 2

    def test_nested_here_documents(self, tmp_path: Path) -> None:
        script = "python t.py\n"
        for i in range(12):
            script = f"bash <<E{i}\n{script}E{i}\n"
        assert of_shell(tmp_path, script) == []

    def test_recursion_is_bounded(self, tmp_path: Path) -> None:
        script = "f() { python t.py; g; g; }\ng() { f; f; }\nf"
        assert of_shell(tmp_path, script) == ["python 1 t.py"]
        assert of_shell(tmp_path, "A='eval $A'\neval $A\npython t.py") == ["python 1 t.py"]


class TestFunctions:
    def test_arguments(self, tmp_path: Path) -> None:
        script = 'run() {\n  local n=$1 s="$2"\n  shift 2\n  torchrun --nproc_per_node $n $s "$@"\n}\n'
        script += "run 2 a.py --x\nrun 4 b.py\n"
        assert of_shell(tmp_path, script) == ["torchrun 2 a.py --x", "torchrun 4 b.py"]

    def test_function_that_is_not_called(self, tmp_path: Path) -> None:
        script = 'run() {\n  torchrun --nproc_per_node $1 t.py "$@"\n}\n'
        assert of_shell(tmp_path, script) == ["torchrun ? t.py _"]

    def test_line_is_that_of_the_body(self, tmp_path: Path) -> None:
        (launch,) = read(tmp_path, {"run.sh": "f() {\n  python t.py\n}\n\nf\n"})
        assert launch.line == 2


class TestLoops:
    @pytest.mark.parametrize(
        ("head", "count"),
        [
            ("for i in 0 1 2 3", "4"),
            ("for i in {0..7}", "8"),
            ("for i in $(seq 0 7)", "8"),
            ("for i in `seq 3`", "3"),
            ("for ((i=0; i<4; i++))", "4"),
            ("for (( i = 1; i <= 4; i++ ))", "4"),
            ("N=5; for ((i=0; i<N; i++))", "5"),
            ("N=5; for i in $(seq 1 $N)", "5"),
            ('L=(a b); for i in "${L[@]}"', "2"),
            ("for i in $LIST", "?"),
            ("for i in *.txt", "?"),
            ("for i in $(seq 0 $N)", "?"),
            ("for i in $(seq 0 2 8)", "?"),
            (f"for i in {{0..{'9' * 5000}}}", "?"),
            ("for i in {a,b,c}", "3"),
            ("for i in {a..c}", "?"),
            ("for i in {0..$N}", "?"),
            (f"for ((i=0; i<{'9' * 5000}; i++))", "?"),
            ("for ((;;))", "?"),
            ("while read i", "?"),
            ("for i in 1 2; do :; done; for i in 1 2 3", "3"),
        ],
    )
    def test_background_in_a_loop(self, tmp_path: Path, head: str, count: str) -> None:
        script = f"{head}; do\n  CUDA_VISIBLE_DEVICES=$i python t.py --shard $i &\ndone\nwait\n"
        varies = "" if ";;" in head else "~"
        assert of_shell(tmp_path, script) == [f"& {count}w{varies} t.py --shard _"]

    @pytest.mark.parametrize(
        ("body", "expected"),
        [
            ("python t.py --out a-$i.log &", "& 2w~ t.py --out _"),
            ("python t.py --out=a/$i &", "& 2w~ t.py --out="),
            ("python t.py ${NAMES[$i]} &", "& 2w~ t.py _"),
            ("python t.py ${NAMES[i]} &", "& 2w~ t.py _"),
            ("python t.py ${i%.*} $(basename $i) &", "& 2w~ t.py _ _"),
            ("python t.py $((i + 1)) &", "& 2w~ t.py _"),
            ('python t.py "${X:-$(($i))}" &', "& 2w~ t.py _"),
            ("out=a/$i\npython t.py $out &", "& 2w~ t.py _"),
            ("args=(--a 1 --b $i)\npython t.py ${args[@]} &", "& 2w~ t.py --a 1 --b _"),
            ("if x; then o=$i; else o=b; fi\npython t.py $o &", "& 2w~ t.py _"),
            ('cmd="python t.py --a $i"\neval "$cmd" &', "& 2w~ t.py --a _"),
            ('bash -c "python t.py --a $i" &', "& 2w~ t.py --a _"),
            ("f() { local o=$1; python t.py $o; }\nf $i &", "& 2w~ t.py _"),
            ("CUDA_VISIBLE_DEVICES=$i python t.py --out a &", "& 2w t.py --out a"),
            ("taskset -c $i python t.py --out a &", "& 2w t.py --out a"),
            ("python t.py --out $OUT &", "& 2w t.py --out _"),
            ("f() { python t.py $1; }\nf a $i &", "& 2w t.py a"),
        ],
    )
    def test_arguments_that_differ(self, tmp_path: Path, body: str, expected: str) -> None:
        assert of_shell(tmp_path, f"for i in a b; do\n{body}\ndone\nwait\n") == [expected]

    @pytest.mark.parametrize(
        "script",
        [
            "for ((j=0; j<n; j++)); do python t.py $j & done",
            "while read -r j k; do python t.py $j & done < names",
            "j=0\nwhile x; do python t.py $j & j=$((j + 1)); done",
            "j=0\nwhile x; do python t.py $j & ((j++)); done",
            "j=0\nwhile x; do python t.py $j & let j+=1; done",
            "j=0\nwhile x; do python t.py $j & j=`expr $j + 1`; done",
        ],
    )
    def test_counters_differ(self, tmp_path: Path, script: str) -> None:
        assert of_shell(tmp_path, script) == ["& ?w~ t.py _"]

    @pytest.mark.parametrize("wait", ["wait", "wait $!", 'wait "$pid"'])
    def test_commands_in_turn(self, tmp_path: Path, wait: str) -> None:
        script = f"for i in a b; do\npython t.py $i & pid=$!\n{wait}\ndone\n"
        assert of_shell(tmp_path, script) == ["python 1 t.py _"]

    def test_commands_in_turn_in_another_loop(self, tmp_path: Path) -> None:
        script = "for i in a b; do\nfor j in a b c; do python t.py $i & done\nwait\ndone\n"
        assert of_shell(tmp_path, script) == ["& 3w t.py _"]
        script = "for i in a b; do\nfor j in a b c; do python t.py $i & wait; done &\ndone\n"
        assert of_shell(tmp_path, script) == ["& 2w~ t.py _"]

    @pytest.mark.parametrize("wait", ["wait -n", "wait ${pids[0]}", "if x; then wait; fi"])
    def test_commands_at_once(self, tmp_path: Path, wait: str) -> None:
        script = f"for i in a b; do\npython t.py $i &\n{wait}\ndone\n"
        assert of_shell(tmp_path, script) == ["& 2w~ t.py _"]

    def test_nested_loops(self, tmp_path: Path) -> None:
        script = "for i in 1 2; do for j in 1 2 3; do\n(cd x; python t.py) &\ndone; done"
        assert of_shell(tmp_path, script) == ["& 6w t.py"]

    def test_one_round(self, tmp_path: Path) -> None:
        assert of_shell(tmp_path, "for i in 1; do python t.py & done") == ["& 1w t.py"]

    def test_launcher_in_a_loop(self, tmp_path: Path) -> None:
        script = "for host in $HOSTS; do\n  ssh $host 'torchrun --nproc_per_node 8 t.py' &\ndone"
        assert of_shell(tmp_path, script) == ["torchrun 8 t.py"]


class TestSlurm:
    def test_options_of_the_job(self, tmp_path: Path) -> None:
        head = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node 4  # tasks\n#SBATCH -J x\n\n"
        assert of_shell(tmp_path, f"{head}srun python t.py") == ["srun 8 t.py"]
        assert of_shell(tmp_path, f"{head}srun -n 2 python t.py") == ["srun 2 t.py"]
        assert of_shell(tmp_path, f"{head}srun --ntasks-per-node=1 python t.py") == ["srun 2 t.py"]
        assert of_shell(tmp_path, f"{head}mpirun python t.py") == ["mpirun 8 t.py"]
        assert of_shell(tmp_path, f"{head}python t.py") == ["python 1 t.py"]
        command = "torchrun --nproc_per_node 8 --nnodes $SLURM_NNODES t.py"
        assert of_shell(tmp_path, f"{head}srun {command}") == ["torchrun 16 t.py"]

    def test_options_after_the_first_command_are_ignored(self, tmp_path: Path) -> None:
        assert of_shell(tmp_path, "cd x\n#SBATCH -n 4\nsrun python t.py") == ["srun ? t.py"]

    def test_placeholder(self, tmp_path: Path) -> None:
        assert of_shell(tmp_path, "#SBATCH -n <COUNT>\nsrun python t.py") == ["srun ? t.py"]

    @pytest.mark.parametrize("head", ["sbatch <<EOF", "sbatch --parsable <<'EOF'", "cat > job.sh <<EOF"])
    def test_job_in_a_here_document(self, tmp_path: Path, head: str) -> None:
        script = f"{head}\n#!/bin/bash\n#SBATCH -n 4\nsrun python t.py --x \\$A\nEOF\nsrun python u.py\n"
        first, second = read(tmp_path, {"run.sh": script})
        assert [brief(first), first.line] == ["srun 4 t.py --x _", 4]
        assert brief(second) == "srun ? u.py"


class TestHereDocuments:
    @pytest.mark.parametrize("head", ["cat <<EOF", "cat > notes.txt <<EOF", "python - <<EOF", "x <<EOF"])
    def test_text(self, tmp_path: Path, head: str) -> None:
        assert of_shell(tmp_path, f"{head}\npython t.py\nEOF\n") == []

    @pytest.mark.parametrize("head", ["bash <<EOF", "ssh host <<'EOF'", "sh -s <<-EOF"])
    def test_commands(self, tmp_path: Path, head: str) -> None:
        assert of_shell(tmp_path, f"{head}\npython t.py\nEOF\n") == ["python 1 t.py"]

    def test_value(self, tmp_path: Path) -> None:
        script = 'read -r -d "" cmd <<EOF\ncd /x \\\n&& python t.py --x\nEOF\nsrun -n 2 bash -c "${cmd}"\n'
        assert of_shell(tmp_path, script) == ["srun 2 t.py --x"]
        script = 'cmd=$(cat <<EOF\ntorchrun --nproc_per_node 2 t.py\nEOF\n)\nbash -c "$cmd"\n'
        assert of_shell(tmp_path, script) == ["torchrun 2 t.py"]


class TestDirectories:
    @pytest.fixture(autouse=True)
    def directories(self, tmp_path: Path) -> None:
        (tmp_path / "a" / "b").mkdir(parents=True)
        (tmp_path / "scripts").mkdir()

    @pytest.mark.parametrize(
        ("script", "expected"),
        [
            ("cd a && python t.py", "t.py @a"),
            ("cd a\ncd b\npython t.py", "t.py @a/b"),
            ("cd a/b/..; python t.py", "t.py @a"),
            ("cd a; cd ..; python t.py", "t.py"),
            ("cd ..; python t.py", "t.py"),
            ("cd ../a; python t.py", "t.py"),
            ("(cd a && x); python t.py", "t.py"),
            ("(cd a && python t.py)", "t.py @a"),
            ("pushd a; popd; python t.py", "t.py"),
            ("pushd a; python t.py", "t.py @a"),
            ("cd a; cd -; python t.py", "t.py"),
            ("cd missing; python t.py", "t.py"),
            ("cd a; cd /abs; python t.py", "t.py"),
            ("cd a; cd $X; python t.py", "t.py"),
            ("cd a; cd; python t.py", "t.py"),
            ("git clone https://h/o/a.git\ncd a\npython t.py", "t.py"),
            ("if [ $X ]; then cd a; fi; python t.py", "t.py"),
            ("bash -c 'cd a; python t.py'", "t.py @a"),
            ('cd "$(dirname "$0")"; python t.py', "t.py @scripts"),
            ('cd "$(dirname "${BASH_SOURCE[0]}")/.."; python t.py', "t.py"),
            ('cd "$(dirname "$0")/../a"; python t.py', "t.py @a"),
            ('cd $(dirname $(dirname "$0")); python t.py', "t.py"),
            ("cd $(git rev-parse --show-toplevel)/a; python t.py", "t.py @a"),
            ('D="$( cd "$( dirname "${BASH_SOURCE[0]}" )" && pwd )"\npython $D/t.py', "scripts/t.py"),
            ('D=$(realpath $(dirname "$0"))\npython $D/../a/t.py', "a/t.py"),
            ("D=$(dirname $0)\ncd a\npython $D/t.py", "../scripts/t.py @a"),
            ("python $PWD/t.py", "t.py"),
            ("python $(pwd)/../t.py", "../t.py"),
            ("python ../t.py", "../t.py"),
            ("python /abs/t.py", "/abs/t.py"),
            ("python ~/t.py", "~/t.py"),
        ],
    )
    def test_directory(self, tmp_path: Path, script: str, expected: str) -> None:
        (launch,) = read(tmp_path, {"scripts/run.sh": script})
        assert brief(launch) == f"python 1 {expected}"
