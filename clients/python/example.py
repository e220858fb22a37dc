"""Sends letters: python3 example.py http://admin:secret@127.0.0.1:5984"""

import signal
import sys
import time

from divan_jobs import Divan

divan = Divan(sys.argv[1] if len(sys.argv) > 1 else "http://admin:secret@127.0.0.1:5984")
divan.declare("letter", max_attempts=5)

worker = divan.worker("post-office")


@worker.handle("letter", concurrency=10)
def send(job):
    job.update(progress={"franked": True})
    print(f"to {job.data['to']}: {job.data['text']}", flush=True)
    return {"sent_at": time.time()}


worker.on("online", lambda: print("online", flush=True))
worker.on("offline", lambda error: print(f"waiting for the server: {error}", flush=True))
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda *_: worker.stop(10))

divan.enqueue("letter", "welcome-ann", {"to": "Ann", "text": "Welcome!"})
worker.run()
