"""The tables of docs/migrate_*.md against the flags of floed and the keys of its configuration."""
import pathlib
import re
import subprocess

import pytest

from floed import FLOECTL, FLOED, ROOT

DOCS = pathlib.Path(ROOT) / "docs"
GROUP = "Flags of TensorFlow Serving without effect here:"


def rows(page, heading):
    """The two cells of each row of the tables below a heading."""
    text = (DOCS / page).read_text(encoding="utf-8")
    section = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, re.M | re.S).group(1)
    found = re.findall(r"^\| (.*?) \| (.*?) \|$", section, re.M)
    assert found[1][0].startswith("---"), found[:2]
    return found[2:]


@pytest.fixture(scope="module")
def flags():
    """Each flag with its help."""
    text = subprocess.run([FLOED, "--help"], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^  (?:-\w,)?--(\S+)(.*(?:\n {10,}.*)*)", text, re.M)
    helped = {name: " ".join(rest.split()) for name, rest in found}
    unused = text[text.index(GROUP):]
    return helped, {name for name in helped if re.search(rf"^  --{name}\b", unused, re.M)}


@pytest.fixture(scope="module")
def keys():
    text = subprocess.run([FLOECTL, "config", "keys"], capture_output=True, text=True, check=True).stdout
    sections, names = {}, set()
    for section, body in re.findall(r"^## (.*)\n((?:(?!## ).*\n?)*)", text, re.M):
        sections[section] = set(re.findall(r"^\| `([a-z_.]+)`", body, re.M))
    for section, found in sections.items():
        names |= found if section in ("top level", "models") else {f"{section}.{key}" for key in found}
    assert "workers" in names and "server.port" in names
    return names


def test_flags_of_tensorflow_serving(flags):
    """Each has a row, which says what floed says of it."""
    helped, unused = flags
    source = (pathlib.Path(ROOT) / "server/flags/tfs_flags_test.cc").read_text(encoding="utf-8")
    tables = source[source.index("ValueFlags()"):source.index("TEST_F(")]
    known = set(re.findall(r'\{"([a-z_]+)", "', tables)) | set(re.findall(r'"([a-z_]+)"(?=[,}])', tables[tables.index("kSwitches"):]))
    assert len(known) > 40
    table = {name.strip("`-"): text for name, text in rows("migrate_tf_serving.md", "Flags")}
    assert known | unused | {"model_config_file", "batching_parameters_file", "use_alts_credentials"} == set(table)
    for name, text in table.items():
        assert name in helped, name
        if name in unused:
            reason = re.sub(r"^(BOOL|INT|NUMBER|TEXT) ", "", helped[name])
            assert text == "no effect: " + reason, name
        else:
            assert not text.startswith("no effect"), name


@pytest.mark.parametrize("page", ["migrate_tf_serving.md", "migrate_triton.md"])
def test_flags_and_keys_that_the_pages_name_exist(page, flags, keys):
    named = 0
    for heading in ("Flags", "config.pbtxt" if "triton" in page else "Files"):
        for _, here in rows(page, heading):
            for word in re.findall(r"`([^`]+)`", here):
                if word.startswith("--"):
                    assert word[2:].split("=")[0] in flags[0], f"{page}: {word}"
                elif re.fullmatch(r"(server|lifecycle|log|cpu|batching|signature)\.[a-z_]+", word) or heading == "config.pbtxt" and re.fullmatch("[a-z_]+", word):
                    assert word in keys | {"priority", "allow_timeout_override"}, f"{page}: {word}"
                else:
                    continue
                named += 1
    assert named >= 5
