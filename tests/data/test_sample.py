"""The files of the embedded corpus do not change."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import probes.data.sample
from probes.data.sentence import SPLITS

FOLDER = Path(probes.data.sample.__file__).parent


def test_the_files_are_those_that_the_generator_wrote() -> None:
    digests = {
        split: sha256((FOLDER / f"{split}.conllu").read_bytes()).hexdigest() for split in SPLITS
    }
    assert digests == {
        "train": "861b8665e6a9ef2fd93df1b5c284158fc26f8afd59d478c7e1eccd05617c0850",
        "dev": "0462202d955f8d88f2f3a5a9ad4be93be8f217598e52ee2b012e126f7b3afd09",
        "test": "3632445470c77b499233bfc8a4cdcdf96f1b6222977bfadc22238fce1c40e01f",
    }
