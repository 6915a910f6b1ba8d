"""Test streams as seeded, pure index generators, or as recorded: which image of which domain comes when.

A stream holds indices, not images: one stream is made from the labels of the domains, and every method gets the same.
"""

from grotta.streams.periodic import exhaustive, ptta
from grotta.streams.recorded import recorded
from grotta.streams.shuffled import iid
from grotta.streams.slots import rotta
from grotta.streams.stream import Stream

__all__ = ["Stream", "exhaustive", "iid", "ptta", "recorded", "rotta"]
