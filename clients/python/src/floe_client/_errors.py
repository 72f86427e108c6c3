"""What calls raise."""
from __future__ import annotations


class FloeError(Exception):
    """A call that was not answered.

    `code` is gRPC's name, such as "NOT_FOUND", `message` what the server or gRPC said, and `model` the model's name,
    "" for calls of the server. Some codes have a class of their own; docs/serving.md says when the server sends which.
    """

    def __init__(self, code: str, message: str, model: str = "") -> None:
        super().__init__(f"{code}: {message}" + (f" (model {model!r})" if model else ""))
        self.code, self.message, self.model = code, message, model

    def __reduce__(self) -> tuple[type[FloeError], tuple[str, str, str]]:
        return type(self), (self.code, self.message, self.model)  # of one that another process raised


class NotFound(FloeError):
    """The model, or its version, is not served."""


class InvalidArgument(FloeError):
    """Names, dtypes or shapes do not fit the model's signature."""


class DeadlineExceeded(FloeError):
    """The time was up before the answer came."""


class Unavailable(FloeError):
    """No server answers, the model is loading or failed to load, or the queue is full, after all retries."""


class ResourceExhausted(FloeError):
    """A limit of the server, for messages, memory or calls, was reached."""


_CLASSES = {"NOT_FOUND": NotFound, "INVALID_ARGUMENT": InvalidArgument, "DEADLINE_EXCEEDED": DeadlineExceeded,
            "UNAVAILABLE": Unavailable, "RESOURCE_EXHAUSTED": ResourceExhausted}


def error(code: str, message: str, model: str) -> FloeError:
    return _CLASSES.get(code, FloeError)(code, message, model)
