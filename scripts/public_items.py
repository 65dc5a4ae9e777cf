#!/usr/bin/env python3
"""Compares the public items of the library with tests/public_items.txt, so that nothing becomes public by accident:
types with their variants, fields, methods and traits, as rustdoc shows them. Needs the pages that
`cargo doc --no-deps --lib -p stereod --no-default-features` makes. --write writes the file anew."""

import difflib
import html
import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "tests" / "public_items.txt"
PAGES = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "doc" / "stereod"

MEMBER = re.compile(
    r'<section id="(?:variant|method|associatedconstant)\.[^"]*" class="(?:variant|method|associatedconstant)">.*?<h[34] class="code-header">(.*?)</h[34]>'
    r'|<span id="(?:structfield|variant\.\w+\.field)\.[^"]*" class="[^"]*">.*?<code>(.*?)</code>'
    r'|<section id="impl-[^"]*-for-[^"]*" class="impl">.*?<h3 class="code-header">(.*?)</h3>',
    re.S,
)


def text(markup):
    return " ".join(html.unescape(re.sub(r"<[^>]*>", "", markup)).split())


def items():
    """Lines with every public item, and below it what it consists of."""
    for page in sorted(PAGES.glob("*.*.html")):
        kind, name, _ = page.name.split(".")
        content = page.read_text(encoding="utf-8")
        yield f"{kind} {name}"
        # Every type has auto traits and blanket implementations, so they are left out.
        own = re.split(r'<h2 id="(?:synthetic|blanket)-implementations"', content)[0]
        for method, field, trait in MEMBER.findall(own):
            # A trait's bounds may fill lines; its name says enough.
            yield "    " + text(method or field or trait).split(" where ")[0]


def main():
    if not (PAGES / "index.html").exists():
        sys.exit(f"{PAGES} is missing: cargo doc --no-deps --lib -p stereod --no-default-features")
    found = [f"{line}\n" for line in items()]
    if "--write" in sys.argv[1:]:
        LIST.write_text("".join(found), encoding="utf-8")
        return
    known = LIST.read_text(encoding="utf-8").splitlines(keepends=True)
    difference = list(difflib.unified_diff(known, found, "tests/public_items.txt", "the library", n=0))
    sys.stdout.writelines(difference)
    if difference:
        sys.exit("the library's public items have changed; if that is meant: scripts/public_items.py --write, and a line in CHANGELOG.md")


main()
