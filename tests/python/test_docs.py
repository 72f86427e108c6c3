"""The commands of README.md and docs/: every block of shell runs, or says what it needs (pages.py has the marks).

The blocks of a page run in order in one shell, in a copy of the checkout with the programs of FLOE_BUILD_DIR. There, floed
goes to the background once it serves, so a page's own & is left out, and replaces the one that was started before. The port is a
free one. Where a page starts none, the example configuration is served, as by the installed service. ninja says whether its
targets exist. The reader's own files, which pages take for granted, are made by save_models(); PLACES says where their folders
are.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
import yaml

from floed import BUILD, FLOECTL, FLOED, START_SECONDS, free_port
from pages import ROOT, Block, anchors, blocks, links

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LINKING = [*PAGES, ROOT / "HACKING.md", ROOT / "examples/mnist/README.md"]
LANGUAGES = {"sh", "bash", "python", "yaml", "json", "ini", "text", "textproto", "mermaid"}
NEEDS = {"a graph without its table", "a Kubernetes cluster", "clang and minutes", "docker", "grpcurl", "minutes", "nvcc", "onnx2tf", "root",
         "root and systemd", "root and two releases", "systemd", "Prometheus", "the other engines", "a certificate", "tf2onnx and a GPU"}
PLACES = {"/etc/floe/floe.yaml": "config/floe.yaml", "/models/mine": "exported", "/usr/share/floe/mnist": "examples/mnist"}

FLOED_SCRIPT = """#!/usr/bin/env bash
case " $* " in *" --help "* | *" --version "* | *" --check-config "*) exec {floed} "$@" ;; esac
{bin}/stop-floed
{floed} "$@" --port={port} >{log} 2>&1 &
echo $! >{pid}
for _ in $(seq {tries}); do
  kill -0 "$(cat {pid})" || {{ cat {log}; exit 1; }}
  {floectl} status --target 127.0.0.1:{port} >/dev/null 2>&1 && exit 0
  {curl} -sf http://127.0.0.1:{port}/readyz >/dev/null 2>&1 && exit 0  # where status needs a role
  sleep 0.1
done
cat {log}
exit 1
"""
FLOECTL_SCRIPT = """#!/usr/bin/env bash
target=(--target 127.0.0.1:{port})
case " $* " in
  " bench "*" --target "*) target=(--seconds 0.1) ;;
  *" --target "*) target=() ;;
  " status "* | " log-level "* | " load "* | " unload "* | " reload "* | " predict "* | " config show "* | " config apply "*) ;;
  " bench "* | " profile "*) exec {floectl} "$@" --seconds 0.1 ;;
  *) exec {floectl} "$@" ;;
esac
exec {floectl} "$@" "${{target[@]}}"
"""
STOP_SCRIPT = """#!/usr/bin/env bash
[ -e {pid} ] || exit 0
kill -KILL "$(cat {pid})" 2>/dev/null
rm {pid}
for _ in $(seq {tries}); do
  (exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null || exit 0
  sleep 0.1
done
echo "port {port} is still served"
exit 1
"""
CURL_SCRIPT = """#!/usr/bin/env bash
exec {curl} "${{@/127.0.0.1:8500/127.0.0.1:{port}}}"
"""
NINJA_SCRIPT = """#!/usr/bin/env bash
[ "$1 $2" = "-C build/release" ] || exit 2
exec {ninja} -C {build} -n "${{@:3}}" >/dev/null
"""


def save_models(folder):
    """A SavedModel and a checkpoint, as readers have them."""
    class Mine(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable(tf.ones([4, 3]))

        @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, "input")])
        def __call__(self, input):  # pylint: disable=redefined-builtin
            return {"output": tf.nn.softmax(input @ self.w)}

    mine = Mine()
    tf.saved_model.save(mine, str(folder / "exported/1"), signatures=mine.__call__)
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 4], "x")
        tf.add(x, v1.get_variable("w", [4]), name="y")
        tf.identity(x, name="z")
        session.run(v1.global_variables_initializer())
        v1.train.Saver().save(session, str(folder / "model.ckpt"), global_step=100)
    np.save(folder / "x.npy", np.ones([2, 4], np.float32))


@pytest.fixture(scope="module", name="existing")
def make_existing(tmp_path_factory):
    folder = tmp_path_factory.mktemp("existing")
    save_models(folder)
    return folder


class Checkout:
    """A copy of the checkout in which pages run."""

    def __init__(self, folder, existing):
        self.folder, self.port = folder, free_port()
        for path in ROOT.iterdir():
            if path.name in ("config", "examples"):
                shutil.copytree(path, folder / path.name)
            elif path.name not in ("build", ".git"):
                (folder / path.name).symlink_to(path)
        shutil.copytree(existing, folder, dirs_exist_ok=True)
        programs = folder / "build/release"
        programs.mkdir(parents=True)
        for path in pathlib.Path(BUILD).iterdir():
            if path.is_file() and os.access(path, os.X_OK) and path.name not in ("floed", "floectl"):
                (programs / path.name).symlink_to(path)
        names = {"floed": FLOED, "floectl": FLOECTL, "port": self.port, "bin": programs, "build": BUILD, "log": folder / "floed.log",
                 "pid": folder / "floed.pid", "tries": 10 * START_SECONDS, "ninja": shutil.which("ninja") or "ninja", "curl": shutil.which("curl")}
        for name, script in {"floed": FLOED_SCRIPT, "floectl": FLOECTL_SCRIPT, "stop-floed": STOP_SCRIPT,
                             "curl": CURL_SCRIPT, "ninja": NINJA_SCRIPT}.items():
            (programs / name).write_text(script.format(**names))
            (programs / name).chmod(0o755)
        self.path = f"{programs}:{os.path.dirname(sys.executable)}:{os.environ['PATH']}"

    def run(self, parts):
        """Runs blocks in one shell, and returns its exit status and output. Whatever they started is ended."""
        script = ["set -e -o pipefail"]
        if not any(re.search("floed --(config|model)", block.text) for block in parts):
            script += ["floed --config config/floe.yaml"]  # the service that the package installs
        for block in parts:
            text = block.text.replace(":8500", f":{self.port}").replace("=8500", f"={self.port}")
            for old, new in PLACES.items():
                text = text.replace(old, new)
            text = re.sub(r"(floed --.*) &$", r"\1", text, flags=re.MULTILINE)
            if block.language == "python":
                text = f"python3 - <<'END_OF_BLOCK'\n{text}\nEND_OF_BLOCK"
            script += [f"echo '@ {block.place}'", text]
        env = {**os.environ, "PATH": self.path, "HOME": str(self.folder)}
        try:
            with open(self.folder / "output", "w+b") as output:
                done = subprocess.run(["bash", "-c", "\n".join(script)], cwd=self.folder, env=env, stdin=subprocess.DEVNULL,
                                      stdout=output, stderr=output, timeout=300, check=False)
                output.seek(0)
                return done.returncode, output.read().decode(errors="replace")
        finally:
            subprocess.run([self.folder / "build/release/stop-floed"], check=False)


def name_of(page):
    return page.name


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands(page, existing, tmp_path):
    to_run = [block for block in blocks(page) if block.language in ("sh", "bash", "python") and not block.mark]
    if not to_run:
        return
    code, output = Checkout(tmp_path, existing).run(to_run)
    assert code == 0, output[-4000:]


def test_blocks_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A\n\n    one\n\n    two\n\ntext\n\n<!-- needs: docker -->\n\n    three\n\n- item\n  more\n\n```json\n{}\n```\n")
    assert [(block.line, block.language, block.text, block.mark, block.value) for block in blocks(page)] == [
        (3, "sh", "one\n\ntwo", "", ""), (11, "sh", "three", "needs", "docker"), (17, "json", "{}", "", "")]
    to_run = [block for page in PAGES for block in blocks(page) if block.language == "sh" and not block.mark]
    assert len(to_run) > 40


def test_a_block_that_fails_is_named(existing, tmp_path):
    page = ROOT / "docs/page.md"
    commands = ((3, "floed --config config/floe.yaml &"), (5, "floectl status"), (7, "floectl status --model no_such"), (9, "echo no"))
    code, output = Checkout(tmp_path, existing).run([Block(page, line, "sh", text) for line, text in commands])
    assert code == 1 and "mnist_conv" in output and output.count("@ ") == 3 and "@ docs/page.md:7" in output, output


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_blocks_say_what_they_are(page):
    for block in blocks(page):
        assert block.language in LANGUAGES, f"{block.place}: a block in one of {sorted(LANGUAGES)}, or indented for commands"
        assert block.mark != "needs" or block.value in NEEDS, f"{block.place}: one of {sorted(NEEDS)}"
        if block.mark == "tested by":
            test = ROOT / block.value
            assert test.is_file() and page.name in test.read_text(), f"{block.place}: {block.value} does not read this page"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_configurations_are_valid(page, tmp_path):
    for block in blocks(page):
        if block.language in ("yaml", "textproto") and not block.mark:
            file = tmp_path / f"models.{block.language}"
            file.write_text(block.text)
            done = subprocess.run([FLOECTL, "config", "check", "--skip-paths", file], capture_output=True, text=True, check=False)
            assert done.returncode == 0 and yaml.safe_load(done.stdout), f"{block.place}: {done.stdout}{done.stderr}"


@pytest.mark.parametrize("page", LINKING, ids=name_of)
def test_links_lead_somewhere(page):
    for target in links(page):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{page.name}: {target}"
        assert not anchor or anchor in anchors(file), f"{page.name}: {target}; there are {sorted(anchors(file))}"


def test_the_program_names_pages_that_exist():
    files = [file for folder in ("cli", "config", "deploy", "model", "runtime", "scripts", "server", "systemd")
             for file in (ROOT / folder).rglob("*") if file.is_file()]
    named = {target for file in files for target in re.findall(r"docs/[a-z_]+\.md(?:#[a-z0-9-]+)?", file.read_text(errors="replace"))}
    assert len(named) > 5
    for target in sorted(named):
        path, _, anchor = target.partition("#")
        assert (ROOT / path).is_file() and (not anchor or anchor in anchors(ROOT / path)), target


def test_every_page_is_linked_from_the_readme():
    linked = {target.partition("#")[0] for target in links(ROOT / "README.md")}
    assert {f"docs/{page.name}" for page in PAGES[1:]} <= linked
