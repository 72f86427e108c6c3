"""schemathesis, in an environment of its own (requirements_schemathesis.txt): what floed answers is what /openapi.json says."""
import os
import re
import subprocess

import pytest

from own_python import python_of

# What is not asked: a body that the schema allows may not be one of the model's. A path such as /v1/models/a:predict, which takes POST,
# is that of a model of this name, too, which takes GET.
SETTINGS = """
[checks]
positive_data_acceptance.enabled = false
allow_header_conformance.enabled = false

[[operations]]
include-path-regex = ":(predict|classify|regress)$"
checks.unsupported_method.enabled = false
"""


@pytest.mark.parametrize("model", ["mnist_beginner", None])
def test_answers_are_those_of_the_schema(server, tmp_path, model):
    python = python_of("requirements_schemathesis.txt")
    settings = tmp_path / "schemathesis.toml"
    settings.write_text((f'[parameters]\n"path.model" = "{model}"\n' if model else "") + SETTINGS, encoding="utf-8")
    # Events never end.
    done = subprocess.run([os.path.join(os.path.dirname(python), "schemathesis"), "--config-file", settings, "run",
                           f"http://{server.target}/openapi.json", "--exclude-path-regex", "^/page/events",
                           "--phases", "coverage,fuzzing", "--max-examples", "8", "--generation-deterministic", "--no-shrink", "--no-color"],
                          capture_output=True, text=True, check=False, cwd=tmp_path, timeout=600)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr
    cases = int(re.search(r"(\d+) generated", done.stdout).group(1))
    print(f"{cases} cases")
    assert cases > 400
