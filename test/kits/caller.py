"""Calls a kit for a test: reads {"call": …, "args": […], "options": {…}} in lines, and answers {"result": …} or
{"error": …} in lines.

    python3 caller.py URL"""

import json
import os
import sys
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../clients/python"))
from divan_jobs import Divan  # noqa: E402

NAMES = {"enqueueMany": "enqueue_many", "waitForMany": "wait_for_many"}
divan = Divan(sys.argv[1])


def make(call, args=(), options=None):
    global divan
    if call == "connect":
        divan = Divan(*args)
        return None
    result = getattr(divan, NAMES.get(call, call))(*args, **(options or {}))
    return list(result) if call == "list" else result


for line in sys.stdin:
    try:
        answer = {"result": make(**json.loads(line))}
    except Exception as error:
        answer = {
            "error": getattr(error, "error", type(error).__name__),
            "status": getattr(error, "status", None),
            "added": len(error.added) if hasattr(error, "added") else None,
            "text": traceback.format_exc(),
        }
    print(json.dumps(answer), flush=True)
