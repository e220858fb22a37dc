"""Sends requests to one server over a pool of connections."""

import base64
import http.client
import json
import select
import socket
import threading
import time
import urllib.parse

# Below the server's own limit of two minutes.
_IDLE_SECONDS = 30.0


class DivanError(Exception):
    """An error response of the server: an HTTP ``status``, and CouchDB's ``error`` and ``reason``.

    If the server cannot be reached, OSError or http.client.HTTPException is raised."""

    def __init__(self, status, error, reason):
        super().__init__(f"{error}: {reason}")
        self.status = status
        self.error = error
        self.reason = reason


def is_refused(error):
    """Whether authentication or authorization failed."""
    return getattr(error, "status", 0) in (401, 403)


def quote(name):
    return urllib.parse.quote(name, safe="")


def _parse_error(status, text):
    try:
        body = json.loads(text)
        return DivanError(status, body["error"], body.get("reason", ""))
    except (ValueError, KeyError, TypeError, AttributeError):
        # A gateway may send a body of another form.
        return DivanError(status, "http_error", f"HTTP status {status}")


class Abort:
    """Ends a request from another thread: the request fails with an OSError. Thread-safe."""

    def __init__(self):
        self._lock = threading.Lock()
        self._connection = None
        self.done = False

    def attach(self, connection):
        with self._lock:
            self._connection = connection
            if self.done:
                raise ConnectionAbortedError("the request was aborted")

    def detach(self):
        with self._lock:
            self._connection = None

    def abort(self):
        with self._lock:
            self.done = True
            if self._connection is not None:
                _shut_down(self._connection)


def _shut_down(connection):
    try:
        connection.sock.shutdown(socket.SHUT_RDWR)
    except (OSError, AttributeError):
        pass  # it has no socket


def _parse_url(url):
    """Parses the URL. Errors do not contain it, since it may have a password."""
    try:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname:
            return parts, (parts.hostname, parts.port)
    except ValueError:
        pass
    raise ValueError("the URL of the server is malformed; expected http://NAME:PASSWORD@HOST:PORT")


class Transport:
    """Thread-safe."""

    def __init__(self, url):
        parts, self._address = _parse_url(url)
        self._class = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._prefix = parts.path.rstrip("/")
        self._headers = {"Accept": "application/json"}
        if parts.username:
            name, password = (urllib.parse.unquote(part or "") for part in (parts.username, parts.password))
            credentials = base64.b64encode(f"{name}:{password}".encode()).decode()
            self._headers["Authorization"] = "Basic " + credentials
        self._lock = threading.Lock()
        self._idle = []  # (since, connection), the newest last

    def _connect(self, timeout):
        return self._class(*self._address, timeout=timeout)

    def _take(self, timeout):
        """Returns a connection, and whether it was used before."""
        while True:
            with self._lock:
                if not self._idle:
                    return self._connect(timeout), False
                since, connection = self._idle.pop()
            # An idle connection that is readable was closed by the server.
            if time.monotonic() - since < _IDLE_SECONDS and not select.select([connection.sock], [], [], 0)[0]:
                connection.sock.settimeout(timeout)
                return connection, True
            connection.close()

    def _give(self, connection):
        with self._lock:
            self._idle.append((time.monotonic(), connection))

    def _send(self, connection, method, path, body):
        headers = dict(self._headers)
        if body is not None or method == "POST":
            headers["Content-Type"] = "application/json"
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        connection.request(method, self._prefix + path, body, headers)
        return connection.getresponse()

    def request(self, method, path, body=None, timeout=30.0, again=False, abort=None):
        """Sends a request and returns the parsed response.

        ``timeout``: seconds without a byte from the server. ``again``: the request may be repeated. ``abort``: an Abort
        that ends it. Raises DivanError for any status but 2xx."""
        connection, used = self._take(timeout)
        try:
            if connection.sock is None:
                connection.connect()
            if abort:
                abort.attach(connection)
            response = self._send(connection, method, path, body)
            text = response.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            # The server closed an idle connection just as it was reused.
            if again and used and isinstance(error, (ConnectionError, http.client.BadStatusLine)):
                return self.request(method, path, body, timeout, False, abort)
            raise
        except BaseException:
            connection.close()
            raise
        finally:
            if abort:
                abort.detach()
        if response.will_close:
            connection.close()
        else:
            self._give(connection)
        if response.status >= 300:
            raise _parse_error(response.status, text)
        return json.loads(text) if text else None

    def hold(self, path, body, timeout, on_line, on_end):
        """Opens a streamed response of JSON lines on a connection of its own. ``on_line(line)`` is called with each
        later line that is not an error, ``on_end()`` when it ends."""
        connection = self._connect(timeout)
        try:
            response = self._send(connection, "POST", path, body)
            if response.status >= 300:
                raise _parse_error(response.status, response.read())
            first = json.loads(response.readline())
            connection.sock.settimeout(None)
        except BaseException:
            connection.close()
            raise
        return Held(connection, response, first, on_line, on_end)

    def close(self):
        with self._lock:
            for _, connection in self._idle:
                connection.close()
            self._idle.clear()


class Held:
    """A streamed response. ``first``: its first line; ``error``: the error that it ends with, or ``{}``."""

    def __init__(self, connection, response, first, on_line, on_end):
        self.first = first
        self.error = {}
        self.ended = False
        self._connection = connection
        self._socket = connection.sock
        self._response = response
        self._on_line = on_line
        self._on_end = on_end
        threading.Thread(target=self._read, daemon=True, name="divan-hold").start()

    def _read(self):
        try:
            for line in iter(self._response.readline, b""):
                said = json.loads(line) if line.strip() else {}  # an empty line is a heartbeat
                if "error" in said:
                    self.error = said
                    break
                self._on_line(said)
        except (OSError, ValueError, http.client.HTTPException):
            pass
        self.ended = True
        self._response.close()
        self._connection.close()
        self._on_end()

    def close(self):
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
