"""The client for asyncio."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from . import _messages as messages
from ._base import TLS, Base, Inputs, Token, failure_of, left, needs_metadata
from ._errors import DeadlineExceeded, FloeError, Unavailable
from ._messages import Call, Metadata, ModelState, Outputs, VersionStatus
from ._retry import Retry

if TYPE_CHECKING:
    import grpc.aio

T = TypeVar("T")


class AsyncClient(Base):
    """Client with coroutines: the same arguments, calls, answers and errors.

    It belongs to the event loop in which it was made. Any number of calls may be under way; a task that is cancelled
    cancels its call.
    """

    def __init__(self, target: str, *, tls: bool | TLS = False, token: Token = None, timeout: float | None = 30.0,
                 retry: Retry = Retry(), options: Sequence[tuple[str, Any]] = ()) -> None:
        super().__init__(target, tls=tls, token=token, timeout=timeout, retry=retry, options=options)
        import grpc.aio  # pylint: disable=import-outside-toplevel  # as late as possible: it takes a while
        credentials = self._credentials()
        self._rpc_error = grpc.aio.AioRpcError
        self._channel = (grpc.aio.secure_channel(target, credentials, options=self._options) if credentials
                         else grpc.aio.insecure_channel(target, options=self._options))

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Cancels calls that are under way."""
        await self._channel.close()

    async def predict(self, model: str, inputs: Inputs, *, version: int | None = None, label: str = "", signature: str = "",
                      outputs: Iterable[str] = (), timeout: float | None = None,
                      headers: Mapping[str, str] | None = None) -> Outputs:
        """As Client.predict."""
        deadline = self._deadline(timeout)
        metadata = await self._known(model, version, label, deadline) if needs_metadata(inputs) else None
        try:
            call = self._predict(model, inputs, signature, metadata, version, label, outputs)
            return await self._send(call, deadline, headers)
        except (FloeError, ValueError) as failure:
            self._forget((model, version, label), failure)
            raise

    async def metadata(self, model: str, *, version: int | None = None, label: str = "", timeout: float | None = None) -> Metadata:
        """As Client.metadata."""
        return await self._send(messages.metadata(model, version, label), self._deadline(timeout))

    async def status(self, model: str, *, version: int | None = None, label: str = "",
                     timeout: float | None = None) -> list[VersionStatus]:
        """As Client.status."""
        return await self._send(messages.status(model, version, label), self._deadline(timeout))

    async def models(self, *, timeout: float | None = None) -> list[ModelState]:
        """As Client.models."""
        return await self._send(messages.models(), self._deadline(timeout))

    async def ready(self, model: str = "", *, timeout: float | None = None) -> bool:
        """As Client.ready."""
        try:
            return await self._send(messages.health(model), self._deadline(timeout), retry=False)
        except (DeadlineExceeded, Unavailable):
            return False

    async def _known(self, model: str, version: int | None, label: str, deadline: float | None) -> Metadata:
        key = model, version, label
        if key not in self._signatures:
            self._signatures[key] = await self._send(messages.metadata(model, version, label), deadline)
        return self._signatures[key]

    async def _send(self, call: Call[T], deadline: float | None, headers: Mapping[str, str] | None = None,
                    retry: bool = True) -> T:
        rpc: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = self._channel.unary_unary(call.path)  # without serializers: bytes
        sent = 0
        while True:
            try:
                return call.read(memoryview(await rpc(call.request, timeout=left(deadline), metadata=self._metadata(headers))))
            except self._rpc_error as caught:
                sent += 1
                failure = failure_of(caught, call.model)
                wait = self._wait(sent, failure, caught.trailing_metadata(), deadline) if retry else None
                if wait is None:
                    raise failure from None
            import asyncio  # pylint: disable=import-outside-toplevel  # gRPC has it loaded
            await asyncio.sleep(wait)
