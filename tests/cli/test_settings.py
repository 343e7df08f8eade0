"""The settings of a run, and which evidence they ask for."""

import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from tiny_runs import run

import probes
from probes.cli.main import main
from probes.common.errors import UserError
from probes.measurements.measurement import EVIDENCE
from probes.run.settings import validate

pytestmark = pytest.mark.usefixtures("short_schedule")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"taks": ("pos",)}, "unknown setting 'taks'. Did you mean 'tasks'?"),
        (
            {"layers": (0, -14)},
            "--layers -14: tiny-bert has layers 0 to 2, or -1 to -3 from the last.",
        ),
        ({"probes": ()}, "--probes: give at least one."),
        ({"output": Path(__file__)}, "is a file; name a folder."),
        ({"name": "x"}, "name='x': only for a model in memory; leave it out"),
    ],
)
def test_bad_settings_from_python_are_user_errors(tiny_bert, settings, message):
    with pytest.raises(UserError, match=re.escape(message)):
        probes.run_probes(str(tiny_bert), **settings)


@pytest.mark.parametrize(
    ("field", "given", "meant"),
    [
        ("tasks", "pos", ("pos",)),
        ("tasks", "pos, depth,pos", ("pos", "depth")),
        ("probes", "linear", ("linear",)),
        ("task_from", "a,b", ("a", "b")),
        ("layers", "all", ()),
        ("layers", "3,1", (1, 3)),
        ("layers", "every:4", "every:4"),
        ("layers", 3, (3,)),
        ("layers", -1, (-1,)),
        ("layers", "0, -1", (-1, 0)),
        ("layers", np.int64(-1), (-1,)),
        ("layers", np.array([2, -1, 2]), (-1, 2)),
        ("batch_tokens", "auto", None),
        ("batch_tokens", "512", 512),
        ("seeds", "2", 2),
    ],
)
def test_python_takes_what_the_flags_take(field, given, meant):
    assert getattr(validate({field: given}), field) == meant


def units(results):
    """Seed and probe family of each result, and its evidence in the order of `EVIDENCE`."""
    return [
        (r.model.random_seed, r.probe.family, *filter(r.evidence.__contains__, EVIDENCE))
        for r in results.results
    ]


@pytest.mark.slow
def test_twins_have_linear_probes_and_what_tests_need_unless_evidence_is_full(tiny_bert, tmp_path):
    few = ("training_variance", "selectivity")  # all that there is of MLPs
    every = tuple(x for x in EVIDENCE if x != "sparse_probing")  # of sparse probes alone
    variance = ("training_variance",)
    run_pos = partial(run, folder=tmp_path, tasks="pos", twins=1)
    own = [(None, "linear", *every), (None, "mlp", *few)]
    named = [(0, "linear", *every), (0, "mlp", *few)]
    assert units(run_pos(tiny_bert, evidence="standard")) == [*own, (0, "linear", *variance)]
    # A twin is probed as its model is if there are no linear probes.
    found = run_pos(tiny_bert, evidence="standard", probes="mlp")
    assert units(found) == [own[1], (0, "mlp", *variance)]
    # A random model that is named is a model as others.
    assert units(run_pos(f"random:{tiny_bert}", evidence="standard")) == named
    assert units(run_pos(tiny_bert, evidence="full")) == own + named


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, {"evidence_names": tuple(EVIDENCE), "level": "standard", "twins": 1}),
        ({}, {"seeds": 1, "measurements": ("scores",)}),
        # Quick means neither evidence nor twins unless they are asked for.
        ({"quick": True}, {"evidence_names": (), "twins": 0}),
        ({"quick": True, "twins": 2}, {"evidence_names": (), "twins": 2}),
        ({"quick": True, "evidence": "selectivity"}, {"evidence_names": ("selectivity",), "twins": 0}),
        # Further evidence is added to a level.
        ({"evidence": "lens,standard,selectivity"}, {"evidence_names": (*EVIDENCE, "lens")}),
        ({"evidence": "full,lens"}, {"evidence_names": (*EVIDENCE, "lens"), "level": "full"}),
        ({"evidence": "full"}, {"evidence_names": tuple(EVIDENCE)}),
        # Evidence that is named as a measurement comes with scores.
        ({"measurements": "selectivity"}, {"trains_probes": True, "about_corpus": (), "evidence": ("selectivity",)}),
        ({"measurements": "selectivity", "quick": True}, {"evidence": ("selectivity",)}),
        ({"measurements": "probes,selectivity,geometry"}, {"about_corpus": ("geometry",), "evidence": ("standard", "selectivity")}),
        ({"measurements": "erasure"}, {"trains_probes": True, "about_corpus": ("erasure",), "evidence": ("none",)}),
        ({"measurements": "geometry"}, {"trains_probes": False, "evidence": ("standard",)}),
    ],
)  # fmt: skip
def test_what_settings_ask_for(settings, expected):
    config = validate(settings)
    assert {name: getattr(config, name) for name in expected} == expected


@pytest.fixture
def command(tiny_bert, tmp_path):
    def command(*more):
        line = "--tasks pos,depth --probes linear --limit 40 --twins 0 --device cpu"
        places = ["--output", str(tmp_path / "results"), "--cache-dir", str(tmp_path / "cache")]
        return main(["--model", str(tiny_bert), *line.split(), *places, *more])

    return command


def steps_said(said):
    """Lines on stages and records, without times and numbers of best layers."""
    lines = [line for line in said.splitlines() if line.startswith(("stage ", "done "))]
    return [re.sub(r"( · best layer.*| · [\d.]+ s| in [\d.]+ s)$", "", x[8:]) for x in lines]


def test_stages_are_announced_in_the_order_that_is_asked_for(
    command, tmp_path, capsys, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "100")
    assert command("--evidence", "selectivity,training_variance") == 0
    printed = capsys.readouterr()
    # Before the evidence, and at the end.
    title = "tiny-bert · sample, limit 40 · linear probe · test"
    _, first, second = " ".join(printed.out.split()).split(title)
    assert first.startswith(" · preliminary")
    assert "floor" in first
    assert "± half" not in first
    assert "preliminary" not in second
    assert "± half" in second
    stages = "scores of linear probes", "selectivity", "training variance"
    assert steps_said(printed.err) == [
        f"{number} of 3 · {title} · {end}"
        for number, title in enumerate(stages, 1)
        for end in ("2 records", "done")
    ]
    folder = next((tmp_path / "results").glob("tiny-bert-*/sample"))
    # The sentences are those of layers.md, in whole lines where there is no terminal.
    written = (folder / "layers.md").read_text().splitlines()
    sentences = [x.replace("\\", "") for x in written if x.startswith(("- pos is", "- depth is"))]
    assert len(sentences) == 2
    assert printed.out.splitlines()[-3:] == [title.removesuffix(" · test"), *sentences]
    assert printed.err.splitlines()[-4:] == [
        f"results {folder}",
        f"tables  {folder / 'layers.md'}",
        f"picture {folder / 'layers.png'}",
        f"next    python -m probes report {tmp_path / 'results'}",
    ]
    assert command("--evidence", "none") == 0
    (*_, last) = capsys.readouterr().err.splitlines()
    assert last == (
        "next    the same command without --evidence none adds the evidence behind these scores"
    )


def test_each_record_is_announced_if_asked_for(command, capsys):
    assert command("--evidence", "selectivity", "-v") == 0
    steps = steps_said(capsys.readouterr().err)
    assert [x for x in steps if not re.match(r"\d of \d", x)] == [
        "pos · linear",
        "depth · linear",
        "pos · linear · selectivity",
        "depth · linear · selectivity",
    ]
