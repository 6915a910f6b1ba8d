"""Sample memories: preallocated tensors of images, balanced over (pseudo-)classes."""

from grotta.memory.category_balanced import CategoryBalancedBank
from grotta.memory.cstu import CSTU
from grotta.memory.pbrs import PBRS

__all__ = ["CSTU", "PBRS", "CategoryBalancedBank"]
