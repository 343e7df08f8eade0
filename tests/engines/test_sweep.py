"""What a sweep's file asks for, and what it is answered with."""

from pathlib import Path

import pytest

from probes.common.errors import UserError
from probes.engines.sweep_file import in_natural_order, read_sweep

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Reads a file of this text, in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def runs(text, **overriding):
        path = Path("s.toml")
        path.write_text(text)
        return read_sweep(path, overriding).runs

    return runs


def test_every_corpus_of_every_table_is_one_run(runs):
    first, second, third = runs(
        """
output = "out"
models = ["a", "b"]
[defaults]
tasks = ["pos"]
seeds = 2
[[runs]]
corpora = ["sample", "conll2000"]
[[runs]]
corpora = "sample"
models = "random:c"
tasks = "depth,pos"
evidence = ["standard", "lens"]
""",
        workers="2",
    )
    assert [run.models for run in (first, second, third)] == [("a", "b"), ("a", "b"), ("random:c",)]
    assert [run.config.corpus for run in (first, second, third)] == [
        ("sample",),
        ("conll2000",),
        ("sample",),
    ]
    assert [run.config.tasks for run in (first, second, third)] == [
        ("pos",),
        ("pos",),
        ("depth", "pos"),
    ]
    assert third.config.evidence == ("standard", "lens")
    assert {run.config.seeds for run in (first, second, third)} == {2}
    assert {run.config.workers for run in (first, second, third)} == {2}
    assert {run.config.output for run in (first, second, third)} == {Path("out")}
    assert (first.title, third.title) == ("sample · 2 models", "sample · 1 model")


def test_several_paths_are_one_corpus(runs, tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.jsonl").write_text("{}")
    (run,) = runs(
        'models = ["m"]\n[[runs]]\ncorpora = [["a.jsonl", "b.jsonl"]]\ntask_from = ["y"]\n'
    )
    assert run.config.corpus == ("a.jsonl", "b.jsonl")


def test_the_command_line_overrides_the_file(runs):
    text = 'output = "a"\nengine = "ray"\naddress = "auto"\nmodels = "m"\n[[runs]]\ncorpora = "sample"\n'
    (run,) = runs(text)
    assert (run.config.output, run.config.engine, run.config.address) == (Path("a"), "ray", "auto")
    (run,) = runs(text, output="b", address="ray://host:1")
    assert (run.config.output, run.config.address) == (Path("b"), "ray://host:1")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("m@step{1000,2000}", ("m@step1000", "m@step2000")),
        ("p-{70m, 160m}@{1,2}", ("p-70m@1", "p-70m@2", "p-160m@1", "p-160m@2")),
        ("random-2:m@{a}", ("random-2:m@a",)),
        ("plain", ("plain",)),
        ("./c/*/", ("./c/checkpoint-900/", "./c/checkpoint-1000/")),
        ("random:c/check*", ("random:c/checkpoint-900", "random:c/checkpoint-1000")),
    ],
)
def test_braces_and_patterns(runs, tmp_path, given, expected):
    for name in ("checkpoint-1000", "checkpoint-900"):
        (tmp_path / "c" / name).mkdir(parents=True)
    (tmp_path / "c" / "checkpoint.txt").write_text("no folder")
    (run,) = runs(f'models = ["{given}", "{given}"]\n[[runs]]\ncorpora = ["sample"]\n')
    assert run.models == expected


def test_names_are_sorted_by_their_numbers():
    names = ["c-10-b", "c-9-a", "c", "b-100", "c-10-a"]
    assert sorted(names, key=in_natural_order) == ["b-100", "c", "c-9-a", "c-10-a", "c-10-b"]


HEAD = 'models = ["m"]\n'
RUN = '[[runs]]\ncorpora = ["sample"]\n'

REFUSED = [
    ("[[runs]\n", "line 1: not TOML (Expected ']]' at the end of an array declaration); correct it."),
    (RUN, "line 1: models is missing; put it in [[runs]], or at the top of the file, above the first table."),
    (HEAD, "line 1: runs is missing; give [[runs]] with corpora, such as [\"ewt\"]."),
    (HEAD + "[[runs]]\nseeds = 1\n", "line 2: corpora is missing; give [[runs]] with corpora, such as [\"ewt\"]."),
    (HEAD + "seed = 1\n" + RUN, "line 2: there is no key 'seed'. Known: "),
    (HEAD + "seeds = 1\n" + RUN, "line 2: seeds is a setting; put it in [defaults] or [[runs]]."),
    (HEAD + 'engine = "rya"\n' + RUN, "line 2: engine = rya: give local, ray or slurm."),
    (HEAD + RUN + '[slurm]\nnodes = 2\npartition = "a b"\n', "line 6: slurm.partition = a b: give names of partitions separated by commas."),
    (HEAD + RUN + "[slurm]\nnode = 2\n", "line 5: slurm.node = 2: there is no such field."),
    (HEAD + "[defaults]\nseeds = 1\nmodels = []\n" + RUN, "line 4: models is no setting of this table; put it in [[runs]], or at the top"),
    (HEAD + RUN + 'corpus = "ewt"\n', "line 4: corpus is no setting of this table; name corpora = […] in [[runs]]."),
    (HEAD + RUN + "quick = true\n", "line 4: quick is no setting of this table; say evidence = \"none\" and twins = 0 instead."),
    (HEAD + RUN + "task = 1\n", "line 4: task = 1: unknown setting 'task'. Did you mean 'tasks'?"),
    (HEAD + RUN + 'tasks = ["pos", "deptth"]\n', "line 4: tasks = pos deptth: Unknown task 'deptth'. Did you mean 'depth'?"),
    (HEAD + "[defaults]\n\nseeds = 0\n" + RUN, "line 4: seeds = 0: give a number of at least 1."),
    (HEAD + "[defaults]\nseeds = 0\n" + RUN + "seeds = -1\n", "line 6: seeds = -1: give a number of at least 1."),
    (HEAD + RUN + 'evidence = ["none",\n  "selectivty"]\n', "line 4: evidence = none selectivty: none goes alone."),
    (HEAD + RUN + 'measurements = "structure"\noptions.structure.stepz = 0\n', "line 5: options = {'structure': {'stepz': 0}}: --structure-stepz 0: there is no such field."),
    (HEAD + '[[runs]]\ncorpora = [\n  "sample",\n  "smaple",\n]\n', "line 5: corpora = smaple: Unknown corpus 'smaple'. Did you mean 'sample'? Give a file or folder by its path; a dataset on the hub needs --task-from, or --text and --label."),
    (HEAD + '[[runs]]\ncorpora = ["./nowhere"]\n', "line 3: corpora = ./nowhere: there is no such file or folder."),
    (HEAD + "[[runs]]\ncorpora = []\n", "line 3: corpora = '': give at least one."),
    (HEAD + "[[runs]]\ncorpora = [1]\n", "line 3: corpora = 1: input should be"),
    ('models = [\n  "m",\n  "./c*/",\n]\n' + RUN, "line 3: models = ./c*/: no folder fits the pattern; correct or remove it."),
    (HEAD + RUN + 'models = ["./c*/"]\n', "line 4: models = ./c*/: no folder fits the pattern; correct or remove it."),
    ('address = "auto"\n' + HEAD + RUN, "line 1: address = auto: of a Ray cluster; add --engine ray."),
]  # fmt: skip


@pytest.mark.parametrize(("text", "said"), REFUSED, ids=[said for _, said in REFUSED])
def test_a_mistake_is_answered_with_its_line_and_what_to_do(runs, text, said):
    with pytest.raises(UserError) as refused:
        runs(text)
    whole = f"s.toml, {said}"
    told = str(refused.value)
    assert "\n" not in told
    assert told == whole if said.endswith((".", "?")) else told.startswith(whole)


def test_the_sweep_of_the_literature_is_valid():
    runs = read_sweep(ROOT / "sweeps" / "bertology.toml", {}).runs
    assert [run.config.corpus for run in runs] == [("ewt",), ("gum",), ("sample",), ("blimp",)]
    assert [run.config.evidence for run in runs] == [("standard",)] * 4
    for run in runs:
        assert len(run.models) == len({name.lower() for name in run.models}) == 10
        assert all(name.count("/") == 1 for name in run.models)
