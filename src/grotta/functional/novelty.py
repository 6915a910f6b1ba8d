"""Whether images still look as those before them: what a new domain changes, and other labels do not."""

from typing import NamedTuple

import torch
from torch import Tensor

SIGNS = 15  # of an image
LEAST_VAR = 1e-4  # of colours in [0, 1], and of the signs
FADE = 0.98  # what is kept of an offset's weight over SAMPLES images
SAMPLES = 64
LONGEST = 1024.0  # images that means and variances are of, at most
LEARNS_NOISE = 0.1  # speed at which the noise level follows, per SAMPLES images
FIRST_NOISE = 2.0
CLIP = 3.0  # of surprises, where the noise level is learned: a new domain is not noise
NEW_DOMAIN = 25.0  # images this many times as far from the usual ones as expected are of a new domain ...
KNOWN = 128.0  # ... if so many have shown what is usual


class Usual(NamedTuple):
    """What images have looked like, lately and in this domain."""

    mean: Tensor  # (SIGNS,), if every class had its offset taken out; or (D, SIGNS), of several domains
    images: Tensor  # 0-dim, of this domain that say so, at most LONGEST; or (D,)
    var: Tensor  # (SIGNS,), between images of one class
    seen: Tensor  # 0-dim, images of all domains, at most LONGEST
    noise: Tensor  # how many times as far as independent images the mean of a batch usually lies; 0-dim
    offsets: Tensor  # (K, SIGNS), of the mean of each class
    offset_images: Tensor  # (K,), that say so


class Novelty(NamedTuple):
    """How images differ from the usual ones of their classes."""

    apart: Tensor  # (SIGNS,), on average; or (D, SIGNS), from several domains
    surprise: Tensor  # the mean of its squares, in units of the variance between images; 0-dim or (D,)
    foreseen: Tensor  # how much of that the offsets of little known classes would explain; 0-dim
    images: Tensor  # 1 / (1 / images + 1 / usual ones): how much the mean tells; 0-dim or (D,)

    def is_another_domain(self, usual: Usual) -> Tensor:
        """Whether that is too much for the same domain; of truth values."""
        return (usual.seen >= KNOWN) & (self.surprise > NEW_DOMAIN * (usual.noise / self.images + self.foreseen))


def signs(images: Tensor) -> Tensor:
    """What tells domains apart, of images (B, C, H, W) in [0, 1]: (B, SIGNS).

    Of three channels (the first, the middle and the last) the mean, and the logarithms of the variance, of the energy
    of edges across and down, and of that of detail.

    >>> flat, noisy = torch.full((1, 3, 8, 8), 0.5), torch.rand(1, 3, 8, 8)
    >>> signs(flat).shape, bool((signs(noisy)[:, 3:] > signs(flat)[:, 3:]).all())
    (torch.Size([1, 15]), True)
    """
    channels = images.shape[1]
    x = (images if channels == 3 else images[:, [0, channels // 2, channels - 1]]).contiguous()
    mean = x.mean((2, 3))
    across, down = x[..., 1:] - x[..., :-1], x[..., 1:, :] - x[..., :-1, :]
    detail = across[..., 1:] - across[..., :-1]
    parts = (x - mean[:, :, None, None], across, down, detail)
    energies = [
        torch.linalg.vector_norm(part.flatten(2), dim=2).square() / max(part[0, 0].numel(), 1) for part in parts
    ]
    return torch.cat([mean, (torch.cat(energies, 1) + LEAST_VAR).log()], 1)


def nothing_usual(classes: int, like: Tensor) -> Usual:
    """Before the first image; of the type of ``like``."""
    zero, offsets = like.new_zeros(()), like.new_zeros(classes, SIGNS)
    mean, var = like.new_zeros(SIGNS), like.new_ones(SIGNS)
    return Usual(mean, zero, var, zero, zero + FIRST_NOISE, offsets, offsets[:, 0])


def novelty(usual: Usual, seen: Tensor, labels: Tensor) -> Novelty:
    """How images with signs ``seen`` (B, SIGNS) of classes ``labels`` (B, K) differ from the usual ones.

    Other labels are no news: each image is compared with what is usual for its class. A class that few images have
    been seen of may lie anywhere; it is expected to lie as far off as two images of one class.
    """
    return _novelty(usual, _unexplained(usual, seen, labels), labels)


def _novelty(usual: Usual, unexplained: Tensor, labels: Tensor) -> Novelty:
    apart = unexplained.mean(0) - usual.mean
    return Novelty(
        apart,
        (apart.square() / usual.var).mean(-1),
        (labels.mean(0).square() / (1 + usual.offset_images)).sum(),
        1 / (1 / len(labels) + 1 / usual.images.clamp_min(1)),
    )


def usual_after(usual: Usual, seen: Tensor, labels: Tensor, begins: Tensor) -> Usual:
    """What is usual after images with signs ``seen`` (B, SIGNS) of classes ``labels`` (B, K).

    Args:
        usual: what was, in their domain; with ``usual.images`` 0 if it has not been seen before.
        seen: the signs.
        labels: the classes.
        begins: whether they are the first of the domain, or of its return; 0-dim, of truth values.
    """
    size = len(seen)
    share = size / SAMPLES
    first = usual.seen == 0
    unexplained = _unexplained(usual, seen, labels)
    news = _novelty(usual, unexplained, labels)
    apart = torch.where(first, seen.mean(0), news.apart)
    mean = torch.addcmul(usual.mean, apart, size / (usual.images + size))

    level = (news.surprise - news.foreseen).clamp_min(0) * news.images
    noise = torch.lerp(usual.noise, torch.minimum(level, CLIP * usual.noise), 1 - (1 - LEARNS_NOISE) ** share)
    noise = torch.where(first | begins, usual.noise, noise).clamp_min(1)

    within = (unexplained - (usual.mean + apart)).square().mean(0) + LEAST_VAR
    within = torch.lerp(usual.var, within, size / (usual.seen + size))
    var = torch.where(first, seen.var(0, unbiased=False) + LEAST_VAR, within)

    before = usual.offset_images * FADE**share
    after = before + labels.sum(0)
    sums = torch.addmm(usual.offsets * before[:, None], labels.T, seen - mean)
    offsets = sums / after.clamp_min(torch.finfo(after.dtype).tiny)[:, None]
    images, all_images = ((n + size).clamp(max=LONGEST) for n in (usual.images, usual.seen))
    return Usual(mean, images, var, all_images, noise, offsets, after)


def _unexplained(usual: Usual, seen: Tensor, labels: Tensor) -> Tensor:
    """The signs, less the offsets of classes that images have been seen of; the others are taken to be zero."""
    known = usual.offsets * (usual.offset_images / (usual.offset_images + 1))[:, None]
    return torch.addmm(seen, labels, known, alpha=-1)
