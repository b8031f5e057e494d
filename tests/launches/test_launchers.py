"""Command lines of launchers and wrappers: the program, the number of processes, and their role."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.launching import of_shell, read

from fsrace_lint.launches import launchers

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        # PyTorch
        ("torchrun --nproc_per_node 8 train.py --lr 1", "torchrun 8 train.py --lr 1"),
        ("torchrun --nproc-per-node=8 train.py", "torchrun 8 train.py"),
        ("torchrun --nproc_per_node 8 --nnodes 2 --node_rank 0 train.py", "torchrun 16 train.py"),
        ("torchrun --nproc_per_node 8 --nnodes $N train.py", "torchrun ? train.py"),
        ("torchrun --nnodes=1:4 --nproc_per_node=8 train.py", "torchrun ? train.py"),
        ("torchrun --standalone --nproc_per_node=gpu train.py", "torchrun ? train.py"),
        ("torchrun --nproc_per_node=1 train.py", "torchrun 1 train.py"),
        ("torchrun train.py", "torchrun ? train.py"),
        ("torchrun --nproc_per_node 2 -m pkg.train --x", "torchrun 2 -m pkg.train --x"),
        ("torchrun --nproc_per_node 2 --no_python bash run.sh", "torchrun 2 run.sh"),
        ("torchrun --nproc_per_node 2 --unknown-option value train.py", "torchrun 2 train.py"),
        ("torchrun $ARGS train.py --x", "torchrun ? train.py --x"),
        ("torchrun $ARGS --nproc_per_node 2 train.py", "torchrun 2 train.py"),
        ("torchrun $ARGS --other train.py", None),
        ("torchrun $SCRIPT --config other.py", None),
        ("torchrun --nproc_per_node", None),
        ("/opt/venv/bin/torchrun --nproc_per_node 2 ./train.py", "torchrun 2 train.py"),
        ("python -m torch.distributed.run --nproc_per_node=4 a.py", "torchrun 4 a.py"),
        ("python3 -u -m torch.distributed.launch --nproc_per_node=4 --use_env a.py b", "torchrun 4 a.py b"),
        ("xla_spawn.py --num_cores 8 train.py", "xla_spawn.py 8 train.py"),
        ("python examples/xla_spawn.py --num_cores 8 train.py --a", "xla_spawn.py 8 train.py --a"),
        # Accelerate, DeepSpeed, and others
        ("accelerate launch train.py", "accelerate launch ? train.py"),
        ("accelerate launch --multi_gpu --num_processes 2 train.py", "accelerate launch 2 train.py"),
        ("accelerate launch --num_processes=1 train.py", "accelerate launch 1 train.py"),
        ("accelerate launch --module --num_processes 4 pkg.train -x", "accelerate launch 4 -m pkg.train -x"),
        ("accelerate launch --config_file missing.yaml train.py", "accelerate launch ? train.py"),
        ("accelerate test", None),
        ("python -m accelerate.commands.launch --num_processes 2 a.py", "accelerate launch 2 a.py"),
        ("deepspeed train.py --deepspeed ds.json", "deepspeed ? train.py --deepspeed ds.json"),
        ("deepspeed --num_gpus=8 --num_nodes 2 train.py", "deepspeed 16 train.py"),
        ("deepspeed --include localhost:0,1 --master_port 29500 a.py", "deepspeed 2 a.py"),
        ("deepspeed --include=localhost:3 a.py", "deepspeed 1 a.py"),
        ("deepspeed --include 'a:0,1@b:0' a.py", "deepspeed ? a.py"),
        ("deepspeed --include localhost:$GPU a.py", "deepspeed ? a.py"),
        ("accelerate launch --gpu_ids 0,1 a.py", "accelerate launch 2 a.py"),
        ("accelerate launch --gpu_ids all a.py", "accelerate launch ? a.py"),
        ("accelerate launch --gpu_ids 0,1,2 --num_processes 2 a.py", "accelerate launch 2 a.py"),
        ("deepspeed --num_gpus 1 --module pkg.train", "deepspeed 1 -m pkg.train"),
        ("colossalai run --nproc_per_node 8 --hostfile h train.py", "colossalai run 8 train.py"),
        ("composer -n 8 train.py conf.yaml", "composer 8 train.py conf.yaml"),
        ("composer train.py", "composer ? train.py"),
        ("lightning run model --devices=2 train.py", "lightning run model 2 train.py"),
        ("fabric run --devices 4 --num-nodes 2 train.py", "lightning run model 8 train.py"),
        # MPI and schedulers
        ("mpirun -np 4 python train.py --x", "mpirun 4 train.py --x"),
        ("mpiexec -n 4 -x A=1 -mca btl ^openib --bind-to none python -u t.py", "mpirun 4 t.py"),
        ("mpiexec.hydra -n 2 -ppn 1 -genv A 1 python t.py", "mpirun 2 t.py"),
        ("mpirun --allow-run-as-root -H a:4,b:4 python t.py", "mpirun ? t.py"),
        ("mpirun -n 1 python a.py : -n 3 python b.py", "mpirun 1 a.py"),
        ("mpirun -np 4 ./simulation", None),
        ("mpiexec -n 4 python -m mpi4py t.py", "mpirun 4 t.py"),
        ("horovodrun -np 8 -H a:4,b:4 python t.py", "horovodrun 8 t.py"),
        ("srun python t.py", "srun ? t.py"),
        ("srun -n 4 python t.py", "srun 4 t.py"),
        ("srun -p gpu python t.py", "srun 1 t.py"),
        ("srun --partition=gpu -n 4 python t.py", "srun 4 t.py"),
        ("srun -n4 --mpi=pmix python t.py", "srun 4 t.py"),
        ("srun --ntasks 1 python t.py", "srun 1 t.py"),
        ("srun -N 2 --ntasks-per-node 8 python t.py", "srun 16 t.py"),
        ("srun -N 2 python t.py", "srun 2 t.py"),
        ("srun --ntasks=2 bash -c 'python t.py --rank $SLURM_PROCID'", "srun 2 t.py --rank _"),
        ("srun -n 2 bash scripts/worker.sh a", "srun 2 scripts/worker.sh a"),
        ("jsrun -n 4 -a 6 -c 42 -g 6 python t.py", "jsrun 24 t.py"),
        ("jsrun -n 4 python t.py", "jsrun 4 t.py"),
        ("aprun -n 16 -N 8 python t.py", "aprun 16 t.py"),
        # nested launchers
        ("srun torchrun --nproc_per_node 8 t.py", "torchrun ? t.py"),
        ("srun -N 2 --ntasks-per-node 1 torchrun --nproc_per_node 8 t.py", "torchrun 16 t.py"),
        ("srun -N 2 torchrun --nnodes 2 --nproc_per_node 8 t.py", "torchrun 16 t.py"),
        ("srun -n 1 python t.py", "srun 1 t.py"),
        ("mpirun -np 2 uv run --with x python t.py", "mpirun 2 t.py"),
        # servers, queues, and tests
        ("gunicorn -w 4 -b :80 pkg.wsgi:app", "gunicorn 4w -m pkg.wsgi -w 4 -b :80 pkg.wsgi:app"),
        ("gunicorn -c gunicorn.conf.py pkg:app", "gunicorn ?w -m pkg -c gunicorn.conf.py pkg:app"),
        ("gunicorn -c gunicorn.conf.py -w 1 pkg:app", "gunicorn 1w -m pkg -c gunicorn.conf.py -w 1 pkg:app"),
        ("gunicorn 'pkg:create_app()'", "gunicorn 1w -m pkg pkg:create_app()"),
        ("uvicorn pkg.main:app --workers 2", "uvicorn 2w -m pkg.main pkg.main:app --workers 2"),
        ("celery -A pkg.tasks worker -c 8", "celery 8w -m pkg.tasks -A pkg.tasks worker -c 8"),
        ("celery --app=pkg worker", "celery ?w -m pkg --app=pkg worker"),
        ("celery -A pkg beat", None),
        ("pytest -n 4 tests/unit -k x", "pytest 4w tests/unit -n 4 tests/unit -k x"),
        ("pytest -n4 tests/a.py::test_b", "pytest 4w tests/a.py -n4 tests/a.py::test_b"),
        ("python -m pytest -n auto", "pytest ?w . -n auto"),
        ("pytest", "pytest 1w ."),
        ("ls | xargs -P 8 -n 1 python work.py", "xargs 8w~ work.py _"),
        ("ls | xargs -P8 -I{} python work.py {}", "xargs 8w~ work.py _ _"),
        ("ls | xargs -P 0 python work.py", "xargs ?w~ work.py _"),
        ("ls | xargs python work.py", "xargs 1w work.py _"),
        ("parallel -j 4 python work.py {} ::: a b", "parallel 4w~ work.py _ _"),
        ("parallel 'python work.py {}' ::: a b", "parallel ?w~ work.py _ _"),
        # one driver
        ("ray job submit --address h -- python driver.py --x", "ray job submit 1 driver.py --x"),
        ("spark-submit --master yarn --py-files a.zip driver.py in", "spark-submit 1 driver.py in"),
    ],
)
def test_launcher(tmp_path: Path, command: str, expected: str | None) -> None:
    assert of_shell(tmp_path, command) == ([] if expected is None else [expected])


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("python train.py", "python 1 train.py"),
        ("python3.10 -u -W ignore ./a/../train.py x", "python 1 train.py x"),
        ("python -m pkg.train --a 'b c'", "python 1 -m pkg.train --a b c"),
        ("python scripts/train", "python 1 scripts/train"),
        ("./train.py --x", "python 1 train.py --x"),
        ("tools/train.py --x", "python 1 tools/train.py --x"),
        ("train.py", None),
        ("python", None),
        ("python -", None),
        ("python -c 'import torch'", None),
        ("python --version", None),
        ("python -m", None),
        ("python $SCRIPT", None),
        ("python $SCRIPTS/train.py", "python 1 train.py"),
        ("python train_$NAME.py", None),
        ("$PYTHON train.py", "python 1 train.py"),
        ("${PYTHON_BIN} train.py", "python 1 train.py"),
        ("$LAUNCHER train.py", None),
        ("$LAUNCHER python train.py", None),
        ("$PREFIX torchrun --nproc_per_node 2 train.py", "torchrun 2 train.py"),
        ("my-train --x", "command 1 $my-train --x"),
        ("their-train --x", None),
        ("torchrun --nproc_per_node 2 $(which my-train) --x", "torchrun 2 $my-train --x"),
        ("python `which my-train` --x", "command 1 $my-train --x"),
        ("srun -n 2 my-train --x", "srun 2 $my-train --x"),
        ("echo python train.py", None),
        ("bash train.sh", None),
        ("bash", None),
        ("bash -c", None),
        ("bash --login train", None),
        ("nohup", None),
        ("A=1", None),
    ],
)
def test_plain_start(tmp_path: Path, command: str, expected: str | None) -> None:
    assert of_shell(tmp_path, command, {"my-train"}) == ([] if expected is None else [expected])


@pytest.mark.parametrize(
    "command",
    [
        "A=1 B=$C {}",
        "env A=1 {}",
        "nohup {} > log 2>&1 &",
        "time {}",
        "exec {}",
        "timeout 5m {}",
        "timeout -k 5 5m {}",
        "sudo -u user {}",
        "nice -n 10 {}",
        "numactl --cpunodebind=0 {}",
        "taskset -c 0-3 {}",
        "conda run -n env --no-capture-output {}",
        "uv run {}",
        "uv run --with torch {}",
        "poetry run {}",
        "pipenv run {}",
        "pixi run -e gpu {}",
        "singularity exec --nv -B /a:/b image.sif {}",
        "apptainer run image.sif {}",
        "docker run --rm --gpus all -v $PWD:/w -e A=1 image:tag {}",
        "docker run $IMAGE {}",
        "docker exec -it name {}",
        "kubectl exec -n space pod -- {}",
        "bash -o pipefail -c '{}'",
        "poetry run -- {}",
        "ssh host {}",
        "ssh -p 22 $HOST '{}'",
        "bash -c '{}'",
        "bash -lc '{}'",
        'sh -c "{}"',
        "env A=1 nohup bash -c 'exec {}'",
        "eval {}",
        "eval '{}'",
        "sbatch --wrap '{}'",
        "salloc -N 1 {}",
        "nsys profile -o out -t cuda,nvtx {}",
        "( {} )",
        "{{ {}; }}",
        "! {}",
        "if {}; then exit; fi",
        "{} | tee log",
        "{} 2>&1 | tee -a log &",
        "x=$({})",
        "cat <<EOF | {}\nEOF",
    ],
)
def test_wrapper(tmp_path: Path, command: str) -> None:
    expected = ["torchrun 2 train.py --lr 1"]
    assert of_shell(tmp_path, command.format("torchrun --nproc_per_node 2 train.py --lr 1")) == expected


@pytest.mark.parametrize(
    "command",
    [
        "uv run train.py",
        "uv run -m pkg.train",
        "python -m pdb train.py",
        "python -m cProfile -o out train.py",
        "coverage run --source pkg train.py",
        "coverage run -m pkg.train",
    ],
)
def test_wrapper_of_a_script(tmp_path: Path, command: str) -> None:
    name = "-m pkg.train" if "-m pkg" in command else "train.py"
    assert of_shell(tmp_path, command) == [f"python 1 {name}"]


def test_accelerate_reads_its_configuration(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    for name, text in {
        "eight": "distributed_type: MULTI_GPU\nnum_processes: 8\n",
        "one": "num_processes: 1\n",
        "none": "distributed_type: MULTI_GPU\n",
        "text": "num_processes: many\n",
        "bad": "num_processes: [1\n",
    }.items():
        (tmp_path / "conf" / f"{name}.yaml").write_text(text, "utf-8")
        found = of_shell(tmp_path, f"accelerate launch --config_file conf/{name}.yaml train.py")
        count = {"eight": "8", "one": "1"}.get(name, "?")
        assert found == [f"accelerate launch {count} train.py"]
    command = "accelerate launch --config_file conf/eight.yaml --num_processes 2 train.py"
    assert of_shell(tmp_path, command) == ["accelerate launch 2 train.py"]


@pytest.mark.parametrize(
    "command",
    [
        "python train.py",
        "torchrun --nproc_per_node 8 train.py",
        "torchrun --standalone train.py",
        "torchrun --nnodes 1 --nproc_per_node $N train.py",
        "accelerate launch --num_machines 1 train.py",
        "deepspeed train.py",
        "srun -N 1 python train.py",
        "#SBATCH --nodes=1\nsrun torchrun train.py",
        "xargs -P 4 python train.py",
        "xargs -P 4 torchrun train.py",
    ],
)
def test_one_node(tmp_path: Path, command: str) -> None:
    (launch,) = read(tmp_path, {"run.sh": f"#!/bin/sh\n{command}\n"})
    assert launch.on_one_node


@pytest.mark.parametrize(
    "command",
    [
        "torchrun --nnodes 2 train.py",
        "torchrun --nnodes $NODES train.py",
        "torchrun $OPTIONS --nproc_per_node 8 train.py",
        "accelerate launch train.py",
        "deepspeed --hostfile hosts train.py",
        "deepspeed --num_nodes 4 train.py",
        "srun python train.py",
        "srun torchrun --nproc_per_node 8 train.py",
        "srun --ntasks-per-node 1 -N 2 torchrun --nproc_per_node 8 train.py",
        "xargs -P 4 srun -n 2 python train.py",
        "#SBATCH --nodes=2\nmpirun python train.py",
    ],
)
def test_perhaps_multiple_nodes(tmp_path: Path, command: str) -> None:
    (launch,) = read(tmp_path, {"run.sh": f"#!/bin/sh\n{command}\n"})
    assert not launch.on_one_node


def test_nesting_is_bounded(tmp_path: Path) -> None:
    assert of_shell(tmp_path, f"{'nohup ' * 100} python train.py") == []
    assert of_shell(tmp_path, f"{'nohup ' * 5} python train.py") == ["python 1 train.py"]


def test_each_option_has_one_meaning() -> None:
    for program in launchers.known():
        options = [*program.with_value, *program.paired, *program.module]
        if isinstance(program, launchers.Launcher):
            options += program.program
            counts = (program.total, program.each, program.nodes, program.machines, program.listed)
            others = (program.requests, program.hosts, program.valued, program.app)
            assert len(program.with_value) == sum(map(len, (*counts, *others)))
        assert sorted({*options}) == sorted(options), program.names
        assert all(option.startswith("-") and "_" not in option for option in options), program.names


def test_names_are_unique() -> None:
    for attribute in ("names", "modules"):
        names = [name for program in launchers.known() for name in getattr(program, attribute)]
        assert sorted({*names}) == sorted(names)
