"""Fixtures of tests of extraction."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from probes.extraction.models.loading import load_encoder
from probes.extraction.models.model_files import find_model
from probes.extraction.reading.encoder import Encoder


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """Threads cost tiny models more than they give, the more so on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def encoder(tiny_bert: Path) -> Encoder:
    """The tiny BERT of all tests."""
    return load_encoder(find_model(str(tiny_bert)), device="cpu")
