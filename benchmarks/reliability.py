"""Puts the suite through its fault tests and prints what they counted, as a Markdown table.

python benchmarks/reliability.py            # what runs in continuous integration, two minutes
python benchmarks/reliability.py --long     # every single write, 50 random moments, …
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS = (
    "tests/common/test_files.py",
    "tests/data/test_readers_property.py",
    "tests/cli/test_errors.py",
    "tests/extraction/test_shard_files.py",
    "tests/engines/test_faults.py",
    "tests/engines/test_kills.py",
    "tests/cli/test_odd_input.py",
    "tests/cli/test_public_property.py",
    "tests/cli/test_run_log.py",
    "tests/engines/test_together.py",
)


class Counts:
    """What the tests counted, and how they ended."""

    def __init__(self) -> None:
        self.tally: dict[str, int] = {}
        self.ends: dict[str, int] = {}

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, config: pytest.Config
    ) -> None:
        """Take the counts over at the end."""
        from tallying import TALLY

        self.tally = config.stash[TALLY].copy()
        stats = terminalreporter.stats
        self.ends = {end: len(stats.get(end, ())) for end in ("passed", "failed", "skipped")}


def main() -> int:
    """Run the tests; 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--long", action="store_true", help="the slow tests too")
    options = parser.parse_args()
    counts, clock = Counts(), time.perf_counter()
    flags = ["-q", "-m", "slow or not slow" if options.long else "not slow"]
    status = pytest.main([*flags, *(str(ROOT / test) for test in TESTS)], plugins=[counts])
    print("\n| what | how often |\n| --- | ---: |")
    for what, count in sorted(counts.tally.items()):
        print(f"| {what} | {count:,} |")
    lost = counts.ends.get("failed", 0)
    print(f"| tests in which something was lost, wrong or unnamed | {lost} |")
    skipped = counts.ends.get("skipped", 0)
    print(f"\n{sum(counts.ends.values())} tests, {skipped} skipped, ", end="")
    print(f"{time.perf_counter() - clock:.0f} s")
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
