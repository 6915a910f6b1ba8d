"""The strong view of a batch: nine operations with one draw of parameters, straight to the crop.

The view is: clip to [0, 1]; brightness, contrast, saturation, hue and gamma in random order; pad by half the size with
edge values; rotate, shift and scale (bilinear, zeros outside); 5x5 Gaussian blur; centre crop; flip; add pixel
noise; clip. Drawing (`draw`) is separate from applying (`apply`), which is a pure function: the same parameters give
the same bits on one kind of device.

Every shortcut here is exact, not an approximation:

- pad, affine, crop and flip are one resampling of the unpadded image to the crop and the blur's margin, since sampling
  with clamped coordinates is sampling an edge-padded image;
- a hue shift of less than one sixth of the circle is a piecewise linear map of (r, g, b), a few minima and maxima
  without any division or branch;
- a clip is left out where the operation before it cannot leave [0, 1]; a blur tap is left out below rounding;
- on a CPU the batch is worked through in parts that stay in the cache.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

GREY = (0.2989, 0.587, 0.114)  # luma weights of (r, g, b)
_COLOUR_OPERATIONS = ("brightness", "contrast", "saturation", "hue", "gamma")
_CACHE_ELEMENTS = 2**18  # one part of a batch on a CPU: a few buffers of 1 MiB stay in a core's own cache
_NO_BLUR = 0.001  # pixels: no neighbour of a pixel has a weight above rounding
_SMALLEST = 4  # pixels: below, half of the size is less than the blur's radius of 2


@dataclass(frozen=True)
class StrongParams:
    """One draw of the strong view, for a whole batch; plain numbers, so it can be stored, compared and replayed."""

    order: tuple[str, ...]  # of the five colour operations
    brightness: float
    contrast: float
    saturation: float
    hue: float  # shift in turns
    gamma: float
    angle: float  # degrees, clockwise
    translate: tuple[int, int]  # pixels to the right and down
    scale: float
    sigma: float  # of the blur, in pixels
    flip: bool
    noise: float  # standard deviation
    noise_seed: int
    padding: str = "replicate"  # what is outside of the image, up to half of its size: its edge, or its "reflect"ion


def strong_view(x: Tensor, generator: torch.Generator) -> Tensor:
    """Draw parameters and apply them to `x` (B, ch, H, W), float in [0, 1] or uint8.

    >>> view = strong_view(torch.rand(8, 3, 32, 32), torch.Generator().manual_seed(0))
    >>> view.shape, bool((view >= 0).all() and (view <= 1).all())
    (torch.Size([8, 3, 32, 32]), True)
    """
    check_viewable(x)
    return apply(x, draw(generator, x.shape[-2], x.shape[-1]))


def mild_view(x: Tensor, generator: torch.Generator) -> Tensor:
    """As :func:`strong_view`, without blur and noise, and with the image reflected at its borders (ROID).

    >>> mild_view(torch.rand(8, 3, 32, 32), torch.Generator().manual_seed(0)).shape
    torch.Size([8, 3, 32, 32])
    """
    check_viewable(x)
    params = draw(generator, x.shape[-2], x.shape[-1])
    return apply(x, replace(params, sigma=_NO_BLUR, noise=0.0, padding="reflect"))


def draw(generator: torch.Generator, height: int, width: int) -> StrongParams:
    """Draw the parameters of one strong view of images of `height` x `width` from a CPU `generator`.

    >>> first, second = (draw(torch.Generator().manual_seed(3), 32, 32) for _ in range(2))
    >>> first == second, 0.6 <= first.brightness <= 1.4
    (True, True)
    """
    uniforms = iter(torch.rand(11, generator=generator, dtype=torch.float64, device="cpu").tolist())

    def uniform(low: float, high: float) -> float:
        return low + (high - low) * float(next(uniforms))

    def shift(size: int) -> int:
        limit = (size + 2 * (size // 2)) / 16
        return round(uniform(-limit, limit))

    return StrongParams(
        order=tuple(_COLOUR_OPERATIONS[i] for i in torch.randperm(5, generator=generator, device="cpu").tolist()),
        brightness=uniform(0.6, 1.4),
        contrast=uniform(0.7, 1.3),
        saturation=uniform(0.5, 1.5),
        hue=uniform(-0.06, 0.06),
        gamma=uniform(0.7, 1.3),
        angle=uniform(-15.0, 15.0),
        translate=(shift(width), shift(height)),
        scale=uniform(0.9, 1.1),
        sigma=uniform(0.001, 0.5),
        flip=uniform(0.0, 1.0) < 0.5,
        noise=0.005,
        noise_seed=int(torch.randint(2**63 - 1, (), generator=generator, device="cpu")),
    )


@torch.inference_mode(False)  # a view made inside inference_mode could not be trained on
@torch.no_grad()
def apply(x: Tensor, params: StrongParams) -> Tensor:
    """Apply the nine operations to `x` (B, ch, H, W): float in [0, 1] or uint8, 3 channels (rgb) or 1 (grey).

    Returns float64 for float64, else float32, in the memory format of `x`. Grey images skip saturation and hue.
    The noise comes from a generator on the device of `x`, seeded by `params`, since drawing it on the host and copying
    it would cost more than everything else: the same parameters give the same noise on one kind of device, not across
    kinds.

    >>> x, params = torch.rand(2, 3, 16, 16), draw(torch.Generator().manual_seed(0), 16, 16)
    >>> torch.equal(apply(x, params), apply(x, params))
    True
    """
    check_viewable(x)
    taps = _blur_taps(params.sigma, eps=torch.finfo(_float_type(x)).eps)
    margin = len(taps) - 1
    edges_suffice = params.padding == "replicate" and not _reaches_outside(x.shape[-2], x.shape[-1], params, margin)
    grid = _grid(x, params, margin, edges_suffice)
    result = torch.empty_like(x, dtype=_float_type(x))
    generator = torch.Generator(x.device).manual_seed(params.noise_seed)
    part_size = len(x) if x.device.type != "cpu" else max(1, _CACHE_ELEMENTS // x[0].numel())
    for start in range(0, len(x), part_size):
        images, out = x[start : start + part_size], result[start : start + part_size]
        view = _recolour(_to_unit_range(images), params)
        view = _blur(_resample(view, grid, edges_suffice, params.padding), taps)
        # Always drawn in the order of a contiguous batch: bits must not depend on the memory format.
        noise = torch.empty(images.shape, dtype=view.dtype, device=view.device)
        noise.normal_(0.0, params.noise, generator=generator)
        torch.add(noise, view, alpha=taps[0] ** 2, out=out).clamp_(0, 1)
    return result


def check_viewable(x: Tensor) -> None:
    """Refuse a batch that no strong view can be made of."""
    if x.ndim != 4 or x.numel() == 0:
        raise ValueError(f"x must be a non-empty (B, C, H, W) batch, got shape {tuple(x.shape)}")
    if min(x.shape[-2:]) < _SMALLEST:
        raise ValueError(f"x must be at least {_SMALLEST} pixels high and wide, got {tuple(x.shape[-2:])}")
    if x.dtype != torch.uint8 and not x.is_floating_point():
        raise TypeError(f"x must be uint8 or floating point, got {x.dtype}")


def _float_type(x: Tensor) -> torch.dtype:
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def _to_unit_range(x: Tensor) -> Tensor:
    """Return a new contiguous float batch in [0, 1]."""
    if x.dtype == torch.uint8:
        return x.contiguous().to(torch.float32).div_(255)
    return x.to(_float_type(x), memory_format=torch.contiguous_format, copy=True).clamp_(0, 1)


def _recolour(x: Tensor, params: StrongParams) -> Tensor:
    """Apply the five colour operations in their drawn order, in place; each maps [0, 1] to [0, 1]."""
    rgb = x.shape[1] == 3
    for name in params.order:
        if name == "brightness":
            x.mul_(params.brightness)
            x = x.clamp_(max=1) if params.brightness > 1 else x
        elif name == "contrast":
            planes = x.mean((2, 3), keepdim=True)
            x = _blend(_grey(planes) if rgb else planes, x, params.contrast)
        elif name == "saturation" and rgb:
            x = _blend(_grey(x), x, params.saturation)
        elif name == "hue" and rgb:
            x = _shift_hue(x, params.hue)
        elif name == "gamma":
            # A quarter of the cost of pow. Logarithms of 0 are slow; the floor's own power is below rounding.
            x.clamp_(min=torch.finfo(x.dtype).eps ** 2).log_().mul_(params.gamma).exp_()
    return x


def _grey(x: Tensor) -> Tensor:
    """Weighted mean of the channels, (B, 1, H, W)."""
    return (x[:, :1] * GREY[0]).add_(x[:, 1:2], alpha=GREY[1]).add_(x[:, 2:], alpha=GREY[2])


def _blend(base: Tensor, x: Tensor, factor: float) -> Tensor:
    """Make x factor x + (1 - factor) base, clipped, in place; only a factor above 1 can leave [0, 1]."""
    torch.lerp(base, x, factor, out=x)
    return x.clamp_(0, 1) if factor > 1 else x


def _shift_hue(x: Tensor, turns: float) -> Tensor:
    """Shift the hue of `x` (B, 3, H, W) by `turns` of the circle, |turns| <= 1/6.

    On the HSV hexagon with c = max - min and a shift of d = 6 turns c towards green, only the middle channel moves, by
    d, until it meets the largest or the smallest; what is left of d then moves that one. For red, with t = 2 r - g,
    all six sectors of the hexagon are
        r' = max(min(r, max(b, max(t, r) - d)), min(b, min(t, r) + d))
    and likewise for the others in cyclic order. A negative shift is the same with green and blue exchanged.
    """
    red, green, blue = (0, 1, 2) if turns >= 0 else (0, 2, 1)
    largest = torch.maximum(x[:, 0], x[:, 1]).clamp_(min=x[:, 2])
    smallest = torch.minimum(x[:, 0], x[:, 1]).clamp_(max=x[:, 2])
    shift = largest.sub_(smallest).mul_(6 * abs(turns))
    shifted = torch.empty_like(x)
    for own, following, preceding in ((red, green, blue), (green, blue, red), (blue, red, green)):
        _shift_channel(x[:, own], x[:, following], x[:, preceding], shift, out=shifted[:, own])
    return shifted


def _shift_channel(own: Tensor, following: Tensor, preceding: Tensor, shift: Tensor, out: Tensor) -> None:
    mirrored = torch.lerp(following, own, 2.0)
    high = torch.maximum(mirrored, own, out=out).sub_(shift).clamp_(min=preceding, max=own)
    low = torch.minimum(mirrored, own, out=mirrored).add_(shift).clamp_(max=preceding)
    torch.maximum(high, low, out=out)


def _reaches_outside(height: int, width: int, params: StrongParams, margin: int) -> bool:
    """Tell whether the crop with `margin` pixels around it touches the zeros outside of the padded image.

    For square images of 22 pixels or more it cannot: the farthest corner is at 1.361 (0.625 n + 2) < n - 1/2.

    >>> params = draw(torch.Generator().manual_seed(0), 32, 32)
    >>> _reaches_outside(32, 32, params, margin=2), _reaches_outside(320, 8, params, margin=2)
    (False, True)
    """
    cos, sin = _inverse_rotation(params)
    right, down = params.translate
    half_width, half_height = (width - 1) / 2 + margin, (height - 1) / 2 + margin
    farthest_x = abs(cos) * half_width + abs(sin) * half_height + abs(cos * right + sin * down)
    farthest_y = abs(cos) * half_height + abs(sin) * half_width + abs(cos * down - sin * right)
    return farthest_x > (width - 1) / 2 + width // 2 or farthest_y > (height - 1) / 2 + height // 2


def _inverse_rotation(params: StrongParams) -> tuple[float, float]:
    """Return cos and sin, over the scale, of the map x = cos x' + sin y', y = cos y' - sin x' back to the source."""
    turn = math.radians(params.angle)
    return math.cos(turn) / params.scale, math.sin(turn) / params.scale


def _resample(x: Tensor, grid: Tensor, edges_suffice: bool, padding: str) -> Tensor:
    """Sample `x` (B, ch, H, W) at `grid` (1, H', W', 2), the same for every plane, (B, ch, H', W')."""
    if not edges_suffice:
        x = F.pad(x, _padding(x), mode=padding)
    planes = x.view(1, -1, *x.shape[-2:])  # as channels of one image: the weights are computed once
    outside = "border" if edges_suffice else "zeros"
    sampled = F.grid_sample(planes, grid, mode="bilinear", padding_mode=outside, align_corners=False)
    return sampled.view(*x.shape[:2], *sampled.shape[-2:])


def _grid(x: Tensor, params: StrongParams, margin: int, edges_suffice: bool) -> Tensor:
    """Source coordinates of the crop and its margin for `F.grid_sample`, (1, H + 2 margin, W + 2 margin, 2)."""
    height, width = x.shape[-2:]
    cos, sin = _inverse_rotation(params)
    across = torch.arange(-margin, width + margin, dtype=torch.float64, device="cpu") - (width - 1) / 2
    down = torch.arange(-margin, height + margin, dtype=torch.float64, device="cpu") - (height - 1) / 2
    across = (-across if params.flip else across) - params.translate[0]
    down = down - params.translate[1]
    left, _, top, _ = (0, 0, 0, 0) if edges_suffice else _padding(x)
    per_x, per_y = 2 / (width + 2 * left), 2 / (height + 2 * top)  # grid_sample counts in half image sizes
    # Rows and columns are computed exactly on the host; only their outer sum is made, rounded, on the device.
    terms = (cos * per_x * across, sin * per_x * down, -sin * per_y * across, cos * per_y * down)
    x_by_column, x_by_row, y_by_column, y_by_row = (term.to(x.device, _float_type(x)) for term in terms)
    return torch.stack((x_by_column + x_by_row[:, None], y_by_column + y_by_row[:, None]), dim=-1)[None]


def _padding(x: Tensor) -> tuple[int, int, int, int]:
    """Half of the size on each side: left, right, top, bottom."""
    height, width = x.shape[-2:]
    return width // 2, width // 2, height // 2, height // 2


def _blur_taps(sigma: float, eps: float) -> list[float]:
    """Right half of the 5-tap Gaussian, from its middle, without taps below rounding.

    >>> [round(tap, 4) for tap in _blur_taps(0.5, eps=1e-7)], _blur_taps(0.01, eps=1e-7)
    ([0.7866, 0.1065, 0.0003], [1.0])
    """
    weights = [math.exp(-0.5 * (k / sigma) ** 2) for k in range(3)]
    total = weights[0] + 2 * (weights[1] + weights[2])
    return [weight / total for weight in weights if weight > eps / 4]


def _blur(x: Tensor, taps: list[float]) -> Tensor:
    """Blur `x` (B, ch, H + 2 m, W + 2 m) by the symmetric `taps` of radius m, without its margin: (B, ch, H, W).

    The result is still to be multiplied by taps[0]^2, which the caller's last addition does at no cost.
    Both passes run over the batch as one long row, as fast as memory gives it; neighbours across the ends of rows and
    planes get mixed, but only inside the margin that is cut off.
    """
    margin = len(taps) - 1
    batch, channels, height, width = x.shape
    row = _blur_row(_blur_row(x.flatten(), taps, step=1), taps, step=width)
    size = (batch, channels, height - 2 * margin, width - 2 * margin)
    return row.as_strided(size, (channels * height * width, height * width, width, 1))


def _blur_row(row: Tensor, taps: list[float], step: int) -> Tensor:
    """Blur `row` (n,) over neighbours at multiples of `step`, up to taps[0]; shorter by radius x step at both ends."""
    margin = (len(taps) - 1) * step
    size = len(row) - 2 * margin
    blurred = row[margin : margin + size]
    for k, tap in enumerate(taps[1:], start=1):
        before, after = (row[start : start + size] for start in (margin - k * step, margin + k * step))
        both = before + after
        blurred = torch.add(blurred, both, alpha=tap / taps[0], out=both)
    return blurred
