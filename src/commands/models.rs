//! `stereod models`: stereo networks that others have published, and how to make files for `--engine onnx:FILE` of them.

use std::fmt::Write;
use std::path::Path;

use serde::Serialize;

use super::{Error, print};
use crate::cli::ModelsArgs;
#[cfg(feature = "onnx")]
use stereod_core::engine::{
    Options,
    network::{self, Description},
};

#[derive(Serialize)]
struct Network {
    name: &'static str,
    /// Licence of the weights, as their authors state it.
    licence: &'static str,
    repository: &'static str,
    /// The authors' own command, in their repository; `None`: none is known.
    export: Option<&'static str>,
    remark: &'static str,
}

/// None of them is part of stereod, or is fetched by it.
const NETWORKS: [Network; 7] = [
    Network {
        name: "LiteAnyStereo V2 (S, M, L, H)",
        licence: "MIT",
        repository: "https://github.com/TomTomTommi/LiteAnyStereo",
        export: Some(
            "python export_onnx.py --model_size l --restore_ckpt ./checkpoints/LAS2_L.pth --output_name las2_l.onnx --simplify",
        ),
        remark: "of a fixed size",
    },
    Network {
        name: "FoundationStereo",
        licence: "research only",
        repository: "https://github.com/NVlabs/FoundationStereo",
        export: Some(
            "python scripts/make_onnx.py --save_path foundation_stereo.onnx --height 448 --width 672",
        ),
        remark: "of a fixed size, whose sides are multiples of 32; NVIDIA has others for commercial use",
    },
    Network {
        name: "Fast-FoundationStereo",
        licence: "research only",
        repository: "https://github.com/NVlabs/Fast-FoundationStereo",
        export: None,
        remark: "exported as two graphs with a kernel between them, which ONNX Runtime cannot run",
    },
    Network {
        name: "RAFT-Stereo",
        licence: "MIT (code)",
        repository: "https://github.com/princeton-vl/RAFT-Stereo",
        export: None,
        remark: "ONNX files of others give minus the disparity",
    },
    Network {
        name: "CREStereo",
        licence: "Apache-2.0 (code)",
        repository: "https://github.com/megvii-research/CREStereo",
        export: None,
        remark: "ONNX files of others take both views at half size, too",
    },
    Network {
        name: "HITNet",
        licence: "Apache-2.0 (code)",
        repository: "https://github.com/google-research/google-research/tree/master/hitnet",
        export: None,
        remark: "ONNX files of others take both views in one input",
    },
    Network {
        name: "S2M2",
        licence: "not for commercial use",
        repository: "https://github.com/junhong-3dv/s2m2",
        export: None,
        remark: "gives confidence and occlusion, which stereod does not read",
    },
];

pub fn run(args: &ModelsArgs) -> Result<(), Error> {
    if let Some(file) = &args.file {
        return describe(file, args.json);
    }
    if args.json {
        let json = serde_json::to_string_pretty(&NETWORKS).map_err(anyhow::Error::from)?;
        return print(json + "\n");
    }
    let mut text = String::new();
    for Network { name, licence, repository, export, remark } in NETWORKS {
        let _ = writeln!(text, "{name}\n  weights: {licence}; {remark}\n  {repository}");
        if let Some(export) = export {
            let _ = writeln!(text, "  $ {export}");
        }
    }
    text += "\nTheir licences and commands change; read them there. Then: stereod run --demo --engine onnx:FILE\n";
    print(text)
}

#[cfg(feature = "onnx")]
fn describe(file: &Path, is_json: bool) -> Result<(), Error> {
    let described = network::describe(file, &Options::default())?;
    if is_json {
        let json = serde_json::to_string_pretty(&described).map_err(anyhow::Error::from)?;
        return print(json + "\n");
    }
    let Description { inputs, convention, wrong, processor } = described;
    print(format!(
        "inputs: {inputs}\nfed as {convention}\n{wrong:.1} % of the pixels of a scene with known disparity are wrong \
         by more than 2 px\nruns on: {processor}\n"
    ))
}

#[cfg(not(feature = "onnx"))]
fn describe(file: &Path, _: bool) -> Result<(), Error> {
    let file = file.display();
    Err(Error::usage(format!("built without networks; build with the feature `onnx` for {file}")))
}
