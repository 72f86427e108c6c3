"""The checks themselves: each must find what it is for."""
import os
import pathlib
import subprocess
import sys

import pytest

SCRIPTS = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts"))


def run(script, *args, stdin=""):
    return subprocess.run([sys.executable, os.path.join(SCRIPTS, script), *map(str, args)], input=stdin,
                          capture_output=True, text=True, check=False)


def write(root, path, text):
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.mark.parametrize("path,included,fine", [
    ("model/graph.cc", "base/status.h", True),
    ("base/clock.cc", "model/graph.h", False),
    ("model/ops/add.cc", "tensorflow/core/framework/graph.pb.h", False),
    ("model/import/graphdef/graphdef.cc", "tensorflow/core/framework/graph.pb.h", True),
    ("model/shape.cc", "model/import/import.h", False),
    ("kernels/cpu/add.cc", "runtime/plan.h", False),
    ("runtime/plan.cc", "kernels/kernel.h", True),
    ("runtime/plan.cc", "model/import/import.h", False),
    ("runtime/plan_test.cc", "model/import/import.h", True),
    ("server/api/infer_call.cc", "server/transport/transport.h", False),
    ("server/api/infer_call.cc", "grpcpp/grpcpp.h", False),
    ("server/transport/tests/server.cc", "grpcpp/grpcpp.h", True),
    ("server/scheduling/scheduler.cc", "server/api/rpc.h", False),
    ("config/yaml.cc", "server/registry/registry.h", False),
    ("runtime/plan.cc", "hwy/highway.h", False),
    ("nowhere/else.cc", "base/status.h", True),  # folders outside the house have no rules
])
def test_include_directions(tmp_path, path, included, fine):
    write(tmp_path, path, f'// comment\n#include "{included}"\n')
    done = run("check_includes.py", tmp_path)
    assert (done.returncode == 0) == fine, done.stdout
    if not fine:
        assert f"{path}:2: includes {included}" in done.stdout


HELPERS = "namespace {{\n\ntemplate <class T>\nint {}(T x) {{\n  return x;\n}}\n\n}}  // namespace\n"


@pytest.mark.parametrize("path,text,fine", [
    ("a/x/one.cc", HELPERS.format("BitsOf"), False),
    ("a/x/one.cc", HELPERS.format("OwnBits"), True),
    ("a/x/one.cc", HELPERS.format("BitsOf") + "#define HWY_TARGET_INCLUDE\n", True),  # compiled by itself
    ("b/one.cc", HELPERS.format("BitsOf"), True),  # in another library
    ("a/x/one.cc", "int BitsOf(double x) {\n  return 1;\n}\n", True),  # what the header declares
])
def test_hidden_functions(tmp_path, path, text, fine):
    write(tmp_path, "CMakeLists.txt", "floe_objects(a FOLDERS a a/x DEPS c)\nfloe_objects(b FOLDERS b\n             DEPS a EXCLUDE d.cc)\n")
    write(tmp_path, "a/bits.h", "inline int BitsOf(double x) {\n  return 0;\n}\n")
    write(tmp_path, path, text)
    done = run("check_names.py", tmp_path)
    assert (done.returncode == 0) == fine, done.stdout + done.stderr
    assert fine or f"{path}: BitsOf hides that of a/bits.h" in done.stdout


def function(lines):
    return "int F(int x) {\n" + "  x += 1;\n" * (lines - 2) + "}\n"


@pytest.mark.parametrize("text,found", [
    (function(80), None),
    (function(81), "F has 81 lines"),
    ("namespace a {\nclass B {\n  int M() const { return 1; }\n};\n" + function(81) + "}  // namespace a\n", "F has 81 lines"),
    ("// } { \nconst char* k = \"}}{\";\nstd::vector<int> v{1, 2};\n" + function(81), "F has 81 lines"),
    ("class B {\n public:\n  B() : a_{1}, b_(2) {\n" + "    a_ += 1;\n" * 90 + "  }\n};\n", "B has 92 lines"),
    ("int x;\n" * 601, "601 lines, 600 allowed"),
], ids=["80", "81", "in a namespace", "braces in text", "constructor", "file"])
def test_sizes(tmp_path, text, found):
    write(tmp_path, "a.cc", text)
    write(tmp_path, "scripts/size_exceptions.txt", "")
    done = run("check_sizes.py", tmp_path)
    assert (done.returncode == 0) == (found is None), done.stdout
    assert found is None or found in done.stdout


@pytest.mark.parametrize("methods, comment, found", [
    (15, "", False), (16, "", True), (16, "// One class: it is a table of them.\n", False)], ids=["15", "16", "with a reason"])
def test_methods(tmp_path, methods, comment, found):
    body = "".join(f"  int M{i}(std::function<void(int)> f = {{}}) const {{ return {{{i}}}; }}\n" for i in range(methods))
    members = "  std::function<void()> done_;\n  int a_ = F(1);\n  using T = void(int);\n  friend void G();\n"
    write(tmp_path, "server/a.h", f"{comment}class B : public C {{\n public:\n  B(int a);\n  virtual ~B() = default;\n{body}{members}}};\n")
    write(tmp_path, "scripts/size_exceptions.txt", "")
    done = run("check_sizes.py", tmp_path)
    assert ("class B has 16 methods" in done.stdout) == found == (done.returncode != 0), done.stdout


def test_size_exception(tmp_path):
    write(tmp_path, "a.cc", function(90))
    write(tmp_path, "scripts/size_exceptions.txt", "a.cc:F 90 it is a table\n")
    assert run("check_sizes.py", tmp_path).returncode == 0


CTEST = """<testsuite><testcase name="base" status="{base}"><system-out>{out}</system-out></testcase></testsuite>"""
GTEST = """<testsuites><testsuite name="S">
<testcase name="Good" classname="S" status="run" result="completed"/>
<testcase name="Off" classname="S" status="notrun" result="suppressed"/>
{more}</testsuite></testsuites>"""
FAILED = '<testcase name="Bad" classname="S" status="run"><failure message="1 is not 2"/></testcase>'
SKIPPED = '<testcase name="Skip" classname="S" status="run" result="skipped"><skipped message="{}"/></testcase>'


@pytest.mark.parametrize("base,more,stages,line,fine", [
    ("run", "", "", "1 passed, 0 failed, 0 skipped", True),
    ("run", "", "passed a\n", "2 passed, 0 failed, 0 skipped", True),
    ("run", "", "failed a\n", "1 passed, 1 failed, 0 skipped", False),
    ("fail", FAILED, "", "1 passed, 1 failed, 0 skipped", False),
    ("fail", "", "", "1 passed, 1 failed, 0 skipped", False),  # died after its last case
    ("run", SKIPPED.format("needs ../shared"), "", "1 passed, 0 failed, 1 skipped", True),
    ("run", SKIPPED.format("too tired"), "", "1 passed, 1 failed, 0 skipped", False),
    ("fail", None, "", "0 passed, 1 failed, 0 skipped", False),  # died before it could report
    ("notrun", None, "", "0 passed, 1 failed, 0 skipped", False),
])
def test_report(tmp_path, base, more, stages, line, fine):
    write(tmp_path, "release/results/ctest.xml", CTEST.format(base=base, out="output of base"))
    if more is not None:
        write(tmp_path, "release/results/base_tests.xml", GTEST.format(more=more))
    done = run("test_report.py", tmp_path / "release/results", stdin=stages)
    assert done.stdout.splitlines()[-1] == line, done.stdout
    assert (done.returncode == 0) == fine


def test_report_without_results(tmp_path):
    assert run("test_report.py", tmp_path).returncode != 0


def test_every_file_of_tests_runs():
    """In a test of ctest's, which is what scripts/test.sh runs."""
    folder = pathlib.Path(SCRIPTS).parent / "tests"
    named = (folder / "CMakeLists.txt").read_text(encoding="utf-8").split()
    assert [f.name for f in (folder / "python").glob("test_*.py") if f.name not in {n.rstrip(")") for n in named}] == []
