"""Where models can be changed is found, or refused by name."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from places import NORMS, OTHERS, PLACES, block_of, layers, n_hooks, tiny

from probes.common.errors import UserError
from probes.extraction.sites import Site, changed, sites_of

OWN = "its attention cannot be changed head by head (it is computed in its own way)"
NO_MLP = "the output of its MLP cannot be changed (no linear map gives it)"
NO_BLOCKS = "its blocks are not found; it cannot be changed layer by layer"
REFUSED = {
    ("Mixtral", "mlp"): NO_MLP,
    **{
        (name, kind): OWN
        for name in ("Falcon", "Mpt", "Longformer", "BigBird")
        for kind in ("maps", "heads", "attention", "mlp")
    },
    **{(name, "layer"): NO_BLOCKS for name in ("XLM", "XLNet", "Mamba")},
}


@pytest.mark.parametrize("name", PLACES)
def test_places_are_those_written_down_by_hand(name: str) -> None:
    model = tiny(name)
    sites = sites_of(model)
    n = model.config.num_hidden_layers
    assert len(sites.blocks) == n
    for layer in range(1, n + 1):
        block = block_of(model, name, layer)
        assert sites.blocks[layer - 1].module is block
        for kind, path in (("heads", 1), ("attention", 1), ("mlp", 2)):
            found = sites.calls[kind][layer - 1]  # type: ignore[index]
            assert found.module is block.get_submodule(PLACES[name][path])
            assert found.number == (layer - 1 if name == "albert" else 0)
    assert sites.n_heads == 2
    norm = NORMS.get(name)
    assert sites.norm is (model.get_submodule(norm) if norm else None)
    assert sites_of(model) is sites
    assert not sites.refused


@pytest.mark.parametrize("name", [*PLACES, *OTHERS])
def test_a_layer_that_is_changed_is_seen_as_changed(name: str) -> None:
    if (name, "layer") in REFUSED:
        pytest.skip("refused below")
    model = tiny(name)
    before, hooks = layers(model), n_hooks(model)
    sites = sites_of(model)
    for layer in range(len(sites.blocks) + 1):
        with changed(model, sites, [(Site("layer", layer), lambda x, _: x * 0 + 5)]):
            found = layers(model)
        assert (found[layer] == 5).all()
        assert all(torch.equal(*pair) for pair in zip(found[:layer], before, strict=False))
        assert all(
            not torch.equal(*pair) for pair in zip(found[layer:], before[layer:], strict=True)
        )
    assert n_hooks(model) == hooks
    assert all(torch.equal(*pair) for pair in zip(layers(model), before, strict=True))


@pytest.mark.parametrize(("name", "kind"), REFUSED)
def test_what_is_not_found_is_refused_by_name(name: str, kind: Any) -> None:
    model = tiny(name)
    with pytest.raises(UserError) as error:
        sites_of(model).require(Site(kind, 1))
    assert str(error.value) == f"{type(model).__name__}: {REFUSED[name, kind]}."


def test_blocks_and_heads_that_are_not_there() -> None:
    sites = sites_of(tiny("bert"))
    for site, why in (
        (Site("layer", 3), "it has 2 blocks, and no layer 3"),
        (Site("block", 0), "it has 2 blocks, and no block 0"),
        (Site("heads", 1, 3), "it has 2 heads in each block, and no head 3"),
        (Site("maps", 1, 0), "it has 2 heads in each block, and no head 0"),
    ):
        with pytest.raises(UserError, match=f"^BertModel: {why}.$"):
            sites.require(site)
