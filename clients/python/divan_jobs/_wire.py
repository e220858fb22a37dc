"""Converts callers' options to the members of the HTTP API: callers' times are in seconds, the server's in milliseconds."""

import datetime
import json

from ._trace import with_trace
from ._transport import quote

# Durations among the settings of types and the options of jobs.
_DURATIONS = (
    "timeout", "backoff_min", "backoff_max", "retention", "retention_failed", "max_runtime", "delay",
)  # fmt: skip
# Limits for which None means no limit.
_UNLIMITED = ("max_lost", "max_runtime")
# Times of a job, or of its attempts.
_TIMES = ("scheduled_at", "due_at", "added_at", "started_at", "finished_at", "ended_at", "deadline")

# The most jobs and bytes of one request that adds jobs, below the limits of a transaction.
_MAX_JOBS = 5_000
_MAX_BYTES = 4_000_000


def path_of(job_type):
    return f"/_jobs/{quote(job_type)}"


def milliseconds(time):
    """Converts a datetime, a timedelta or seconds to milliseconds."""
    if isinstance(time, datetime.datetime):
        time = time.timestamp()
    elif isinstance(time, datetime.timedelta):
        time = time.total_seconds()
    return round(1000 * time)


def durations(settings):
    """Converts settings of a type, or options of a job."""

    def convert(name, value):
        return value if name not in _DURATIONS or value is None else milliseconds(value)

    return {name: convert(name, value) for name, value in settings.items()}


def job_info(job):
    """Converts a job of the server: times in seconds."""

    def convert(values):
        times = _TIMES + _DURATIONS
        return {name: value / 1000 if name in times and value is not None else value for name, value in values.items()}

    job = convert(job)
    if "history" in job:
        job["history"] = [convert(attempt) for attempt in job["history"]]
    return job


def new_job(job):
    """Converts a job to add."""
    job = durations(job)
    traceparent = job.pop("traceparent", None)
    if traceparent is not None:
        job["data"] = with_trace(job.get("data"), traceparent)
    if job.get("scheduled_at") is not None:
        job["scheduled_at"] = milliseconds(job["scheduled_at"])
    return {name: value for name, value in job.items() if value is not None or name in _UNLIMITED}


def pieces(jobs):
    """Converts jobs to add to JSON, in lists that fit into one request each."""
    piece, size = [], 0
    for job in jobs:
        text = json.dumps(job).encode()
        if piece and (len(piece) == _MAX_JOBS or size + len(text) > _MAX_BYTES):
            yield piece
            piece, size = [], 0
        piece.append(text)
        size += len(text)
    yield piece


def changes(docs, jobs):
    """Converts the documents and jobs of a transaction."""
    jobs = dict(jobs or {})
    if "add" in jobs:
        jobs["add"] = [new_job(job) for job in jobs["add"]]
    return {"docs": docs or {}, "jobs": jobs}
