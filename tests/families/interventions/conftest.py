"""The texts that experiments share."""

import pytest
from plain_texts import save_texts


@pytest.fixture(scope="session")
def texts(tmp_path_factory):
    """Folder of a random GPT-2, and of texts and chats; tests only read it."""
    return save_texts(tmp_path_factory.mktemp("texts"))
