import math

import pytest
import torch

from grotta.methods import create


def softshrink_by_hand(value, threshold):
    if value > threshold:
        return value - threshold
    if value < -threshold:
        return value + threshold
    return value * 0


def iabn_by_hand(k, alpha, tracking, eps=1e-5):
    """IABN image by image and channel by channel; with ``tracking``, the statistics in the weights move."""

    def norm(x, name, w):
        count, out = x[0, 0].numel(), []
        references = []
        for c in range(x.shape[1]):
            if tracking:
                mean, var = x[:, c].mean(), x[:, c].var(correction=0)
                unbiased = x[:, c].var(correction=1)
                for statistic, value in (("mean", mean), ("var", unbiased)):
                    running = w[f"{name}.running_{statistic}"].clone()
                    running[c] = (1 - alpha) * running[c] + alpha * value.detach()
                    w[f"{name}.running_{statistic}"] = running
            else:
                mean, var = (w[f"{name}.running_{statistic}"][c] for statistic in ("mean", "var"))
            references.append((mean, var))
        for image in x:
            channels = []
            for c, (mean_b, var_b) in enumerate(references):
                mean_i, var_i = image[c].mean(), image[c].var(correction=1)
                s_mean = ((var_b + eps) / count) ** 0.5
                s_var = (var_b + eps) * math.sqrt(2 / (count - 1))
                mean = mean_b + softshrink_by_hand(mean_i - mean_b, k * s_mean)
                var = (var_b + softshrink_by_hand(var_i - var_b, k * s_var)).clamp_min(0)
                channels.append((image[c] - mean) / (var + eps) ** 0.5 * w[f"{name}.weight"][c] + w[f"{name}.bias"][c])
            out.append(torch.stack(channels))
        return torch.stack(out)

    return norm


statistics = tuple(f"norm{i}.running_{s}" for i in (1, 2) for s in ("mean", "var"))


@pytest.mark.parametrize("k", [0.0, 1.0, 4.0])
def test_output_is_iabn_with_the_running_statistics(by_hand, k):
    net, x = by_hand.net(), by_hand.images(5)
    x[2:] *= 0.2  # some images clearly differ from the reference, some do not
    expected, _ = by_hand.forward(by_hand.leaf_weights(net), x, iabn_by_hand(k, 0.01, tracking=False))
    torch.testing.assert_close(create("note", net, iabn_k=k)(x), expected.softmax(1).detach(), rtol=0, atol=1e-10)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_batch_is_predicted_as_its_images_one_by_one(by_hand, dtype):
    adapter = create("note", by_hand.net(dtype=dtype))
    adapter(by_hand.images(70, dtype=dtype))  # past an update: the statistics are no longer those of the source
    x = by_hand.images(9, seed=1, dtype=dtype)
    one_by_one = torch.cat([adapter.predict(image[None]) for image in x])
    torch.testing.assert_close(adapter(x), one_by_one, rtol=0, atol=1e-12 if dtype == torch.float64 else 1e-6)


def test_an_update_is_an_adam_step_down_the_mean_entropy_of_the_memory_and_moves_the_statistics(by_hand):
    """The first 12 samples are the first memory, in whatever order; the update comes in the middle of the batch."""
    net, x = by_hand.net(), by_hand.images(17)
    adapter = create("note", net, capacity=12, update_every=12, lr=0.01, alpha=0.1, iabn_k=1.0)
    adapter(x)
    weights, adam = by_hand.leaf_weights(net), by_hand.Adam(lr=0.01)
    logits, _ = by_hand.forward(weights, x[:12], iabn_by_hand(1.0, 0.1, tracking=True))
    loss = 0.0
    for row in logits:
        for p in row.exp() / row.exp().sum():
            loss = loss - p * (p + 1e-6).log() / (12 * 5)
    assert adapter.last.loss == pytest.approx(loss.item(), abs=1e-10)
    adam.step(weights, loss, by_hand.affine)
    by_hand.assert_same(adapter.student, weights, [*by_hand.affine, *statistics])


def test_updates_come_every_64_samples_whatever_the_batches_are(by_hand):
    adapter = create("note", by_hand.net(dtype=torch.float32))
    passes = []
    adapter.student.register_forward_hook(lambda *_: passes.append(1))
    updates_after = {}
    for call, size in enumerate([1] * 63 + [1, 1, 62, 1, 200, 9]):
        passes.clear()
        adapter(by_hand.images(size, seed=call, dtype=torch.float32))
        if len(passes) > 1:
            updates_after[call] = len(passes) - 1
        assert adapter.last.adapted == (len(passes) > 1)
        assert (adapter.last.loss is not None) == adapter.last.adapted
    # samples seen after these calls: 64, 128, 328 (192, 256 and 320 are in that batch)
    assert updates_after == {63: 1, 66: 1, 67: 3}
    assert adapter.last.bank_size == 64


def test_official_settings_differ_in_the_learning_rate(by_hand):
    rates = [create("note", by_hand.net(), preset=preset).lr for preset in ("paper", "official")]
    assert rates == [1e-3, 1e-4]
