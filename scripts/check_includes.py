#!/usr/bin/env python3
"""Fails when a file includes what its folder may not know.

    scripts/check_includes.py [ROOT]

The rules are the house's directions: no arrow goes up. A folder is looked up by its longest prefix below.
"""
import os
import re
import sys

# Folder -> the folders of this repository it may include (itself is always allowed).
ALLOWED = {
    "base": [],
    "proto": [],
    "model": ["base"],
    "model/ops": ["model", "base"],
    "model/import": ["model", "base", "proto"],
    "kernels": ["kernels/cpu", "model", "model/ops", "base"],
    "kernels/cpu": ["kernels", "model", "model/ops", "base"],
    "kernels/cuda": ["kernels", "kernels/cpu", "model", "model/ops", "base"],
    "kernels/cuda/device": ["kernels/cuda", "kernels", "base"],
    "runtime": ["runtime/passes", "kernels", "kernels/cuda", "kernels/cuda/device", "model", "base"],
    "runtime/passes": ["runtime", "kernels", "model", "model/ops", "base"],
    "config": ["base", "proto"],
    "server/request": ["runtime", "model", "base", "proto"],
    "server/executor": ["server/request", "runtime", "kernels", "kernels/cuda/device", "model", "base"],
    "server/scheduling": ["server/executor", "server/request", "runtime", "kernels", "model", "base", "config"],
    "server/loading": ["server/scheduling", "server/executor", "server/request", "runtime", "kernels", "kernels/cpu", "kernels/cuda/device",
                       "model", "model/import", "base", "config", "proto"],
    "server/registry": ["server/loading", "server/scheduling", "server/request", "server/health", "runtime", "model", "model/import", "base", "config"],
    "server/health": ["server/scheduling", "server/executor", "server/request", "server/registry", "runtime", "kernels", "model", "base"],
    "server/api": ["server/request", "server/scheduling", "server/registry", "server/health", "runtime", "kernels", "model", "model/import",
                   "base", "config", "proto"],
    "server/api/page": ["server/api", "server/api/rest", "server/request", "server/scheduling", "server/registry", "server/health", "runtime", "model", "base", "config"],
    "server/metrics": ["server/api", "server/request", "server/scheduling", "server/registry", "server/health", "base"],
    "server/listener": ["base"],
    "server/net": ["server/transport", "server/listener", "server/api", "server/health", "base", "config"],
    "server/transport": ["server/listener", "server/api", "server/health", "base", "config"],
    "server/transport/tests": ["server/*", "base", "config"],
    "server": ["server/*", "cli", "runtime", "kernels", "kernels/cpu", "kernels/cuda/device", "model", "model/import", "base", "config", "proto"],
    "cli": ["server/loading", "server/registry", "runtime", "runtime/passes", "kernels", "kernels/cuda/device", "model", "model/import", "model/ops", "base", "config", "proto"],
    "bench": ["*"],
    "tests": ["*"],
    "clients": ["proto"],
    "examples": ["clients"],
}
# Tests may drive what stands above their subject.
TEST_EXTRA = {
    "server/api": ["server/executor"],
    "runtime": ["model/import", "proto"],
    "runtime/passes": ["model/import", "proto"],
    "kernels": ["runtime"],
    "kernels/cpu": ["runtime"],
    "server/request": ["server/*"],
    "server/executor": ["server/*", "model/import"],
    "server/scheduling": ["server/*", "model/import"],
    "server/loading": ["server/*"],
    "server/registry": ["server/*"],
    "server/health": ["server/*"],
    "server/net": ["server/transport/tests"],
}
# An outside library -> who may include it.
LIBRARIES = {
    r"grpcpp/|grpc/": ["server/transport/tests", "cli", "bench", "tests", "clients", "examples"],
    r"hwy/": ["kernels", "bench", "tests"],
    r"jpeglib\.h|jerror\.h|png\.h": ["kernels/cpu/image/jpeg", "kernels/cpu/image/png"],
    r"yaml-cpp/": ["config"],
    r"snappy": ["model/import", "tests"],
    r"xxhash": ["base"],
    r"boost/": ["server/scheduling", "server/net", "cli/http_client.cc"],
    r"nghttp2/": ["server/net"],
    r"openssl/": ["server/net", "config/token_file.cc", "cli/http_client.cc", "tests/fuzz/pem_fuzzer.cc"],
    r"simdjson": ["server/api/rest", "bench"],
    r"hdf5|H5": ["model/import/keras/hdf5", "model/import/keras/hdf5_file_test.cc"],
    r"zip\.h$": ["model/import/keras", "cli", "tests"],
    r"nlohmann/": ["model/import/keras", "cli", "tests"],
    r"CLI/": ["cli", "server/main.cc", "server/flags", "bench", "examples", "tests"],
    r"systemd/": ["server"],
    r"cuda_runtime": ["kernels/cuda/gpu.h", "kernels/cuda/library", "tests/cuda"],
    r"google/protobuf/": ["proto", "model/import", "base/wire_reader.h", "server/request", "server/loading", "server/api", "cli", "examples", "tests", "bench", "config"],
}
GENERATED = re.compile(r"^(floe|tensorflow|tensorflow_serving|grpc/health|grpc/reflection)/.*\.pb\.h$")
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.M)


def rule_of(path, table):
    """The longest key of `table` that is `path` or a folder above it."""
    parts = path.split("/")
    for n in range(len(parts), 0, -1):
        if (key := "/".join(parts[:n])) in table:
            return key
    return None


def covers(allowed, folder):
    return any(a == "*" or a == folder or (a.endswith("/*") and folder.startswith(a[:-1])) or
               (folder.startswith(a + "/") and rule_of(folder, ALLOWED) == a) for a in allowed)


def check(path, included):
    """Why `path` may not include `included`, or None."""
    mine = rule_of(os.path.dirname(path), ALLOWED)
    if mine is None:
        return f"no rule for the folder {os.path.dirname(path)}/; add one to scripts/check_includes.py"
    allowed = [mine] + ALLOWED[mine]
    # Headers that only tests use have a name that says so.
    if re.search(r"_test(_util)?\.(cc|h)$|/test_\w+\.h$", path):
        allowed += TEST_EXTRA.get(mine, [])
    if GENERATED.match(included):
        return None if covers(allowed, "proto") else f"{mine}/ may not know the wire formats"
    for pattern, users in LIBRARIES.items():
        if re.match(pattern, included) and not any(path == u or path.startswith(u + ("" if "." in u else "/")) or
                                                   path.startswith(u + ".") for u in users):
            return f"only {', '.join(users)} may"
    theirs = rule_of(os.path.dirname(included), ALLOWED)
    if theirs is None or covers(allowed, theirs):
        return None
    return f"{mine}/ may include only {', '.join(allowed)}"


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    bad = files = 0
    for top in sorted({folder.split("/")[0] for folder in ALLOWED}):
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(names):
                if not name.endswith((".h", ".cc", ".cu", ".cuh")):
                    continue
                path = os.path.relpath(os.path.join(folder, name), root)
                text = open(os.path.join(root, path), encoding="utf-8").read()
                files += 1
                for match in INCLUDE.finditer(text):
                    if why := check(path, match.group(1)):
                        line = text.count("\n", 0, match.start(1)) + 1
                        print(f"{path}:{line}: includes {match.group(1)}: {why}")
                        bad += 1
    print(f"{files} files, {bad} wrong includes")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
