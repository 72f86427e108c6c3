#!/usr/bin/env python3
"""Writes the SBOM of a Debian package of floe, as SPDX 2.3 in JSON: the package, the Debian packages of the libraries that its
programs load, and those whose headers are compiled in.

    make_sbom.py --package FILE.deb --program FILE... --version V --time SECONDS --out FILE
"""
import argparse
import datetime
import hashlib
import json
import pathlib
import re
import subprocess

# Nothing but headers: what is used of them is part of the programs.
COMPILED_IN = ["libboost-dev", "libcli11-dev", "libeigen3-dev", "libxxhash-dev", "nlohmann-json3-dev"]


def run(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def libraries(program):
    """Paths of the shared libraries that a program loads, its loader left out."""
    return re.findall(r"=> (/\S+)", run("ldd", program))


def package_of(path):
    """The Debian package of a file. dpkg knows /usr/lib/x by that name or, on a merged /usr, as /lib/x."""
    real = str(pathlib.Path(path).resolve())
    for name in (real, real.removeprefix("/usr"), path):
        done = subprocess.run(["dpkg-query", "-S", name], capture_output=True, text=True)
        if done.returncode == 0:
            return done.stdout.split(":")[0]
    raise SystemExit(f"no Debian package has {path}")


def entry(name):
    package, version, source, architecture = run(
        "dpkg-query", "-W", "-f=${Package}\n${Version}\n${source:Package}\n${Architecture}\n", name).split("\n")[:4]
    return {
        "SPDXID": f"SPDXRef-{re.sub('[^A-Za-z0-9.-]', '-', package)}",
        "name": package,
        "versionInfo": version,
        "supplier": "Organization: Debian",
        "downloadLocation": f"https://packages.debian.org/source/bookworm/{source}",
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": "NOASSERTION",
        "copyrightText": "NOASSERTION",
        "externalRefs": [{
            "referenceCategory": "PACKAGE-MANAGER",
            "referenceType": "purl",
            "referenceLocator": f"pkg:deb/debian/{package}@{version}?arch={architecture}&distro=bookworm",
        }],
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--package", type=pathlib.Path, required=True)
    parser.add_argument("--program", action="append", required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--time", type=int, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    args = parser.parse_args()
    digest = hashlib.sha256(args.package.read_bytes()).hexdigest()
    loaded = sorted({package_of(path) for program in args.program for path in libraries(program)})
    floe = {
        "SPDXID": "SPDXRef-floe",
        "name": "floe",
        "versionInfo": args.version,
        "packageFileName": args.package.name,
        "supplier": "NOASSERTION",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "Apache-2.0",
        "licenseDeclared": "Apache-2.0",
        "copyrightText": "NOASSERTION",
        "checksums": [{"algorithm": "SHA256", "checksumValue": digest}],
        "primaryPackagePurpose": "APPLICATION",
    }
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-floe")]
    packages = [floe]
    for names, relation in ((loaded, "DYNAMIC_LINK"), (COMPILED_IN, "STATIC_LINK")):
        for name in names:
            packages.append(entry(name))
            relations.append(("SPDXRef-floe", relation, packages[-1]["SPDXID"]))
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"floe-{args.version}",
        "documentNamespace": f"urn:floe:{args.version}:{digest}",
        "creationInfo": {
            "created": datetime.datetime.fromtimestamp(args.time, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "creators": ["Tool: floe-make-sbom"],
        },
        "packages": packages,
        "relationships": [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b} for a, kind, b in relations],
    }
    args.out.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
