# The types of the public interface; the docstrings are in the modules.
import datetime
from typing import Any, Callable, Dict, Generator, Iterable, List, Literal, Mapping, Optional, Sequence, Tuple, TypeVar, Union, overload

__all__ = ["Divan", "DivanError", "Job", "JobAborted", "JobFailure", "JobResult", "JobSnooze", "Signal", "Worker"]

_Json = Any
_Duration = Union[float, datetime.timedelta]
_Time = Union[float, datetime.datetime]
_Docs = Mapping[str, Sequence[Mapping[str, _Json]]]
_Jobs = Mapping[Literal["add", "finish", "remove"], Sequence[Mapping[str, Any]]]
_State = Literal["pending", "running", "finished", "failed", "cancelled"]
_Handler = Callable[["Job"], Any]
_Hook = Callable[["Job", Callable[[], Any]], Any]
_H = TypeVar("_H", bound=_Handler)
_K = TypeVar("_K", bound=_Hook)
_L = TypeVar("_L", bound=Callable[..., Any])

class DivanError(Exception):
    status: int
    error: str
    reason: str
    def __init__(self, status: int, error: str, reason: str) -> None: ...

class JobAborted(Exception):
    code: Literal["cancel", "halt", "stop"]
    def __init__(self, code: Literal["cancel", "halt", "stop"], message: str) -> None: ...

class JobFailure(Exception):
    retry: bool
    delay: Optional[_Duration]
    def __init__(self, message: str, retry: bool = True, delay: Optional[_Duration] = None) -> None: ...

class JobSnooze(Exception):
    delay: _Duration
    def __init__(self, delay: _Duration) -> None: ...

class JobResult:
    result: _Json
    data: _Json
    def __init__(self, result: _Json, data: _Json = None) -> None: ...

class Signal:
    reason: Optional[JobAborted]
    def __init__(self) -> None: ...
    def is_set(self) -> bool: ...
    def wait(self, timeout: Optional[float] = None) -> bool: ...
    def check(self) -> None: ...

class Job:
    """Created by a worker, and passed to a handler."""

    type: str
    id: str
    data: _Json
    attempt: int
    epoch: int
    lock: str
    traceparent: Optional[str]
    signal: Signal
    def __init__(self, consumer: Any, accepted: Mapping[str, Any]) -> None: ...
    def update(self, *, progress: _Json = ..., data: _Json = ...) -> Dict[str, bool]: ...
    def transact(self, docs: Optional[_Docs] = None, jobs: Optional[_Jobs] = None, result: _Json = None) -> Dict[str, Any]: ...

class Worker:
    role: str
    id: str
    def __init__(
        self,
        url: str,
        role: str,
        id: Optional[str] = None,
        timeout: float = 15.0,
        opts: Optional[Mapping[str, _Json]] = None,
        check_interval: float = 1.0,
        poll_timeout: float = 30.0,
        backoff: Tuple[float, float] = (0.1, 30.0),
    ) -> None: ...
    @overload
    def on(self, name: Literal["online", "offline", "halt", "fail"], listener: _L) -> _L: ...
    @overload
    def on(self, name: Literal["online", "offline", "halt", "fail"], listener: None = None) -> Callable[[_L], _L]: ...
    @overload
    def handle(self, type: Union[str, Sequence[str]], handler: _H, concurrency: int = 1) -> _H: ...
    @overload
    def handle(self, type: Union[str, Sequence[str]], handler: None = None, concurrency: int = 1) -> Callable[[_H], _H]: ...
    def use(self, hook: _K) -> _K: ...
    def run(self) -> None: ...
    def stop(self, timeout: float = 30.0) -> None: ...
    # Called by the worker's registration.
    def online(self) -> None: ...
    def offline(self, error: Any) -> None: ...
    def lost(self) -> None: ...
    def halted(self, attempt: Any) -> None: ...

class Divan:
    def __init__(self, url: str) -> None: ...
    def declare(self, type: str, **settings: Any) -> None: ...
    def enqueue(
        self,
        type: str,
        id: Optional[str] = None,
        data: _Json = None,
        scheduled_at: Optional[_Time] = None,
        priority: Optional[int] = None,
        schedule: Optional[Mapping[str, str]] = None,
        **others: Any,
    ) -> Dict[str, Any]: ...
    def enqueue_many(self, type: str, jobs: Iterable[Mapping[str, Any]]) -> List[Dict[str, Any]]: ...
    def transact(self, docs: Optional[_Docs] = None, jobs: Optional[_Jobs] = None) -> Dict[str, Any]: ...
    def get(self, type: str, id: str) -> Dict[str, Any]: ...
    def list(
        self, type: str, state: Optional[_State] = None, start_id: Optional[str] = None, descending: bool = False
    ) -> Generator[Dict[str, Any], None, None]: ...
    def wait(self, type: str, id: str, timeout: Optional[float] = None) -> Dict[str, Any]: ...
    def wait_for_many(
        self,
        jobs: Iterable[Mapping[str, str]],
        count: Optional[int] = None,
        states: Optional[Sequence[str]] = None,
        timeout: Optional[float] = None,
    ) -> List[Dict[str, Any]]: ...
    def resubmit(self, type: str, id: str, data: _Json = None, scheduled_at: Optional[_Time] = None) -> None: ...
    def counts(self, type: str) -> Dict[str, int]: ...
    def cancel(self, type: str, id: str) -> None: ...
    def remove(self, type: str, id: str) -> None: ...
    def worker(
        self,
        role: str,
        *,
        id: Optional[str] = ...,
        timeout: float = ...,
        opts: Optional[Mapping[str, _Json]] = ...,
        check_interval: float = ...,
        poll_timeout: float = ...,
        backoff: Tuple[float, float] = ...,
    ) -> Worker: ...
    def close(self) -> None: ...
