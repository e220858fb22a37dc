"""One attempt at a job: the object passed to the handler, and the worker's state of it."""

import threading
import time

from ._trace import trace_of
from ._wire import milliseconds


class JobAborted(Exception):
    """The reason of a job's signal. ``code``:

    * ``"cancel"``: a client has cancelled the job; it may still finish.
    * ``"halt"``: the attempt does not own the job any more, and the handler's result is ignored.
    * ``"stop"``: the worker stops, and has released the job."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class JobFailure(Exception):
    """Raised by a handler to control the retry: with ``retry=False`` the job fails permanently; with a
    ``delay`` it is retried after that many seconds, instead of the type's backoff."""

    def __init__(self, message, retry=True, delay=None):
        super().__init__(message)
        if delay is not None:
            milliseconds(delay)  # raises, in the handler, if it is not a duration
        self.retry = retry
        self.delay = delay


class JobSnooze(Exception):
    """Raised by a handler to release its job, which does not count as a failure: it runs again after ``delay`` seconds."""

    def __init__(self, delay):
        milliseconds(delay)  # raises, in the handler, if it is not a duration
        super().__init__(f"released; runs again in {delay} s")
        self.delay = delay


class JobResult:
    """Returned by a handler to replace the job's data in addition to its result: a resubmit, or the next occurrence of a periodic
    job, runs with that data."""

    def __init__(self, result, data=None):
        self.result = result
        self.data = data


def finish_of(returned):
    """A handler's return value as members of a finish. None means no result."""
    result = returned if isinstance(returned, JobResult) else JobResult(returned)
    members = {"result": result.result, "data": result.data}
    return {name: value for name, value in members.items() if value is not None}


class Signal:
    """Is set when a handler should stop. Thread-safe."""

    def __init__(self):
        self._event = threading.Event()
        self.reason = None  # a JobAborted once it is set

    def is_set(self):
        return self._event.is_set()

    def wait(self, timeout=None):
        """Waits until it is set, or for ``timeout`` seconds; returns True if it is set."""
        return self._event.wait(timeout)

    def check(self):
        """Raises JobAborted if it is set."""
        if self._event.is_set():
            raise self.reason

    def _set(self, reason):
        if not self._event.is_set():
            self.reason = reason
            self._event.set()


class Job:
    """An attempt at a job, passed to its handler.

    * ``type``, ``id``, ``data``
    * ``traceparent``: that of its data, if there is a well-formed one, or None.
    * ``attempt``: the number of the attempt, from 1 on; released attempts do not count.
    * ``epoch``: grows with every attempt. A fencing token: external systems can reject writes of an older attempt.
    * ``signal``: a Signal, set when the handler should stop."""

    def __init__(self, consumer, accepted):
        self.type = accepted["type"]
        self.id = accepted["id"]
        self.data = accepted["data"]
        self.attempt = accepted["attempt"]
        self.epoch = accepted["epoch"]
        self.lock = accepted["lock"]
        self.traceparent = trace_of(self.data)
        self.signal = Signal()
        self._consumer = consumer
        # "running" until the handler has returned ("transacting" during transact()), "ending" until the server has
        # confirmed; then "over".
        self._state = "running"
        self._started = time.monotonic()

    def update(self, **change):
        """Reports progress (``progress=…``), or replaces the job's data (``data=…``). Raises JobAborted if the attempt
        does not own the job any more. Returns ``{"cancel": …, "resubmit": …}``."""
        return self._consumer.update(self, change)

    def transact(self, docs=None, jobs=None, result=None):
        """Finishes the job in one transaction with other changes (those of Divan.transact), so that these are applied
        exactly once, however often the job runs. ``result``: the job's result, or a JobResult. What the handler
        returns afterwards is ignored."""
        return self._consumer.transact(self, docs, jobs, result)

    def _abort(self, code, message):
        self.signal._set(JobAborted(code, message))
