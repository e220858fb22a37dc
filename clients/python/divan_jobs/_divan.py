"""What everybody does with jobs who does not run them: adds them, looks at them, takes them away."""

import uuid

from ._transport import Transport, quote
from ._wire import changes, new_job
from ._worker import Worker


class Divan:
    """One server, as one user: ``Divan("http://name:password@host:port")``. Thread-safe."""

    def __init__(self, url):
        self._url = url
        self._transport = Transport(url)

    def _request(self, method, path, body=None):
        return self._transport.request(method, path, body, again=method != "POST")

    @staticmethod
    def _job(type, id):
        return f"/_jobs/{quote(type)}/{quote(id)}"

    def declare(self, type, **settings):
        """Declares a type of jobs, or changes its settings: those of docs/jobs.md, in milliseconds."""
        self._request("PUT", f"/_jobs/{quote(type)}", settings)

    def enqueue(self, type, id=None, data=None, scheduled_at=None, priority=None, schedule=None):
        """Adds a job; without an id it gets one. ``scheduled_at``: not before then, a datetime or seconds since 1970;
        lower priorities run first. Answers ``{"id": …, "created": …}``; created is false if the job was there.

        ``schedule``: again and again, ``{"cron": "30 7 * * mon-fri", "time_zone": "Europe/Berlin", "missed": "once"}``;
        time_zone (UTC) and missed (or "skip": what nobody has begun when the next is due does not run) may be left
        out. Not together with scheduled_at. A job that is there with the same schedule keeps its time."""
        # With an id of ours a lost answer does no harm: adding the same again changes nothing.
        job = new_job({"data": data, "scheduled_at": scheduled_at, "priority": priority, "schedule": schedule})
        added = self._request("PUT", self._job(type, id or str(uuid.uuid4())), job)
        return {"id": added["id"], "created": added["created"]}

    def enqueue_many(self, type, jobs):
        """Adds all of them or none: dicts of ``id``, ``data``, ``scheduled_at``, ``priority`` and ``schedule``, all
        optional."""
        added = self._request("POST", f"/_jobs/{quote(type)}/_bulk", {"jobs": [new_job(job) for job in jobs]})
        return [{"id": job["id"], "created": job["created"]} for job in added]

    def transact(self, docs=None, jobs=None):
        """Writes documents and jobs together or not at all.

        ``docs``: lists of documents by database. ``jobs``: ``{"add": [{"type": …, "id": …, "data": …}], "finish":
        [{"type": …, "id": …, "lock": …, "data": …}], "remove": [{"type": …, "id": …}]}``. A document in conflict
        raises DivanError with status 409, and nothing is written. What is added takes what enqueue() takes."""
        return self._request("POST", "/_transact", changes(docs, jobs))

    def get(self, type, id):
        return self._request("GET", self._job(type, id))

    def counts(self, type):
        return self._request("GET", f"/_jobs/{quote(type)}")["counts"]

    def cancel(self, type, id):
        """A pending job is cancelled, the handler of a running one gets its signal."""
        self._request("POST", f"{self._job(type, id)}/_cancel")

    def remove(self, type, id):
        """Removes every trace of a job; the handler of a running one gets its signal."""
        self._request("DELETE", self._job(type, id))

    def worker(self, role, **options):
        """A Worker of this server."""
        return Worker(self._url, role, **options)

    def close(self):
        """Closes idle connections."""
        self._transport.close()
