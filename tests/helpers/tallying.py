"""Where fault tests count what they have put the suite through."""

from collections import Counter

import pytest

TALLY = pytest.StashKey[Counter[str]]()
