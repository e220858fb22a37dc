"""Outcomes of the runs of a handler, until the server has confirmed them."""

import json

from ._batches import Batches
from ._job import JobFailure, finish_of
from ._registration import FAILURES
from ._transport import DivanError, quote
from ._wire import milliseconds, path_of


class Outbox:
    """One thread for each of ``kinds`` runs its ``send()``. The state is guarded by the worker's ``changed``."""

    def __init__(self, consumer, context):
        self._consumer = consumer
        self._context = context
        self._changed = context.changed
        self._finishes = Batches(consumer, context, "_finish", self._finished, self.fail)
        self._fails = Batches(consumer, context, "_fail", self._failed, lambda job, error: consumer.halt(job, str(error)))
        self._releases = Batches(consumer, context, "_release", self._failed, self.fail)
        self.kinds = {"finish": self._finishes, "fail": self._fails, "release": self._releases}

    @property
    def size(self):
        """The number of ended jobs that the server has not confirmed."""
        return sum(reports.size for reports in self.kinds.values())

    def finish(self, job, returned=None):
        body = {"id": job.id, "lock": job.lock, **finish_of(returned)}
        try:
            text = json.dumps(body, allow_nan=False).encode()
        except (TypeError, ValueError, RecursionError) as error:
            self.fail(job, error)
            return
        with self._changed:
            if job._state != "running":
                return
            job._state = "ending"
            self._finishes.push(job, text)

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
            self._fails.push(job, json.dumps(body).encode())
        self._context.emit("fail", job, error)

    def snooze(self, job, delay):
        body = {"id": job.id, "lock": job.lock, "delay": milliseconds(delay)}
        with self._changed:
            if job._state != "running":
                return
            job._state = "ending"
            self._releases.push(job, json.dumps(body).encode())

    def _finished(self, job, again, answer):
        error = answer.get("error")
        if error is None or (error == "halt" and again and self._was_ours(job)):
            self._consumer.over(job)
        elif error == "halt":
            self._consumer.halt(job, answer["reason"])
        else:
            self.fail(job, DivanError(409, error, answer["reason"]))

    def _failed(self, job, again, answer):
        if "error" in answer:
            self._consumer.halt(job, answer["reason"])
        else:
            self._consumer.over(job)

    def _was_ours(self, job):
        """The epoch identifies our attempt. The job itself may be pending again, or run elsewhere."""
        try:
            found = self._context.transport.request("GET", f"{path_of(job.type)}/{quote(job.id)}")
        except FAILURES:
            return False
        outcomes = [attempt.get("outcome") for attempt in found["history"] if attempt["epoch"] == job.epoch]
        return any(outcome in ("finished", "cancelled") for outcome in outcomes)
