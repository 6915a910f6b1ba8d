"""A source network that a recipe needs and that does not come with grotta: it is trained when first needed."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SourceNetwork:
    """A network to train on some domains of a data set."""

    name: str  # of the folder for its weights, in ``models/`` of the data root in the cache
    dataset: str  # a data set's name
    domains: tuple[str, ...]  # what it is trained on
    model: str  # the architecture
    image_size: int  # side of the images
    epochs: int  # passes over them; everything else as in :class:`grotta.models.Recipe`

    @property
    def folder(self) -> str:
        """Where its weights are, in a data root."""
        return f"models/{self.name}"

    @property
    def spec(self) -> str:
        """The network as a cell names it: found in any data root, so that results name no folder of a machine.

        >>> SourceNetwork("gate", "pklot", ("pucpr-sunny",), "resnet20", 32, 15).spec
        'resnet20@models/gate/resnet20.safetensors'
        """
        return f"{self.model}@{self.folder}/{self.model}.safetensors"
