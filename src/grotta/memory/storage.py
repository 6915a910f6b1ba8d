"""One preallocated tensor of image slots, shared by every memory."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from grotta._check import check_whole

State = Mapping[str, Tensor]


class ImageStore:
    """A fixed number of image slots in one tensor: written and read by index, never one image at a time.

    The first batch decides the image shape (ch, H, W), the device, the memory format and the data type: 8-bit
    images stay uint8 (a quarter of the memory), anything else is float32. A float batch that follows 8-bit ones
    promotes the store once (x / 255); 8-bit images written into a float store are divided by 255.

    >>> store = ImageStore(4)
    >>> store.write(torch.tensor([2]), torch.full((1, 3, 2, 2), 7, dtype=torch.uint8))
    >>> store.read(torch.tensor([2])).unique().tolist(), store.nbytes
    ([7], 48)
    """

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._rows: Tensor | None = None  # (slots, ch * H * W), each row in the order of the memory format
        self._shape = torch.Size()
        self._channels_last = False
        self._overwritten: list[tuple[Tensor, Tensor]] | None = None  # slots and their rows since mark()
        self._marked: tuple[Tensor | None, torch.Size, bool] = (None, self._shape, False)

    @property
    def nbytes(self) -> int:
        """Bytes reserved for images; on a CPU, unused slots are reserved but take no memory yet."""
        return 0 if self._rows is None else self._rows.nbytes

    @property
    def device(self) -> torch.device | None:
        """Where the images are, None before the first."""
        return None if self._rows is None else self._rows.device

    @property
    def image_shape(self) -> tuple[int, ...] | None:
        """(ch, H, W) of the images, None before the first."""
        return None if self._rows is None else tuple(self._shape)

    def check(self, images: Tensor) -> None:
        """Raise if `images` cannot be written into this store; changes nothing."""
        if images.ndim != 4 or images.numel() == 0:
            raise ValueError(f"images must be a non-empty (B, ch, H, W) batch, got shape {tuple(images.shape)}")
        if images.dtype != torch.uint8 and not images.is_floating_point():
            raise TypeError(f"images must be uint8 or floating point, got {images.dtype}")
        if self._rows is None:
            return
        if images.shape[1:] != self._shape:
            raise ValueError(
                f"images must keep the shape {tuple(self._shape)} of the first, got {tuple(images.shape[1:])}"
            )
        if images.device != self._rows.device:
            raise ValueError(f"images must be on the memory's device {self._rows.device}, got {images.device}")

    # Callers may be inside inference_mode; a tensor made there could never be written outside of it again,
    # nor could images read there be used for training.
    @torch.inference_mode(False)
    def write(self, slots: Tensor, images: Tensor) -> None:
        """Put `images` (B, ch, H, W) into `slots` (B,)."""
        images = images.detach()
        if self._rows is None:
            self._allocate(images, channels_last=_is_channels_last(images))
        assert self._rows is not None
        if images.dtype == torch.uint8:
            if self._rows.dtype != torch.uint8:
                images = _to_float(images)
        else:
            images = images.float()
            if self._rows.dtype == torch.uint8:
                self._rows = _to_float(self._rows)
        if self._overwritten is not None and self._rows is self._marked[0]:
            self._overwritten.append((slots, self._rows.index_select(0, slots)))
        self._rows.index_copy_(0, slots, self._pack(images))

    @torch.inference_mode(False)
    def read(self, slots: Tensor) -> Tensor:
        """Copy the images of `slots` (n,) out, (n, ch, H, W), in the store's data type and memory format."""
        assert self._rows is not None
        rows = self._rows.index_select(0, slots)
        channels, height, width = self._shape
        if self._channels_last:
            return rows.view(-1, height, width, channels).permute(0, 3, 1, 2)
        return rows.view(-1, channels, height, width)

    def clear(self) -> None:
        """Forget the images, their shape and their memory."""
        self._rows, self._shape, self._channels_last = None, torch.Size(), False

    def mark(self) -> None:
        """Remember the present contents, for :meth:`roll_back`; until then, overwritten rows are kept."""
        self._overwritten, self._marked = [], (self._rows, self._shape, self._channels_last)

    @torch.inference_mode(False)
    def roll_back(self) -> None:
        """Go back to the contents that were marked."""
        self._rows, self._shape, self._channels_last = self._marked
        for slots, rows in reversed(self._overwritten or []):
            assert self._rows is not None
            self._rows.index_copy_(0, slots, rows)
        self._overwritten = []

    def state(self, slots: Tensor) -> dict[str, Tensor]:
        """Copy the images of `slots` out, contiguous, with what is needed to store them the same way."""
        unallocated = torch.empty(0, 0, 0, 0, dtype=torch.uint8)
        images = unallocated if self._rows is None else self.read(slots).contiguous()
        return {"images": images, "channels_last": torch.tensor(self._channels_last, device="cpu")}

    def restore(self, state: State, slots: Tensor) -> None:
        """Put back what `state(slots)` gave."""
        self.clear()
        images = state["images"]
        if images.shape[1:].numel() > 0:
            self._allocate(images, channels_last=bool(state["channels_last"]))
            self.write(slots, images)

    @torch.inference_mode(False)
    def _allocate(self, like: Tensor, channels_last: bool) -> None:
        self._shape, self._channels_last = like.shape[1:], channels_last
        dtype = torch.uint8 if like.dtype == torch.uint8 else torch.float32
        # Uninitialised on purpose: the operating system maps a slot's pages when it is first written.
        self._rows = torch.empty(self.slots, self._shape.numel(), dtype=dtype, device=like.device)

    def _pack(self, images: Tensor) -> Tensor:
        return (images.permute(0, 2, 3, 1) if self._channels_last else images).flatten(1)


def _to_float(images: Tensor) -> Tensor:
    return images.to(torch.float32).div_(255)


def _is_channels_last(images: Tensor) -> bool:
    return images.is_contiguous(memory_format=torch.channels_last) and not images.is_contiguous()


def check_sizes(capacity: int, num_classes: int) -> None:
    """Raise unless a memory of `capacity` images over `num_classes` classes can exist."""
    check_whole("capacity", capacity, at_least=1)
    check_whole("num_classes", num_classes, at_least=1)


def check_labels(labels: Tensor, images: Tensor, num_classes: int) -> None:
    """Raise unless `labels` is one class index per image, on the images' device.

    The range is checked for labels on the CPU only: elsewhere it would make the host wait for the device.
    """
    if labels.dtype != torch.int64:
        raise TypeError(f"labels must be int64, got {labels.dtype}")
    if labels.shape != images.shape[:1]:
        raise ValueError(f"labels must have shape ({len(images)},), one per image, got {tuple(labels.shape)}")
    if labels.device != images.device:
        raise ValueError(f"labels must be on the images' device {images.device}, got {labels.device}")
    if labels.device.type == "cpu":
        low, high = (int(bound) for bound in labels.aminmax())
        check_label_range(low, high, num_classes)


def check_label_range(low: int, high: int, num_classes: int) -> None:
    """Raise unless labels from `low` to `high` are class indices."""
    if low < 0 or high >= num_classes:
        raise ValueError(f"labels must be in 0..{num_classes - 1}, got values from {low} to {high}")


def check_state(state: State, shapes: Mapping[str, tuple[int, ...]], *, capacity: int, num_classes: int) -> None:
    """Raise unless `state` is of a memory of these sizes and its other tensors have these `shapes`."""
    expected = {"capacity", "num_classes", "images", "channels_last", *shapes}
    if set(state) != expected:
        raise ValueError(f"state must have the keys {sorted(expected)}, got {sorted(state)}")
    for name, own in (("capacity", capacity), ("num_classes", num_classes)):
        if int(state[name]) != own:
            raise ValueError(f"state is of a memory with {name} {int(state[name])}, this one has {own}")
    for name, shape in shapes.items():
        if state[name].shape != shape:
            raise ValueError(f"state[{name!r}] must have shape {shape}, got {tuple(state[name].shape)}")
    images = state["images"]
    if images.ndim != 4 or images.dtype not in (torch.uint8, torch.float32):
        raise ValueError(
            f"state['images'] must be uint8 or float32 (n, ch, H, W), got {images.dtype} {tuple(images.shape)}"
        )


def check_image_count(state: State, expected: int) -> None:
    """Raise unless `state` holds as many images as its own counters say."""
    if len(state["images"]) != expected:
        raise ValueError(f"state must hold {expected} images by its own counters, got {len(state['images'])}")
