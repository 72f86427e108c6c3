"""Calls a floed as users of KServe's SDK and of ovmsclient do, and prints the answers as JSON.

    python sdk_clients.py HOST:PORT DIGITS.npy    in an environment of requirements_sdks.txt
"""
import asyncio
import json
import sys

import numpy as np


def kserve_request(x):
    from kserve import InferInput, InferRequest
    tensor = InferInput("input", list(x.shape), "FP32")
    tensor.set_data_from_numpy(x, binary_data=False)
    return InferRequest("mnist_beginner", [tensor])


async def kserve_rest(target, x):
    from kserve import InferenceRESTClient, RESTConfig
    base = f"http://{target}"
    answers = {}
    client = InferenceRESTClient(RESTConfig(protocol="v2", retries=0))
    answers["live"], answers["ready"] = await client.is_server_live(base), await client.is_server_ready(base)
    answers["model"] = await client.is_model_ready(base, "mnist_beginner")
    reply = await client.infer(base, kserve_request(x), model_name="mnist_beginner")
    answers["softmax"] = np.array(reply.outputs[0].data).reshape(reply.outputs[0].shape).tolist()
    binary = kserve_request(x)
    binary.inputs[0].set_data_from_numpy(x, binary_data=True)
    reply = await client.infer(base, binary, model_name="mnist_beginner")
    answers["binary"] = reply.outputs[0].as_numpy().tolist()
    try:
        await client.infer(base, kserve_request(x[:, :3]), model_name="mnist_beginner")
    except Exception as error:  # pylint: disable=broad-exception-caught
        answers["error"] = str(error)
    await client.close()
    old = InferenceRESTClient(RESTConfig(protocol="v1", retries=0))
    reply = await old.infer(base, {"instances": x.tolist()}, model_name="mnist_beginner")
    answers["v1"] = reply["predictions"]
    await old.close()
    return answers


async def kserve_grpc(target, x):
    from kserve import InferenceGRPCClient
    client = InferenceGRPCClient(target)
    answers = {"live": await client.is_server_live(), "ready": await client.is_server_ready(),
               "model": await client.is_model_ready("mnist_beginner"), "other": await client.is_model_ready("other")}
    reply = await client.infer(kserve_request(x))
    answers["softmax"] = reply.outputs[0].as_numpy().tolist()
    await client.close()
    return answers


def ovms(client, x):
    answers = {"status": client.get_model_status("mnist_beginner"), "metadata": client.get_model_metadata("mnist_beginner")}
    answers["softmax"] = client.predict({"input": x}, "mnist_beginner").tolist()
    answers["version 1"] = client.predict({"input": x}, "mnist_beginner", 1).tolist()
    for name, call in (("missing", lambda: client.get_model_status("other")), ("wrong", lambda: client.predict({"input": x[:, :3]}, "mnist_beginner"))):
        try:
            call()
        except Exception as error:  # pylint: disable=broad-exception-caught
            answers[name] = f"{type(error).__name__}: {error}"
    return answers


def main():
    target, x = sys.argv[1], np.load(sys.argv[2])
    import ovmsclient
    answers = {"kserve rest": asyncio.run(kserve_rest(target, x)), "kserve grpc": asyncio.run(kserve_grpc(target, x)),
               "ovms grpc": ovms(ovmsclient.make_grpc_client(target), x), "ovms http": ovms(ovmsclient.make_http_client(target), x)}
    print(json.dumps(answers, default=str))


if __name__ == "__main__":
    main()
