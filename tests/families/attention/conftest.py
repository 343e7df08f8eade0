"""Planted heads, measured once for each file that looks at them."""

import pytest
from planted_heads import compute, corpus


@pytest.fixture(scope="module")
def toy():
    return corpus()


@pytest.fixture(scope="module")
def found(toy):
    return compute(toy)
