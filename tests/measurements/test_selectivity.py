"""Control tasks: who gets which random label, and what a probe makes of it."""

import numpy as np
import pytest
import torch

from probes.data.sentence import Corpus, Sentence
from probes.examples.control_task import control_labels, has_types
from probes.examples.examples import collect_examples
from probes.measurements.selectivity import ControlScorer, control_record
from probes.records.payload import Cell, LayerResult
from probes.records.probe_spec import PROBES
from probes.statistics.gold import Gold
from probes.tasks.builtin import tasks
from probes.tasks.task import Example, Task
from probes.training.batches import Batches, batch_bounds
from probes.training.features import Held
from probes.training.fit import fit, predict

WORDS = [f"w{i}" for i in range(60)]


def corpus(splits, tag=lambda word: "N" if int(word[1:]) % 4 else "V"):
    """Sentences of words, whose tags are decided by the word."""
    return Corpus(
        name="toy",
        version="1",
        licence="",
        splits={
            name: tuple(
                Sentence(f"{name}{i}", "en", tuple(words), tuple(map(tag, words)))
                for i, words in enumerate(sentences)
            )
            for name, sentences in splits.items()
        },
    )


def draw(seed, n_sentences, words=WORDS):
    rng = np.random.default_rng(seed)
    return [list(rng.choice(words, 10)) for _ in range(n_sentences)]


@pytest.fixture(scope="module")
def examples():
    made = corpus({"train": draw(0, 200), "dev": draw(1, 40), "test": [*draw(2, 40), ["w999"]]})
    return collect_examples(tasks.get("pos"), made, "masked")


def test_a_type_has_the_same_label_in_all_splits_but_not_for_all_seeds(examples):
    label_of = [{}, {}]
    for split in ("train", "dev", "test"):
        drawn = control_labels(examples, split, [0, 7])
        for example, *labels in zip(examples.splits[split].examples, *drawn, strict=True):
            for seed in (0, 1):
                assert label_of[seed].setdefault(example.type, labels[seed]) == labels[seed]
    assert len(label_of[0]) == 61
    assert label_of[0] != label_of[1]


def test_labels_do_not_depend_on_the_other_types(examples):
    fewer = collect_examples(
        tasks.get("pos"),
        corpus({"train": draw(0, 200), "dev": [["w3", "w4"]], "test": [["w5", "w3"]]}),
        "masked",
    )
    of = {
        e.type: label
        for e, label in zip(
            examples.splits["dev"].examples, control_labels(examples, "dev", [3])[0], strict=True
        )
    }
    assert control_labels(fewer, "dev", [3])[0].tolist() == [of["w3"], of["w4"]]


def test_labels_are_drawn_with_their_frequencies_in_the_task():
    many = [[f"w{i}" for i in range(k, k + 10)] for k in range(0, 4000, 10)]
    found = collect_examples(
        tasks.get("pos"), corpus({"train": many, "dev": many, "test": many}), "masked"
    )
    share = control_labels(found, "train", [0, 1, 2]).mean(1)
    # 4,000 draws with a probability of .25 for V: .007 is one standard deviation.
    assert share == pytest.approx([0.25] * 3, abs=0.021)


def test_control_values_of_a_regression_are_values_of_the_task():
    def rule(sentence):
        for i, word in enumerate(sentence.words):
            yield Example(float(int(word[1:]) % 3), (i, i + 1), type=word)

    number = Task("number", 1, ("upos",), "word", "regression", "mae", (), rule, "")
    made = corpus({name: draw(k, 50) for k, name in enumerate(("train", "dev", "test"))})
    drawn = control_labels(collect_examples(number, made, "masked"), "dev", [0])
    assert drawn.dtype == np.float64
    assert set(drawn[0]) == {0.0, 1.0, 2.0}


def test_the_record_counts_types_and_the_share_known_from_train(examples):
    record = control_record(examples)
    assert (record.metric, record.types) == ("accuracy", 60)
    assert record.seen == pytest.approx(400 / 401)


def test_without_types_there_is_no_control():
    def rule(sentence):
        for i, tag in enumerate(sentence.upos):
            yield Example(tag, (i, i + 1))

    bare = Task("bare", 1, ("upos",), "word", "classification", "accuracy", (), rule, "")
    made = corpus({name: draw(k, 20) for k, name in enumerate(("train", "dev", "test"))})
    assert not has_types(collect_examples(bare, made, "masked"))


@pytest.mark.parametrize("family", ["linear", "mlp"])
def test_on_one_hot_types_a_probe_learns_the_control_task_perfectly(examples, family):
    """Of types that train has; of the one that it lacks nothing can be known."""
    spec = PROBES[family].model_copy(update={"hidden": 64 * (family == "mlp")})
    batches, gold = {}, {}
    for split, part in examples.splits.items():
        one_hot = torch.zeros(1, len(part.examples), len(WORDS))
        for i, example in enumerate(part.examples):
            if example.type in WORDS:
                one_hot[0, i, WORDS.index(example.type)] = 1
        labels = np.concatenate(
            [examples.targets(split)[None], control_labels(examples, split, [0])]
        )
        numbers = torch.from_numpy(part.sentence)
        batches[split] = Batches(
            Held(one_hot * 8),
            torch.from_numpy(labels),
            torch.ones(labels.shape),
            numbers,
            batch_bounds(numbers),
        )
        gold[split] = labels
    fitted = fit(batches["train"], batches["dev"], len(examples.classes), spec, [0])
    given = predict(fitted, batches["test"].features, 2, spec).numpy()
    seen = np.array([e.type != "w999" for e in examples.splits["test"].examples])
    assert (given[0, 1] == gold["test"][1])[seen].all()


def test_selectivity_is_the_score_of_the_task_minus_that_of_the_control(examples):
    part = examples.splits["test"]
    n = len(part.examples)
    gold = Gold(examples.targets("test"), part.sentence, examples.classes, np.zeros(n, dtype=bool))
    control = control_labels(examples, "test", [0])
    task = gold.labels.copy()
    task[:100] = 1 - task[:100]
    memory = control[0].copy()
    memory[:300] = 1 - memory[:300]
    cell = Cell(seed=0, l2=1, stopped=1, dev_loss=0, dev={}, test={}, groups={})
    (layer,) = ControlScorer(examples, gold, [0]).with_selectivity(
        [LayerResult(layer=4, cells=(cell,))], task[None, None], memory[None, None]
    )
    found = layer.cells[0].selectivity
    assert (found.task, found.control) == (pytest.approx(301 / 401), pytest.approx(101 / 401))
    assert found.value == pytest.approx(200 / 401)
    low, high = layer.selectivity
    # Sentences are all right or all wrong in both: 10 both wrong, 20 right in the task alone.
    half = 1.96 * np.sqrt(0.5 * 0.5 / 41)
    assert (low, high) == (pytest.approx(0.5 - half, abs=0.03), pytest.approx(0.5 + half, abs=0.03))
