"""Changes to the folder of a model, as users or other programs make them."""

import json

from safetensors.torch import load_file, save_file


def configure(folder, **settings):
    """Change settings in config.json."""
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | settings))


def add_weights(folder, weights):
    """Add weights, by name, to model.safetensors; None takes one out."""
    path = folder / "model.safetensors"
    stored = load_file(path) | weights
    kept = {name: weight for name, weight in stored.items() if weight is not None}
    save_file(kept, path, metadata={"format": "pt"})


def write_index(folder, names):
    """Rename the weights to part.safetensors; the index says that they are in files of `names`."""
    (folder / "model.safetensors").rename(folder / "part.safetensors")
    index = {"metadata": {}, "weight_map": {f"weight {n}": name for n, name in enumerate(names)}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
