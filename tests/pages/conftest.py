"""A browser."""

import pytest
from browser import started


@pytest.fixture(scope="module")
def browser():
    with started() as found:
        yield found
