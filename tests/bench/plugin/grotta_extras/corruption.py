"""A corruption: fewer grey levels."""

from grotta.data.corruptions import corruption


@corruption("posterise", cifar=(16, 32, 48, 64, 96), imagenet=(16, 32, 48, 64, 96))
def posterise(images, step):
    """Round every value down to a multiple of ``step``."""
    return images // step * step
