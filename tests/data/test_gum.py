"""How GUM's training file is put together."""

import io
import tarfile
from dataclasses import replace

import pytest

from probes.common.errors import UserError
from probes.data import gum
from probes.data.downloads import digest_of


def test_train_is_what_dev_and_test_lack_in_the_order_of_names(tmp_path, monkeypatch):
    files = {
        "en_gum-ud-test.conllu": b"# newdoc id = GUM_b\nof the release\n\n",
        "en_gum-ud-dev.conllu": b"# newdoc id = GUM_d\nof the release\n\n",
        **{
            f"not-to-release/sources/GUM_{name}.conllu": f"# newdoc id = GUM_{name}\n\n".encode()
            for name in "dcba"
        },
    }
    archive, target = tmp_path / "x.tar.gz", tmp_path / "train"
    with tarfile.open(archive, "w:gz") as tar:
        for path, content in {**files, "README.md": b"no document"}.items():
            member = tarfile.TarInfo(f"UD_English-GUM-1/{path}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    with pytest.raises(UserError, match="not the documents of UD English-GUM"):
        gum.extract_train(archive, target)
    monkeypatch.setattr(gum, "MEMBERS", replace(gum.MEMBERS, digest=digest_of(files)))
    gum.extract_train(archive, target)
    assert target.read_bytes() == b"# newdoc id = GUM_a\n\n# newdoc id = GUM_c\n\n"
