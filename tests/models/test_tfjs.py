"""Keras networks in the layout of TensorFlow.js: a model.json and shards beside it."""

import json

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from grotta.models import create_model, load_weights
from grotta.models.resnet_keras import KerasResNet
from grotta.models.state_file import read_state

BLOCKS, WIDTH, CLASSES, SHARDS = (2, 1, 1, 1), 4, 5, 3


def keras_weights():
    """Random weights of a small network by Keras's names, in Keras's order of dimensions, as written by hand."""
    draw = np.random.default_rng(0)
    weights = {}

    def conv(layer, norm, size, before, after):
        weights[f"{layer}/kernel"] = draw.normal(size=(size, size, before, after)) / (size * before**0.5)
        weights[f"{layer}/bias"] = draw.normal(size=after)
        weights[f"{norm}/gamma"] = draw.uniform(0.5, 1.5, after)
        weights[f"{norm}/beta"] = draw.normal(size=after)
        weights[f"{norm}/moving_mean"] = draw.normal(size=after)
        weights[f"{norm}/moving_variance"] = draw.uniform(0.5, 1.5, after)

    conv("conv1", "bn_conv1", 7, 3, WIDTH)
    before = WIDTH
    for name, inner in (("2a", 4), ("2b", 4), ("3a", 8), ("4a", 16), ("5a", 32)):
        conv(f"res{name}_branch2a", f"bn{name}_branch2a", 1, before, inner)
        conv(f"res{name}_branch2b", f"bn{name}_branch2b", 3, inner, inner)
        conv(f"res{name}_branch2c", f"bn{name}_branch2c", 1, inner, 4 * inner)
        if name[1] == "a":
            conv(f"res{name}_branch1", f"bn{name}_branch1", 1, before, 4 * inner)
        before = 4 * inner
    weights["fc1000/kernel"] = draw.normal(size=(before, CLASSES))
    weights["fc1000/bias"] = draw.normal(size=CLASSES)
    return {name: values.astype("<f4") for name, values in weights.items()}


def publish(folder, weights):
    """The layout of tfjs-converter: one group, cut into shards of equal length wherever that may be."""
    content = b"".join(values.tobytes() for values in weights.values())
    length = -(-len(content) // SHARDS)
    shards = [content[start : start + length] for start in range(0, len(content), length)]
    names = [f"group1-shard{i}of{SHARDS}.bin" for i in range(1, SHARDS + 1)]
    for name, shard in zip(names, shards, strict=True):
        (folder / name).write_bytes(shard)
    entries = [{"name": name, "shape": list(v.shape), "dtype": "float32"} for name, v in weights.items()]
    manifest = [{"paths": names, "weights": entries}]
    text = json.dumps({"format": "layers-model", "modelTopology": {}, "weightsManifest": manifest})
    (folder / "model.json").write_text(text)
    return folder / "model.json"


def by_hand(weights, pictures):
    """Keras's network step by step, from its own arrays: stride in the first 1x1, zero padding, blue first."""
    tensors = {name: torch.from_numpy(values).double() for name, values in weights.items()}

    def conv(layer, norm, x, stride=1, padding=0):
        kernel = tensors[f"{layer}/kernel"].permute(3, 2, 0, 1)
        x = F.conv2d(x, kernel, tensors[f"{layer}/bias"], stride, padding)
        scale = tensors[f"{norm}/gamma"] / (tensors[f"{norm}/moving_variance"] + 1e-3).sqrt()
        shift = tensors[f"{norm}/beta"] - scale * tensors[f"{norm}/moving_mean"]
        return x * scale[:, None, None] + shift[:, None, None]

    blue_first = 255 * pictures.double()[:, [2, 1, 0]]
    x = blue_first - torch.tensor([103.939, 116.779, 123.68], dtype=torch.float64)[:, None, None]
    x = F.relu(conv("conv1", "bn_conv1", x, 2, 3))
    x = F.max_pool2d(F.pad(x, (1, 1, 1, 1)), 3, 2)
    for name, stride in (("2a", 1), ("2b", 1), ("3a", 2), ("4a", 2), ("5a", 2)):
        around = conv(f"res{name}_branch1", f"bn{name}_branch1", x, stride) if name[1] == "a" else x
        out = F.relu(conv(f"res{name}_branch2a", f"bn{name}_branch2a", x, stride))
        out = F.relu(conv(f"res{name}_branch2b", f"bn{name}_branch2b", out, 1, 1))
        x = F.relu(conv(f"res{name}_branch2c", f"bn{name}_branch2c", out) + around)
    return x.mean(dim=(2, 3)) @ tensors["fc1000/kernel"] + tensors["fc1000/bias"]


def test_the_logits_are_those_of_keras(tmp_path):
    weights = keras_weights()
    model = KerasResNet(BLOCKS, WIDTH, CLASSES)
    load_weights(model, publish(tmp_path, weights))
    pictures = torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(1))
    expected = by_hand(weights, pictures)
    torch.testing.assert_close(model.eval()(pictures).double(), expected, rtol=1e-4, atol=1e-4)


def test_every_tensor_is_read_once_and_whole(tmp_path):
    weights = keras_weights()
    state = read_state(publish(tmp_path, weights))
    assert len(state) == len(weights)
    assert torch.equal(state["conv1.weight"], torch.from_numpy(weights["conv1/kernel"]).permute(3, 2, 0, 1))
    assert torch.equal(state["bn5a_branch2c.running_var"], torch.from_numpy(weights["bn5a_branch2c/moving_variance"]))
    assert torch.equal(state["fc1000.weight"], torch.from_numpy(weights["fc1000/kernel"]).T)


def without_a_shard(path):
    (path.parent / "group1-shard2of3.bin").unlink()


def shorter(path):
    shard = path.parent / "group1-shard3of3.bin"
    shard.write_bytes(shard.read_bytes()[:-4])


def longer(path):
    shard = path.parent / "group1-shard3of3.bin"
    shard.write_bytes(shard.read_bytes() + bytes(4))


def quantised(path):
    path.write_text(path.read_text().replace("float32", "uint8", 1))


def elsewhere(path):
    path.write_text(path.read_text().replace('"group1-shard1of3.bin"', '"../group1-shard1of3.bin"'))


def other_json(path):
    path.write_text('{"labels": [1, 2]}')


def no_json(path):
    path.write_text("weights")


def unknown_tensor(path):
    path.write_text(path.read_text().replace("conv1/kernel", "conv1/depthwise", 1))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (without_a_shard, "is incomplete: group1-shard2of3.bin is missing"),
        (shorter, "is damaged: its shards end within fc1000/bias"),
        (longer, "is damaged: its shards are 4 bytes too long"),
        (quantised, "in another type; expected float32"),
        (elsewhere, "a shard in another folder"),
        (other_json, "is not a model.json of TensorFlow.js"),
        (no_json, "is not a model.json of TensorFlow.js"),
        (unknown_tensor, "is not a model.json of TensorFlow.js"),
    ],
    ids=lambda case: getattr(case, "__name__", ""),
)
def test_a_damaged_download_is_named_and_explained(tmp_path, damage, message):
    path = publish(tmp_path, keras_weights())
    damage(path)
    with pytest.raises(ValueError, match=message):
        read_state(path)


def test_weights_of_another_network_are_refused(tmp_path):
    with pytest.raises(ValueError, match="does not fit resnet50_keras"):
        create_model("resnet50_keras", publish(tmp_path, keras_weights()))
