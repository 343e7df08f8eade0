"""Probes that several processes fit are those of one."""

from killing import small_corpus

from probes.records.files import read_arrays


def test_workers_find_the_same(measured, tmp_path):
    corpus = small_corpus(tmp_path / "small")
    asked = ["--structure-ranks", "2", "--layers", "1"]
    found = [measured(tmp_path / n, corpus, *asked, "--workers", n).records for n in ("1", "2")]
    one, two = (
        {record.model.name: (path, record) for path, record in each.items()} for each in found
    )
    assert sorted(one) == ["random:tiny-bert", "tiny-bert"]
    for model, (path, record) in one.items():
        for part in ("rows", "facts", "notes"):
            assert getattr(two[model][1], part) == getattr(record, part)
        arrays, others = read_arrays(path), read_arrays(two[model][0])
        assert arrays.keys() == others.keys()
        assert all((arrays[x] == others[x]).all() for x in arrays)
    assert one["tiny-bert"][1].rows != one["random:tiny-bert"][1].rows
