"""What the handlers of one type have done, until the server knows."""

import json

from ._batches import Batches
from ._job import JobFailure
from ._registration import FAILURES
from ._transport import DivanError, quote
from ._wire import milliseconds


class Outbox:
    """Threads of it run ``finishes.send()``, ``fails.send()`` and ``releases.send()``. Its state is guarded by the worker's ``changed``."""

    def __init__(self, lane, context):
        self._lane = lane
        self._context = context
        self._changed = context.changed
        self.finishes = Batches(lane, context, "_finish", self._finished, self.fail)
        self.fails = Batches(lane, context, "_fail", self._failed, lambda job, error: lane.halt(job, str(error)))
        self.releases = Batches(lane, context, "_release", self._failed, self.fail)

    @property
    def size(self):
        """How many jobs the server does not know to have ended."""
        return self.finishes.size + self.fails.size + self.releases.size

    def finish(self, job, *result):
        body = {"id": job.id, "lock": job.lock}
        # Nothing leaves the data as they are.
        if result and result[0] is not None:
            body["data"] = result[0]
        try:
            text = json.dumps(body, allow_nan=False).encode()
        except (TypeError, ValueError, RecursionError) as error:
            self.fail(job, error)
            return
        with self._changed:
            if job._state != "running":
                return
            job._state = "ending"
            self.finishes.push(job, text)

    def fail(self, job, error):
        body = {"id": job.id, "lock": job.lock, "error": str(error) or type(error).__name__}
        if isinstance(error, JobFailure):
            if not error.retry:
                body["retry"] = False
            if error.delay is not None:
                body["delay"] = milliseconds(error.delay)
        with self._changed:
            if job._state == "over":
                return
            job._state = "ending"
            self.fails.push(job, json.dumps(body).encode())
        self._context.emit("fail", job, error)

    def snooze(self, job, delay):
        body = {"id": job.id, "lock": job.lock, "delay": milliseconds(delay)}
        with self._changed:
            if job._state != "running":
                return
            job._state = "ending"
            self.releases.push(job, json.dumps(body).encode())

    def _finished(self, job, again, answer):
        error = answer.get("error")
        if error is None or (error == "halt" and again and self._was_ours(job)):
            self._lane.over(job)
        elif error == "halt":
            self._lane.halt(job, answer["reason"])
        else:
            self.fail(job, DivanError(409, error, answer["reason"]))

    def _failed(self, job, again, answer):
        if "error" in answer:
            self._lane.halt(job, answer["reason"])
        else:
            self._lane.over(job)

    def _was_ours(self, job):
        """The epoch is of our attempt alone. The job itself may be pending again, or run elsewhere."""
        try:
            found = self._context.transport.request("GET", f"{self._lane.path}/{quote(job.id)}")
        except FAILURES:
            return False
        outcomes = [attempt.get("outcome") for attempt in found["history"] if attempt["epoch"] == job.epoch]
        return any(outcome in ("finished", "cancelled") for outcome in outcomes)
