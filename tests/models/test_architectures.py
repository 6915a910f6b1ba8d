"""Names, shapes and arithmetic of the networks."""

import hashlib

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from grotta.models import create_model, list_models
from grotta.models.compact import Residual
from grotta.models.input_norm import IMAGENET, InputNorm
from grotta.models.resnet_cifar import PadShortcut
from grotta.models.resnext import CifarResNeXt
from grotta.models.wide_resnet import WideResNet


def on_meta(name, **options):
    from grotta.models import registry

    with torch.device("meta"):
        return registry._BUILDERS[name](**options)


def digest(state, *, counters=True):
    pairs = [(name, list(tensor.shape)) for name, tensor in state.items()]
    lines = [f"{name} {shape}" for name, shape in pairs if counters or not name.endswith("num_batches_tracked")]
    return len(lines), hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


# Taken from the published files: number of tensors, and a digest of their names and shapes in order.
PUBLISHED = {
    "wrn28_10": (155, "bce54618b15fe64e"),
    "resnext29_4x32d": (188, "e964660721433e54"),
    "resnet56_proj": (344, "470885c26e17ebe6"),
    "mobilenet_v2": (314, "a18c560d82f6d01d"),
}
PUBLISHED_WITHOUT_COUNTERS = {"resnet20": (97, "d3522cafc22d5863"), "resnet56": (277, "ab2125d2157c28ab")}


@pytest.mark.parametrize("name", PUBLISHED)
def test_names_and_shapes_equal_the_published_file_in_order(name):
    assert digest(on_meta(name).state_dict()) == PUBLISHED[name]


@pytest.mark.parametrize("name", PUBLISHED_WITHOUT_COUNTERS)
def test_names_and_shapes_equal_the_old_published_file_in_order(name):
    assert digest(on_meta(name).state_dict(), counters=False) == PUBLISHED_WITHOUT_COUNTERS[name]


# Published numbers of parameters (torchvision's documentation; He et al. give 0.27M .. 1.7M for the small ones).
PARAMETERS = {
    "resnet18": 11_689_512,
    "resnet34": 21_797_672,
    "resnet50": 25_557_032,
    "resnet101": 44_549_160,
    "resnet50_keras": 25_583_592,  # 25,636,712 in Keras's summary, which counts 53,120 statistics
    "mobilenet_v2": 3_504_872,
    "wrn28_10": 36_479_194,
    "resnet20": 269_722,
    "resnet32": 464_154,
    "resnet44": 658_586,
    "resnet56": 853_018,
    "resnet110": 1_727_962,
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_number_of_parameters_is_the_published_one(name):
    assert sum(p.numel() for p in on_meta(name).parameters()) == PARAMETERS[name]


@pytest.mark.parametrize("depth", [20, 32, 44, 56, 110])
def test_projections_add_their_kernels_and_norms_to_the_published_number_of_parameters(depth):
    extra = sum(before * after + 2 * after for before, after in ((16, 32), (32, 64)))
    parameters = sum(p.numel() for p in on_meta(f"resnet{depth}_proj", num_classes=10).parameters())
    assert parameters == PARAMETERS[f"resnet{depth}"] + extra


def torchvision_names(blocks, convolutions):
    """The names of torchvision's ResNet, written out."""
    norm = ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"]
    names = ["conv1.weight", *(f"bn1.{n}" for n in norm)]
    for layer, count in enumerate(blocks, start=1):
        for block in range(count):
            here = f"layer{layer}.{block}"
            for index in range(1, convolutions + 1):
                names += [f"{here}.conv{index}.weight", *(f"{here}.bn{index}.{n}" for n in norm)]
            if block == 0 and (layer > 1 or convolutions == 3):
                names += [f"{here}.downsample.0.weight", *(f"{here}.downsample.1.{n}" for n in norm)]
    return [*names, "fc.weight", "fc.bias"]


@pytest.mark.parametrize(
    ("name", "blocks", "convolutions"), [("resnet18", (2, 2, 2, 2), 2), ("resnet50", (3, 4, 6, 3), 3)]
)
def test_names_are_those_of_torchvision(name, blocks, convolutions):
    assert list(on_meta(name).state_dict()) == torchvision_names(blocks, convolutions)


@pytest.mark.parametrize("name", list_models())
def test_every_network_gives_one_logit_a_class(name):
    model = on_meta(name, num_classes=7).eval()
    side = 64 if name in ("mobilenet_v2", "resnet18", "resnet34", "resnet50", "resnet101") else 32
    assert model(torch.empty(2, 3, side, side, device="meta")).shape == (2, 7)


@pytest.mark.parametrize("name", ["fashion_resnet8", "cifar10_resnet", "resnet20", "resnet20_proj"])
def test_normalisation_inside_equals_normalisation_outside(name):
    model = create_model(name)
    images = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    inside = model(images)
    mean, std = (torch.tensor(values).view(3, 1, 1) for values in model.input_norm.statistics)
    model.input_norm = nn.Identity()
    torch.testing.assert_close(inside, model((images - mean) / std))


def test_input_statistics_follow_the_published_weights():
    assert create_model("resnet20").input_norm.statistics == IMAGENET
    assert create_model("resnet20_proj", num_classes=10).input_norm.statistics[1] == (0.2023, 0.1994, 0.2010)
    assert create_model("resnet20_proj", num_classes=100).input_norm.statistics[0] == (0.5070, 0.4865, 0.4409)


def test_input_norm_has_its_values_after_a_move_from_the_meta_device():
    with torch.device("meta"):
        norm = InputNorm(IMAGENET)
    norm.to_empty(device="cpu").reset_parameters()
    assert norm.mean.flatten().tolist() == pytest.approx(IMAGENET[0])


def test_pad_shortcut_takes_every_second_pixel_and_surrounds_the_channels_with_zeros():
    x = torch.arange(2 * 2 * 4 * 4.0).view(2, 2, 4, 4)
    out = PadShortcut(6)(x)
    expected = torch.zeros(2, 6, 2, 2)
    for image in range(2):
        for channel in range(2):
            for row in range(2):
                for column in range(2):
                    expected[image, channel + 2, row, column] = x[image, channel, 2 * row, 2 * column]
    assert torch.equal(out, expected)


def perturb(model):
    """Give the norm layers values that a wrong order of operations would not forgive."""
    generator = torch.Generator().manual_seed(3)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            for tensor in (module.weight.data, module.bias.data, module.running_mean):
                tensor.normal_(0.5, 0.5, generator=generator)
    return model.double().eval()


def normed(x, state, name):
    keys = ("running_mean", "running_var", "weight", "bias")
    return F.batch_norm(x, *(state[f"{name}.{key}"] for key in keys))


def test_wide_resnet_equals_its_equations():
    model = perturb(WideResNet(10, 2, num_classes=4))
    state = model.state_dict()
    images = torch.rand(2, 3, 16, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    x = F.conv2d(images, state["conv1.weight"], padding=1)
    for stage, stride in (("block1", 1), ("block2", 2), ("block3", 2)):
        here = f"{stage}.layer.0"
        active = normed(x, state, f"{here}.bn1").relu()
        out = F.conv2d(active, state[f"{here}.conv1.weight"], stride=stride, padding=1)
        out = F.conv2d(normed(out, state, f"{here}.bn2").relu(), state[f"{here}.conv2.weight"], padding=1)
        x = F.conv2d(active, state[f"{here}.convShortcut.weight"], stride=stride) + out
    features = normed(x, state, "bn1").relu().mean(dim=(2, 3))
    torch.testing.assert_close(model(images), features @ state["fc.weight"].T + state["fc.bias"])


def test_resnext_equals_its_equations():
    model = perturb(CifarResNeXt(11, 2, 4, num_classes=4))
    state = model.state_dict()
    images = torch.rand(2, 3, 16, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    x = F.conv2d(2 * images - 1, state["conv_1_3x3.weight"], padding=1)
    x = normed(x, state, "bn_1").relu()
    for stage, stride in (("stage_1", 1), ("stage_2", 2), ("stage_3", 2)):
        here = f"{stage}.0"
        out = normed(F.conv2d(x, state[f"{here}.conv_reduce.weight"]), state, f"{here}.bn_reduce").relu()
        out = F.conv2d(out, state[f"{here}.conv_conv.weight"], stride=stride, padding=1, groups=2)
        out = F.conv2d(normed(out, state, f"{here}.bn").relu(), state[f"{here}.conv_expand.weight"])
        around = F.conv2d(x, state[f"{here}.downsample.0.weight"], stride=stride)
        x = (normed(out, state, f"{here}.bn_expand") + normed(around, state, f"{here}.downsample.1")).relu()
    logits = x.mean(dim=(2, 3)) @ state["classifier.weight"].T + state["classifier.bias"]
    torch.testing.assert_close(model(images), logits)


def test_residual_block_leaves_its_input_alone():
    x = torch.rand(2, 4, 8, 8)
    before = x.clone()
    Residual(4)(x)
    assert torch.equal(x, before)
