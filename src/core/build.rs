//! Finds the kernels and shaders, which are compiled in as texts: in this folder if the crate was published
//! (`scripts/crates.sh`), else two folders above it, at the top of the repository.

use std::env;
use std::path::Path;

fn main() {
    let here = env::var("CARGO_MANIFEST_DIR").expect("Cargo sets it");
    let root = Path::new(&here)
        .ancestors()
        .step_by(2)
        .take(2)
        .find(|folder| ["kernels", "shaders/matching"].iter().all(|of| folder.join(of).is_dir()))
        .unwrap_or_else(|| {
            panic!("{here}: kernels/ and shaders/matching/ are missing; scripts/crates.sh packages them")
        });
    println!("cargo:rustc-env=GPU_SOURCES={}", root.display());
    // The compiler itself notices changed texts; a new file must be named in the source.
    println!("cargo:rerun-if-changed=build.rs");
}
