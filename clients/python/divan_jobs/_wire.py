"""What callers give, as the server reads it."""

import datetime


def _milliseconds(time):
    """Of a datetime, or of seconds since 1970."""
    return int(1000 * (time.timestamp() if isinstance(time, datetime.datetime) else time))


def new_job(job):
    """A job that is added."""
    job = dict(job)
    if job.get("scheduled_at") is not None:
        job["scheduled_at"] = _milliseconds(job["scheduled_at"])
    return {name: value for name, value in job.items() if value is not None}


def changes(docs, jobs):
    """The documents and jobs of a transaction."""
    jobs = dict(jobs or {})
    if "add" in jobs:
        jobs["add"] = [new_job(job) for job in jobs["add"]]
    return {"docs": docs or {}, "jobs": jobs}
