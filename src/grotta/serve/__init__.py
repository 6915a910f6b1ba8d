"""Serve many streams over HTTP, each adapting on its own: the Open Inference Protocol v2, ``grotta serve``.

Needs ``pip install 'grotta[serve]'``.
"""

from grotta.serve.app import make_app
from grotta.serve.catalogue import ModelSettings
from grotta.serve.run import serve
from grotta.serve.settings import Settings

__all__ = ["ModelSettings", "Settings", "make_app", "serve"]
