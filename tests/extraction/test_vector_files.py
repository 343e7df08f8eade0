"""Word vectors in files instead of a model: `--vectors`; damaged files are one line."""

import io
import re
import tracemalloc
import zipfile

import numpy as np
import pytest
import tiny_models
import torch
from killing import ROOT, small_corpus
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_tensors
from transformers import AutoModel, AutoTokenizer

import probes
from probes.cli.main import main
from probes.common.errors import UserError
from probes.data.find import find_corpus
from probes.data.sentence import Corpus
from probes.extraction.reading.vector_files import find_vectors, read_vectors

PAGE = ROOT / "docs" / "vectors.md"


@pytest.fixture(scope="module")
def short_sentences(tmp_path_factory):
    """Sentences that fit into the tiny model's window."""
    folder = small_corpus(tmp_path_factory.mktemp("corpora") / "small", n=60)
    for path in folder.iterdir():
        blocks = path.read_text(encoding="utf-8").split("\n\n")
        short = [block for block in blocks if 4 < block.count("\n") < 10][:12]
        path.write_text("\n\n".join(short) + "\n\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def extracted(tiny_bert, short_sentences):
    """By sentence, the states of plain transformers: (layers, pieces, size), and words of pieces."""
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    model = AutoModel.from_pretrained(tiny_bert).eval()
    found = {}
    for sentence in find_corpus(str(short_sentences)).load():
        given = tokenizer(list(sentence.words), is_split_into_words=True, return_tensors="pt")
        with torch.inference_mode():
            states = model(**given, output_hidden_states=True).hidden_states
        ids = [-1 if word is None else word for word in given.word_ids()]
        found[sentence.id] = torch.cat(states).numpy(), np.array(ids), len(sentence)
    return found


def by_word(states, ids, n):
    return np.stack([states[:, ids == word].mean(axis=1) for word in range(n)], axis=1)


def line(corpus, folder, *more):
    places = ["--output", str(folder / "results"), "--cache-dir", str(folder / "cache")]
    asked = "--quick --tasks pos,depth --device cpu"
    return ["--corpus", str(corpus), *asked.split(), *places, *map(str, more)]


def scores(folder):
    return {
        (r.task.name, r.probe.family): r.headline
        for r in probes.load_results(folder / "results").results
    }


def all_words(extracted):
    """The vectors of all words: (layers, words, size)."""
    return np.concatenate([by_word(*each) for each in extracted.values()], axis=1)


def write(kind, folder, extracted):
    path, words = folder / f"dump.{kind}", all_words(extracted)
    if kind == "npz":
        np.savez(path, **{f"layer_{i}": x for i, x in enumerate(words)})
    elif kind == "npy":
        np.save(path, words)
    else:
        save_file({f"layer-{i}": np.ascontiguousarray(x) for i, x in enumerate(words)}, path)
    return path


@pytest.mark.parametrize(
    "kind", [*(pytest.param(x, marks=pytest.mark.slow) for x in ("npz", "npy")), "safetensors"]
)
def test_vectors_of_plain_transformers_give_the_scores_of_the_model(
    kind, tiny_bert, short_sentences, extracted, tmp_path
):
    assert main(line(short_sentences, tmp_path / "model", "--model", tiny_bert)) == 0
    dump = write(kind, tmp_path, extracted)
    assert main(line(short_sentences, tmp_path / "given", "--vectors", dump)) == 0
    expected, found = scores(tmp_path / "model"), scores(tmp_path / "given")
    assert expected.keys() == found.keys()
    for key, by_layer in expected.items():
        assert found[key] == pytest.approx(by_layer, abs=0.021)  # one word, of some sixty
    (result,) = {r.model.name for r in probes.load_results(tmp_path / "given" / "results").results}
    assert result == dump.stem


def test_each_corpus_of_a_transfer_has_the_facts_of_its_own_vectors(short_sentences, tmp_path):
    """The vectors lack a word of the first corpus, which the second one does not have."""
    sentences = list(find_corpus(str(short_sentences)).load())
    missing, *known = sorted({word for sentence in sentences for word in sentence.words})
    vectors = tmp_path / "words.txt"
    vectors.write_text("".join(f"{word} {i} 1\n" for i, word in enumerate(known)))
    other = tmp_path / "other"
    other.mkdir()
    for path in short_sentences.iterdir():
        text = path.read_text(encoding="utf-8")
        (other / path.name).write_text(text.replace(f"\t{missing}\t", f"\t{known[0]}\t"))
    _, first, *rest = line(short_sentences, tmp_path, "--vectors", vectors, "--transfer")
    assert main(["--corpus", first, str(other), *rest, "--probes", "linear"]) == 0
    name = "words without a vector, which have zeros"
    facts = {
        r.corpus.name: r.provenance.get(name)
        for r in probes.load_results(tmp_path / "results").results
    }
    n_missing = sum(sentence.words.count(missing) for sentence in sentences)
    assert facts == {"small": f"{n_missing}", "other": "0"}


@pytest.mark.slow
def test_files_of_vllm_are_converted_as_the_page_says(
    tiny_bert, short_sentences, extracted, tmp_path
):
    (code,) = re.findall(
        r"```python\n((?:(?!```).)*def convert.*?)```", PAGE.read_text(), re.DOTALL
    )
    names = {}
    exec(code, names)
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    sentences = [list(sentence.words) for sentence in find_corpus(str(short_sentences)).load()]
    files = [tmp_path / f"{i}.safetensors" for i in range(len(sentences))]
    for file, given, (states, _, _) in zip(files, sentences, extracted.values(), strict=True):
        ids = np.array(tokenizer(given, is_split_into_words=True)["input_ids"])
        arrays = {"token_ids": ids, "hidden_states": states[1:].transpose(1, 0, 2).copy()}
        save_file(arrays, file)
    dump = tmp_path / "converted.safetensors"
    names["convert"](files, sentences, (1, 2), tokenizer, dump)
    assert (
        main(line(short_sentences, tmp_path / "given", "--vectors", dump, "--layers", "1,2")) == 0
    )
    words = write("npz", tmp_path, extracted)
    assert main(line(short_sentences, tmp_path / "words", "--vectors", words)) == 0
    expected = scores(tmp_path / "words")
    for key, by_layer in scores(tmp_path / "given").items():
        assert by_layer == pytest.approx({n: expected[key][n] for n in (1, 2)}, abs=0.021)


def test_static_vectors_are_a_model_of_one_layer(short_sentences, tmp_path, capsys):
    corpus = find_corpus(str(short_sentences)).load()
    words = {word.lower() for sentence in corpus for word in sentence.words}
    missing = sorted(words)[3]
    numbers = np.random.default_rng(0)
    lines = [f"{len(words) - 1} 5"]
    for word in sorted(words - {missing}):
        lines.append(" ".join([word, *(f"{x:.4f}" for x in numbers.normal(size=5))]))
    path = tmp_path / "glove.txt"
    path.write_text("\n".join(lines))
    asked = ["--vectors", path, "--evidence", "standard", "--probes", "linear"]
    assert main([*line(short_sentences, tmp_path, *asked)]) == 0
    assert "words of the corpus have none, but zeros" in capsys.readouterr().err
    for result in probes.load_results(tmp_path / "results").results:
        assert result.layers == (0,)
        assert result.model.n_layers == 0
        assert "words without a vector, which have zeros" in result.provenance


def test_tasks_that_hide_words_are_left_out(short_sentences, extracted, tmp_path, capsys):
    dump = write("npz", tmp_path, extracted)
    asked = line(short_sentences, tmp_path, "--vectors", dump)
    asked[asked.index("pos,depth")] = "pos,agreement"
    assert main(asked) == 1
    why = "agreement: it hides or changes words, but given vectors belong to whole"
    assert why in capsys.readouterr().err
    assert {task for task, _ in scores(tmp_path)} == {"pos"}


def test_a_sentence_with_other_vectors_when_it_occurs_again_is_counted(tmp_path, capsys):
    given = [probes.Sentence(f"s{i}", "en", ("a", "b"), upos=("DET", "NOUN")) for i in range(30)]
    dump = tmp_path / "dump.npy"
    np.save(dump, np.repeat(np.arange(30) >= 28, 2)[:, None] * np.ones(4))
    places = {"output": tmp_path / "results", "cache_dir": tmp_path / "cache", "quick": True}
    probes.run_probes(f"vectors:{dump}", corpus=given, tasks="pos", **places)
    said = capsys.readouterr().err
    assert "vectors dump: 2 sentences that occur again with other vectors" in said


def test_vectors_of_other_sentences_are_never_taken_from_the_cache(tmp_path):
    """The same file and the same words in another order: what was stored is not read."""
    numbers = np.random.default_rng(0)
    tags = numbers.integers(0, 2, 90)
    dump = tmp_path / "dump.npy"
    np.save(dump, np.stack([tags, 1.0 - tags, numbers.normal(size=90)], axis=1))

    def score(order):
        sentences = tuple(
            probes.Sentence(f"s{i}", "en", (f"w{i}",), upos=(("NOUN", "VERB")[tags[i]],))
            for i in order
        )
        splits = {"train": sentences[:50], "dev": sentences[50:60], "test": sentences[60:]}
        given = Corpus("c", "1", "", splits)
        places = {"output": tmp_path / "results", "cache_dir": tmp_path / "cache"}
        settings = {"tasks": "pos", "probes": "linear", "quick": True, "layers": 0}
        found = probes.run_probes(f"vectors:{dump}", corpus=given, **settings, **places)
        return found.results[0].headline[0]

    assert score(numbers.permutation(90)) < 0.9
    assert score(range(90)) == 1


def test_arrays_of_a_part_of_the_corpus_are_refused(short_sentences, extracted, tmp_path, capsys):
    dump = write("npy", tmp_path, extracted)
    assert main(line(short_sentences, tmp_path, "--vectors", dump, "--limit", "3")) == 2
    assert "dump.npy: is of the whole corpus; leave --limit out." in capsys.readouterr().err


SENTENCES = tuple(probes.Sentence(f"s{i}", "en", ("a", "b")) for i in range(3))


def read(path):
    splits = dict(zip(("train", "dev", "test"), zip(SENTENCES), strict=True))
    return read_vectors(find_vectors(f"vectors:{path}"), Corpus("x", "", "", splits))


@pytest.mark.parametrize(
    "lines",
    [
        ["3 2", "a 1 2", "b 3 4", "c\u2028 5 6", ""],
        ["3 2\r", "a 1 2\r", "b 3 4\r", "\u3000 5 6\r"],
        ["a 1 2", "b 3 4"],
    ],
)
def test_static_vectors_are_read_with_and_without_a_header(lines, tmp_path):
    path = tmp_path / "x.vec"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="")
    assert read(path)._layers[0].tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("none.npz", "there is no such file."),
        ("x.pt", "give a file of these: .npz, .npy, .safetensors, .txt, .vec."),
        ("", "is a folder; give one file with the vectors of all words (.npz, .npy, .safetensors, .txt, .vec)."),
    ],
)  # fmt: skip
def test_what_is_no_file_of_vectors_is_one_line(name, says, tmp_path):
    (tmp_path / "x.pt").touch()
    with pytest.raises(UserError) as refused:
        find_vectors(f"vectors:{tmp_path / name}")
    assert str(refused.value) == f"--vectors {tmp_path / name}: {says}"


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def headed(shape, content=b""):
    """An array that claims a shape."""
    file = io.BytesIO()
    about = {"descr": "<f4", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, about)
    return file.getvalue() + content


def archive(content, name="layer_0.npy"):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as of:
        of.writestr(name, content)
    return file.getvalue()


def flipped():
    content = bytearray(archive(headed((6, 50), np.random.default_rng(0).bytes(1200))))
    content[120] ^= 255
    return bytes(content)


HUGE = headed((10**21, 6))
OPEN = b"\x93NUMPY\x01\x006\x00{" + b" " * 53
ONES = np.ones((6, 2))
DAMAGED = {
    "huge-shape.npy": (HUGE, "does not fit 128 bytes"),
    "zip-named.npy": (archive(b""), "the magic string is not correct"),
    "open.npy": (OPEN, "cannot be read"),
    "short.npy": (headed((6, 2), b"abc"), r"float32 of the shape \(6, 2\) does not fit"),
    "overflow.npz": (archive(HUGE), "does not fit 128 bytes"),
    "open.npz": (archive(OPEN), "cannot be read"),
    "no-array.npz": (archive(b"", "hidden_states.npy"), "cannot be read"),
    "flipped.npz": (flipped(), "cannot be read"),
    "cut.npz": (npz(layer_0=ONES)[:60], "cannot be read"),
    "layers.npz": (archive(headed((10**12, 0, 4)), "hidden_states.npy"), r"\(layers, words"),
    "empty.npy": (headed((6, 0)), r"layer 0 is float32 of the shape \(6, 0\)"),
    "inflating.npz": (archive(headed((7, 10**6), bytes(28 * 10**6))), "7 vectors at layer 0 for 6"),
    "short.npz": (npz(layer_0=ONES[1:]), "5 vectors at layer 0 for 6 words; give one for each word of train, dev and test"),
    "nan.npz": (npz(layer_0=ONES, layer_1=ONES * np.nan), "layer 1, word 1: a value is NaN"),
    "twice.npz": (npz(hidden_states=ONES[None], layer_0=ONES), "two arrays are of layer 0; remove one"),
    "name.npz": (npz(vectors=ONES), "an array 'vectors'; call arrays layer_0"),
    "text.npz": (npz(layer_0=np.full((6, 3), "a")), "layer 0 is <U1 of the shape"),
    "more-said.vec": (b"4 2\na 1 2\nb 3 4\nc 5 6\n", "has 3 words, the last with 2 numbers; .* says 4 with 2"),
    "fewer-said.vec": (b"2 2\na 1 2\nb 3 4\nc 5 6\n", "has 3 words, the last with 2 numbers; .* says 2 with 2"),
    "cut.vec": (b"3 2\na 1 2\nb 3 4\nc 5\n", "has 3 words, the last with 1 numbers; .* says 3 with 2"),
    "narrow.vec": (b"3 3\na 1 2\nb 3 4\nc 5 6\n", "line 2: 2 numbers, not 3"),
    "nan.vec": (b"3 2\na 1 2\nb nan 4\nc 5 6\n", "line 3: a value is NaN or infinite"),
    "infinite.vec": (b"a 1 2\nb 1e39 4\n", "line 2: a value is NaN or infinite"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_one_line_before_anything_is_allocated(name, tmp_path):
    path = tmp_path / name
    content, says = DAMAGED[name]
    path.write_bytes(content)
    tracemalloc.start()
    with pytest.raises(UserError, match=rf"^{re.escape(str(path))}\b.*{says}") as refused:
        read(path)
    assert "\n" not in str(refused.value)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5e6


def test_bfloat16_is_cast(tmp_path):
    from safetensors.torch import save_file

    path = tmp_path / "half.safetensors"
    save_file({"layer_0": torch.full((6, 2), 1.5, dtype=torch.bfloat16)}, path)
    assert (read(path)._layers[0] == np.float32(1.5)).all()


TEXTS = [f"{who} {does}" for who in ("birds", "the old dog") for does in ("sees", "came", "read")]


@pytest.fixture
def decoder(tmp_path):
    tiny_models.save("qwen2", tmp_path / "decoder")
    return tmp_path / "decoder"


@pytest.fixture
def moods(tmp_path):
    path = tmp_path / "moods.csv"
    rows = [
        f"{text} {i},{'glad' if 'birds' in text else 'sad'}" for i in range(9) for text in TEXTS
    ]
    path.write_text("\n".join(["text,mood", *rows]))
    return path


def test_files_of_texts_from_vllm_and_nnsight_are_read_as_the_page_says(decoder, moods, tmp_path):
    """Both give the scores of the model itself at the last token, but for its last layer."""
    (code,) = re.findall(
        r"```python\n((?:(?!```).)*def vectors_of_texts.*?)```", PAGE.read_text(), re.DOTALL
    )
    names = {}
    exec(code, names)
    tokenizer, model = AutoTokenizer.from_pretrained(decoder), AutoModel.from_pretrained(decoder)
    texts = [x.rpartition(",")[0] for x in moods.read_text().split("\n")[1:]]
    files, saved = [tmp_path / f"{i}.safetensors" for i in range(len(texts))], []
    for file, text in zip(files, texts, strict=True):
        given = tokenizer(text, return_tensors="pt")
        states = torch.cat(model(**given, output_hidden_states=True).hidden_states[:2])
        saved.append(states[:, -1])  # on the tape, as nnsight saves it
        # vLLM writes bfloat16; this file is in float32, so that scores can be compared.
        by_token = states.detach().transpose(0, 1).contiguous()
        save_tensors({"token_ids": given["input_ids"][0], "hidden_states": by_token}, file)
    vectors = names["vectors_of_texts"](files)
    assert vectors.shape == (2, len(texts), 16)
    torch.testing.assert_close(vectors, torch.stack(saved, dim=1))
    names["write_layers"]((0, 1), vectors, tmp_path / "vllm.safetensors")
    names["write_layers"]((1,), torch.stack(saved, dim=1)[1:], tmp_path / "nnsight.safetensors")
    place = ["--corpus", str(moods), "--text", "text", "--label", "mood", "--quick"]
    place += ["--device", "cpu", "--probes", "linear", "--cache-dir", str(tmp_path / "cache")]

    def probed(name, *more):
        assert main([*place, "--output", str(tmp_path / name), *map(str, more)]) == 0
        (result,) = probes.load_results(tmp_path / name).results
        return dict(result.headline)

    own = probed("own", "--model", decoder, "--positions", "last", "--layers", "0,1")
    assert probed("vllm", "--vectors", tmp_path / "vllm.safetensors") == own
    file = tmp_path / "nnsight.safetensors"
    assert probed("nnsight", "--vectors", file, "--layers", "1") == {1: own[1]}


def test_states_of_vllm_in_bfloat16_are_given_as_they_are(tmp_path):
    (code,) = re.findall(
        r"```python\n((?:(?!```).)*def vectors_of_texts.*?)```", PAGE.read_text(), re.DOTALL
    )
    names = {}
    exec(code, names)
    states = torch.randn(30, 5, 3, 4).bfloat16()  # texts, tokens, layers, dimensions
    files = [tmp_path / f"{i}.safetensors" for i in range(30)]
    for file, hidden in zip(files, states, strict=True):
        save_tensors({"token_ids": torch.arange(5), "hidden_states": hidden}, file)
    layers = (2, 4, 6)
    vectors = names["vectors_of_texts"](files, token=1)
    made = probes.Vectors(dict(zip(layers, vectors, strict=True)), ["a", "b"] * 15)
    for place, layer in enumerate(layers):
        assert (made.layers[layer] == states[:, 1, place].float().numpy()).all()


@pytest.mark.parametrize(
    "more", [["--positions", "last"], ["--positions", "mean,max"], ["--positions", "all"]]
)
def test_files_of_texts_have_no_positions(moods, tmp_path, capsys, more):
    np.save(tmp_path / "v.npy", np.zeros((2, 54, 3), dtype=np.float32))
    place = ["--corpus", str(moods), "--text", "text", "--label", "mood", "--quick"]
    place += ["--output", str(tmp_path / "results"), "--cache-dir", str(tmp_path / "cache")]
    assert main([*place, "--vectors", str(tmp_path / "v.npy"), *more]) == 2
    error = "error: v: is given one vector for each text; leave --positions out."
    assert error in capsys.readouterr().err


def test_vectors_of_texts_are_stored_as_given(tmp_path):
    """In fp32, and anew where the same distinct texts have other rows of the file."""
    mood = np.arange(60) // 2 % 2
    np.save(tmp_path / "v.npy", (3000 + 0.1 * mood)[None, :, None].astype(np.float32))
    texts = [f"text {i}" for i in range(60)]
    place = ["--vectors", str(tmp_path / "v.npy"), "--corpus", str(tmp_path / "moods.csv")]
    place += ["--text", "text", "--label", "mood", "--quick", "--probes", "linear"]
    place += ["--cache-dir", str(tmp_path / "cache"), "--device", "cpu"]
    for name, repeated in (("early", [texts[0], *texts[:59]]), ("late", [*texts[:59], texts[58]])):
        rows = [f"{x},{'glad' if m else 'sad'}" for x, m in zip(repeated, mood, strict=True)]
        (tmp_path / "moods.csv").write_text("\n".join(["text,mood", *rows]))
        assert main([*place, "--output", str(tmp_path / name)]) == 0
        (result,) = probes.load_results(tmp_path / name).results
        assert result.headline == {0: 1.0}
