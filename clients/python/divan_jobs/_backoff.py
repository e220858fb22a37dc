"""Pauses that grow."""

import random


class Backoff:
    """Pauses that double from one to the next, less up to a half by chance, so that workers do not return as one."""

    def __init__(self, least=0.1, most=30.0):
        self._least = least
        self._most = most
        self._failures = 0

    def reset(self):
        self._failures = 0

    def next(self):
        """Seconds."""
        pause = min(self._most, self._least * 2 ** min(self._failures, 40))
        self._failures += 1
        return pause * (1 - random.random() / 2)
