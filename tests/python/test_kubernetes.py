"""deploy/kubernetes: what Kustomize makes of each overlay is valid, safe, and agrees with the unit and the drain."""
import os
import pathlib
import shutil
import subprocess

import jsonschema
import kubernetes_validate
import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy" / "kubernetes"
VERSION = "1.37"


def render(overlay):
    if not shutil.which("kubectl"):
        pytest.skip("needs kubectl with Kustomize 4 or later")
    done = subprocess.run(["kubectl", "kustomize", FOLDER / "overlays" / overlay], capture_output=True, text=True)
    # Debian 12's kubectl has Kustomize 2, which does not know "labels" and names it so.
    if done.returncode and 'unknown field "labels"' in done.stderr:
        pytest.skip("needs kubectl with Kustomize 4 or later")
    assert done.returncode == 0, done.stderr
    return {document["kind"]: document for document in yaml.safe_load_all(done.stdout)}


@pytest.fixture(params=["single", "replicated", "gpu"])
def objects(request):
    return render(request.param)


def kserve(name):
    return yaml.safe_load((FOLDER / "kserve" / name).read_text())


def pod_of(objects):
    return objects["Deployment"]["spec"]["template"]["spec"]


def assert_hardened(container, pod=None):
    security = {**((pod or {}).get("securityContext") or {}), **container["securityContext"]}
    assert security["runAsNonRoot"] and security["runAsUser"] > 0
    assert security["readOnlyRootFilesystem"] is True
    assert security["allowPrivilegeEscalation"] is False and security["privileged"] is False
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}


def test_every_object_is_valid(objects):
    for kind, document in objects.items():
        assert kubernetes_validate.validate(document, VERSION, strict=True), kind


def test_a_mistake_is_noticed(objects):
    pod_of(objects)["containers"][0]["readinesProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(objects["Deployment"], VERSION, strict=True)


def test_security_is_that_of_the_unit(objects):
    unit = (ROOT / "systemd" / "floed.service").read_text()
    for line in ("CapabilityBoundingSet=\n", "NoNewPrivileges=yes\n", "ProtectSystem=strict\n", "SystemCallFilter="):
        assert line in unit  # what the fields below stand for
    pod = pod_of(objects)
    assert_hardened(pod["containers"][0], pod)
    assert pod["automountServiceAccountToken"] is False


def test_the_pod_ends_after_the_drain(objects):
    pod = pod_of(objects)
    server = yaml.safe_load(next(iter(objects["ConfigMap"]["data"].values())))["server"]
    command = pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]
    words = dict(zip(command, command[1:]))
    before = float(words["--watch"]) * (int(words["--count"]) - 1)
    assert before > 0
    drain = server["drain_timeout_seconds"] + server["drain_lame_duck_seconds"]
    assert pod["terminationGracePeriodSeconds"] > before + drain


def test_probes_ask_the_port_that_is_served(objects):
    container = pod_of(objects)["containers"][0]
    port = container["ports"][0]["containerPort"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["grpc"]["port"] == port
    assert objects["Service"]["spec"]["ports"][0]["targetPort"] == container["ports"][0]["name"]
    assert objects["NetworkPolicy"]["spec"]["ingress"][0]["ports"][0]["port"] == port


def test_prometheus_finds_the_port(objects):
    template = objects["Deployment"]["spec"]["template"]
    asked = {"scrape": "true", "port": str(template["spec"]["containers"][0]["ports"][0]["containerPort"]), "path": "/metrics"}
    assert template["metadata"]["annotations"] == {f"prometheus.io/{key}": value for key, value in asked.items()}


def test_selectors_find_the_pods(objects):
    labels = objects["Deployment"]["spec"]["template"]["metadata"]["labels"]
    selectors = [objects["Service"]["spec"]["selector"], objects["Deployment"]["spec"]["selector"]["matchLabels"],
                 objects["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"]]
    if "PodDisruptionBudget" in objects:
        selectors.append(objects["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"])
    for selector in selectors:
        assert selector and selector.items() <= labels.items()
    claim = pod_of(objects)["volumes"][1]["persistentVolumeClaim"]["claimName"]
    assert claim == objects["PersistentVolumeClaim"]["metadata"]["name"]


def test_replicas_are_seen_one_by_one_and_scaled():
    objects = render("replicated")
    assert objects["Service"]["spec"]["clusterIP"] == "None"
    scaler = objects["HorizontalPodAutoscaler"]["spec"]
    assert scaler["scaleTargetRef"]["name"] == objects["Deployment"]["metadata"]["name"]
    assert "replicas" not in objects["Deployment"]["spec"]
    assert scaler["minReplicas"] > objects["PodDisruptionBudget"]["spec"]["maxUnavailable"]


def test_the_scaler_by_wait_reads_what_the_adapter_makes():
    by_cpu, by_wait = [next(document for document in yaml.safe_load_all((FOLDER / "overlays/replicated" / name).read_text())
                            if document["kind"] == "HorizontalPodAutoscaler") for name in ("scaling.yaml", "scaling-by-wait.yaml")]
    assert kubernetes_validate.validate(by_wait, VERSION, strict=True)
    assert {**by_wait["spec"], "metrics": None} == {**by_cpu["spec"], "metrics": None}
    (rule,) = yaml.safe_load((ROOT / "deploy/prometheus/adapter_rules.yml").read_text())["rules"]
    assert by_wait["spec"]["metrics"][0]["pods"]["metric"]["name"] == rule["name"]["as"]
    series = rule["seriesQuery"].partition("{")[0]
    assert f"`{series.removesuffix('_sum')}` | histogram" in (ROOT / "docs/metrics.md").read_text()


def test_floed_reads_the_configuration(objects, tmp_path):
    text = next(iter(objects["ConfigMap"]["data"].values()))
    assert "base_path: /models/model\n" in text
    models = ROOT / "examples" / "mnist" / "models" / "mnist_conv"
    file = tmp_path / "floe.yaml"
    file.write_text(text.replace("/models/model", str(models)))
    build = os.environ.get("FLOE_BUILD_DIR", ROOT / "build" / "release")
    done = subprocess.run([f"{build}/floed", "--check-config", "--config", file], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_pod_with_a_gpu_gets_one_and_the_image_for_it():
    container = pod_of(render("gpu"))["containers"][0]
    plain = pod_of(render("single"))["containers"][0]
    assert container["resources"]["limits"] == {**plain["resources"]["limits"], "nvidia.com/gpu": 1}
    assert container["image"] == plain["image"] + "-cuda"
    assert container["args"] == [*plain["args"], "--backend=cuda"]


@pytest.mark.parametrize("name", ["serving-runtime.yaml", "serving-runtime-cuda.yaml", "inference-service.yaml"])
def test_kserve_objects_fit_their_schema(name):
    schemas = yaml.safe_load((FOLDER / "kserve" / "schemas.yaml").read_text())
    document = kserve(name)
    jsonschema.validate(document, schemas[document["kind"]])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**document, "spec": {**document["spec"], "wrong": 1}}, schemas[document["kind"]])


def test_kserve_runtime_for_gpus_differs_only_there():
    plain, cuda = kserve("serving-runtime.yaml")["spec"]["containers"][0], kserve("serving-runtime-cuda.yaml")["spec"]["containers"][0]
    assert cuda["image"] == plain["image"] + "-cuda" and cuda["args"] == [*plain["args"], "--backend=cuda"]
    for kind in ("requests", "limits"):
        assert cuda["resources"][kind] == {**plain["resources"][kind], "nvidia.com/gpu": 1}
    same = {"image": None, "args": None, "resources": None}
    assert {**cuda, **same} == {**plain, **same}
    formats = kserve("serving-runtime-cuda.yaml")["spec"]["supportedModelFormats"]
    assert not any(entry.get("autoSelect") for entry in formats), "a service asks for it by name"


def test_kserve_runtime_is_hardened_and_fits_the_service():
    runtime, service = kserve("serving-runtime.yaml"), kserve("inference-service.yaml")
    container = runtime["spec"]["containers"][0]
    assert_hardened(container)
    assert runtime["spec"]["annotations"]["prometheus.kserve.io/port"] == str(container["ports"][0]["containerPort"])
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "floe"}, "spec": {"containers": [container]}}
    kubernetes_validate.validate(pod, VERSION, strict=True)
    model = service["spec"]["predictor"]["model"]
    assert model["runtime"] == runtime["metadata"]["name"]
    assert model["protocolVersion"] in runtime["spec"]["protocolVersions"]
    formats = {entry["name"] for entry in runtime["spec"]["supportedModelFormats"]}
    assert formats == {"tensorflow", "keras"} and model["modelFormat"]["name"] in formats
