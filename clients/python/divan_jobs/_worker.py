"""A worker: one registration, and a consumer for each handler."""

import os
import secrets
import socket
import threading

from ._consumer import Consumer
from ._registration import FAILURES, Registration
from ._transport import Transport

_MAX_TYPES = 100  # the server's limit
_REPORTS_SECONDS = 5.0  # that a worker which stops waits for reports
_EVENTS = ("online", "offline", "halt", "fail")


class _Context:
    """Shared by the parts of a worker. ``changed`` guards all of their state."""

    def __init__(self, transport, emit, fatal, check_interval, poll_timeout, backoff):
        self.changed = threading.Condition()
        self.transport = transport
        self.emit = emit
        self.fatal = fatal
        self.check_interval = check_interval
        self.poll_timeout = poll_timeout
        self.backoff = backoff
        self.registration = None
        self.stopping = False
        self.ended = False


class Worker:
    """Runs jobs with handlers. Thread-safe; times are in seconds.

    * ``role``: workers are grouped by role.
    * ``id``: unique in the role; default: host name, process id and a random suffix.
    * ``timeout``: seconds without a heartbeat after which the worker is evicted and its jobs are reclaimed.
    * ``opts``: a dict that is shown in lists of workers.
    * ``check_interval``: the interval of checks whether running jobs were cancelled.
    * ``poll_timeout``: how long one request waits for jobs.
    * ``backoff``: the first and the longest pause between attempts to reach the server; at most half the timeout, so
      that the worker reconnects in time."""

    def __init__(
        self, url, role, id=None, timeout=15.0, opts=None, check_interval=1.0, poll_timeout=30.0, backoff=(0.1, 30.0)
    ):
        self.role = role
        self.id = id or f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self._listeners = {}
        self._consumers = []
        self._hooks = []
        self._started = False
        self._fault = None
        self._context = _Context(Transport(url), self._emit, self._fail, check_interval, poll_timeout, backoff)
        self._changed = self._context.changed
        self._registration = self._context.registration = Registration(
            self._context.transport, self._changed, role, self.id, timeout, opts or {}, backoff, self
        )

    # Callbacks of the registration.

    def online(self):
        self._emit("online")

    def offline(self, error):
        self._emit("offline", error)

    def lost(self):
        for consumer in self._consumers:
            consumer.halt_all("the worker lost its registration")

    def halted(self, attempt):
        for consumer in self._consumers:
            consumer.halt_attempt(attempt)

    def _emit(self, name, *details):
        listener = self._listeners.get(name)
        if not listener:
            return
        try:
            listener(*details)
        except Exception as error:  # not a failure of a request or a connection
            self._fail(error)

    def on(self, name, listener=None):
        """Calls ``listener`` at an event; also a decorator. An exception that it raises ends the worker, and
        run() raises it.

        * ``online``: the worker is registered: ``()``
        * ``offline``: the server cannot be reached or has evicted the worker, which retries: ``(error)``
        * ``halt``: the worker does not own a job any more, its handler's result is ignored: ``(job, reason)``
        * ``fail``: a handler raised: ``(job, error)``"""
        if name not in _EVENTS:
            raise ValueError(f"unknown event {name}")
        if listener is None:
            return lambda listener: self.on(name, listener)
        self._listeners[name] = listener
        return listener

    def handle(self, type, handler=None, concurrency=1):
        """Runs up to ``concurrency`` jobs at once with ``handler(job)``, each in a thread; also a decorator. ``type``: one
        type, or a list of up to 100, whose jobs then form one queue by priority, time and age.

        The handler returns the job's result (None: no result), or a JobResult; if it raises, the attempt has failed.
        Call before run()."""
        if handler is None:
            return lambda handler: self.handle(type, handler, concurrency)
        if self._started:
            raise RuntimeError("handlers must be added before run()")
        types = [type] if isinstance(type, str) else list(type)
        if not 1 <= len(types) <= _MAX_TYPES:
            raise ValueError(f"a handler has {len(types)} job types; expected 1 to {_MAX_TYPES}")
        handled = [name for consumer in self._consumers for name in consumer.types]
        for i, name in enumerate(types):
            if name in handled or name in types[:i]:
                raise ValueError(f"two handlers for {name}")
        if concurrency < 1:
            raise ValueError("concurrency must be at least 1")
        self._consumers.append(Consumer(self._context, types, lambda job: self._run_hooks(0, job, handler), concurrency))
        return handler

    def use(self, hook):
        """Adds a hook around the handlers of all types, ``hook(job, next)``; also a decorator. ``next()`` runs the next
        hook or the handler, and returns or raises as that does. The hook's return value replaces the handler's result, and
        an exception is a failure of the handler. The first one added is the outermost. Call before run()."""
        if self._started:
            raise RuntimeError("hooks must be added before run()")
        self._hooks.append(hook)
        return hook

    def _run_hooks(self, first, job, handler):
        if first == len(self._hooks):
            return handler(job)
        return self._hooks[first](job, lambda: self._run_hooks(first + 1, job, handler))

    def run(self):
        """Runs until stop(). Raises errors for which a retry is useless: DivanError with ``error`` no_such_job_type (the
        type is not declared) or ``status`` 401 or 403."""
        self._started = True
        self._spawn("registration", self._registration.run)
        self._spawn("check", self._check)
        for consumer in self._consumers:
            self._spawn(f"{consumer.types[0]}-accept", consumer.accept)
            for name, reports in consumer.outbox.kinds.items():
                self._spawn(f"{consumer.types[0]}-{name}", reports.send)
        try:
            with self._changed:
                self._changed.wait_for(lambda: self._context.ended)
        except BaseException:  # KeyboardInterrupt, or an exception of a signal handler
            self.stop(0)
            raise
        if self._fault:
            raise self._fault

    def _spawn(self, name, work):
        def guarded():
            try:
                work()
            except Exception as error:
                self._fail(error)

        threading.Thread(target=guarded, daemon=True, name=f"divan-{name}").start()

    def _check(self):
        context = self._context
        while True:
            with self._changed:
                if self._changed.wait_for(lambda: context.ended, context.check_interval):
                    return
            for consumer in self._consumers:
                try:
                    consumer.check(context.check_interval)
                except FAILURES:
                    pass  # the next check may succeed

    def _fail(self, error):
        with self._changed:
            self._fault = self._fault or error
        self.stop(0)

    def stop(self, timeout=30.0):
        """Accepts no more jobs and waits for running ones. Jobs that take longer than ``timeout`` get their signal
        and are released, so that other workers can run them at once. Reports of jobs that have ended may take some seconds
        more. May be called by a signal's handler."""
        with self._changed:
            self._context.stopping = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: all(consumer.idle for consumer in self._consumers), timeout)
        for consumer in self._consumers:
            consumer.release()
        with self._changed:
            self._changed.wait_for(lambda: all(consumer.outbox.size == 0 for consumer in self._consumers), _REPORTS_SECONDS)
        for consumer in self._consumers:
            consumer.end()
        self._registration.unregister()
        with self._changed:
            self._context.ended = True
            self._changed.notify_all()
        self._context.transport.close()
