# Writes what the wheels stereod-program say of themselves. Sourced at the root of the repository.
# shellcheck shell=bash

# The METADATA is the same for every system, because installers take that of one wheel for that of the release.
write_metadata() { # FOLDER VERSION TAG
    mkdir -p "$1/licenses"
    cp LICENSE-* "$1/licenses/"
    cat >"$1/METADATA" <<END
Metadata-Version: 2.4
Name: stereod-program
Version: $2
Summary: The program stereod, real-time depth from two cameras, with the GStreamer that it needs
License-Expression: (MIT OR Apache-2.0) AND Apache-2.0 AND BSD-2-Clause AND BSD-3-Clause AND bzip2-1.0.6 AND IJG AND ISC AND LGPL-2.1-or-later AND libpng-2.0 AND MPL-2.0 AND OFL-1.1 AND Ubuntu-font-1.0 AND Unicode-3.0 AND Zlib
Requires-Python: >=3.9
Requires-Dist: gstreamer-libs~=1.28.0; sys_platform == "win32"
Requires-Dist: gstreamer-plugins~=1.28.0; sys_platform == "win32"
Classifier: Operating System :: Microsoft :: Windows
Classifier: Operating System :: POSIX :: Linux
Description-Content-Type: text/markdown

\`\`\`sh
pip install stereod-program
stereod run --demo --serve 8080      # prints the address of a page with live depth
\`\`\`

The program of the Python package \`stereod\`: for Linux with glibc 2.31 or newer, with the parts of GStreamer that it
needs, and for Windows, with GStreamer's packages on PyPI. \`licenses\` and, for Linux, \`sboms\` in the folder
\`stereod_program-$2.dist-info\` say what the wheel consists of.
END
    printf '%s\n' 'Wheel-Version: 1.0' 'Generator: stereod' 'Root-Is-Purelib: false' "Tag: $3" >"$1/WHEEL"
    printf '[console_scripts]\nstereod = stereod_program:main\n' >"$1/entry_points.txt"
}
