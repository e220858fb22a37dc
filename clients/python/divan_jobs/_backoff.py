"""Exponential backoff."""

import random


class Backoff:
    """Pauses that double each time, with a jitter of up to a half, so that workers do not reconnect at the same time."""

    def __init__(self, least=0.1, most=30.0):
        self._least = least
        self._most = most
        self._failures = 0

    def reset(self):
        self._failures = 0

    def next(self):
        """The next pause in seconds."""
        pause = min(self._most, self._least * 2 ** min(self._failures, 40))
        self._failures += 1
        return pause * (1 - random.random() / 2)
