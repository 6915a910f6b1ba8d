"""Published files of weights, and what is not one."""

import hashlib
import pickle
import traceback
from pathlib import Path

import pytest
import torch
from torch import nn

from grotta.models import create_model, load_weights
from grotta.models.bundled import bundled_names, bundled_path
from grotta.models.card import read_card
from grotta.models.state_file import read_metadata, read_state, write_state
from grotta.models.weights import classifier_name


@pytest.fixture(scope="module")
def state():
    return dict(create_model("fashion_resnet8", seed=7).state_dict())


def assert_same(first, second):
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)


def prefixed(state, prefix):
    return {prefix + name: tensor for name, tensor in state.items()}


STATISTICS = {"mu": torch.zeros(1, 3, 1, 1), "sigma": torch.ones(1, 3, 1, 1)}
DISGUISES = {
    "plain": lambda state: state,
    "state_dict key": lambda state: {"best_prec1": 91.0, "state_dict": state},
    "module prefix": lambda state: {"state_dict": prefixed(state, "module.")},
    "model prefix": lambda state: prefixed(state, "model."),
    "both prefixes": lambda state: prefixed(state, "module.model."),
    "mu and sigma": lambda state: state | STATISTICS,
    "mu and sigma beside a prefix": lambda state: prefixed(state, "model.") | STATISTICS,
    "mu and sigma below a prefix": lambda state: prefixed(state | STATISTICS, "module."),
    "model key": lambda state: {"model": state, "epoch": 3},
}


@pytest.mark.parametrize("disguise", DISGUISES)
@pytest.mark.parametrize("zipped", [True, False])
def test_files_load_as_they_are_published(tmp_path, state, disguise, zipped):
    path = tmp_path / "published.th"
    torch.save(DISGUISES[disguise](state), path, _use_new_zipfile_serialization=zipped)
    assert_same(dict(create_model("fashion_resnet8", path).state_dict()), state)


def test_safetensors_load_and_keep_their_metadata(tmp_path, state):
    path = tmp_path / "weights.safetensors"
    write_state(path, state, {"card": "{}"})
    assert_same(read_state(path), state)
    assert read_metadata(path)["card"] == "{}"
    assert [entry.name for entry in tmp_path.iterdir()] == ["weights.safetensors"]


def test_half_storage_rounds_kernels_only_and_loads_as_float32(tmp_path, state):
    write_state(tmp_path / "half.safetensors", state, half=True)
    loaded = create_model("fashion_resnet8", tmp_path / "half.safetensors").state_dict()
    for name, tensor in state.items():
        assert loaded[name].dtype == tensor.dtype
        assert torch.equal(loaded[name], tensor.half().float() if tensor.ndim > 1 else tensor)


def test_old_files_without_counters_load(state):
    model = create_model("fashion_resnet8")
    load_weights(model, {name: tensor for name, tensor in state.items() if "num_batches" not in name})
    assert torch.equal(model.classifier.weight, state["classifier.weight"])


class Evil:
    def __reduce__(self):
        return print, ("code from the file ran",)


def page(path, state):
    path.write_bytes(b"\n <!DOCTYPE html><html><body>Quota exceeded</body></html>")


def truncated(path, state):
    torch.save(state, path)
    path.write_bytes(path.read_bytes()[:-5000])


def truncated_safetensors(path, state):
    write_state(path, state)
    path.write_bytes(path.read_bytes()[:-5000])


def empty(path, state):
    path.write_bytes(b"")


def pointer(path, state):
    path.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")


def code(path, state):
    path.write_bytes(pickle.dumps({"weight": Evil()}))


def zipped_code(path, state):
    torch.save({"weight": Evil()}, path)


def integer_names(path, state):
    torch.save({7: torch.zeros(1)}, path)


def whole_module(path, state):
    torch.save(nn.Linear(2, 2), path)


def noise(path, state):
    path.write_bytes(bytes(range(256)) * 20)


def numbers(path, state):
    torch.save({"weight": 3.0}, path)


def a_list(path, state):
    torch.save([1, 2], path)


WRONG = [
    (page, "is a web page, not a file of weights"),
    (truncated, "damaged, truncated"),
    (truncated_safetensors, "damaged or truncated safetensors"),
    (empty, "is empty"),
    (pointer, "Git LFS pointer"),
    (code, "contains more than tensors, or is not a file of weights: expected only names and tensors"),
    (zipped_code, "contains more than tensors, or is not a file of weights: expected only names and tensors"),
    (whole_module, "contains more than tensors, or is not a file of weights: expected only names and tensors"),
    (noise, "contains more than tensors, or is not a file of weights: expected only names and tensors"),
    (integer_names, "7 is not the name of a tensor, expected text"),
    (numbers, "'weight' is not a tensor"),
    (a_list, "holds a list"),
]


@pytest.mark.parametrize(("write", "message"), WRONG, ids=lambda case: getattr(case, "__name__", ""))
def test_a_wrong_file_is_named_and_explained(tmp_path, state, capsys, write, message):
    path = tmp_path / "download.pt"
    write(path, state)
    with pytest.raises(ValueError, match=message) as caught:
        create_model("fashion_resnet8", path)
    assert "download.pt" in str(caught.value)
    assert "weights_only" not in "".join(traceback.format_exception_only(caught.value))
    assert capsys.readouterr().out == ""


WRONG_TENSORS = {
    "no dimension": (lambda weight: torch.tensor(1.0), r"classifier\.weight is \(\), expected \(10, \d+\)"),
    "no classes": (lambda weight: weight[:0], r"classifier\.weight is \(0, \d+\), expected \(10, \d+\)"),
    "sparse": (lambda weight: weight.to_sparse(), r"classifier\.weight is not dense; expected dense tensors"),
    "complex": (lambda weight: weight + 0j, r"classifier\.weight is complex; expected .* real numbers"),
    "nan": (lambda weight: weight * float("nan"), r"classifier\.weight is not finite; expected .* finite"),
    "too large": (lambda weight: weight.double() + 1e300, r"classifier\.weight is not finite; expected .* finite"),
}


@pytest.mark.parametrize("wrong", WRONG_TENSORS)
def test_a_tensor_that_is_no_weight_is_named(tmp_path, state, wrong):
    change, message = WRONG_TENSORS[wrong]
    path = tmp_path / "download.pt"
    torch.save(state | {"classifier.weight": change(state["classifier.weight"])}, path)
    with pytest.raises(ValueError, match=r"download\.pt does not fit fashion_resnet8: .*" + message):
        create_model("fashion_resnet8", path)


@pytest.mark.parametrize("card", ["", "a card", "[]", "{}", '{"command": "other"}'])
def test_a_card_of_others_is_refused_with_the_file_and_what_was_expected(tmp_path, state, card):
    write_state(tmp_path / "other.safetensors", state, {"card": card})
    with pytest.raises(ValueError, match=r"grotta train did not write: expected JSON with accuracy, "):
        read_card(tmp_path / "other.safetensors")


def test_a_file_without_metadata_has_no_card_whatever_its_name(tmp_path, state):
    torch.save(state, tmp_path / "torch.safetensors")
    assert read_card(tmp_path / "torch.safetensors") is None


def test_a_path_may_begin_at_home(tmp_path, state, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    torch.save(state, tmp_path / "weights.pt")
    assert_same(dict(create_model("fashion_resnet8", "~/weights.pt").state_dict()), state)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file of weights at .*nothing\.pt"):
        create_model("resnet20", tmp_path / "nothing.pt")


def test_weights_of_another_architecture_are_refused_with_the_names_that_differ(tmp_path, state):
    torch.save(state, tmp_path / "fashion.pt")
    with pytest.raises(ValueError, match=r"does not fit resnet20: \d+ missing: conv1.weight.*unexpected: features"):
        create_model("resnet20", tmp_path / "fashion.pt")


def test_weights_of_another_width_are_refused_with_the_shapes(tmp_path):
    torch.save(create_model("resnet56_proj").state_dict(), tmp_path / "deep.pt")
    with pytest.raises(ValueError, match="another architecture"):
        create_model("resnet20_proj", tmp_path / "deep.pt")


def test_another_number_of_classes_is_said(tmp_path, state):
    torch.save(state, tmp_path / "ten.pt")
    with pytest.raises(ValueError, match="the file has 10 classes, the model 4; create the model with num_classes=10"):
        create_model("fashion_resnet8", tmp_path / "ten.pt", num_classes=4)


def test_a_failing_load_changes_nothing(state):
    model = create_model("fashion_resnet8", seed=1)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with pytest.raises(ValueError, match=r"1 missing: classifier\.bias"):
        load_weights(model, {name: tensor for name, tensor in state.items() if name != "classifier.bias"})
    assert_same(dict(model.state_dict()), before)


def test_the_classifier_can_stay_for_another_number_of_classes(state):
    model = create_model("fashion_resnet8", num_classes=3)
    classifier = model.classifier.weight.clone()
    load_weights(model, state, keep_classifier=True)
    assert torch.equal(model.classifier.weight, classifier)
    assert torch.equal(model.features[0][0].weight, state["features.0.0.weight"])


def test_one_flipped_bit_of_stored_weights_is_refused(tmp_path, state):
    path = tmp_path / "weights.safetensors"
    write_state(path, state, {"card": "{}"})
    content = path.read_bytes()
    header = 8 + int.from_bytes(content[:8], "little")
    for position in range(header, len(content), (len(content) - header) // 50):
        path.write_bytes(content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :])
        with pytest.raises(ValueError, match=r"weights\.safetensors is damaged: .* does not match its checksum"):
            create_model("fashion_resnet8", path)


def test_every_bundled_file_has_a_checksum():
    assert all("checksum" in read_metadata(bundled_path(name)) for name in bundled_names())


def test_a_published_file_must_have_the_digest_that_its_name_gives(tmp_path, state):
    torch.save(state, tmp_path / "plain.pth")
    content = (tmp_path / "plain.pth").read_bytes()
    good = tmp_path / f"net-{hashlib.sha256(content).hexdigest()[:8]}.pth"
    good.write_bytes(content)
    assert_same(read_state(good), state)
    middle = len(content) // 2
    good.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
    with pytest.raises(ValueError, match=r"net-.*\.pth is damaged: its sha256 starts with"):
        read_state(good)


def test_a_failed_write_leaves_the_old_file(tmp_path, state, monkeypatch):
    path = tmp_path / "weights.safetensors"
    write_state(path, state)
    before = path.read_bytes()

    def full_disk(part, content):
        with part.open("wb") as file:
            file.write(content[:100])
        raise OSError(28, "No space left on device", str(part))

    monkeypatch.setattr(Path, "write_bytes", full_disk)
    with pytest.raises(OSError, match=r"No space left on device: .*/weights\.safetensors'$"):
        write_state(path, state)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_model_without_a_linear_layer_has_no_classifier():
    with pytest.raises(ValueError, match="has no linear layer"):
        classifier_name(nn.ReLU())
