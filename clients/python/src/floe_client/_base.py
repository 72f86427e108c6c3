"""What the two clients have in common."""
from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Union

from . import _messages as messages
from . import _tensor as tensor
from ._errors import FloeError, error
from ._messages import Metadata, Signature, TensorSpec
from ._retry import Retry

if TYPE_CHECKING:
    import grpc

Inputs = Union[Mapping[str, Any], Any]
Token = Union[str, Callable[[], str], None]
SERVING_DEFAULT = "serving_default"


@dataclass(frozen=True)
class TLS:
    """Files, or their bytes. `ca`: who signs the server's certificate; without it, those whom gRPC knows. `cert` and
    `key`: this client's. `server_name`: the name in the server's certificate where it is not that of the target."""

    ca: str | os.PathLike[str] | bytes | None = None
    cert: str | os.PathLike[str] | bytes | None = None
    key: str | os.PathLike[str] | bytes | None = None
    server_name: str = ""


class Base:
    """The settings of a client, and what it remembers of the models' signatures."""

    def __init__(self, target: str, *, tls: bool | TLS = False, token: Token = None, timeout: float | None = 30.0,
                 retry: Retry = Retry(), options: Sequence[tuple[str, Any]] = ()) -> None:
        self.target, self.timeout, self.retry = target, timeout, retry
        self._tls = TLS() if tls is True else tls or None
        self._token = token
        self._options = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
        if self._tls and self._tls.server_name:
            self._options.append(("grpc.ssl_target_name_override", self._tls.server_name))  # type: ignore[arg-type]
        self._options += options
        self._signatures: dict[tuple[str, int | None, str], Metadata] = {}

    def _credentials(self) -> grpc.ChannelCredentials | None:
        """None: plain text."""
        import grpc  # pylint: disable=import-outside-toplevel
        if self._tls is None:
            return None
        return grpc.ssl_channel_credentials(_pem(self._tls.ca), _pem(self._tls.key), _pem(self._tls.cert))

    def _metadata(self, headers: Mapping[str, str] | None) -> tuple[tuple[str, str | bytes], ...]:
        sent: list[tuple[str, str | bytes]] = [("floe-reply", "content")]  # other servers ignore it
        token = self._token() if callable(self._token) else self._token
        if token:
            sent.append(("authorization", f"Bearer {token}"))
        return (*sent, *((name.lower(), value) for name, value in (headers or {}).items()))

    def _deadline(self, timeout: float | None) -> float | None:
        seconds = self.timeout if timeout is None else timeout
        return None if seconds is None else time.monotonic() + seconds

    def _wait(self, sent: int, failure: FloeError, trailers: Iterable[Any] | None,
              deadline: float | None) -> float | None:
        pushback = dict(trailers or ()).get("grpc-retry-pushback-ms")
        return self.retry.wait(sent, failure.code, str(pushback) if pushback is not None else None, left(deadline))

    def _predict(self, model: str, inputs: Inputs, signature: str, metadata: Metadata | None, version: int | None, label: str,
                 outputs: Iterable[str]) -> messages.Call[messages.Outputs]:
        """`metadata`: of the model, where needs_metadata(inputs)."""
        specs: Mapping[str, TensorSpec] = {}
        if metadata:
            known = _signature_of(model, metadata, signature)
            specs = known.inputs
            if not isinstance(inputs, Mapping):
                inputs = {_only_input(model, known): inputs}
        fed = {}
        for name, value in inputs.items():
            dtype = specs[name].dtype if name in specs and not messages.is_array(value) else ""
            fed[name] = tensor.as_array(value, dtype), dtype
        return messages.predict(model, version, label, signature, fed, outputs)

    def _forget(self, key: tuple[str, int | None, str], failure: Exception) -> None:
        """The signatures, when a call failed because there may be another version now."""
        if not isinstance(failure, FloeError) or failure.code in ("FAILED_PRECONDITION", "INVALID_ARGUMENT", "NOT_FOUND"):
            self._signatures.pop(key, None)


def needs_metadata(inputs: Inputs) -> bool:
    """Whether names or dtypes of the inputs are those of the signature."""
    return not isinstance(inputs, Mapping) or not all(messages.is_array(value) for value in inputs.values())


def left(deadline: float | None) -> float | None:
    """Seconds."""
    return None if deadline is None else max(0.0, deadline - time.monotonic())


def failure_of(call: Any, model: str) -> FloeError:
    """Of an error of gRPC's."""
    return error(call.code().name, call.details() or "", model)


def _pem(given: str | os.PathLike[str] | bytes | None) -> bytes | None:
    if given is None or isinstance(given, bytes):
        return given
    with open(given, "rb") as file:
        return file.read()


def _signature_of(model: str, metadata: Metadata, name: str) -> Signature:
    found = metadata.signatures.get(name or SERVING_DEFAULT)
    if found is None:
        raise error("FAILED_PRECONDITION", f"there is no signature {name or SERVING_DEFAULT!r}; there are {list(metadata.signatures)}", model)
    return found


def _only_input(model: str, signature: Signature) -> str:
    names = list(signature.inputs)
    if len(names) != 1:
        raise ValueError(f"model {model!r} has the inputs {names}: give a dict with their names")
    return names[0]
