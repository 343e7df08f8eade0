"""Labels of regressions: their unit, origin, range and precision."""

import pytest
from found_in_rows import controls_in, mixes_in
from stored_replicates import of_all_layers

from probes.measurements import probing
from probes.records.probe_spec import PROBES
from probes.training import fit as training

pytestmark = pytest.mark.usefixtures("plug_ins", "short_schedule")

LENGTHS = """\
from probes import Example, task

def lengths(name, scale, origin):
    @task(name, version=1, needs=["upos"], kind="regression", metric="corpus_spearman", also=["mae"])
    def letters(sentence):
        "How many letters a word has, in some unit and from some origin."
        for i, word in enumerate(sentence.words):
            yield Example(origin + scale * min(len(word), 6), (i, i + 1), type=word)

lengths("letters", 1, 0)
lengths("millimetres", 0.004, 0)
lengths("years", 32, 1900)
"""


@pytest.mark.parametrize("family", ["linear", "mlp"])
def test_unit_and_origin_of_a_number_change_no_score(write, run_with, family, monkeypatch):
    long = PROBES[family].model_copy(update={"min_steps": 200})
    monkeypatch.setitem(PROBES, family, long)
    fitted_on = set()

    def fit(train, dev, *others):
        fitted_on.add((train.labels.numpy().tobytes(), dev.labels.numpy().tobytes()))
        return training.fit(train, dev, *others)

    monkeypatch.setattr(probing, "fit", fit)
    results = run_with(
        write(LENGTHS),
        tasks=("letters", "millimetres", "years"),
        probes=(family,),
        evidence=("selectivity", "localisation"),
    )
    # Probes of all three tasks learn the same labels, to the last bit: the task's, and all draws of
    # control labels together.
    assert len(fitted_on) == 2
    plain, small, shifted = results
    assert plain.score(plain.best_layer) > 0.3
    # What is left is how libraries round, which may depend on where arrays lie in memory. A closed
    # form passes that on; the steps of an MLP, and of a mix, amplify it: labels that differed in
    # their last bit moved errors by 3 %, and weights of a mix of two near equal layers by .05.
    rel = {"linear": 0.001, "mlp": 0.1}[family]
    for other, scale in ((small, 0.004), (shifted, 32)):
        assert other.layers == plain.layers
        for layer in plain.layers:

            def both(metric, split="test", layer=layer, other=other):
                return (result.at(metric, layer, split).value for result in (other, plain))

            error, of_plain = both("mae")
            assert error == pytest.approx(scale * of_plain, rel=rel)
            spearman, of_plain = both("corpus_spearman")
            assert spearman == pytest.approx(of_plain, abs=rel)
            loss, of_plain = both("dev_loss", "dev")
            assert loss == pytest.approx(scale**2 * of_plain, rel=2 * rel)
        for ours, theirs in zip(
            controls_in(other.evidence["selectivity"]).layers,
            controls_in(plain.evidence["selectivity"]).layers,
            strict=True,
        ):
            assert ours.controls == pytest.approx(theirs.controls, abs=rel)
        if family == "mlp":
            continue
        mixes = (mixes_in(result.found("localisation")).mixes for result in (other, plain))
        for ours, theirs in zip(*mixes, strict=True):
            assert ours.weights == pytest.approx(theirs.weights, abs=0.02)
            assert ours.test.value == pytest.approx(theirs.test.value, abs=0.02)


def test_numbers_that_32_bits_do_not_tell_apart_are_learnt_as_others_are(write, run_with, tmp_path):
    # Float32 holds every 128th second of these; float64 holds each.
    text = LENGTHS + 'lengths("seconds", 1, 1.7e9)\n'
    plain, seconds = run_with(write(text), tasks=("letters", "seconds"))
    assert seconds.layers == plain.layers
    for layer in seconds.layers:
        ours, theirs = (result.at("mae", layer).value for result in (seconds, plain))
        assert ours == pytest.approx(theirs, rel=0.001)
    # What is stored gives the recorded scores: read back, or reading them would fail.
    (path,) = (tmp_path / "results").rglob("seconds-linear-scores-*.json")
    assert of_all_layers(seconds, path) is not None


@pytest.mark.parametrize("family", ["linear", "mlp"])
def test_constant_labels_are_predicted_exactly(write, run_with, family):
    # The mean of many tenths is no tenth in floating point.
    text = LENGTHS + 'lengths("constant", 0, 0.1)\n'
    (found,) = run_with(write(text), tasks=("constant",), probes=(family,))
    assert all(found.at("corpus_spearman", layer).value is None for layer in found.layers)
    if family == "linear":
        assert all(found.at("mae", layer).value < 1e-6 for layer in found.layers)


APART = """\
from probes import Example, task

@task("apart", version=1, needs=["upos"], kind="regression", metric="corpus_spearman")
def apart(sentence):
    "Small numbers in train, large ones in dev."
    for i, word in enumerate(sentence.words):
        yield Example(1e18 if "dev" in sentence.id else 0.001 * len(word), (i, i + 1), type=word)
"""


@pytest.mark.parametrize("family", ["linear", "mlp"])
def test_a_dev_loss_that_is_not_finite_is_refused(write, run_with, tmp_path, family):
    results = run_with(write(APART), tasks=("apart", "pos"), probes=(family,))
    assert [result.task.name for result in results] == ["pos"]
    said = f"Task 'apart', {family} probes: the dev loss is not finite, probably because labels"
    assert results.failed[f"tiny-bert · apart · {family}"].startswith(said)
    assert not list((tmp_path / "results").rglob("apart-*.json"))
