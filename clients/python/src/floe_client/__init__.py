"""A client of floe, and of TensorFlow Serving, that needs NumPy and grpcio only.

    from floe_client import Client

    with Client("127.0.0.1:8500") as client:
        print(client.predict("mine", [[5.1, 3.5, 1.4, 0.2]]))
"""
from ._aio import AsyncClient
from ._base import TLS
from ._client import Client
from ._errors import DeadlineExceeded, FloeError, InvalidArgument, NotFound, ResourceExhausted, Unavailable
from ._messages import Metadata, ModelState, Outputs, Signature, TensorSpec, VersionStatus
from ._retry import Retry
from ._wire import DecodeError

__version__ = "0.1.0"
__all__ = ["AsyncClient", "Client", "DeadlineExceeded", "DecodeError", "FloeError", "InvalidArgument", "Metadata", "ModelState",
           "NotFound", "Outputs", "ResourceExhausted", "Retry", "Signature", "TLS", "TensorSpec", "Unavailable", "VersionStatus"]
