"""A camera that looks at clothes: weather rolls in and out, and what passes by changes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from grotta.data import corrupt
from grotta.serve.protocol.tensors import Array

_WAVE = (0, 1, 2, 3, 4, 5, 5, 5, 5, 4, 3, 2, 1)  # severities of weather that comes, stays and goes


@dataclass(frozen=True)
class Camera:
    """A name, the kinds of weather that come by turns, and how long each severity lasts, in batches.

    >>> [weather for weather, _ in zip(Camera("roof", ("fog",), 1).weather(), range(3))]
    [('fog', 0), ('fog', 1), ('fog', 2)]
    """

    name: str
    kinds: tuple[str, ...]
    hold: int = 8
    gamma: float = 0.3  # of the label mix: the smaller, the fewer classes at a time
    period: int = 12  # batches that share a label mix
    seed: int = 0

    def weather(self) -> Iterator[tuple[str, int]]:
        """Kind and severity for each batch, forever."""
        while True:
            for kind in self.kinds:
                for severity in _WAVE:
                    yield from [(kind, severity)] * self.hold

    def batches(self, images: Array, labels: Array, size: int) -> Iterator[tuple[Array, Array]]:
        """Batches of uint8 images (size, 3, H, W) and their labels, forever; ``images`` are (n, H, W, 3)."""
        draw = np.random.default_rng(self.seed)
        classes = int(labels.max()) + 1
        places = [np.flatnonzero(labels == which) for which in range(classes)]
        for number, (kind, severity) in enumerate(self.weather()):
            if number % self.period == 0:
                mix = draw.dirichlet(np.full(classes, self.gamma))
            shown = draw.choice(classes, size, p=mix)
            chosen = np.array([draw.choice(places[which]) for which in shown])
            frames = images[chosen]
            if severity:
                frames = corrupt(frames, kind, severity=severity, seed=self.seed, first_index=size * number)
            yield np.ascontiguousarray(frames.transpose(0, 3, 1, 2)), shown


CAMERAS: Sequence[Camera] = (
    Camera("north gate", ("snow", "frost"), hold=7, seed=1),
    Camera("loading dock", ("contrast", "brightness"), hold=9, seed=2),
    Camera("roof", ("brightness", "fog"), hold=8, gamma=0.6, seed=3),
)
