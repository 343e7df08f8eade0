"""Heads that link predicates and arguments: links written out by hand, planted heads, and numbers
of a run against maps that transformers returns."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from head_numbers import HeadNumbers, PlainMaps
from planted_heads import at_random, compute, maps_of, onto

from probes.data.find import find_corpus
from probes.data.sentence import Corpus, Frame, Sentence
from probes.families.attention.role_heads import links_of_roles
from probes.frames.measurement_tables import measurement_tables
from probes.measurements.measurement import get_measurement

TO_PREDICATE, TO_ARGUMENT = "argument to predicate", "predicate to argument"


def sentence_with_frames(n, *frames, name="s", document=""):
    words = tuple(f"{name}-{i}" for i in range(n))
    return Sentence(name, "en", words, frames=tuple(frames), document=document)


def frame(predicate, **arguments):
    """With underscores for hyphens in the names of roles."""
    named = tuple((role.replace("_", "-"), span) for role, span in arguments.items())
    return Frame("v.01", predicate, named)


def links(of):
    """The links of each question in the first direction; the second turns them round."""
    found = []
    for question in links_of_roles(of):
        half = len(question.links) // 2
        forth, back = question.links[:half], question.links[half:]
        assert back == tuple((other, one) for one, other in forth)
        found.append((question.features[-1], *forth))
    return found


@pytest.mark.parametrize(
    ("role", "span", "linked"),
    [
        ("ARG0", (0, 1), True),
        ("ARG5", (0, 1), True),
        ("ARG6", (0, 1), False),
        ("ARGM-LOC", (0, 1), False),
        ("C-ARG1", (0, 1), False),
        ("R-ARG0", (0, 1), False),
        ("ARG1", (0, 3), True),
        ("ARG1", (1, 4), True),  # one word between
        ("ARG1", (2, 5), False),  # neighbours
        ("ARG1", (0, 4), False),  # four words
        ("ARG1", (6, 8), False),  # neighbours
        ("ARG1", (7, 8), True),
        ("ARG1", (5, 6), False),  # the predicate itself
        ("ARG1", (4, 6), False),  # overlaps
    ],
)
def test_core_arguments_that_are_short_and_not_next_to_their_predicate(role, span, linked):
    found = links(sentence_with_frames(9, Frame("v.01", (5, 6), ((role, span),))))
    assert [x[:2] for x in found] == ([(role, (span, (5, 6)))] if linked else [])


def test_controls_are_all_other_places_where_nothing_is_linked():
    of = sentence_with_frames(8, frame((3, 4), ARG0=(0, 2), ARG1=(5, 6), ARGM_TMP=(7, 8)))
    first, second = links(of)
    # Two words on, it would hold 3 and 5: the predicate and ARG1.
    assert first == ("ARG0", *(((x, x + 2), (x + 3, x + 4)) for x in (0, 1, 3, 4)))
    # Two words back, it would hold 3 and 1: the predicate and ARG0.
    assert second == ("ARG1", *(((x, x + 1), (x - 2, x - 1)) for x in (5, 2, 4, 6, 7)))
    assert links(sentence_with_frames(3, frame((2, 3), ARG0=(0, 1)))) == [
        ("ARG0", ((0, 1), (2, 3)))
    ]


def test_short_sentences_count_among_all_and_by_themselves():
    of = {n: [x.features for x in links_of_roles(sentence_with_frames(n, frame((3, 4), ARG1=(0, 1))))]
          for n in (12, 13)}  # fmt: skip
    assert of == {12: [("core", "core, at most 12 words", "ARG1")], 13: [("core", "ARG1")]}


def toy(n=60, documents=30):
    """Two of three sentences have 9 words, others 14. ARG0 is two words before the predicate."""
    splits = {}
    for split in ("train", "dev", "test"):
        rng = np.random.default_rng(len(split))
        splits[split] = tuple(
            sentence_with_frames(
                14 if i % 3 == 0 else 9,
                frame((at := int(rng.integers(2, 6)), at + 1), ARG0=(at - 2, at - 1),
                      ARG1=(at + 3, at + 4)),
                name=f"{split}{i}",
                document=f"d{i % documents}",
            )
            for i in range(n)
        )  # fmt: skip
    return Corpus("toy", "1", "MIT", splits)


def to_argument(role):
    def head(of):
        """Seven tenths from the predicate to its argument, else anywhere."""
        maps = at_random(of, 1)
        (start, _), (place, _) = of.frames[0].predicate, dict(of.frames[0].arguments)[role]
        maps[start] = 0.3 * maps[start] + 0.7 * np.eye(len(of))[place]
        return maps

    return head


def two_back(of):
    """Each word attends to the second one before it."""
    return onto([max(i - 2, 0) for i in range(len(of))])


HEADS = ((at_random, two_back), (to_argument("ARG0"), at_random), (at_random, to_argument("ARG1")))


def test_planted_heads_are_found_and_a_head_at_the_same_distance_is_not():
    of = toy()
    maps = lambda sentence: maps_of(sentence, HEADS)  # noqa: E731
    found = compute(of, maps, measurement="role_heads", long=("test0", "dev3"))
    by_role = {(x.feature, x.test.axes["direction"]): x for x in found.heads.choices}
    assert by_role["ARG0", TO_ARGUMENT].name == "2–1"
    assert by_role["ARG1", TO_ARGUMENT].name == "3–2"
    # Head 1–2 attends to every ARG0 from its predicate, and to every control.
    its = found.heads.of("role", "ARG0", TO_ARGUMENT)
    assert its.values[0, 1] == its.baseline[0, 1] == 1
    # By hand: greatest weight of the link, mean of controls, and uniform attention.
    weights, controls, uniform = [], [], []
    for s in of.splits["test"][1:]:
        a = HEADS[1][0](s)
        ((_, (one, other), *rest), _) = links(s)
        weights.append(a[other[0], one[0]])
        controls.append(np.mean([a[y[0], x[0]] for x, y in rest]))
        uniform.append(1 / len(s))
    choice, link, elsewhere = by_role["ARG0", TO_ARGUMENT], np.mean(weights), np.mean(controls)
    numbers = choice.test, choice.baseline, choice.chance, choice.difference
    expected = link, elsewhere, np.mean(uniform), link - elsewhere
    assert [row.value for row in numbers] == pytest.approx(expected, abs=1e-6)
    assert choice.is_better
    assert choice.test.low < choice.test.value < choice.test.high
    assert choice.test.n == 59
    assert by_role["core, at most 12 words", TO_ARGUMENT].test.n == 2 * 40
    assert any("4 cases of dev and test left out" in note for note in found.notes)


def test_uniform_heads_of_a_decoder_are_as_good_as_their_controls():
    """Early words see fewer words, and links are not where their controls are."""
    uniform = lambda s: np.tri(len(s)) / np.arange(1, len(s) + 1)[:, None]  # noqa: E731
    maps = lambda s: np.array([[uniform(s)] * 2] * 2)  # noqa: E731
    found = compute(toy(), maps, (1, 2), "role_heads", causal=True)
    assert found.heads.choices
    for choice in found.heads.choices:
        assert choice.test.value == pytest.approx(choice.baseline.value, abs=1e-6)
        assert not choice.is_better


def test_heads_that_know_nothing_exceed_no_control():
    maps = lambda s: np.array([[at_random(s, 7 * b + h) for h in range(4)] for b in range(2)])  # noqa: E731
    found = compute(toy(), maps, (1, 2), "role_heads")
    assert not any(x.is_better for x in found.heads.choices)


# A run, against transformers.


@pytest.fixture(scope="module")
def roles_run(session_runs):
    return session_runs.measure("role_heads", session_runs.model("bert"), session_runs.corpus(200))


def expected_weights(roles_run, split):
    """Weight and mean of controls by direction (n, 2, 2, blocks, heads) of core links, in loops."""
    values = []
    for s, maps in PlainMaps(roles_run.model).of_treebank(roles_run.corpus / f"{split}.conllu"):
        n = len(s)
        linked = {
            frozenset((i, j))
            for f in s.frames
            for _, span in f.arguments
            for i in range(*span)
            for j in range(*f.predicate)
        }
        for f in s.frames:
            for role, (start, end) in f.arguments:
                first, last = f.predicate
                gap = start - last if start >= last else first - end
                if role not in ("ARG0", "ARG1", "ARG2") or end - start > 3 or gap < 1:
                    continue
                by_place = {}
                for shift in range(-n, n + 1):
                    words = [(i + shift, j + shift) for i in range(start, end)
                             for j in range(first, last)]  # fmt: skip
                    if any(min(x) < 0 or max(x) >= n for x in words):
                        continue
                    if shift and any(frozenset(x) in linked for x in words):
                        continue
                    by_place[shift] = [
                        np.max([maps[..., i, j] for i, j in words], axis=0),
                        np.max([maps[..., j, i] for i, j in words], axis=0),
                    ]
                link = by_place.pop(0)
                if by_place:
                    values.append(np.stack([link, np.mean([*by_place.values()], axis=0)], axis=1))
    return np.array(values)


def test_numbers_of_all_heads_are_those_of_maps_of_transformers(roles_run):
    values = {split: expected_weights(roles_run, split) for split in ("dev", "test")}
    heads = HeadNumbers(roles_run.record.rows)
    for split, (index, direction) in product(values, enumerate((TO_PREDICATE, TO_ARGUMENT))):
        weights, controls = values[split][:, index].mean(0)
        found = heads.of("role", "core", direction, split)
        assert found.n == len(values[split]) >= 20
        np.testing.assert_allclose(found.values, weights, atol=1e-5)
        np.testing.assert_allclose(found.baseline, controls, atol=1e-5)
    for choice in heads.choices:
        if choice.feature == "core":
            index = int(choice.test.axes["direction"] == TO_ARGUMENT)
            above = {split: -np.diff(x[:, index].mean(0), axis=0)[0] for split, x in values.items()}
            best = np.unravel_index(above["dev"].argmax(), above["dev"].shape)
            assert (choice.test.layer - 1, choice.test.axes["head"] - 1) == best
            assert choice.difference.value == pytest.approx(above["test"][best], abs=1e-5)


def test_the_table_and_the_notes(roles_run):
    (table,) = measurement_tables(get_measurement("role_heads"), [roles_run.record])
    lines = [line.cells[0].text for line in table.rows]
    assert lines[:2] == ["core", "core"]
    attends = Counter(line.cells[3].text for line in table.rows)
    assert attends["to pred."] == attends["to arg."] == len(lines) / 2
    assert any("Not scored, as dev or test has fewer than 20: " in note for note in table.notes)
    assert any("left out: longer than a window, or nothing to compare" in x for x in table.notes)


@pytest.mark.slow
@pytest.mark.real_data
def test_links_of_ewt(real_data):
    corpus = find_corpus("ewt", data_dir=real_data).load()
    counts = [(len(each), len(list(links_of_roles(each)))) for each in corpus]
    assert sum(n for _, n in counts) == 17966
    assert sum(n > 0 for _, n in counts) == 8958
    # As Kovaleva et al. (2019) confine themselves to.
    assert sum(n for length, n in counts if length <= 12) == 3173
    assert sum(n > 0 for length, n in counts if length <= 12) == 2452
