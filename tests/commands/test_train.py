"""grotta train, from pictures on a disk to a model card."""

import json
import shutil

import numpy as np
import pytest
import torch
from PIL import Image

from grotta.bench.grid import make_grid
from grotta.cli import main
from grotta.commands import source_data
from grotta.commands import train as command
from grotta.commands.train import RecipeOptions
from grotta.data.registry import ENTRIES
from grotta.data.sets import fashion
from grotta.models import create_model, training
from grotta.models.state_file import read_metadata, read_state


@pytest.fixture
def pictures(tmp_path):
    """Two domains of bright and dark pictures."""
    generator = np.random.default_rng(0)
    for domain in ("photo", "sketch"):
        for label, level in (("dark", 40), ("light", 200)):
            folder = tmp_path / "pictures" / domain / label
            folder.mkdir(parents=True)
            for index in range(10):
                pixels = generator.integers(level - 30, level + 30, (24, 24, 3), dtype=np.uint8)
                Image.fromarray(pixels).save(folder / f"{index}.png")
    return tmp_path / "pictures"


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as stop:
        main(["train", *map(str, arguments)])
    output = capsys.readouterr()
    return stop.value.code, output.out, output.err


def small(pictures, out, *more):
    size = ("--image-size", 16, "--batch-size", 6, "--lr", 0.02)
    return (f"folder:{pictures}", "--domain", "photo", "--model", "fashion_resnet8", "--out", out, *size, *more)


def test_trains_on_one_domain_and_writes_model_card_and_checkpoint(pictures, tmp_path, capsys):
    code, out, err = run(
        capsys, *small(pictures, tmp_path / "out", "--epochs", 4, "--half", "--json", "--note", "Seen twice.")
    )
    assert code == 0
    assert [line.split(":")[0] for line in err.splitlines()] == [f"epoch {n}/4" for n in (1, 2, 3, 4)]
    card = json.loads(out)
    assert (card["data"]["trained_images"], card["data"]["measured_images"]) == (18, 2)
    assert card["recipe"]["epochs"] == 4
    assert card["command"].endswith("--domain photo --image-size 16 --epochs 4 --batch-size 6 --lr 0.02 --half")
    names = {"fashion_resnet8" + end for end in (".safetensors", ".json", ".md", ".checkpoint.pt")}
    assert {path.name for path in (tmp_path / "out").iterdir()} == names
    file = tmp_path / "out" / "fashion_resnet8.safetensors"
    assert json.loads(read_metadata(file)["card"]) == card == json.loads(file.with_suffix(".json").read_text())
    assert "\nSeen twice.\n" in file.with_suffix(".md").read_text()
    assert f"Accuracy **{100 * card['accuracy']:.2f} %**" in file.with_suffix(".md").read_text()
    assert create_model("fashion_resnet8", file).classifier.out_features == 2


def test_resuming_gives_the_same_bits_as_training_at_one_go(pictures, tmp_path, capsys, monkeypatch):
    assert run(capsys, *small(pictures, tmp_path / "whole", "--epochs", 2))[0] == 0
    real = training.train

    def killed_after_one_epoch(*arguments, on_epoch, **options):
        def stop(result):
            on_epoch(result)
            raise KeyboardInterrupt

        return real(*arguments, on_epoch=stop, **options)

    monkeypatch.setattr(training, "train", killed_after_one_epoch)
    assert run(capsys, *small(pictures, tmp_path / "parts", "--epochs", 2))[0] == 130
    monkeypatch.undo()
    assert run(capsys, *small(pictures, tmp_path / "parts", "--epochs", 2, "--resume"))[0] == 0
    whole, parts = (read_state(tmp_path / name / "fashion_resnet8.safetensors") for name in ("whole", "parts"))
    assert all(torch.equal(whole[name], parts[name]) for name in whole)


def test_starts_from_given_weights_with_a_new_classifier(pictures, tmp_path, capsys):
    torch.save(create_model("fashion_resnet8", seed=3).state_dict(), tmp_path / "ten.pth")
    weights = ("--weights", tmp_path / "ten.pth", "--lr", 0, "--epochs", 1, "--json")
    code, out, _ = run(capsys, *small(pictures, tmp_path / "out", *weights))
    assert code == 0
    assert json.loads(out)["start"] == "ten.pth, with a new classifier"
    trained = read_state(tmp_path / "out" / "fashion_resnet8.safetensors")
    assert torch.equal(trained["features.0.0.weight"], read_state(tmp_path / "ten.pth")["features.0.0.weight"])
    assert trained["classifier.weight"].shape[0] == 2


def test_pictures_that_do_not_fit_in_memory_are_read_batch_by_batch(pictures, monkeypatch):
    source = source_data.open_source(f"folder:{pictures}", ["sketch"], 16, None)
    whole = source_data.domain_split(source, ["sketch"], seed=0)
    monkeypatch.setattr(source_data, "_IN_MEMORY_BYTES", 0)
    lazy = source_data.domain_split(source, ["sketch"], seed=0)
    assert isinstance(whole.images, torch.Tensor)
    assert not isinstance(lazy.images, torch.Tensor)
    indices = torch.tensor([3, 0, 11])
    assert torch.equal(lazy.images[indices], whole.images[indices])


def test_training_and_measuring_share_no_picture():
    trained, measured = source_data.held_out(37, seed=4)
    assert sorted([*trained.tolist(), *measured.tolist()]) == list(range(37))
    assert len(measured) == 4


@pytest.mark.parametrize("name", ["fashion", "fashion-c"])
def test_the_clean_set_behind_corruptions_is_trained_on(name, tmp_path, monkeypatch):
    monkeypatch.setattr(fashion, "SYSTEM_FOLDER", tmp_path / "none")
    pixels = np.arange(5 * 28 * 28, dtype=np.uint32).astype(np.uint8).reshape(5, 28, 28)
    for kind, values in (("images-idx3", pixels), ("labels-idx1", np.array([3, 0, 9, 9, 1], np.uint8))):
        header = bytes([0, 0, 8, values.ndim]) + np.array(values.shape, ">u4").tobytes()
        (tmp_path / f"train-{kind}-ubyte").write_bytes(header + values.tobytes())
    split = source_data.choose_split(source_data.open_source(name, [], 224, tmp_path), [], seed=0)
    assert (split.data.dataset, split.data.trained_on, split.data.trained_images) == (
        "fashion-c",
        "the training pictures",
        5,
    )
    assert (split.data.measured_on, split.data.measured_images) == ("the test pictures", 10_000)
    assert split.labels.tolist() == [3, 0, 9, 9, 1]
    assert torch.equal(split.images[torch.tensor([4])][0, 1, 2:-2, 2:-2], torch.from_numpy(pixels[4]))


def test_several_domains_are_trained_on_together(pictures, monkeypatch):
    source = source_data.open_source(f"folder:{pictures}", ["sketch", "photo"], 16, None)
    split = source_data.choose_split(source, ["sketch", "photo"], seed=0)
    parts = [source_data.domain_split(source, [domain], seed=0) for domain in ("sketch", "photo")]
    assert split.data.trained_on == "nine tenths of domains sketch, photo"
    assert (split.data.trained_images, split.data.measured_images) == (36, 4)
    indices = torch.tensor([20, 3, 35, 17, 18])
    every = torch.cat([part.images[torch.arange(18)] for part in parts])
    assert torch.equal(split.images[indices], every[indices])
    assert torch.equal(split.labels, torch.cat([part.labels for part in parts]))


WNIDS = [f"n{number:08d}" for number in range(1000, 1020)]


@pytest.fixture
def imagenet(tmp_path, monkeypatch):
    """A data root with a few pictures of an ImageNet of 20 classes: three to train on, two to validate with."""
    monkeypatch.setattr("grotta.data.sets.imagenet.NUM_CLASSES", len(WNIDS))
    monkeypatch.setenv("GROTTA_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("GROTTA_DATA", raising=False)
    for split, labels in (("train", (0, 7, 19)), ("val", (7, 19))):
        for wnid in WNIDS:
            (tmp_path / "imagenet" / split / wnid).mkdir(parents=True)
        for label in labels:
            path = tmp_path / "imagenet" / split / WNIDS[label] / f"{split}_{label}.JPEG"
            Image.new("RGB", (24, 20), (label % 256, 0, 0)).save(path)
    return tmp_path


def train_on_imagenet(capsys, root, name, *more):
    options = ("--model", "fashion_resnet8", "--epochs", 1, "--image-size", 16, "--lr", 0, "--json", *more)
    code, out, err = run(capsys, name, "--data-root", root, "--out", root / "out", *options)
    return code, json.loads(out)["data"] if out else {}, err


@pytest.mark.parametrize("name", ["imagenet", "imagenet-c"])
def test_imagenet_is_trained_on_its_training_and_measured_on_its_validation_pictures(imagenet, capsys, name):
    code, data, _ = train_on_imagenet(capsys, imagenet, name)
    assert code == 0
    assert (data["dataset"], data["num_classes"], data["image_shape"]) == ("imagenet", 20, [3, 16, 16])
    assert (data["trained_on"], data["trained_images"]) == ("the training pictures", 3)
    assert (data["measured_on"], data["measured_images"]) == ("the validation pictures", 2)


@pytest.mark.parametrize("place", ["imagenet/train", "ImageNet/train", "ILSVRC2012/train", "train"])
def test_training_pictures_are_listed_where_training_looks_for_them(imagenet, place):
    (imagenet / place).parent.mkdir(exist_ok=True)
    (imagenet / "imagenet" / "train").rename(imagenet / place)
    here = dict(ENTRIES["imagenet"].find([imagenet]).here)
    assert here == {"val": imagenet / "imagenet" / "val", "train": imagenet / place}


def test_labels_of_imagenet_are_places_among_the_class_folders(imagenet):
    split = source_data.choose_split(source_data.open_source("imagenet", [], 16, imagenet), [], seed=0)
    assert split.labels.tolist() == [0, 7, 19]
    assert split.measured[1].tolist() == [7, 19]
    assert split.images[torch.tensor([1])].shape == (1, 3, 16, 16)


@pytest.mark.parametrize("name", ["imagenet", "imagenet-c"])
def test_without_training_pictures_imagenet_is_split_from_its_validation_pictures(imagenet, capsys, name):
    shutil.rmtree(imagenet / "imagenet" / "train")
    code, data, _ = train_on_imagenet(capsys, imagenet, name)
    assert code == 0
    assert (data["trained_on"], data["trained_images"]) == ("nine tenths of domain val", 1)
    assert (data["measured_on"], data["measured_images"]) == ("the other tenth of domain val", 1)


def test_without_validation_pictures_imagenet_is_split_from_its_training_pictures(imagenet, capsys):
    shutil.rmtree(imagenet / "imagenet" / "val")
    code, data, _ = train_on_imagenet(capsys, imagenet, "imagenet")
    assert code == 0
    assert (data["trained_on"], data["trained_images"]) == ("nine tenths of domain train", 2)


def test_validation_pictures_may_be_beside_a_list_of_labels(imagenet, capsys):
    shutil.rmtree(imagenet / "imagenet" / "val")
    (imagenet / "imagenet-val-1k").mkdir()
    Image.new("RGB", (24, 20)).save(imagenet / "imagenet-val-1k" / "0.png")
    (imagenet / "imagenet-val-1k" / "labels.json").write_text('{"0.png": 19}')
    code, data, _ = train_on_imagenet(capsys, imagenet, "imagenet")
    assert code == 0
    assert (data["trained_images"], data["measured_images"]) == (3, 1)


def test_other_class_folders_for_validation_are_refused(imagenet, capsys):
    (imagenet / "imagenet" / "val" / WNIDS[5]).rename(imagenet / "imagenet" / "val" / "n99999999")
    code, _, err = train_on_imagenet(capsys, imagenet, "imagenet")
    assert code == 2
    assert "imagenet/val are not those of" in err


def test_one_corruption_of_imagenet_can_be_trained_on(imagenet, capsys):
    code, data, _ = train_on_imagenet(capsys, imagenet, "imagenet-c", "--domain", "contrast")
    assert code == 0
    assert (data["dataset"], data["trained_on"]) == ("imagenet-c", "nine tenths of domain contrast")


def test_the_only_domain_needs_no_name(pictures, tmp_path, capsys):
    shutil.rmtree(pictures / "sketch")
    options = ("--model", "fashion_resnet8", "--epochs", 1, "--image-size", 16, "--json")
    code, out, _ = run(capsys, f"folder:{pictures}", "--out", tmp_path / "out", *options)
    assert code == 0
    assert json.loads(out)["data"]["trained_on"] == "nine tenths of domain photo"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--model", "resnet99"], "got 'resnet99'"),
        (["--domain", "cartoon"], "cartoon"),
        (["--weights", "nothing.pth"], "no file of weights at nothing.pth"),
        (["--shift", "2"], r"shift must be in [0, 1), got 2.0"),
        (["--epochs", "0"], "epochs must be at least 1, got 0"),
        (["--lr", "inf"], "lr must be finite, got inf"),
        (["--device", "foo"], "device must be one that works here (cpu, cuda, cuda:1, ...), got 'foo'"),
        (["--device", "cuda:99"], "device must be one that works here (cpu, cuda, cuda:1, ...), got 'cuda:99'"),
        (["--device", "meta"], "device must be one that works here (cpu, cuda, cuda:1, ...), got 'meta'"),
    ],
)
def test_a_bad_option_is_one_line_without_traceback_and_nothing_is_written(pictures, tmp_path, capsys, change, message):
    code, _, err = run(capsys, *small(pictures, tmp_path / "out", *change))
    assert code in (1, 2)
    assert message in err
    assert "Traceback" not in err
    assert not (tmp_path / "out").exists()


def test_a_diverged_training_writes_no_model(pictures, tmp_path, capsys):
    code, _, err = run(capsys, *small(pictures, tmp_path / "out", "--lr", 1e30))
    assert code == 2
    assert "lr must be smaller than 1e+30: the training diverged in epoch 1" in err
    assert list((tmp_path / "out").iterdir()) == []


def test_an_unusable_folder_is_noticed_before_the_first_step(pictures, tmp_path, capsys, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(training, "train", lambda *_, **__: pytest.fail("training began"))
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        code, _, err = run(capsys, *small(pictures, out))
        assert code == 1
        assert f"out must be a folder that can be written to, got {str(out)!r}" in err


def test_resuming_without_a_checkpoint_says_that_it_starts_over(pictures, tmp_path, capsys):
    code, _, err = run(capsys, *small(pictures, tmp_path / "out", "--epochs", 1, "--resume"))
    assert code == 0
    path = tmp_path / "out" / "fashion_resnet8.checkpoint.pt"
    assert err.splitlines()[0] == f"no checkpoint at {path}: starting over"


def test_without_a_domain_the_choice_is_named(pictures, tmp_path, capsys):
    code, _, err = run(capsys, f"folder:{pictures}", "--model", "resnet20", "--out", tmp_path / "out")
    assert code == 2
    assert "domain must be chosen with --domain" in err
    assert "photo, sketch" in err


def test_without_a_model_one_is_asked_for(pictures, tmp_path, capsys):
    code, _, err = run(capsys, f"folder:{pictures}", "--domain", "photo", "--out", tmp_path / "out")
    assert code == 2
    assert "model must be chosen with --model" in err


def test_an_earlier_run_is_not_overwritten(pictures, tmp_path, capsys):
    assert run(capsys, *small(pictures, tmp_path / "out", "--epochs", 1))[0] == 0
    code, _, err = run(capsys, *small(pictures, tmp_path / "out", "--epochs", 1))
    assert code == 2
    assert "continue with --resume, or choose another --out" in err


@pytest.fixture
def trained(pictures, tmp_path, capsys):
    """A finished training of one epoch."""
    assert run(capsys, *small(pictures, tmp_path / "out", "--epochs", 1))[0] == 0
    return tmp_path / "out"


def test_pictures_of_another_size_are_not_gone_on_with(pictures, trained, capsys):
    card = (trained / "fashion_resnet8.json").read_bytes()
    code, _, err = run(capsys, *small(pictures, trained, "--epochs", 1, "--resume", "--image-size", 12))
    assert code == 2
    assert "other data (image shape: [3, 16, 16] there, [3, 12, 12] now)" in err
    assert (trained / "fashion_resnet8.json").read_bytes() == card


@pytest.mark.parametrize("count", [0, 5])
def test_a_class_that_came_later_is_not_gone_on_with(pictures, trained, capsys, count):
    folder = pictures / "photo" / "middle"
    folder.mkdir()
    for index in range(count):
        Image.new("RGB", (24, 24), (128, 128, 128)).save(folder / f"{index}.png")
    code, _, err = run(capsys, *small(pictures, trained, "--epochs", 1, "--resume"))
    assert code == 2
    assert "fashion_resnet8.checkpoint.pt" in err
    assert ("training images: 18 there" in err) if count else ("the file has 2 classes, the model 3" in err)


def test_weights_of_an_earlier_training_bring_its_command_along():
    _, start = command.prepare_model("fashion_resnet8", "bundled", num_classes=10, seed=0)
    assert start.startswith("fashion_resnet8.safetensors (`grotta train fashion --model fashion_resnet8 ")
    assert start.endswith("accuracy 92.46 %)")


def test_the_options_have_the_defaults_of_a_recipe():
    assert RecipeOptions().recipe() == training.Recipe()


def test_a_network_is_refused_on_classes_of_other_names_or_in_another_order(pictures, tmp_path, capsys):
    assert run(capsys, *small(pictures, tmp_path / "out", "--epochs", 1))[0] == 0
    assert make_one(pictures, tmp_path / "out").domains == ("sketch",)
    for domain in ("photo", "sketch"):
        (pictures / domain / "light").rename(pictures / domain / "a light")  # now before "dark"
    with pytest.raises(
        ValueError, match=r"the classes of folder:.*, a light, dark, in this order; .* for dark, light \(a csv:"
    ):
        make_one(pictures, tmp_path / "out")


def make_one(pictures, out):
    weights = out / "fashion_resnet8.safetensors"
    [spec] = make_grid(
        methods=["bn"],
        dataset=f"folder:{pictures}",
        domains=["sketch"],
        model=f"fashion_resnet8@{weights}",
        gammas=[0.1],
        image_size=16,
    )
    return spec
