"""Sends reports of one kind (``_finish``, ``_fail`` or ``_release``) to the server in batches.

One request is in progress at a time; reports that are added meanwhile are sent with the next. So the batches of a busy worker are
large, and those of an idle one are not delayed. A batch contains jobs of one type.
"""

from ._registration import FAILURES
from ._transport import is_refused
from ._wire import path_of

_MAX_JOBS = 500
_MAX_BYTES = 4_000_000


def _is_unsure(error):
    """Whether a failed request may have been executed: there was no response, or a server error."""
    return getattr(error, "status", 500) >= 500


def _is_undone(answer):
    """Whether the part of a request for one job may have been executed, and should be repeated."""
    return answer.get("status") == 503


class Batches:
    """Its thread runs send(). Its state is guarded by the worker's ``changed``."""

    def __init__(self, consumer, context, action, answered, refused):
        """``answered(job, again, answer)``: the server's answer to a report; ``again``: it was sent before.
        ``refused(job, error)``: the server refuses every request with this report."""
        self._action = action
        self._pause = consumer.pause
        self._context = context
        self._changed = context.changed
        self._answered = answered
        self._refused = refused
        self._reports = []  # (job, bytes, whether they were sent before)
        self._sending = 0
        self._most = _MAX_JOBS

    @property
    def size(self):
        """The number of reports without a response."""
        return len(self._reports) + self._sending

    def push(self, job, text):
        with self._changed:
            self._reports.append((job, text, False))
            self._changed.notify_all()

    def _next(self):
        batch, others, size = [], [], 0
        for report in self._reports:
            job, text, _ = report
            if job._state != "ending":
                continue
            size += len(text)
            fits = not batch or (job.type == batch[0][0].type and len(batch) < self._most and size <= _MAX_BYTES)
            (batch if fits else others).append(report)
        self._reports = others
        self._sending += len(batch)
        return batch

    def send(self):
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._reports or self._context.ended)
                if self._context.ended:
                    return
                batch = self._next()
            if not batch:
                continue
            must_wait = self._send(batch)
            with self._changed:
                self._sending -= len(batch)
                self._changed.notify_all()
            if must_wait:
                self._pause()

    def _send(self, batch):
        """Returns True if the caller must wait before it continues."""
        body = b'{"jobs":[' + b",".join(text for _, text, _ in batch) + b"]}"
        try:
            answers = self._context.transport.request("POST", f"{path_of(batch[0][0].type)}/{self._action}", body)
        except FAILURES as error:
            if is_refused(error):
                self._context.fatal(error)
                return False
            fault = getattr(error, "status", 0) in (400, 404, 413)
            if fault and len(batch) == 1:
                self._refused(batch[0][0], error)
                return False
            if fault:
                self._most = 1  # one of the reports is the cause: send each alone
            self._repeat(batch, _is_unsure(error))
            return not fault
        undone = []
        for report, answer in zip(batch, answers):
            job, _, again = report
            if _is_undone(answer):
                undone.append(report)
            else:
                self._answered(job, again, answer)
        self._repeat(undone, True)
        self._most = min(_MAX_JOBS, 2 * self._most)
        return bool(undone)

    def _repeat(self, batch, unsure):
        """Marks reports that may have been executed: the response to a repetition is then `halt`."""
        with self._changed:
            self._reports[:0] = [(job, text, again or unsure) for job, text, again in batch]
