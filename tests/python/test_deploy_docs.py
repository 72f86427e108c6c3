"""What docs/install.md and docs/scale.md name of deploy/ is there, with the version of this checkout."""
import pathlib
import re

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_files_and_versions_exist():
    version = re.search(r"project\(floe VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
    text = (ROOT / "docs" / "install.md").read_text()
    assert f"floe:{version}" in text
    for page in text, (ROOT / "README.md").read_text():
        assert set(re.findall(r"packages/(floe_\S+_amd64.deb)", page)) == {f"floe_{version}-1_amd64.deb"}
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
