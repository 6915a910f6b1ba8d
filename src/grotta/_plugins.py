"""What other installed packages add to grotta, by entry points.

A package announces a module under a group such as ``grotta.methods``; importing the module registers what it brings::

    [project.entry-points."grotta.methods"]
    mine = "my_package.mine"

Because the announcement is part of the installation, every process on every machine that has the package knows it:
worker processes and cluster nodes too.
"""

import threading
import warnings

_loaded: set[str] = set()
_lock = threading.RLock()  # a plug-in that looks up a name while it is imported comes back here


def load_plugins(group: str) -> None:
    """Import what installed packages announce under ``group``, once per process.

    One that cannot be imported is left out, with a warning that names it and the reason.
    """
    with _lock:
        if group in _loaded:
            return
        _loaded.add(group)
        from importlib.metadata import entry_points  # slow to import

        for entry in sorted(entry_points(group=group), key=lambda entry: (entry.name, entry.value)):
            try:
                entry.load()
            except Exception as error:
                package = f" of {entry.dist.name}" if entry.dist is not None else ""
                reason = f"{type(error).__name__}: {error}"
                warnings.warn(
                    f"the {group} plug-in {entry.name!r} ({entry.value}){package} is left out, it cannot be imported: "
                    f"{reason}",
                    UserWarning,
                    stacklevel=3,
                )
