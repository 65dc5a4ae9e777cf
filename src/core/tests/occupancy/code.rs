//! The machine code of every kernel of a job, as files for a disassembler. Needs no GPU.

use std::path::Path;

use stereod_core::engine::cuda::{Job, Nvrtc, Properties, Target, compile, specialisations};

use super::sweeps::params;

/// `scripts/instructions.py` counts the instructions of the files.
#[test]
#[ignore = "files for a disassembler"]
fn code_of_the_kernels() {
    let nvrtc = Nvrtc::find().unwrap();
    let to = std::env::var("STEREOD_CODE").expect("STEREOD_CODE names a folder");
    let number = |name, default| std::env::var(name).map_or(default, |n| n.parse().unwrap());
    let (width, height, disparities) =
        (number("WIDTH", 1280), number("HEIGHT", 720), number("DISPARITIES", 128));
    let (multiprocessors, sm) = (number("MULTIPROCESSORS", 8) as u32, number("SM", 90) as u32);
    let told = std::env::var("SETTINGS").unwrap_or_default();
    let params = params(&told.split_whitespace().collect::<Vec<_>>(), disparities);
    let job = Job { params: &params, size: (width, height), rectifier: None, network: None };
    let chip = Properties { multiprocessors, ..Properties::typical(sm) };
    for unit in specialisations(&job, &chip) {
        let code = compile(nvrtc, &unit, Target::Real(sm)).unwrap();
        let name = unit.name.replace(' ', "_");
        let defines = unit.defines.iter().map(|(name, value)| format!("-D{name}={value}\n"));
        std::fs::write(Path::new(&to).join(format!("{name}.cubin")), code).unwrap();
        let text = format!("{}\n{}", unit.file, defines.collect::<String>());
        std::fs::write(Path::new(&to).join(format!("{name}.txt")), text).unwrap();
    }
}
