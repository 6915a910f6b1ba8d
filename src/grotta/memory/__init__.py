"""Sample memories: preallocated tensors of images, balanced over (pseudo-)classes."""

from grotta.memory.category_balanced import CategoryBalancedBank

__all__ = ["CategoryBalancedBank"]
