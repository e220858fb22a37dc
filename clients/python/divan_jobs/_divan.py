"""The client for applications that add, read, wait for and remove jobs."""

import json
import time
import uuid

from ._transport import DivanError, Transport, quote
from ._wire import changes, durations, job_info, milliseconds, new_job, pieces
from ._worker import Worker


_LISTED = 1_000  # the server's limit
_POLL_SECONDS = 60.0
_ENDED = ("finished", "failed", "cancelled")


class Divan:
    """One server, as one user: ``Divan("http://name:password@host:port")``. Thread-safe.

    Times are in seconds; datetimes and timedeltas are accepted, too."""

    def __init__(self, url):
        self._url = url
        self._transport = Transport(url)

    def _request(self, method, path, body=None):
        return self._transport.request(method, path, body, again=method != "POST")

    @staticmethod
    def _job(type, id):
        return f"/_jobs/{quote(type)}/{quote(id)}"

    def declare(self, type, **settings):
        """Declares a type of jobs, or changes its settings: those of docs/jobs.md, but times in seconds."""
        self._request("PUT", f"/_jobs/{quote(type)}", durations(settings))

    def enqueue(self, type, id=None, data=None, scheduled_at=None, priority=None, schedule=None, **others):
        """Adds a job; without an id it gets a UUID. ``scheduled_at``: its earliest time, a datetime or seconds since 1970;
        lower priorities run first. Returns ``{"id": …, "created": …}``; created is false if the job existed.

        ``schedule`` makes it periodic: ``{"cron": "30 7 * * mon-fri", "time_zone": "Europe/Berlin", "missed": "once"}``;
        time_zone (default UTC) and missed (or "skip": occurrences not started before the next tick do not run) are
        optional. Excludes scheduled_at. An existing job with the same schedule keeps its time.

        ``traceparent``: the job's trace (W3C Trace Context), stored as a member of its data, which must be a dict.
        Other options of a job in docs/jobs.md are passed by their names, times in seconds."""
        # With an id chosen here the request can be repeated: adding the same job again has no effect.
        job = {"data": data, "scheduled_at": scheduled_at, "priority": priority, "schedule": schedule, **others}
        job = new_job(job)
        added = self._request("PUT", self._job(type, id or str(uuid.uuid4())), job)
        return {"id": added["id"], "created": added["created"]}

    def enqueue_many(self, type, jobs):
        """Adds many jobs: dicts of ``id``, ``data``, ``scheduled_at``, ``priority``, ``schedule``, ``traceparent``,
        all optional.

        Atomic if they fit into one request (5,000 jobs and 4 MB), otherwise in several requests. Then an error has the
        jobs that were added before it as ``added``; adding them again has no effect if they have ids."""
        # With ids chosen here, jobs that were added before an error can be added again.
        everything = [{**job, "id": job.get("id") or str(uuid.uuid4())} for job in map(new_job, jobs)]
        ids = set()
        for job in everything:
            if job["id"] in ids:
                raise ValueError(f"job {job['id']} is given twice")
            ids.add(job["id"])
        added = []
        try:
            for piece in pieces(everything):
                self._enqueue_piece(type, piece, added)
        except Exception as error:
            if added:
                error.added = added
            raise
        return added

    def _enqueue_piece(self, type, piece, added):
        try:
            answers = self._request("POST", f"/_jobs/{quote(type)}/_bulk", b'{"jobs":[' + b",".join(piece) + b"]}")
        except DivanError as error:
            if error.status != 413 or len(piece) == 1:
                raise
            middle = len(piece) // 2
            self._enqueue_piece(type, piece[:middle], added)
            self._enqueue_piece(type, piece[middle:], added)
        else:
            added.extend({"id": job["id"], "created": job["created"]} for job in answers)

    def transact(self, docs=None, jobs=None):
        """Writes documents and jobs atomically.

        ``docs``: lists of documents by database. ``jobs``: ``{"add": [{"type": …, "id": …, "data": …}], "finish":
        [{"type": …, "id": …, "lock": …, "result": …, "data": …}], "remove": [{"type": …, "id": …}]}``. A document in
        conflict raises DivanError with status 409, and nothing is written. Added jobs take the options of enqueue()."""
        return self._request("POST", "/_transact", changes(docs, jobs))

    def get(self, type, id):
        """A job as docs/jobs.md shows it, but with all times in seconds."""
        return job_info(self._request("GET", self._job(type, id)))

    def list(self, type, state=None, start_id=None, descending=False):
        """The jobs of a type, by id, or those in a state: pending ones in queue order, running ones by id, others as they
        ended. From ``start_id`` on; ``descending`` reverses the order. A generator."""
        query = f"/_jobs/{quote(type)}/_list?limit={_LISTED}&descending={'true' if descending else 'false'}"
        if state:
            query += f"&state={quote(state)}"
        start = f"&start_id={quote(json.dumps(start_id))}" if start_id else ""
        while True:
            page = self._request("GET", query + start)
            yield from map(job_info, page["jobs"])
            if "next" not in page:
                return
            start = f"&start={quote(page['next'])}"

    def wait(self, type, id, timeout=None):
        """Returns when the job has ended, with the result of get(). Raises DivanError with status 404 if the job does not
        exist or is removed, and TimeoutError after ``timeout`` seconds. A periodic job ends only if it is
        cancelled."""
        deadline = None if timeout is None else time.monotonic() + timeout
        since = ""
        while True:
            left = _POLL_SECONDS if deadline is None else max(0.0, deadline - time.monotonic())
            poll = min(_POLL_SECONDS, left)
            target = f"{self._job(type, id)}?feed=longpoll&timeout={milliseconds(poll)}&since={quote(since)}"
            answer = self._transport.request("GET", target, timeout=poll + 30.0, again=True)
            state = answer["results"][-1]["state"] if answer["results"] else None
            if state == "not_found":
                raise DivanError(404, "not_found", "The job was removed.")
            if state in _ENDED:
                return self.get(type, id)  # read it again to include its attempts
            since = answer["last_seq"]
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"job {id} has not ended in {timeout} s")

    def wait_for_many(self, jobs, count=None, states=None, timeout=None):
        """Returns when ``count`` (all) of up to 1,000 jobs, dicts of ``type`` and ``id``, are in one of ``states``
        (finished, failed, cancelled), or after ``timeout`` seconds: ``{"type", "id", "state", "reached"}`` of each, in the
        same order. A missing job is ``not_found``, and counts."""
        deadline = None if timeout is None else time.monotonic() + timeout
        body = {"jobs": [{"type": job["type"], "id": job["id"]} for job in jobs]}
        body["count"] = len(body["jobs"]) if count is None else count
        if states is not None:
            body["states"] = states
        while True:
            left = _POLL_SECONDS if deadline is None else max(0.0, deadline - time.monotonic())
            poll = min(_POLL_SECONDS, left)
            body["timeout"] = milliseconds(poll)
            answer = self._transport.request("POST", "/_jobs/_wait", body, timeout=poll + 30.0, again=True)
            late = deadline is not None and time.monotonic() >= deadline
            if answer["reached"] >= body["count"] or late:
                return answer["jobs"]

    def resubmit(self, type, id, data=None, scheduled_at=None):
        """Runs the job again, with its data unless new data is given; a running job runs again afterwards."""
        body = new_job({"data": data, "scheduled_at": scheduled_at})
        self._request("POST", f"{self._job(type, id)}/_resubmit", body)

    def counts(self, type):
        return self._request("GET", f"/_jobs/{quote(type)}")["counts"]

    def cancel(self, type, id):
        """Cancels a pending job; the handler of a running one gets its signal."""
        self._request("POST", f"{self._job(type, id)}/_cancel")

    def remove(self, type, id):
        """Removes a job; the handler of a running one gets its signal."""
        self._request("DELETE", self._job(type, id))

    def worker(self, role, **options):
        """Returns a Worker of this server."""
        return Worker(self._url, role, **options)

    def close(self):
        """Closes idle connections."""
        self._transport.close()
