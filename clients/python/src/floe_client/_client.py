"""The client whose calls wait."""
from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from . import _messages as messages
from ._base import TLS, Base, Inputs, Token, failure_of, left, needs_metadata
from ._errors import DeadlineExceeded, FloeError, Unavailable
from ._messages import Call, Metadata, ModelState, Outputs, VersionStatus
from ._retry import Retry

if TYPE_CHECKING:
    import grpc

T = TypeVar("T")


class Client(Base):
    """Calls a server at `target`: "host:8500", "unix:/run/floe/socket", or any target of gRPC's.

    tls      True, or a TLS with files; False: plain text
    token    sent as `authorization: Bearer`; a function is asked for it before each call
    timeout  seconds for a call with its retries; None: no limit
    options  more arguments of gRPC's channel. Messages of any size are sent and taken

    Threads may share a client, which has one connection. A forked process needs its own. Close it, or use `with`.
    Calls raise FloeError.
    """

    def __init__(self, target: str, *, tls: bool | TLS = False, token: Token = None, timeout: float | None = 30.0,
                 retry: Retry = Retry(), options: Sequence[tuple[str, Any]] = ()) -> None:
        super().__init__(target, tls=tls, token=token, timeout=timeout, retry=retry, options=options)
        import grpc  # pylint: disable=import-outside-toplevel  # as late as possible: it takes a while
        credentials = self._credentials()
        self._rpc_error = grpc.RpcError
        self._channel = (grpc.secure_channel(target, credentials, options=self._options) if credentials
                         else grpc.insecure_channel(target, options=self._options))

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Cancels calls of other threads."""
        self._channel.close()

    def predict(self, model: str, inputs: Inputs, *, version: int | None = None, label: str = "", signature: str = "",
                outputs: Iterable[str] = (), timeout: float | None = None, headers: Mapping[str, str] | None = None) -> Outputs:
        """The model's outputs, or those named by `outputs`.

        `inputs` is a dict of arrays, or the array of the only input. Arrays are sent as they are; lists and numbers get
        the dtype that the model takes, for which its metadata is asked once. Arrays of the answer are read-only.
        `headers`: further metadata of the call, such as x-request-id.
        """
        deadline = self._deadline(timeout)
        metadata = self._known(model, version, label, deadline) if needs_metadata(inputs) else None
        try:
            call = self._predict(model, inputs, signature, metadata, version, label, outputs)
            return self._send(call, deadline, headers)
        except (FloeError, ValueError) as failure:
            self._forget((model, version, label), failure)
            raise

    def metadata(self, model: str, *, version: int | None = None, label: str = "", timeout: float | None = None) -> Metadata:
        """Inputs and outputs of a version, by default the newest that is served."""
        return self._send(messages.metadata(model, version, label), self._deadline(timeout))

    def status(self, model: str, *, version: int | None = None, label: str = "", timeout: float | None = None) -> list[VersionStatus]:
        """States of the model's versions."""
        return self._send(messages.status(model, version, label), self._deadline(timeout))

    def models(self, *, timeout: float | None = None) -> list[ModelState]:
        """Every model of the server with its versions. TensorFlow Serving has no such call."""
        return self._send(messages.models(), self._deadline(timeout))

    def ready(self, model: str = "", *, timeout: float | None = None) -> bool:
        """Whether the model, or the server, would answer now. False, too, where no server answers; never retried."""
        try:
            return self._send(messages.health(model), self._deadline(timeout), retry=False)
        except (DeadlineExceeded, Unavailable):
            return False

    def _known(self, model: str, version: int | None, label: str, deadline: float | None) -> Metadata:
        key = model, version, label
        if key not in self._signatures:
            self._signatures[key] = self._send(messages.metadata(model, version, label), deadline)
        return self._signatures[key]

    def _send(self, call: Call[T], deadline: float | None, headers: Mapping[str, str] | None = None, retry: bool = True) -> T:
        rpc: grpc.UnaryUnaryMultiCallable[bytes, bytes] = self._channel.unary_unary(call.path)  # without serializers: bytes
        sent = 0
        while True:
            try:
                return call.read(memoryview(rpc(call.request, timeout=left(deadline), metadata=self._metadata(headers))))
            except self._rpc_error as caught:
                sent += 1
                failure = failure_of(caught, call.model)
                wait = self._wait(sent, failure, caught.trailing_metadata(), deadline) if retry else None
                if wait is None:
                    raise failure from None
            time.sleep(wait)
