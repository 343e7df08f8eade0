"""Write the embedded corpus, always the same bytes: `python tools/write_sample.py`."""

from __future__ import annotations

from pathlib import Path

from sample_grammar.generate import write

if __name__ == "__main__":
    write(Path(__file__).parents[1] / "data" / "sample")
