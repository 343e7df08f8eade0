"""That the benchmarks still fit the suite; what they measure is not tested."""

import importlib
from pathlib import Path

import pytest
import reliability

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted((ROOT / "benchmarks").glob("*.py"))


def test_there_are_benchmarks():
    assert len(SCRIPTS) > 8


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_benchmark_says_what_it_takes(script, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", [script.name, "--help"])
    with pytest.raises(SystemExit) as ended:
        importlib.import_module(script.stem).main()
    assert ended.value.code == 0
    assert "usage:" in capsys.readouterr().out


def test_the_tests_that_count_reliability_exist():
    missing = [name for name in reliability.TESTS if not (ROOT / name).exists()]
    assert not missing
