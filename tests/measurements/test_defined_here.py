"""What scripts and notebooks define is measured anew when it changes, and only then."""

import subprocess
import sys
from pathlib import Path

import pytest
from plugged_in import TASK, guide_file, run_included

from probes import load_results
from probes.common.defined import begin_run
from probes.common.errors import UserError
from probes.data.registered import corpora
from probes.measurements.plugin_keys import REGISTRIES
from probes.measurements.plugins import load_file
from probes.records.probe_spec import PROBES
from probes.tasks.builtin import tasks

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.usefixtures("plug_ins", "short_schedule")


@pytest.fixture
def cell(monkeypatch):
    """Runs a cell of a notebook; what it registers is taken back when the test is over."""
    for registry in REGISTRIES.values():
        for name in ("_entries", "_defined"):
            monkeypatch.setattr(registry, name, dict(getattr(registry, name)))
    for name, spec in PROBES.items():
        monkeypatch.setitem(PROBES, name, spec)  # so that others are taken out
    space = {"__name__": "__main__"}
    cells = []

    def run(text):
        cells.append(text)
        exec(compile(text, f"<ipython-input-{len(cells)}>", "exec"), space)

    yield run
    for name in ("low_rank",):
        PROBES.pop(name, None)


@pytest.fixture
def measured(tiny_bert, tmp_path, capsys):
    """Runs the tiny model on what has been defined; the results, and how many were there already."""

    def run(**settings):
        found = run_included(tiny_bert, tmp_path, **{"tasks": ("mine",), **settings})
        said = capsys.readouterr().err
        return found, "result exists already" in said

    return run


NOUNS = {"train": 173, "dev": 192, "test": 184}
VERBS = {"train": 108, "dev": 112, "test": 108}
"""How many words of the first 60 sentences of each split of `sample` have these tags."""


def counts(result):
    return dict(zip(NOUNS, result.examples.labels["noun"], strict=True))


def test_the_counts_of_these_tests_are_those_of_the_corpus():
    source = corpora.get("sample")
    for tag, n in (("NOUN", NOUNS), ("VERB", VERBS)):
        for split in n:
            sentences = source.files[split].read_text("utf-8").split("\n\n")[:60]
            lines = [line.split("\t") for text in sentences for line in text.split("\n")]
            words = [parts for parts in lines if parts[0].isdecimal()]
            assert sum(parts[3] == tag for parts in words) == n[split]


HELPED = """\
from probes import Example, task

WANTED = "NOUN"


@task("mine", version=1, needs=["upos"], metric="accuracy")
def mine(sentence):
    for i, tag in enumerate(sentence.upos):
        yield Example(label(tag), (i, i + 1), type=sentence.words[i])


def label(tag):
    return "noun" if tag == WANTED else "other"
"""


def test_a_task_that_is_defined_again_is_measured_again_and_counts(cell, measured, tmp_path):
    cell(HELPED)
    (first,), there = measured()
    assert (counts(first), there) == (NOUNS, False)
    cell(f"# run again\n{HELPED}")
    (again,), there = measured()
    assert (again, there) == (first, True)
    cell(HELPED.replace('WANTED = "NOUN"', 'WANTED = "VERB"'))
    (other,), there = measured()
    assert (counts(other), there) == (VERBS, False)
    assert other.plug_ins[0].source == "this session"
    (loaded,) = load_results(tmp_path / "results")
    assert loaded.key == other.key
    cell(HELPED)
    (back,), there = measured()
    assert (back, there) == (first, True)
    (loaded,) = load_results(tmp_path / "results")  # what is defined now, though it is older
    assert loaded.key == first.key


@pytest.mark.slow
def test_a_metric_a_family_and_a_measurement_count(cell, measured):
    metric = guide_file("kappa.py")
    family = guide_file("low_rank.py").replace("min_steps=600", "min_steps=24")
    of = guide_file("word_norms.py", "adding-a-measurement.md")
    cell(TASK.replace('"accuracy"', '"kappa", also=["accuracy"]'))
    cell(metric)
    cell(family)
    cell(of)

    def run():
        asked = {"probes": ("low_rank",), "measurements": ("probes", "word_norms")}
        found, _ = measured(**asked)
        (scores,), (norms,) = found, found.others
        return scores, norms

    scores, norms = run()
    kinds = [each.kind for each in scores.plug_ins]
    assert kinds == ["task", "metric", "probe family"]
    assert [each.kind for each in norms.plug_ins] == ["measurement"]
    assert run() == (scores, norms)
    cell(metric.replace("np.where(chance < 1, (agreed", "np.where(chance < 1, 2 * (agreed"))
    doubled, same = run()
    assert same == norms
    assert scores.layers == doubled.layers
    for layer in scores.layers:
        once, twice = (each.at("kappa", layer).value for each in (scores, doubled))
        assert twice > 0
        # (2 (agreed - chance)) / (1 - chance)
        assert twice == pytest.approx(2 * once)
    cell(metric)
    cell(family.replace("torch.zeros(", "torch.ones("))
    other, same = run()
    assert (other.key != scores.key, same) == (True, norms)
    cell(family)
    cell(of.replace("np.linalg.norm(", "3 * np.linalg.norm("))
    same, tripled = run()
    assert same == scores
    assert tripled.rows.layer == norms.rows.layer
    assert tripled.rows.value == pytest.approx([3 * mean for mean in norms.rows.value])


CORPUS = """\
from pathlib import Path
from probes import SPLITS, Corpus, Registered, Sentence, corpora

def read(source):
    sentence = lambda split: Sentence(split, "en", WORDS, upos=("DET", "NOUN", "VERB"))
    return Corpus("own", "1", "CC0-1.0", {split: (sentence(split),) for split in SPLITS})

WORDS = ("the", "dog", "barks")
corpora.add("own", Registered("own", "1", "CC0-1.0", "Mine.", {}, read, frozenset({"upos"})))
"""


def test_a_corpus_counts(cell, measured):
    cell(CORPUS)
    (first,), _ = measured(corpus="own", tasks=("pos",), limit=None)
    (again,), there = measured(corpus="own", tasks=("pos",), limit=None)
    assert (again, there) == (first, True)
    cell(CORPUS.replace('"dog"', '"old"'))
    (other,), there = measured(corpus="own", tasks=("pos",), limit=None)
    assert not there
    assert other.corpus.digest != first.corpus.digest


def test_what_depends_on_what_cannot_be_told_is_refused(cell, measured):
    cell("ONCE = (i for i in [1])\n" + TASK.replace("    for", "    ONCE\n    for"))
    with pytest.raises(UserError) as error:
        measured()
    assert str(error.value) == (
        "The task 'mine' of this session depends on something without a digest (TypeError: cannot "
        "pickle 'generator' object), so changes would go unnoticed. Move it to its own file, and "
        "pass that as include=."
    )
    measured(tasks=("pos",))


def test_another_module_may_not_take_a_name(cell, write):
    cell(TASK)
    path = write(TASK)
    with pytest.raises(UserError, match=f"defined twice, in this session and in {path}; rename"):
        load_file(path)
    with pytest.raises(UserError, match="'pos' is defined twice, in the suite and in this session"):
        cell(TASK.replace('"mine"', '"pos"'))
    exec(TASK.replace('"mine"', '"theirs"'), {"__name__": "other", "__file__": "/other.py"})
    with pytest.raises(UserError, match=r"defined twice, in /other\.py and in this session"):
        cell(TASK.replace('"mine"', '"theirs"'))


def test_a_digest_is_kept_for_a_run(cell):
    cell("SEEN = []\n" + TASK.replace("    for", "    SEEN.append(sentence)\n    for"))
    begin_run()
    first = tasks.origin("mine").sha256
    cell("SEEN.append(1)")
    assert tasks.origin("mine").sha256 == first
    begin_run()
    assert tasks.origin("mine").sha256 != first


def test_workers_refuse_what_a_session_defines(cell, measured):
    cell(TASK)
    with pytest.raises(UserError) as error:
        measured(workers=2)
    assert str(error.value) == (
        "The task 'mine': another process does not find it as it is defined here; move it to a file "
        "of its own, and give that as include=, or leave workers= and engine= out."
    )


RUN = """

if __name__ == "__main__":
    import sys
    from plugged_in import run_included
    from probes.common.terminal import progress
    (found,) = run_included(sys.argv[1], Path("."), tasks=("mine",))
    print(found.examples.labels["noun"], found.plug_ins[0].source)
"""


@pytest.fixture
def script(tmp_path, tiny_bert, write):
    """Runs a script."""

    def run(text, **helpers):
        path = write("from pathlib import Path\n" + text + RUN, "script.py")
        for name, content in helpers.items():
            write(content, f"{name}.py")
        found = subprocess.run(
            [sys.executable, str(path), str(tiny_bert)],
            cwd=tmp_path,
            env={
                "PYTHONPATH": f"{ROOT}:{ROOT / 'tests' / 'helpers'}",
                "PYTHONDONTWRITEBYTECODE": "1",  # files may change within a second
                "PATH": "",
                "HOME": "/tmp",
            },
            capture_output=True,
            text=True,
        )
        *_, last = found.stdout.strip().split("\n")
        return last, "result exists already" in found.stderr, found.stderr

    return run


@pytest.mark.slow
def test_a_script_is_told_from_its_former_self(script):
    helper = HELPED.partition("\n\n\ndef label")
    text = "from helper import label\n" + helper[0]
    rest = 'WANTED = "NOUN"\n\n\ndef label' + helper[2]
    nouns, verbs = (f"{tuple(n.values())} script.py" for n in (NOUNS, VERBS))
    assert script(text, helper=rest)[:2] == (nouns, False)
    assert script(f"# moved\n{text}", helper=rest)[:2] == (nouns, True)
    changed = rest.replace("NOUN", "VERB")
    assert script(text, helper=changed)[:2] == (verbs, False)
    assert script(text, helper=changed)[:2] == (verbs, True)


IMPORTING = """\
from helper import WANTED
from probes import Example, task

@task("mine", version=1, needs=["upos"], metric="accuracy")
def mine(sentence):
    from own.deep import label
    for i, tag in enumerate(sentence.upos):
        yield Example(label(tag), (i, i + 1), type=sentence.words[i])
"""


@pytest.fixture
def included(run_with, write, monkeypatch, tmp_path):
    """Runs a file of `--include` with the modules that it imports."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)

    def run(wanted="NOUN", noun="noun"):
        write(f'WANTED = "{wanted}"\n', "helper.py")
        write("", "own/__init__.py")
        write(
            "from helper import WANTED\nfrom .names import NAME\n\n"
            "def label(tag):\n    return NAME if tag == WANTED else 'other'\n",
            "own/deep.py",
        )
        write(f'NAME = "{noun}"\n', "own/names.py")
        (found,) = run_with(write(IMPORTING), tasks=("mine",))
        return found

    yield run
    for name in set(sys.modules) - before:
        sys.modules.pop(name)


@pytest.mark.slow
def test_modules_that_an_included_file_imports_count(included):
    first = included()
    assert counts(first) == NOUNS
    assert included() == first
    assert counts(included(wanted="VERB")) == VERBS
    assert set(included(noun="name").examples.labels) == {"name", "other"}
    assert included() == first


def test_a_file_without_helpers_has_the_digest_of_its_content(write):
    import hashlib

    path = write(TASK)
    assert load_file(path).origin.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_two_helpers_of_one_name_are_refused(write):
    text = "import own_words\n" + TASK
    load_file(write(text, "a/mine.py")) if write("", "a/own_words.py") else None
    other = write("", "b/own_words.py")
    path = write(text.replace('"mine"', '"other"'), "b/mine.py")
    with pytest.raises(UserError) as error:
        load_file(path)
    first = other.parents[1] / "a" / "own_words.py"
    assert str(error.value) == (
        f"{path}: imports own_words, but another module of this name is in use, {first}; rename "
        f"{other}."
    )


def test_an_error_in_a_helper_names_its_line(write):
    helper = write("x = 1\n1 / 0\n", "own_numbers.py")
    with pytest.raises(UserError, match=f"{helper}, line 2: ZeroDivisionError"):
        load_file(write("import own_numbers\n" + TASK))
