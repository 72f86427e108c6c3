"""Versions that come and go while clients call. The long form is swaps.py as a command."""
import os
import signal

import grpc
import pytest

import swaps
from floed import SERVING, Floed


def test_no_call_fails_and_no_reply_is_mixed():
    figures = swaps.run(swaps=25, clients=8, kib=64)
    assert figures["problems"] == []
    assert figures["calls"] > 25


def test_versions_are_found_by_polling():
    figures = swaps.run(swaps=3, clients=4, kib=64, poll=1)
    assert figures["problems"] == []


# Looks at a server of large versions differ by 2 MiB, without a trend in 400 swaps; at one of small versions by 0.6 MiB. The
# former finds what is kept of a model's memory, the latter what is kept of anything else: 6 KiB of each version.
@pytest.mark.parametrize("versions, kib, most", [(60, 16384, 4096), (200, 64, 1024)])
def test_memory_comes_back(versions, kib, most):
    figures = swaps.run(swaps=versions, clients=2, kib=kib)
    assert figures["problems"] == []
    assert figures["rss_kib_at_end"] - figures["rss_kib_at_start"] < most, " ".join(map(str, figures["rss_kib"]))


def test_a_bad_file_changes_nothing(tmp_path):
    versions = swaps.Versions(str(tmp_path), kib=1)
    versions.add()
    config = tmp_path / "floe.yaml"
    good = f"models: [{{name: swapped, base_path: {versions.base}, version_labels: {{stable: 1}}}}]\n"
    config.write_text("lifecycle: {model_config_file_poll_wait_seconds: 1}\n" + good)
    floed = Floed("--config", str(config))
    with floed.client() as client:
        request = swaps.predict_request("swapped", {"x": swaps.np.ones((1, versions.width), "float32")})
        request.model_spec.version_label = "stable"
        assert client.prediction.Predict(request, timeout=30).model_spec.version.value == 1
        config.write_text("models: [{name: swapped, base_path: /nowhere}]\n")
        floed.process.send_signal(signal.SIGHUP)
        floed.wait_until(lambda: "the configuration was not changed" in floed.log())
        assert client.prediction.Predict(request, timeout=30).model_spec.version.value == 1
        assert client.check("model/swapped") == SERVING
        # The file is followed: a label that the old one did not have.
        config.write_text(good.replace("stable: 1", "stable: 1, canary: 1"))
        request.model_spec.version_label = "canary"
        floed.wait_until(lambda: "configuration 2 is active, by a change of its files: changed 'swapped' (version_labels)" in floed.log())
        assert client.prediction.Predict(request, timeout=30).model_spec.version.value == 1
        request.model_spec.ClearField("version_label")
        request.model_spec.version.value = 2
        with pytest.raises(grpc.RpcError) as missing:
            client.prediction.Predict(request, timeout=30)
        assert missing.value.code() == grpc.StatusCode.NOT_FOUND
    assert os.path.exists(versions.base)
    floed.close()
