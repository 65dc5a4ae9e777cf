//! The processors and cameras of this machine, as text and JSON.

pub mod cameras;

use std::fmt::Write;

use serde_json::{Value, json};

use stereod_core::engine::cpu::{CpuEngine, CpuOptions};
use stereod_core::engine::cuda::{self, DeviceInfo, Nvrtc, Size, Unusable};
use stereod_core::engine::{Engine, PairSpec};
use stereod_core::matching::params::Params;
use stereod_io::source::{gst, v4l2};

struct Listed {
    device: DeviceInfo,
    /// Free memory in bytes, or why it cannot be opened.
    free: Result<usize, String>,
    /// Reason why the engine cannot use it.
    unusable: Option<Unusable>,
}

fn cuda_devices() -> (Answer<cuda::Version>, Answer<cuda::Version>, Answer<Vec<Listed>>) {
    let devices = cuda::list().map(|devices| devices.into_iter().map(look_at).collect());
    let nvrtc = Nvrtc::find().map(Nvrtc::version).map_err(Unusable::from);
    (cuda::driver_version(), nvrtc, devices)
}

/// Lists the engines for people.
pub fn engines(cpu: &str) -> String {
    let (driver, nvrtc, devices) = cuda_devices();
    as_text(&driver, &nvrtc, &devices, cpu) + &others_as_text(&graphics())
}

/// Returns the engines for programs.
pub fn engines_as_json(cpu: &str) -> Value {
    let (driver, nvrtc, devices) = cuda_devices();
    let mut all = as_json(&driver, &nvrtc, &devices, cpu);
    all["wgpu"] = graphics().iter().map(graphics_as_json).collect();
    all
}

/// The list for people, with the usual settings.
pub fn text() -> String {
    let cpu = CpuEngine::new(&Params::default(), &PairSpec::rectified(1, 1), CpuOptions::default());
    let cpu = cpu.map_or_else(|error| error.to_string(), |cpu| cpu.description());
    let others = gst::find_cameras().unwrap_or_default();
    engines(&cpu) + &cameras::as_text(&v4l2::list(), &others, false)
}

/// A device of the wgpu engine: name, API and driver, whether it is the CPU in truth.
type Graphics = (String, String, bool);

#[cfg(feature = "wgpu")]
fn graphics() -> Vec<Graphics> {
    let devices = stereod_core::engine::webgpu::list().into_iter();
    devices.map(|device| (device.name, device.driver, device.is_software)).collect()
}

#[cfg(not(feature = "wgpu"))]
fn graphics() -> Vec<Graphics> {
    Vec::new()
}

fn others_as_text(graphics: &[Graphics]) -> String {
    let mut text = String::new();
    for (name, driver, is_software) in graphics {
        let slow = if *is_software { "; computes on the CPU, for tests" } else { "" };
        let _ = writeln!(text, "{name} (--engine wgpu; {driver}{slow})");
    }
    text
}

fn graphics_as_json((name, driver, is_software): &Graphics) -> Value {
    json!({ "name": name, "driver": driver, "is_software": is_software })
}

fn look_at(device: DeviceInfo) -> Listed {
    let free = device.open().and_then(|context| context.memory()).map(|(free, _)| free);
    Listed { free: free.map_err(|error| error.to_string()), unusable: device.check().err(), device }
}

type Answer<T> = Result<T, Unusable>;

fn as_text(
    driver: &Answer<cuda::Version>,
    nvrtc: &Answer<cuda::Version>,
    devices: &Answer<Vec<Listed>>,
    cpu: &str,
) -> String {
    let mut text = String::new();
    match devices {
        Ok(devices) => {
            if let (Ok(driver), Ok(nvrtc)) = (driver, nvrtc) {
                let _ = writeln!(text, "CUDA (driver for CUDA {driver}, NVRTC {nvrtc})");
            } else if let Err(reason) = nvrtc {
                let _ = writeln!(text, "CUDA cannot be used: {reason}");
            }
            for Listed { device, free, unusable } in devices {
                let properties = &device.properties;
                let (major, minor) = properties.compute;
                let _ = write!(
                    text,
                    "  {}  {}, compute capability {major}.{minor}, {} multiprocessors, {}",
                    device.ordinal,
                    device.name,
                    properties.multiprocessors,
                    Size(device.total_bytes as u64),
                );
                let _ = match free {
                    Ok(free) => write!(text, ", {} free", Size(*free as u64)),
                    Err(error) => write!(text, "; it cannot be opened: {error}"),
                };
                let _ = match unusable {
                    Some(reason) => writeln!(text, "; it cannot be used: {reason}"),
                    None => writeln!(text),
                };
            }
        }
        Err(reason) => {
            let _ = writeln!(text, "CUDA cannot be used: {reason}");
        }
    }
    let _ = writeln!(text, "{cpu}");
    text
}

fn as_json(
    driver: &Answer<cuda::Version>,
    nvrtc: &Answer<cuda::Version>,
    devices: &Answer<Vec<Listed>>,
    cpu: &str,
) -> Value {
    let version = |answer: &Answer<cuda::Version>| answer.as_ref().ok().map(ToString::to_string);
    let list = devices.as_ref().map(|devices| devices.as_slice()).unwrap_or_default();
    let unusable = devices.as_ref().err().or(nvrtc.as_ref().err()).map(ToString::to_string);
    let device = |listed: &Listed| {
        let Listed { device, free, unusable } = listed;
        let properties = &device.properties;
        let (major, minor) = properties.compute;
        json!({
            "device": device.ordinal,
            "name": device.name,
            "compute_capability": format!("{major}.{minor}"),
            "multiprocessors": properties.multiprocessors,
            "total_bytes": device.total_bytes,
            "free_bytes": free.as_ref().ok(),
            "shared_bytes_per_block": properties.shared_per_block,
            "shared_bytes_per_multiprocessor": properties.shared_per_multiprocessor,
            "unusable": unusable.as_ref().map(ToString::to_string).or(free.as_ref().err().cloned()),
        })
    };
    json!({
        "cuda": {
            "driver": version(driver),
            "nvrtc": version(nvrtc),
            "unusable": unusable,
            "devices": list.iter().map(device).collect::<Vec<_>>(),
        },
        "cpu": cpu,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use stereod_core::engine::cuda::{Missing, Properties, Version};

    fn listed() -> Vec<Listed> {
        let device = |ordinal, sm, free| {
            let properties = Properties::typical(sm);
            let name = format!("GPU {sm}");
            let device = DeviceInfo { ordinal, name, properties, total_bytes: 8 << 30 };
            Listed { unusable: device.check().err(), free, device }
        };
        vec![device(0, 90, Ok(7 << 30)), device(1, 61, Err("in use".into()))]
    }

    #[test]
    fn devices_are_listed_with_what_is_wrong_with_them() {
        let version = Ok(Version { major: 13, minor: 0 });
        let text = as_text(&version, &version, &Ok(listed()), "CPU (x)");
        assert_eq!(
            text,
            "CUDA (driver for CUDA 13.0, NVRTC 13.0)\n\
             \x20 0  GPU 90, compute capability 9.0, 132 multiprocessors, 8.0 GiB, 7.0 GiB free\n\
             \x20 1  GPU 61, compute capability 6.1, 170 multiprocessors, 8.0 GiB; it cannot be \
             opened: in use; it cannot be used: GPU 61 has compute capability 6.1; 7.5 or newer is \
             needed\nCPU (x)\n"
        );
        let value = as_json(&version, &version, &Ok(listed()), "CPU (x)");
        assert_eq!(value["cuda"]["driver"], "13.0");
        assert_eq!(value["cuda"]["unusable"], Value::Null);
        assert_eq!(value["cuda"]["devices"][0]["free_bytes"], 7u64 << 30);
        assert_eq!(value["cuda"]["devices"][0]["unusable"], Value::Null);
        assert!(value["cuda"]["devices"][1]["unusable"].as_str().unwrap().contains("6.1"));
    }

    #[test]
    fn the_reason_why_there_is_none_is_told() {
        let driver = Ok(Version { major: 13, minor: 0 });
        let nvrtc = Err(Unusable::Nvrtc(Missing::Library));
        let text = as_text(&driver, &nvrtc, &Ok(listed()), "CPU");
        assert!(
            text.starts_with("CUDA cannot be used: CUDA's run-time compiler is missing"),
            "{text}"
        );
        assert!(text.contains("  0  GPU 90"));
        let none = || Err(Unusable::NoDriver);
        let text = as_text(&Err(Unusable::NoDriver), &nvrtc, &none(), "CPU (x)");
        assert!(text.starts_with("CUDA cannot be used: there is no NVIDIA driver"), "{text}");
        assert!(text.ends_with("\nCPU (x)\n"));
        let value = as_json(&Err(Unusable::NoDriver), &nvrtc, &none(), "CPU (x)");
        assert!(value["cuda"]["unusable"].as_str().unwrap().contains("no NVIDIA driver"));
        assert_eq!(value["cuda"]["devices"], json!([]));
    }
}
