"""W3C Trace Context (https://www.w3.org/TR/trace-context/#traceparent-header).

``enqueue()`` sets a job's trace, and its handler reads it. It is stored as the member ``traceparent`` of the job's data, as
in CloudEvents."""

import re

_FORM = re.compile("(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


def with_trace(data, traceparent):
    """The data of a job with the trace."""
    if not isinstance(traceparent, str) or not _FORM.fullmatch(traceparent):
        raise ValueError(f"traceparent is {traceparent!r}; expected the form of W3C Trace Context")
    if data is not None and not isinstance(data, dict):
        raise ValueError("the data of a job with a traceparent must be a dict")
    return {**(data or {}), "traceparent": traceparent}


def trace_of(data):
    """The trace in the data of a job; None if it is missing or malformed."""
    given = data.get("traceparent") if isinstance(data, dict) else None
    return given if isinstance(given, str) and _FORM.fullmatch(given) else None
