"""Divan's jobs and workers, with nothing but the standard library. README.md shows how."""

from ._divan import Divan
from ._job import Job, JobAborted, JobFailure, JobResult, JobSnooze, Signal
from ._transport import DivanError
from ._worker import Worker

__all__ = ["Divan", "DivanError", "Job", "JobAborted", "JobFailure", "JobResult", "JobSnooze", "Signal", "Worker"]
