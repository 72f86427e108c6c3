"""The commands of docs/install.md and docs/operate.md: those that need no package manager or cluster are run."""
import os
import pathlib
import re
import shlex
import subprocess

import pytest
import yaml

from floed import CONFIG, Floed

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("FLOE_BUILD_DIR", ROOT / "build" / "release"))
MODEL = ROOT / "examples" / "mnist" / "models" / "mnist_beginner" / "1" / "frozen.pb"


def commands(page):
    return re.findall(r"^    (\S.*)$", (ROOT / "docs" / page).read_text(), re.M)


RUN = sorted({line for page in ("install.md", "operate.md") for line in commands(page)
              if line.split()[0] in ("floectl", "floed")})


@pytest.mark.parametrize("line", RUN)
def test_command(line):
    server = Floed("--config", CONFIG)
    try:
        words = shlex.split(line.replace("/etc/floe/floe.yaml", str(CONFIG)).replace("MODEL_FILE", str(MODEL)))
        if words[1] in ("status", "log-level"):
            words += ["--target", f"127.0.0.1:{server.port}"]
        if words[1] == "bench":
            words += ["--seconds", "0.1"]
        done = subprocess.run([BUILD / words[0], *words[1:]], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    finally:
        server.close()


def test_there_are_commands():
    assert len(RUN) >= 6


def test_files_and_versions_exist():
    version = re.search(r"project\(floe VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
    text = (ROOT / "docs" / "install.md").read_text()
    assert f"floe_{version}-1_amd64.deb" in text and f"floe:{version}" in text
    for path in re.findall(r"deploy/[\w./-]*\w", text + (ROOT / "docs" / "scale.md").read_text()):
        assert (ROOT / path).exists(), path
    for file in ("deploy/compose.yaml", "deploy/kubernetes/base/kustomization.yaml",
                 "deploy/kubernetes/kserve/serving-runtime.yaml"):
        assert version in (ROOT / file).read_text(), file


def test_compose_has_one_service_that_opens_itself_only_when_told_to():
    services = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())["services"]
    assert list(services) == ["floe"] and services["floe"]["read_only"] is True
    assert services["floe"]["environment"]["FLOE_INSECURE_PUBLIC"].startswith("${FLOE_INSECURE_PUBLIC:?")
    assert all(port.startswith("127.0.0.1:") for port in services["floe"]["ports"])
