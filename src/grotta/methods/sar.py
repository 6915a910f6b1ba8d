"""SAR: towards stable test-time adaptation in dynamic wild world (Niu et al., 2023)."""

from typing import Any

import torch
from torch import Tensor, nn

from grotta import functional as GF
from grotta._check import check_at_least, check_in_unit_interval, check_positive
from grotta.methods.base import Batch, Learned, Prediction
from grotta.methods.filtering import entropy_limit, mean_over
from grotta.methods.gradient import gradients
from grotta.methods.last_stage import SparingTent
from grotta.methods.origin import Origin
from grotta.methods.registry import register


@register("sar")
class SAR(SparingTent):
    """Entropy minimisation on sure samples, towards flat minima, with a reset when it collapses.

    The affine parameters theta of the norm layers are trained, except those of the last stage. A step on the batch
    X_t, with two passes of the network on batch statistics:

    1. Predict P; the output is P, as it was before the update.
    2. Keep the samples with an entropy H < E_0 = ``margin`` ln C. g is the gradient of their mean H.
    3. Climb to theta + ``rho`` g / (|g| + 1e-12), where the loss is worst nearby. There, H again; of the samples kept,
       keep those with H < E_0. Their mean is the loss.
    4. Back at theta, one step of the optimizer down the gradient of that loss.
    5. e <- 0.9 e + 0.1 loss, starting with e = loss. If e < ``collapse``, the network is sure of everything:
       parameters, optimizer and e are reset.

    If no sample is kept in 2 or in 3, nothing is learned.

    Args:
        lr: of the optimizer. The authors' rates are for batches of 64 (``official``: ResNets, ``official-vit``:
            transformers, to be scaled with the batch) and 5e-4 B / 64 for ResNets and B < 32, twice that for B = 1.
        optimizer: ``"adam"`` or ``"sgd"``, the latter with momentum 0.9.
        margin: largest entropy to learn from, as a fraction of ln C.
        rho: how far to climb.
        collapse: the mean loss, in nats whatever C is, below which everything is reset; 0 for never.
        **options: those of :class:`grotta.methods.Adapter`.

    >>> pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    >>> net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), pool, nn.Linear(8, 5))
    >>> adapter = SAR(net, margin=1.0)
    >>> adapter(torch.rand(4, 3, 16, 16)).shape, adapter.last.adapted
    (torch.Size([4, 5]), True)
    """

    title, place, cost = "SAR", 120, 4.8
    mean_loss: Tensor

    def __init__(
        self, model: nn.Module, *, margin: float = 0.4, rho: float = 0.05, collapse: float = 0.2, **options: Any
    ) -> None:
        super().__init__(model, **options)
        self.margin = check_in_unit_interval("margin", margin)
        self.rho = check_positive("rho", rho)
        self.collapse = check_at_least("collapse", collapse, 0)

    def build(self) -> None:
        """As TENT, with the source's parameters to go back to and no mean loss yet."""
        super().build()
        self.origin = Origin(self._trained)
        self.register_buffer("mean_loss", torch.tensor(-1.0, dtype=self.wide, device=self.device))  # none yet

    def learn(self, batch: Batch, prediction: Prediction, probs: Tensor) -> Learned:
        """One step down the gradient at the worst point nearby, on the sure samples, if any."""
        limit = entropy_limit(self.margin, self.num_classes)
        with torch.enable_grad():
            entropies = GF.softmax_entropy(prediction.logits.to(self.wide))
            kept = entropies.detach() < limit
            if not bool(kept.any()):
                return Learned()
            slopes = gradients(mean_over(entropies, kept), self._trained)
        here = [p.detach().clone() for p in self._trained]
        self._climb(slopes)
        with torch.enable_grad():
            entropies = GF.softmax_entropy(self.student(batch.inputs)[0].to(self.wide))
            kept = kept & (entropies.detach() < limit)
            loss = mean_over(entropies, kept) if bool(kept.any()) else None
        if loss is not None:
            torch.autograd.backward(loss)
        torch._foreach_copy_(self.origin.trained, here)
        if loss is None:
            return Learned()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self._watch(loss.detach())
        return Learned(adapted=True, loss=loss)

    def _climb(self, slopes: tuple[Tensor, ...]) -> None:
        """theta + rho g / (|g| + 1e-12)."""
        norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(slopes)))
        climb = torch._foreach_mul(slopes, self.rho / (norm + 1e-12))
        torch._foreach_add_(self.origin.trained, list(climb))

    def _watch(self, loss: Tensor) -> None:
        """Reset everything if the mean loss shows that the network has collapsed."""
        self.mean_loss.copy_(torch.where(self.mean_loss < 0, loss, 0.9 * self.mean_loss + 0.1 * loss))
        if bool(self.mean_loss < self.collapse):
            self.origin.restore_(self.optimizer)
            self.mean_loss.fill_(-1)
