"""DeYO: entropy is not enough for test-time adaptation (Lee et al., 2024)."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grotta import functional as GF
from grotta._check import check_between, check_in_unit_interval, check_whole
from grotta.methods.base import Batch, Learned, Prediction
from grotta.methods.filtering import entropy_limit, mean_over
from grotta.methods.last_stage import SparingTent
from grotta.methods.optimise import descend
from grotta.methods.registry import register


@register("deyo")
class DeYO(SparingTent):
    """Entropy minimisation on samples whose label is in doubt once the shape of the object is destroyed.

    The affine parameters of the norm layers are trained, except those of the last stage. A step on the batch X_t:

    1. Predict P on batch statistics; the output is P, as it was before the update. H is the entropy of a sample.
    2. Keep the samples with H < ``margin`` ln C. Cut each into ``patches`` x ``patches`` pieces and shuffle those; the
       network predicts p' for the result, on the statistics of these images, without gradient.
    3. PLPD = p_y - p'_y, with y = argmax p: how much the label depends on the shape. Keep the samples with
       PLPD > ``shape``. If none is left, here or in 2, nothing is learned.
    4. One gradient step down the mean of (exp(``weight_margin`` ln C - H) + exp(PLPD)) H, the weight without gradient.

    Args:
        lr: of the optimizer; the authors' rates are those of :class:`SAR`.
        optimizer: ``"adam"`` or ``"sgd"``, the latter with momentum 0.9.
        margin: largest entropy to learn from, as a fraction of ln C.
        shape: least PLPD to learn from.
        weight_margin: entropy at which the first weight is 1, as a fraction of ln C.
        patches: pieces per side; at most as many as the image has pixels.
        **options: those of :class:`grotta.methods.Adapter`.

    >>> pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    >>> net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), pool, nn.Linear(8, 5))
    >>> adapter = DeYO(net, margin=1.0, shape=-1.0)
    >>> adapter(torch.rand(4, 3, 16, 16)).shape, adapter.last.adapted
    (torch.Size([4, 5]), True)
    """

    title, place, cost = "DeYO", 130, 3.2

    def __init__(
        self,
        model: nn.Module,
        *,
        margin: float = 0.5,
        shape: float = 0.2,
        weight_margin: float = 0.4,
        patches: int = 4,
        **options: Any,
    ) -> None:
        super().__init__(model, **options)
        self.margin = check_in_unit_interval("margin", margin)
        self.shape = check_between("shape", shape, -1, 1)
        self.weight_margin = check_in_unit_interval("weight_margin", weight_margin)
        self.patches = check_whole("patches", patches, at_least=1)

    def learn(self, batch: Batch, prediction: Prediction, probs: Tensor) -> Learned:
        """One step down the weighted entropy of the samples that are sure for the right reason, if any."""
        with torch.enable_grad():
            logits = prediction.logits.to(self.wide)
            entropies = GF.softmax_entropy(logits)
        certain = entropies.detach()
        sure = certain < entropy_limit(self.margin, self.num_classes)
        if not bool(sure.any()):
            return Learned()
        drop = torch.full_like(certain, -torch.inf)
        drop[sure] = self._drop(batch.inputs[sure], logits.detach()[sure].softmax(1))
        kept = drop > self.shape
        if not bool(kept.any()):
            return Learned()
        weights = (entropy_limit(self.weight_margin, self.num_classes) - certain).exp() + drop.exp()
        with torch.enable_grad():
            loss = mean_over(weights * entropies, kept)
        return Learned(adapted=True, loss=descend(self.optimizer, loss))

    def _drop(self, inputs: Tensor, probs: Tensor) -> Tensor:
        """PLPD (n,) of ``inputs`` (n, C, H, W), for which the network predicts ``probs`` (n, classes)."""
        with torch.inference_mode():
            logits: Tensor = self.student(shuffle_patches(inputs, self.patches, self.generator))[0]
        labels = probs.argmax(1, keepdim=True)
        return (probs - logits.to(self.wide).softmax(1)).gather(1, labels).squeeze(1)


def shuffle_patches(images: Tensor, patches: int, generator: torch.Generator) -> Tensor:
    """``images`` (n, C, H, W) cut into ``patches`` x ``patches`` pieces, each image's in a random order of its own.

    Images whose sides are not multiples are scaled down to the next ones and back.

    >>> shuffle_patches(torch.arange(4.0).view(1, 1, 2, 2), 2, torch.Generator().manual_seed(0)).unique()
    tensor([0., 1., 2., 3.])
    """
    n, channels, *size = images.shape
    rows, columns = (min(patches, side) for side in size)
    whole = [size[0] // rows * rows, size[1] // columns * columns]
    pieces = _resize(images, whole).reshape(n, channels, rows, whole[0] // rows, columns, whole[1] // columns)
    pieces = pieces.permute(0, 2, 4, 1, 3, 5).flatten(1, 2)  # (n, pieces, C, h, w)
    order = torch.rand(n, rows * columns, generator=generator, device="cpu").argsort(1).to(images.device)
    pieces = pieces[torch.arange(n, device=images.device)[:, None], order]
    pieces = pieces.view(n, rows, columns, *pieces.shape[2:])
    shuffled = pieces.permute(0, 3, 1, 4, 2, 5).reshape(n, channels, *whole)
    return torch.empty_like(images).copy_(_resize(shuffled, size))  # in the memory format of the images


def _resize(images: Tensor, size: list[int]) -> Tensor:
    if list(images.shape[2:]) == size:
        return images
    return F.interpolate(images, size, mode="bilinear", antialias=True)
