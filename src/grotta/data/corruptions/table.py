"""The names of the fifteen corruptions and their published constants, severity 1..5 from left to right.

Lengths are in pixels of a 32-pixel picture (scale ``"cifar"``) or a 224-pixel one (scale ``"imagenet"``), as published;
they are not stretched when a picture of another size is given.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

Scale = Literal["cifar", "imagenet"]
SCALES: tuple[Scale, ...] = get_args(Scale)

# The order of the PTTA paper. It is also part of every seed: append, never reorder.
CORRUPTIONS: tuple[str, ...] = (
    "motion_blur",
    "snow",
    "fog",
    "shot_noise",
    "defocus_blur",
    "contrast",
    "zoom_blur",
    "brightness",
    "frost",
    "elastic_transform",
    "glass_blur",
    "gaussian_noise",
    "pixelate",
    "jpeg_compression",
    "impulse_noise",
)


def _times(unit: int, *rows: tuple[float, ...]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(unit * value for value in row) for row in rows)


# fmt: off
CONSTANTS: dict[str, dict[Scale, tuple[Any, ...]]] = {
    # standard deviation
    "gaussian_noise": {"cifar": (.04, .06, .08, .09, .10), "imagenet": (.08, .12, .18, .26, .38)},
    # photons at full brightness
    "shot_noise": {"cifar": (500, 250, 100, 75, 50), "imagenet": (60, 25, 12, 5, 3)},
    # share of the values replaced
    "impulse_noise": {"cifar": (.01, .02, .03, .05, .07), "imagenet": (.03, .06, .09, .17, .27)},
    # radius of the disk, sigma of its smoothing
    "defocus_blur": {
        "cifar": ((.3, .4), (.4, .5), (.5, .6), (1, .2), (1.5, .1)),
        "imagenet": ((3, .1), (4, .5), (6, .5), (8, .5), (10, .5)),
    },
    # sigma, reach, rounds
    "glass_blur": {
        "cifar": ((.05, 1, 1), (.25, 1, 1), (.4, 1, 1), (.25, 1, 2), (.4, 1, 2)),
        "imagenet": ((.7, 1, 2), (.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)),
    },
    # radius, sigma
    "motion_blur": {
        "cifar": ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)),
        "imagenet": ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15)),
    },
    # end, step of the zoom factors
    "zoom_blur": {
        "cifar": ((1.06, .01), (1.11, .01), (1.16, .01), (1.21, .01), (1.26, .01)),
        "imagenet": ((1.11, .01), (1.16, .01), (1.21, .02), (1.26, .02), (1.31, .03)),
    },
    # mean, deviation, zoom, threshold, radius, sigma, share of the picture
    "snow": {
        "cifar": (
            (.1, .2, 1, .6, 8, 3, .95), (.1, .2, 1, .5, 10, 4, .9), (.15, .3, 1.75, .55, 10, 4, .9),
            (.25, .3, 2.25, .6, 12, 6, .85), (.3, .3, 1.25, .65, 14, 12, .8),
        ),
        "imagenet": (
            (.1, .3, 3, .5, 10, 4, .8), (.2, .3, 2, .5, 12, 4, .7), (.55, .3, 4, .9, 12, 8, .7),
            (.55, .3, 4.5, .85, 12, 8, .65), (.55, .3, 2.5, .85, 12, 12, .55),
        ),
    },
    # weight of the picture, weight of the frost
    "frost": {
        "cifar": ((1, .2), (1, .3), (.9, .4), (.85, .4), (.75, .45)),
        "imagenet": ((1, .4), (.8, .6), (.7, .7), (.65, .7), (.6, .75)),
    },
    # strength, decay of the plasma
    "fog": {
        "cifar": ((.2, 3), (.5, 3), (.75, 2.5), (1, 2), (1.5, 1.75)),
        "imagenet": ((1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4)),
    },
    # added to the value of HSV
    "brightness": {"cifar": (.05, .1, .15, .2, .3), "imagenet": (.1, .2, .3, .4, .5)},
    # factor on the distance to the mean
    "contrast": {"cifar": (.75, .5, .4, .3, .15), "imagenet": (.4, .3, .2, .1, .05)},
    # amplitude, sigma, shift of the corners; the published unit of the imagenet scale is 244, not 224
    "elastic_transform": {
        "cifar": _times(32, (0, 0, .08), (.05, .2, .07), (.08, .06, .06), (.1, .04, .05), (.1, .03, .03)),
        "imagenet": _times(244, (2, .7, .1), (2, .08, .2), (.05, .01, .02), (.07, .01, .02), (.12, .01, .02)),
    },
    # size of the small picture
    "pixelate": {"cifar": (.95, .9, .85, .75, .65), "imagenet": (.6, .5, .4, .3, .25)},
    # quality
    "jpeg_compression": {"cifar": (80, 65, 58, 50, 40), "imagenet": (25, 18, 15, 10, 7)},
}
# fmt: on
