"""What a camera's electronics or a file format does: contrast, brightness, coarse pixels, JPEG."""

from __future__ import annotations

from io import BytesIO

import numpy as np
from PIL import Image

from grotta.data.corruptions.hsv import hsv_to_rgb, rgb_to_hsv
from grotta.data.corruptions.pixels import Images, to_bytes, to_unit
from grotta.data.corruptions.registry import corruption


@corruption("contrast", cifar=(0.75, 0.5, 0.4, 0.3, 0.15), imagenet=(0.4, 0.3, 0.2, 0.1, 0.05))
def contrast(images: Images, factor: float) -> Images:
    """Pull (B, H, W, 3) towards the mean m of each channel: (x - m) factor + m."""
    height, width = images.shape[1:3]
    # Whole numbers add up exactly, so that a picture of one colour stays what it is.
    mean = images.sum(axis=(1, 2), keepdims=True, dtype=np.int64) / (255.0 * height * width)
    values = to_unit(images)
    values -= mean
    values *= factor
    values += mean
    return to_bytes(values)


@corruption("brightness", cifar=(0.05, 0.1, 0.15, 0.2, 0.3), imagenet=(0.1, 0.2, 0.3, 0.4, 0.5))
def brightness(images: Images, shift: float) -> Images:
    """Add ``shift`` to the value V = max(R, G, B) of HSV; hue and saturation stay."""
    hue, saturation, value = rgb_to_hsv(to_unit(images))
    return to_bytes(hsv_to_rgb(hue, saturation, np.minimum(value + shift, 1.0)))


@corruption("pixelate", cifar=(0.95, 0.9, 0.85, 0.75, 0.65), imagenet=(0.6, 0.5, 0.4, 0.3, 0.25))
def pixelate(images: Images, share: float) -> Images:
    """Shrink (B, H, W, 3) to ``share`` of its sides and stretch it back, both by box averaging in 8 bits."""
    height, width = images.shape[1:3]
    small = (max(1, int(width * share)), max(1, int(height * share)))
    result = np.empty_like(images)
    for image, target in zip(images, result, strict=True):
        coarse = Image.fromarray(image).resize(small, Image.Resampling.BOX)
        target[...] = np.asarray(coarse.resize((width, height), Image.Resampling.BOX))
    return result


@corruption("jpeg_compression", cifar=(80, 65, 58, 50, 40), imagenet=(25, 18, 15, 10, 7))
def jpeg_compression(images: Images, quality: int) -> Images:
    """Write (B, H, W, 3) as JPEG of the given quality and read it again."""
    result = np.empty_like(images)
    for image, target in zip(images, result, strict=True):
        file = BytesIO()
        Image.fromarray(image).save(file, "JPEG", quality=quality)
        target[...] = np.asarray(Image.open(file))
    return result
