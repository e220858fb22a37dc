"""A consumer: one handler of a worker with its types of jobs. Accepts jobs, runs the handler, and aborts attempts that the
server has ended."""

import json
import queue
import threading
import time

from ._backoff import Backoff
from ._job import Job, JobAborted, JobSnooze, finish_of
from ._outbox import Outbox
from ._registration import FAILURES
from ._transport import Abort, DivanError, is_refused, quote
from ._wire import changes, path_of

_MAX_ACCEPTED = 1000  # the server's limit
_MAX_CHECKED = 500
_LISTED = 1000


def _by_type(jobs):
    parts = {}
    for job in jobs:
        parts.setdefault(job.type, []).append(job)
    return parts.items()


def _attempts(jobs):
    return {"jobs": [{"id": job.id, "lock": job.lock} for job in jobs]}


class Consumer:
    """Its state is guarded by the worker's ``changed``.

    ``jobs``: those that the server has assigned to this worker. ``active``: handlers that have not returned, including
    those of lost jobs."""

    def __init__(self, context, types, handler, concurrency):
        self._context = context
        self._changed = context.changed
        self.types = types
        self._handler = handler
        self._concurrency = concurrency
        self._backoff = Backoff(context.backoff[0], 2.0)
        self._todo = queue.SimpleQueue()
        self._threads = 0
        self._unsure = False  # a response that may have contained jobs was lost
        self._accepting = Abort()
        self.outbox = Outbox(self, context)
        self.jobs = set()
        self.active = 0

    @property
    def _busy(self):
        # Back-pressure: if the server is slow, unconfirmed reports stop further accepts.
        return self.active >= self._concurrency or self.outbox.size > 2 * self._concurrency

    @property
    def idle(self):
        return self.active == 0 and self.outbox.size == 0

    def pause(self):
        with self._changed:
            self._changed.wait_for(lambda: self._context.ended, self._backoff.next())

    def accept(self):
        """Accepts jobs until the worker stops. Raises errors for which a retry is useless."""
        registration = self._context.registration
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._context.stopping or (registration.up and not self._busy))
                if self._context.stopping:
                    return
            try:
                if self._unsure:
                    self._check_unknown()
                self._accept_once()
                self._backoff.reset()
            except FAILURES as error:
                if self._context.stopping:
                    return
                status = getattr(error, "status", 0)
                if is_refused(error) or status == 400 or getattr(error, "error", "") == "no_such_job_type":
                    raise
                if status == 404:
                    registration.check()
                self.pause()

    def _accept_once(self):
        registration = self._context.registration
        poll = self._context.poll_timeout
        with self._changed:
            worker = registration.worker
            limit = min(_MAX_ACCEPTED, self._concurrency - self.active)
        if worker["incarnation"] is None:
            return
        body = {"types": self.types, "limit": limit, "timeout": int(1000 * poll), "worker": worker}
        request = self._context.transport.request
        try:
            accepted = request("POST", "/_jobs/_accept", body, poll + 30.0, abort=self._accepting)["jobs"]
        except FAILURES as error:
            # An error of a gateway does not mean that the server has not accepted.
            answered = isinstance(error, DivanError) and error.status < 500
            if not answered and not isinstance(error, ConnectionRefusedError):
                self._unsure = True
            raise
        with self._changed:
            # Accepted under a registration that was lost meanwhile: the jobs were reclaimed.
            if worker["incarnation"] != registration.incarnation:
                return
            jobs = [Job(self, job) for job in accepted]
            self.jobs.update(jobs)
            stopping = self._context.stopping
            if not stopping:
                self._start(jobs)
        if stopping:
            self._release(jobs)

    def _check_unknown(self):
        """Jobs of a lost response would stay assigned to this worker until it ends: if there are any, it registers again."""
        registration = self._context.registration
        if any(self._has_unknown(job_type) for job_type in self.types):
            registration.renew()
        self._unsure = False
        with self._changed:
            self._changed.wait_for(lambda: self._context.stopping or registration.up)

    def _has_unknown(self, job_type):
        """Returns True if the server has running jobs of this worker that are unknown here."""
        worker = self._context.registration.worker
        start = ""
        while True:
            query = f"type={quote(json.dumps(job_type))}&limit={_LISTED}&start_id={quote(json.dumps(start))}"
            target = f"/_workers/{quote(worker['role'])}/{quote(worker['id'])}/_jobs?{query}"
            listed = self._context.transport.request("GET", target, again=True)["jobs"]
            with self._changed:
                known = {(job.id, job.epoch) for job in self.jobs if job.type == job_type}
            if any((job["id"], job["epoch"]) not in known for job in listed):
                return True
            if len(listed) < _LISTED:
                return False
            start = listed[-1]["id"]

    def _start(self, jobs):
        self.active += len(jobs)
        for job in jobs:
            self._todo.put(job)
        while self._threads < self.active:
            self._threads += 1
            threading.Thread(target=self._work, daemon=True, name=f"divan-{self.types[0]}").start()

    def _work(self):
        while True:
            job = self._todo.get()
            if job is None:
                return
            self._run(job)
            with self._changed:
                self.active -= 1
                self._changed.notify_all()

    def _run(self, job):
        try:
            returned = self._handler(job)
        except BaseException as error:  # handlers may raise any exception
            # A handler that raises the reason of a cancelled job's signal has not failed.
            if isinstance(error, JobAborted) and error is job.signal.reason:
                self.outbox.finish(job)
            elif isinstance(error, JobSnooze):
                self.outbox.snooze(job, error.delay)
            elif job._state == "running":
                self.outbox.fail(job, error)
        else:
            self.outbox.finish(job, returned)

    def over(self, job):
        with self._changed:
            job._state = "over"
            self.jobs.discard(job)
            self._changed.notify_all()

    def halt(self, job, why):
        """Called when the attempt has lost the job: sets the signal; the handler's result is ignored."""
        with self._changed:
            if job._state == "over":
                return
            self.over(job)
        job._abort("halt", why)
        self._context.emit("halt", job, job.signal.reason)

    def halt_all(self, why):
        with self._changed:
            jobs = list(self.jobs)
        for job in jobs:
            self.halt(job, why)

    def halt_attempt(self, attempt):
        """The server has ended an attempt, which may belong to this consumer."""
        with self._changed:
            jobs = [job for job in self.jobs if job.type == attempt["type"] and job.lock == attempt["lock"]]
        for job in jobs:
            self.halt(job, attempt["reason"])

    def _request_for(self, job, method, path, body, **options):
        """Sends a request on behalf of a job; the response may show that the job is lost."""
        try:
            return self._context.transport.request(method, path, body, **options)
        except DivanError as error:
            if error.error != "halt":
                raise
            self.halt(job, error.reason)
            raise job.signal.reason from None

    def _check_running(self, job):
        if job._state != "running":
            raise job.signal.reason or RuntimeError("the job has ended")

    def update(self, job, change):
        self._check_running(job)
        target = f"{path_of(job.type)}/{quote(job.id)}/_update"
        return self._apply_flags(job, self._request_for(job, "POST", target, {"lock": job.lock, **change}, again=True))

    @staticmethod
    def _apply_flags(job, flags):
        if flags["cancel"]:
            job._abort("cancel", "the job was cancelled")
        return {"cancel": flags["cancel"], "resubmit": flags["resubmit"]}

    def transact(self, job, docs, jobs, result):
        body = changes(docs, jobs)
        with self._changed:
            self._check_running(job)
            job._state = "transacting"
        finish = {"type": job.type, "id": job.id, "lock": job.lock, **finish_of(result)}
        body["jobs"]["finish"] = [*body["jobs"].get("finish", []), finish]
        try:
            answer = self._request_for(job, "POST", "/_transact", body)
        except BaseException:
            with self._changed:
                if job._state == "transacting":
                    job._state = "running"
            raise
        self.over(job)
        return answer

    def check(self, age):
        """Checks whether jobs that have run for a while were cancelled or lost."""
        since = time.monotonic() - age
        with self._changed:
            old = [job for job in self.jobs if job._state == "running" and job._started <= since]
        for job_type, jobs in _by_type(old):
            for first in range(0, len(jobs), _MAX_CHECKED):
                self._check_some(job_type, jobs[first : first + _MAX_CHECKED])

    def _check_some(self, job_type, jobs):
        answers = self._context.transport.request("POST", f"{path_of(job_type)}/_update", _attempts(jobs), again=True)
        for job, answer in zip(jobs, answers):
            if job._state != "running":
                continue  # ended meanwhile
            if answer.get("error") == "halt":
                self.halt(job, answer["reason"])
            elif "error" not in answer:
                self._apply_flags(job, answer)

    def _release(self, jobs):
        """Releases jobs, so that other workers can run them, except those that are being reported."""
        with self._changed:
            jobs = [job for job in jobs if job._state != "ending"]
            for job in jobs:
                self.over(job)
        for job in jobs:
            job._abort("stop", "the worker stops")
        for job_type, some in _by_type(jobs):
            try:
                self._context.transport.request("POST", f"{path_of(job_type)}/_release", _attempts(some), timeout=5.0)
            except FAILURES:
                pass  # the end of the registration has the same effect

    def release(self):
        """Releases the running jobs."""
        with self._changed:
            jobs = list(self.jobs)
        self._release(jobs)

    def end(self):
        """Aborts accept(), and ends the threads of handlers."""
        with self._changed:
            threads = self._threads
        self._accepting.abort()
        for _ in range(threads):
            self._todo.put(None)
