import torch

from grotta.methods import create


def hard_cross_entropy_by_hand(logits):
    total = 0.0
    for row in logits:
        label = max(range(len(row)), key=lambda c: row[c].item())
        total = total - (row[label] - row.exp().sum().log())
    return total / len(logits)


def test_output_is_the_prediction_of_before_the_update_and_the_update_is_adam_on_hard_labels(by_hand):
    by_hand.assert_adam_on("pl", hard_cross_entropy_by_hand)


def test_unsure_labels_count_in_full(by_hand):
    """No threshold: even for a prediction close to uniform the affine parameters move."""
    net = by_hand.net()
    with torch.no_grad():
        net.head.weight.mul_(1e-3)
        net.head.bias.zero_()
    adapter = create("pl", net)
    before = adapter.student.body.norm1.weight.clone()
    adapter(by_hand.images(4))
    assert adapter.last.confidence < 0.25
    assert not adapter.student.body.norm1.weight.equal(before)
