"""grotta: test-time adaptation that survives drifting images and drifting labels."""

from grotta._version import __version__

__all__ = ["__version__"]
