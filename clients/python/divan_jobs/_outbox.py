"""What the handlers of one type have done, on its way to the server.

Finishes go in batches: one request is under way, and what gathers meanwhile goes with the next. The busier the
worker, the larger the batches; an idle one waits for nothing.
"""

import collections
import json

from ._registration import FAILURES
from ._transport import DivanError, is_refused, quote

_MAX_JOBS = 500
_MAX_BYTES = 4_000_000
_REFUSED = (400, 404, 413)


class Outbox:
    """Two threads of it run send_finishes() and send_fails(). Its state is guarded by the worker's ``changed``."""

    def __init__(self, lane, context):
        self._lane = lane
        self._context = context
        self._changed = context.changed
        self._finishes = collections.deque()  # (job, bytes, whether they were sent before)
        self._fails = collections.deque()
        self._sending = 0
        self._most = _MAX_JOBS

    @property
    def size(self):
        """How many jobs the server does not know to have ended."""
        return len(self._finishes) + len(self._fails) + self._sending

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
            self._finishes.append((job, text, False))
            self._changed.notify_all()

    def fail(self, job, error):
        with self._changed:
            if job._state == "over":
                return
            job._state = "ending"
            job._error = error
            self._fails.append(job)
            self._changed.notify_all()
        self._context.emit("fail", job, error)

    def _batch(self):
        batch, size = [], 0
        while self._finishes and len(batch) < self._most:
            job, text, _ = self._finishes[0]
            if batch and size + len(text) > _MAX_BYTES:
                break
            item = self._finishes.popleft()
            if job._state == "ending":
                batch.append(item)
                size += len(text)
        self._sending += len(batch)
        return batch

    def _sent(self, count):
        with self._changed:
            self._sending -= count
            self._changed.notify_all()

    def send_finishes(self):
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._finishes or self._context.ended)
                if self._context.ended:
                    return
                batch = self._batch()
            if not batch:
                continue
            pause = self._send(batch)
            self._sent(len(batch))
            if pause:
                self._lane.pause()

    def _send(self, batch):
        """Answers whether to wait before going on."""
        body = b'{"jobs":[' + b",".join(text for _, text, _ in batch) + b"]}"
        try:
            answers = self._context.transport.request("POST", f"{self._lane.path}/_finish", body)
        except FAILURES as error:
            if is_refused(error):
                self._context.fatal(error)
                return False
            fault = getattr(error, "status", 0) in _REFUSED
            if fault and len(batch) == 1:
                self.fail(batch[0][0], error)
                return False
            if fault:
                self._most = 1  # one of them is the reason: each is sent alone
            # Without an answer they may be done or not; a second finish of what is done answers `halt`.
            unsure = not isinstance(error, DivanError)
            with self._changed:
                self._finishes.extendleft((job, text, again or unsure) for job, text, again in reversed(batch))
            return not fault
        for (job, _, again), answer in zip(batch, answers):
            self._finished(job, again, answer)
        self._most = min(_MAX_JOBS, 2 * self._most)
        return False

    def _finished(self, job, again, answer):
        error = answer.get("error")
        if error is None or (error == "halt" and again and self._was_ours(job)):
            self._lane.over(job)
        elif error == "halt":
            self._lane.halt(job, answer["reason"])
        else:
            self.fail(job, DivanError(409, error, answer["reason"]))

    def _was_ours(self, job):
        """The epoch is of our attempt alone. The job itself may be pending again, or run elsewhere."""
        try:
            found = self._context.transport.request("GET", f"{self._lane.path}/{quote(job.id)}")
        except FAILURES:
            return False
        outcomes = [attempt.get("outcome") for attempt in found["history"] if attempt["epoch"] == job.epoch]
        return any(outcome in ("finished", "cancelled") for outcome in outcomes)

    def send_fails(self):
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._fails or self._context.ended)
                if self._context.ended:
                    return
                job = self._fails.popleft()
                self._sending += 1
            while job._state == "ending" and not self._context.ended:
                self._send_fail(job)
            self._sent(1)

    def _send_fail(self, job):
        error = job._error
        body = {"lock": job.lock, "error": str(error) or type(error).__name__}
        try:
            self._context.transport.request("POST", f"{self._lane.path}/{quote(job.id)}/_fail", body)
            self._lane.over(job)
        except FAILURES as failure:
            if is_refused(failure):
                self._lane.over(job)
                self._context.fatal(failure)
            elif getattr(failure, "status", 0) in (*_REFUSED, 409):
                self._lane.halt(job, str(failure))
            else:
                self._lane.pause()
