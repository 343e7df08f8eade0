"""That the benchmarks still fit the suite; what they measure is not tested."""

import importlib

import pytest

SCRIPTS = [
    "boards",
    "extraction_speed",
    "fine_tune",
    "gpu",
    "machine",
    "probe_speed",
    "same_numbers",
    "statistics_simulation",
]


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_benchmark_says_what_it_takes(script, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", [script, "--help"])
    with pytest.raises(SystemExit) as ended:
        importlib.import_module(script).main()
    assert ended.value.code == 0
    assert "usage:" in capsys.readouterr().out
