"""A lock for several threads that call one adapter."""

import contextlib
import threading
from collections.abc import Iterator


class Turns:
    """A lock with two kinds of turn: shared ones run concurrently, exclusive ones alone.

    A thread may take another turn inside its own, except an exclusive one inside a shared one. Exclusive turns go
    first, so that a steady flow of shared ones cannot starve them.

    >>> turns = Turns()
    >>> with turns.exclusive(), turns.shared():
    ...     "alone"
    'alone'
    """

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._sharing = 0  # threads in a shared turn
        self._waiting = 0  # threads that wait for an exclusive one
        self._owner: int | None = None  # the thread in an exclusive turn
        self._own = threading.local()

    @contextlib.contextmanager
    def shared(self) -> Iterator[None]:
        """A turn beside other shared ones, for calls that change nothing."""
        if self._owner == threading.get_ident() or getattr(self._own, "shares", False):
            yield
            return
        with self._changed:
            self._changed.wait_for(lambda: self._owner is None and not self._waiting)
            self._sharing += 1
        self._own.shares = True
        try:
            yield
        finally:
            self._own.shares = False
            with self._changed:
                self._sharing -= 1
                self._changed.notify_all()

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """A turn alone, for calls that change something."""
        me = threading.get_ident()
        if self._owner == me:
            yield
            return
        if getattr(self._own, "shares", False):
            raise RuntimeError("an adapter cannot be changed from inside a call of predict or answer")
        with self._changed:
            self._waiting += 1
            try:
                self._changed.wait_for(lambda: self._owner is None and not self._sharing)
                self._owner = me
            finally:
                self._waiting -= 1
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._owner = None
                self._changed.notify_all()
