"""One attempt at a job: what a handler gets, and what the worker knows of it."""

import threading
import time

from ._trace import trace_of
from ._wire import milliseconds


class JobAborted(Exception):
    """Why a job is to stop. ``code``:

    * ``"cancel"``: somebody asks it to stop; it may still finish.
    * ``"halt"``: the job is not this attempt's any more, and what the handler answers is dropped.
    * ``"stop"``: the worker stops, and has given the job back."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class JobFailure(Exception):
    """What a handler raises to say more than that it failed: with ``retry=False`` the job is failed for good; with a
    ``delay`` it runs again after so many seconds, in place of the type's backoff."""

    def __init__(self, message, retry=True, delay=None):
        super().__init__(message)
        if delay is not None:
            milliseconds(delay)  # raises, in the handler, if it is not a duration
        self.retry = retry
        self.delay = delay


class JobSnooze(Exception):
    """What a handler raises to give its job back, which is no failure: it runs again after ``delay`` seconds."""

    def __init__(self, delay):
        milliseconds(delay)  # raises, in the handler, if it is not a duration
        super().__init__(f"again in {delay} s")
        self.delay = delay


class JobResult:
    """What a handler returns to change its job's data beside its result: a resubmit, or the next occurrence of a periodic
    job, runs with them."""

    def __init__(self, result, data=None):
        self.result = result
        self.data = data


def finish_of(returned):
    """What a handler returned, as members of a finish. None is no result."""
    result = returned if isinstance(returned, JobResult) else JobResult(returned)
    members = {"result": result.result, "data": result.data}
    return {name: value for name, value in members.items() if value is not None}


class Signal:
    """Tells a handler to stop. Thread-safe."""

    def __init__(self):
        self._event = threading.Event()
        self.reason = None  # a JobAborted once it is set

    def is_set(self):
        return self._event.is_set()

    def wait(self, timeout=None):
        """Waits until it is set, or for ``timeout`` seconds; answers whether it is set."""
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
    """An attempt at a job, as its handler gets it.

    * ``type``, ``id``, ``data``
    * ``traceparent``: that of its data, if there is a well-formed one, or None.
    * ``attempt``: how often the job was accepted and not released: 1 the first time.
    * ``epoch``: grows with every attempt: whatever is changed outside of Divan can refuse an older one (a fencing
      token).
    * ``signal``: a Signal, set when the handler is to stop."""

    def __init__(self, lane, accepted):
        self.type = accepted["type"]
        self.id = accepted["id"]
        self.data = accepted["data"]
        self.attempt = accepted["attempt"]
        self.epoch = accepted["epoch"]
        self.lock = accepted["lock"]
        self.traceparent = trace_of(self.data)
        self.signal = Signal()
        self._lane = lane
        # "running" until the handler has answered, "ending" until the server knows; "over" when there is nothing to
        # say.
        self._state = "running"
        self._started = time.monotonic()

    def update(self, **change):
        """Says how far the job is (``progress=…``), or changes its data (``data=…``). Raises JobAborted when the job
        is not ours any more. Answers ``{"cancel": …, "resubmit": …}``."""
        return self._lane.update(self, change)

    def transact(self, docs=None, jobs=None, result=None):
        """Finishes the job in one transaction with other changes (those of Divan.transact), so that these happen
        exactly once, however often the job is run. ``result``: the job's result, or a JobResult. What the handler
        returns afterwards is ignored."""
        return self._lane.transact(self, docs, jobs, result)

    def _abort(self, code, message):
        self.signal._set(JobAborted(code, message))
