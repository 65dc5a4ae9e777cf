#!/usr/bin/env python3
"""Prints the licences of all crates that a build links: scripts/licences.py [ARGUMENTS OF cargo tree].

Not with cargo-about, which takes longer to build than to write these lines, and reads every file of every crate.
"""
import json
import subprocess
import sys
from pathlib import Path

NAMES = ("license", "licence", "unlicense", "copying", "copyright", "notice", "ofl", "ufl")


def cargo(*arguments):
    run = subprocess.run(["cargo", *arguments], check=True, stdout=subprocess.PIPE, text=True)
    return run.stdout


packages = json.loads(cargo("metadata", "--locked", "--format-version=1", "--all-features"))["packages"]
packages = {(package["name"], package["version"]): package for package in packages}
tree = cargo("tree", "--locked", "--edges=normal", "--prefix=none", "--format={p}", *sys.argv[1:])
# Lines are "NAME vVERSION ...".
linked = sorted({tuple(line.split()[:2]) for line in tree.splitlines() if line.strip()})

texts = {}
print("Crates that are linked, with their licences. Texts follow, as far as the crates bring them along;")
print("the others are under a licence whose standard text is among these.\n")
for name, version in linked:
    package = packages[name, version[1:]]
    if package["source"] is None:  # One of ours, with files of its own.
        continue
    by = ", ".join(package["authors"])
    print(f"{name} {version[1:]}: {package['license']}{by and f' (by {by})'}")
    for file in sorted(Path(package["manifest_path"]).parent.rglob("*")):
        if file.name.lower().startswith(NAMES) and file.suffix != ".rs" and file.is_file():
            crates = texts.setdefault(file.read_text(errors="replace").strip(), [])
            if name not in crates:
                crates.append(name)
for text, crates in texts.items():
    print(f"\n{'=' * 80}\n{', '.join(crates)}\n{'=' * 80}\n\n{text}")
