"""Keeps a worker registered across lost connections and evictions.

The server detects a dead worker in two ways. When the process dies, the end of its held connection releases its jobs at
once. When it is frozen or cut off while the connection stays open, its heartbeats stop.
"""

import http.client
import random
import time

from ._backoff import Backoff
from ._transport import DivanError, is_refused, quote

FAILURES = (DivanError, OSError, http.client.HTTPException, ValueError)


class Registration:
    """Its state is guarded by ``changed``, a Condition of the worker's, which is notified of changes.

    ``incarnation`` is that of the current registration, or None; ``up`` is True if the server is reachable."""

    def __init__(self, transport, changed, role, worker_id, timeout, opts, backoff, hooks):
        """``hooks``: online(), offline(error), lost(): the worker has lost the jobs accepted before, and
        halted(attempt): the server has ended an attempt."""
        self._transport = transport
        self._changed = changed
        self._role = role
        self._id = worker_id
        self._path = f"/_workers/{quote(role)}/{quote(worker_id)}"
        self._timeout = timeout
        self._opts = opts
        # A worker that reconnects within its timeout keeps its jobs.
        least, most = backoff
        self._backoff = Backoff(least, min(most, timeout / 2))
        self._hooks = hooks
        self._hold = None
        self._stopped = False
        self._check = False
        self.incarnation = None
        self.up = False

    @property
    def worker(self):
        return {"role": self._role, "id": self._id, "incarnation": self.incarnation}

    def run(self):
        """Registers, again if necessary, until unregister(). Raises errors for which a retry is useless."""
        while not self._stopped:
            why = None
            try:
                self._register()
                if not self._stopped:
                    why = self._beat()
            except FAILURES as error:
                why = error
                if is_refused(error) or getattr(error, "status", 0) in (400, 404):
                    raise
            finally:
                self._down(why)
            with self._changed:
                self._changed.wait_for(lambda: self._stopped, self._backoff.next())

    def _notify(self):
        with self._changed:
            self._changed.notify_all()

    def _heard(self, line):
        if "halt" in line:
            self._hooks.halted(line["halt"])

    def _register(self):
        before = self.incarnation
        settings = {"timeout": int(1000 * self._timeout), "opts": self._opts}
        if before:
            settings["incarnation"] = before
        self._hold = self._transport.hold(f"{self._path}/_hold", settings, 30.0, self._heard, self._notify)
        incarnation = self._hold.first["incarnation"]
        if before is not None and incarnation != before:
            self._lose()
        with self._changed:
            if self._stopped:
                return
            self.incarnation = incarnation
            self.up = True
        self._hooks.online()
        self._notify()

    def _beat(self):
        """Returns the reason when the connection or the registration is lost."""
        hold = self._hold
        heard = time.monotonic()
        while True:
            with self._changed:
                wait = self._timeout / 3 * (1 - random.random() / 4)
                self._changed.wait_for(lambda: self._check or hold.ended or self._stopped, wait)
                self._check = False
                incarnation = self.incarnation
            if hold.ended:
                if hold.error.get("error") == "halt":
                    self._lose()
                return ConnectionError(hold.error.get("reason", "the held connection was closed"))
            if incarnation is None or self._stopped:
                return ConnectionError("the registration was abandoned")
            try:
                beat = {"incarnation": incarnation}
                self._transport.request("POST", f"{self._path}/_heartbeat", beat, self._timeout, again=True)
                heard = time.monotonic()
                self._backoff.reset()
            except FAILURES as error:
                if is_refused(error):
                    raise
                if getattr(error, "status", 0) == 409:
                    self._lose()
                    return error
                # A failed heartbeat is tolerated while the connection is held.
                if time.monotonic() - heard > self._timeout:
                    return error

    def check(self):
        """Sends the next heartbeat now, to check a registration that may be lost."""
        with self._changed:
            self._check = True
            self._changed.notify_all()

    def renew(self):
        """Registers again: the server reclaims all jobs that it has assigned to this worker."""
        incarnation = self.incarnation
        if incarnation is None:
            return
        try:
            self._transport.request("DELETE", f"{self._path}?incarnation={incarnation}", again=True)
        except DivanError as error:
            if error.status != 404:
                raise
        if self.incarnation == incarnation:
            self._lose()
        self.check()

    def _lose(self):
        with self._changed:
            self.incarnation = None
            self.up = False
        self._hooks.lost()

    def _down(self, why):
        if self._hold is not None:
            self._hold.close()
        self._hold = None
        self.up = False
        if not self._stopped:
            self._hooks.offline(why)

    def unregister(self):
        """Ends the registration and run(). The worker's remaining jobs are pending again."""
        with self._changed:
            incarnation, self.incarnation = self.incarnation, None
            self.up = False
            self._stopped = True
            hold = self._hold
            self._changed.notify_all()
        if incarnation:
            try:
                self._transport.request("DELETE", f"{self._path}?incarnation={incarnation}", timeout=5.0)
            except FAILURES:
                pass  # the end of the connection has the same effect
        if hold is not None:
            hold.close()
