"""Networks by name."""

import pytest
import torch

from grotta.models import create_model, list_models


def test_listing_is_sorted_and_takes_wildcards():
    assert list_models() == sorted(list_models())
    assert list_models("resnet??_proj") == ["resnet20_proj", "resnet32_proj", "resnet44_proj", "resnet56_proj"]
    assert list_models("resnet110*") == ["resnet110", "resnet110_proj"]
    assert list_models("nothing*") == []


def test_the_networks_of_the_paper_are_there():
    wanted = {"wrn28_10", "resnext29_4x32d", "resnet50", "mobilenet_v2", "resnet20", "resnet110", "resnet56_proj"}
    assert wanted <= set(list_models())


def test_same_seed_gives_the_same_bits_and_another_seed_others():
    first, again, other = (create_model("resnet20", seed=seed).state_dict() for seed in (3, 3, 4))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["conv1.weight"], other["conv1.weight"])


def test_the_global_generator_is_not_used():
    before = torch.random.get_rng_state()
    create_model("fashion_resnet8", seed=1)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_models_come_in_evaluation_mode_with_every_tensor_written():
    model = create_model("mobilenet_v2", num_classes=3)
    assert not model.training
    assert all(torch.isfinite(tensor).all() for tensor in model.state_dict().values())
    assert torch.isfinite(model(torch.rand(1, 3, 32, 32))).all()


def test_an_unknown_name_is_answered_with_close_ones():
    with pytest.raises(ValueError, match=r"name must be one of .*resnet56, .*resnet50, got 'resnet5'"):
        create_model("resnet5")
    with pytest.raises(ValueError, match=r"wrn28_10, got 'swin'"):
        create_model("swin")


def test_bad_number_of_classes_is_named():
    with pytest.raises(ValueError, match="num_classes must be at least 1, got 0"):
        create_model("resnet20", num_classes=0)


def test_number_of_classes_comes_from_the_weights(tmp_path):
    torch.save(create_model("resnet20", num_classes=6).state_dict(), tmp_path / "six.pt")
    assert create_model("resnet20", tmp_path / "six.pt").linear.out_features == 6


def test_weights_that_are_not_bundled_are_refused_with_those_that_are():
    with pytest.raises(ValueError, match=r"no weights are bundled for 'wrn28_10'.*fashion_resnet8"):
        create_model("wrn28_10", weights="bundled")
