"""A worker that a test controls: it reports events on stdout and reads commands from stdin.

    python3 worker.py URL '{"type": …, "concurrency": …, "worker": {…}}'

A job's data say what its handler does: {"do": "note" | "hold" | "stubborn" | "throw" | "big" | "transact" | "late"}."""

import datetime
import json
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../clients/python"))
from divan_jobs import Divan, DivanError, JobAborted, JobFailure, JobResult, JobSnooze  # noqa: E402

url, options = sys.argv[1], json.loads(sys.argv[2])
job_type = options["type"]
NAMES = {"id": "id", "timeout": "timeout", "checkInterval": "check_interval", "pollTimeout": "poll_timeout"}
settings = {NAMES[name]: value if name == "id" else value / 1000 for name, value in options["worker"].items()}
SCHEDULE = {"cron": "@yearly", "time_zone": "Europe/Berlin", "missed": "skip"}
proceed = threading.Event()


def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def say_abort(job):
    job.signal.wait()
    say("aborted", job.id, job.signal.reason.code)


def try_to(job, what, action):
    try:
        action()
    except JobAborted as error:
        say("refused", job.id, what, error.code)


divan = Divan(url)
worker = divan.worker(job_type, **settings)


# Hooks: the outer one sees a failure, the inner one changes a result, and one job does not reach its handler.
@worker.use
def outer(job, next):
    if job.data.get("do") != "hooked":
        return next()
    say("before", job.id, "outer", job.traceparent or "none")
    try:
        return next()
    except Exception as error:
        say("caught", job.id, error)
        raise
    finally:
        say("after", job.id, "outer")


@worker.use
def inner(job, next):
    if job.data.get("do") != "hooked":
        return next()
    say("before", job.id, "inner")
    if job.data.get("skip"):
        return {"skipped": True}
    if job.data.get("fail"):
        raise RuntimeError("in a hook")
    return {**next(), "hooked": True}


@worker.handle(options.get("types", job_type), concurrency=options.get("concurrency", 1))
def run(job):
    what = job.data.get("do")
    if what in ("hold", "stubborn"):
        threading.Thread(target=say_abort, args=(job,), daemon=True).start()
    say("ran", job.id)
    if what == "nothing":
        return None
    if what == "count":
        return JobResult({"counted": job.data["n"]}, data={**job.data, "n": job.data["n"] + 1})
    if what == "throw":
        raise RuntimeError("no luck")
    if what == "give up":
        raise JobFailure("never", retry=False)
    if what == "pause":
        raise JobFailure("not yet", delay=3_600)
    if what == "snooze":
        raise JobSnooze(job.data.get("delay", 7_200))
    if what == "big":
        return {"text": "x" * 9_000_000}
    if what == "hold":
        job.update(progress={"held": True})
        while not proceed.wait(0.01):
            job.signal.check()
    if what == "stubborn":  # ignores its signal
        proceed.wait()
    if what == "late":  # also ignores its signal, and reports on its job on a command
        proceed.wait()
        by = {"by": worker.id}
        try_to(job, "update", lambda: job.update(progress=by))
        try_to(job, "transact", lambda: job.transact(docs={job.data["db"]: [{"_id": job.id, **by}]}, result=by))
    if what == "transact":
        later = datetime.datetime(2099, 1, 31, 8, tzinfo=datetime.timezone.utc)
        add = [
            {"type": job_type, "id": job.id + "-next", "data": {}},
            {"type": job_type, "id": job.id + "-later", "scheduled_at": later},
            {"type": job_type, "id": job.id + "-yearly", "schedule": SCHEDULE},
        ]
        job.transact(docs={job.data["db"]: [{"_id": job.id}]}, jobs={"add": add}, result={"did": True})
    return {"by": worker.id, "epoch": job.epoch}


worker.on("online", lambda: say("online"))
worker.on("offline", lambda error: say("offline"))
def listener(name):
    def listen(job, reason):
        say(name, job.id, reason) if name == "fail" else say(name, job.id)
        if name == options.get("faulty"):
            raise ValueError(f"in the listener of {name}")

    return listen


for event in ("halt", "fail"):
    worker.on(event, listener(event))


def enqueue(job_id, cron):
    try:
        added = divan.enqueue(job_type, job_id, {"do": "note"}, schedule={**SCHEDULE, "cron": cron})
        say("enqueued", job_id, json.dumps(added["created"]))
    except DivanError as error:
        say("error", error.status, error.reason)


def listen():
    for line in sys.stdin:
        command, _, argument = line.strip().partition(" ")
        if command == "go":
            proceed.set()
        if command == "enqueue":  # its id and cron expression
            enqueue(*argument.split(" ", 1))
        if command == "stop":
            threading.Thread(target=worker.stop, args=(float(argument) / 1000,), daemon=True).start()
            say("stopping")


threading.Thread(target=listen, daemon=True).start()
try:
    worker.run()
    say("stopped")
except DivanError as error:
    say("error", type(error).__name__, error.status, error.error)
except ValueError as error:
    say("error", error)
os._exit(0)  # the thread that reads stdin still does
