//! NVRTC, CUDA's run-time compiler: finding it, and compiling a source for one architecture without a GPU.

use std::ffi::{CStr, CString, c_char, c_int};
use std::fmt;
use std::path::PathBuf;
use std::ptr;
use std::sync::OnceLock;

use anyhow::{Context, bail};
use cudarc::nvrtc::sys::{self, nvrtcResult};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

const OLDEST: Version = Version { major: 12, minor: 0 };

/// Reason why there is no NVRTC; the message holds the cure.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Missing {
    #[error(
        "CUDA's run-time compiler is missing (libnvrtc.so.13 or .12); install it (Ubuntu and Debian: \
         apt install libnvrtc12, NVIDIA's packages: cuda-nvrtc-13-0, Python's: pip install \
         nvidia-cuda-nvrtc); where the loader does not find it, CUDA_HOME names the toolkit's folder, or \
         LD_LIBRARY_PATH the library's"
    )]
    Library,
    #[error("CUDA's run-time compiler (libnvrtc) is version {0}; {OLDEST} or newer is needed")]
    Old(Version),
    #[error("CUDA's run-time compiler (libnvrtc) does not work: {0}")]
    Broken(String),
}

/// NVRTC, found and ready.
#[derive(Clone, Debug)]
pub struct Nvrtc {
    version: Version,
    /// Architectures it can compile for, ascending: 75, 80, ...
    architectures: Vec<u32>,
}

/// Device or virtual architecture of the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// Machine code of this architecture.
    Real(u32),
    /// PTX of this architecture, which the driver compiles to machine code.
    Virtual(u32),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Real(sm) => write!(f, "sm_{sm}"),
            Target::Virtual(compute) => write!(f, "compute_{compute}"),
        }
    }
}

/// Best target for a device of the architecture `sm` among the compiler's `known` ones: its own machine code,
/// else an earlier minor version's (which runs on it), else PTX. `None` if all are later.
pub fn target(known: &[u32], sm: u32) -> Option<Target> {
    let older = known.iter().copied().filter(|&other| other <= sm).max()?;
    // sm_110, 120, 121 are of the families 11 and 12.
    Some(if older / 10 == sm / 10 { Target::Real(older) } else { Target::Virtual(older) })
}

impl Nvrtc {
    /// Finds the library; later calls return the same result.
    pub fn find() -> Result<&'static Nvrtc, Missing> {
        static FOUND: OnceLock<Result<Nvrtc, Missing>> = OnceLock::new();
        FOUND.get_or_init(Self::load).as_ref().map_err(Clone::clone)
    }

    fn load() -> Result<Nvrtc, Missing> {
        // SAFETY: NVRTC may be opened by any program.
        let present = || unsafe { sys::is_culib_present() };
        if !(present() || open_elsewhere() && present()) {
            return Err(Missing::Library);
        }
        let (mut major, mut minor) = (0, 0);
        // SAFETY: the library exists, every version has the function, the pointers are valid.
        ok("asking for the version", unsafe { sys::nvrtcVersion(&mut major, &mut minor) })?;
        let version = Version { major: major as u32, minor: minor as u32 };
        if version < OLDEST {
            return Err(Missing::Old(version));
        }
        let mut count = 0;
        // SAFETY: the function exists since 11.2; `count` receives the number.
        ok("asking for architectures", unsafe { sys::nvrtcGetNumSupportedArchs(&mut count) })?;
        let mut architectures: Vec<c_int> = vec![0; count.max(0) as usize];
        // SAFETY: the array has the length from the previous call.
        ok("asking for architectures", unsafe {
            sys::nvrtcGetSupportedArchs(architectures.as_mut_ptr())
        })?;
        let mut architectures: Vec<u32> = architectures.into_iter().map(|sm| sm as u32).collect();
        architectures.sort_unstable();
        Ok(Nvrtc { version, architectures })
    }

    pub fn version(&self) -> Version {
        self.version
    }

    pub fn target(&self, sm: u32) -> anyhow::Result<Target> {
        target(&self.architectures, sm).with_context(|| {
            let oldest = self.architectures.first().copied().unwrap_or(0);
            format!(
                "NVRTC {} compiles for sm_{oldest} and newer, but the GPU is sm_{sm}; install an \
                 older NVRTC",
                self.version
            )
        })
    }

    /// Compiles a source with headers (name, text): a cubin, or PTX with a zero byte at its end if virtual.
    pub fn compile(
        &self,
        (name, source): (&str, &str),
        headers: &[(&str, &str)],
        options: &[String],
        target: Target,
    ) -> anyhow::Result<Vec<u8>> {
        let program = Program::new(name, source, headers)?;
        let options: Vec<CString> =
            options.iter().map(|option| text(option)).collect::<anyhow::Result<_>>()?;
        let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        // SAFETY: the program is alive and the options are zero-terminated.
        let status = unsafe {
            sys::nvrtcCompileProgram(program.0, pointers.len() as c_int, pointers.as_ptr())
        };
        if status != nvrtcResult::NVRTC_SUCCESS {
            bail!("{name} does not compile ({status:?}):\n{}", program.log());
        }
        let log = program.log();
        if !log.is_empty() {
            tracing::debug!("{name}: {log}");
        }
        match target {
            Target::Real(_) => {
                program.output(sys::nvrtcGetCUBINSize as SizeOf, sys::nvrtcGetCUBIN as Get)
            }
            Target::Virtual(_) => {
                program.output(sys::nvrtcGetPTXSize as SizeOf, sys::nvrtcGetPTX as Get)
            }
        }
    }
}

/// Opens the library by its full path in the usual folders of CUDA's toolkit that the loader does not search.
/// An open library is then found by its name, and so is the second one that NVRTC opens when it compiles.
#[cfg(unix)]
fn open_elsewhere() -> bool {
    use std::os::unix::ffi::OsStrExt;
    let open = |path: PathBuf| {
        let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
        // SAFETY: the path ends with zero; the library's initialisers need nothing.
        !unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) }.is_null()
    };
    let homes = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(std::env::var_os);
    let homes = homes.map(PathBuf::from).chain(["/usr/local/cuda".into(), "/opt/cuda".into()]);
    for home in homes {
        for folder in ["lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"] {
            let folder = home.join(folder);
            for major in [13, 12] {
                if !open(folder.join(format!("libnvrtc.so.{major}"))) {
                    continue;
                }
                let prefix = format!("libnvrtc-builtins.so.{major}.");
                for file in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                    if file.file_name().to_string_lossy().starts_with(&prefix) {
                        open(file.path());
                    }
                }
                return true;
            }
        }
    }
    false
}

#[cfg(not(unix))]
fn open_elsewhere() -> bool {
    let _ = PathBuf::new();
    false
}

type SizeOf = unsafe fn(sys::nvrtcProgram, *mut usize) -> nvrtcResult;
type Get = unsafe fn(sys::nvrtcProgram, *mut c_char) -> nvrtcResult;

/// A program of NVRTC's, destroyed when dropped.
struct Program(sys::nvrtcProgram);

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: created in `new`, destroyed only here.
        unsafe { sys::nvrtcDestroyProgram(&mut self.0) };
    }
}

impl Program {
    fn new(name: &str, source: &str, headers: &[(&str, &str)]) -> anyhow::Result<Self> {
        let (name, source) = (text(name)?, text(source)?);
        let of = |item: fn(&(&str, &str)) -> String| -> anyhow::Result<Vec<CString>> {
            headers.iter().map(|header| text(&item(header))).collect()
        };
        let (names, texts) = (of(|h| h.0.to_owned())?, of(|h| h.1.to_owned())?);
        let pointers = |texts: &[CString]| -> Vec<*const c_char> {
            texts.iter().map(|text| text.as_ptr()).collect()
        };
        let (name_list, text_list) = (pointers(&names), pointers(&texts));
        let mut program = ptr::null_mut();
        // SAFETY: all texts end with zero and both lists have the given length; NVRTC copies them.
        ok("creating a program", unsafe {
            sys::nvrtcCreateProgram(
                &mut program,
                source.as_ptr(),
                name.as_ptr(),
                headers.len() as c_int,
                text_list.as_ptr(),
                name_list.as_ptr(),
            )
        })?;
        Ok(Program(program))
    }

    fn log(&self) -> String {
        let mut size = 0;
        // SAFETY: the program is alive; the buffer has the size from the first call.
        unsafe {
            if sys::nvrtcGetProgramLogSize(self.0, &mut size) != nvrtcResult::NVRTC_SUCCESS {
                return String::new();
            }
            let mut log = vec![0u8; size.max(1)];
            sys::nvrtcGetProgramLog(self.0, log.as_mut_ptr().cast());
            CStr::from_bytes_until_nul(&log)
                .map(|log| log.to_string_lossy().trim_end().to_owned())
                .unwrap_or_default()
        }
    }

    fn output(&self, size_of: SizeOf, get: Get) -> anyhow::Result<Vec<u8>> {
        let mut size = 0;
        // SAFETY: the program is alive and `size` receives the number.
        ok("asking for the size of the code", unsafe { size_of(self.0, &mut size) })?;
        if size == 0 {
            bail!("NVRTC produced no code");
        }
        let mut code = vec![0u8; size];
        // SAFETY: the buffer has the size from the first call.
        ok("fetching the code", unsafe { get(self.0, code.as_mut_ptr().cast()) })?;
        Ok(code)
    }
}

fn text(text: &str) -> anyhow::Result<CString> {
    CString::new(text).context("a source, name or option contains a zero byte")
}

fn ok(what: &str, status: nvrtcResult) -> Result<(), Missing> {
    match status {
        nvrtcResult::NVRTC_SUCCESS => Ok(()),
        status => Err(Missing::Broken(format!("{what}: {status:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_target_is_chosen() {
        let known = [75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121];
        assert_eq!(target(&known, 90), Some(Target::Real(90)));
        assert_eq!(target(&known, 88), Some(Target::Real(87)));
        assert_eq!(target(&known, 70), None);
        // A device newer than the compiler.
        let known = [50, 75, 80, 86, 89, 90];
        assert_eq!(target(&known, 100), Some(Target::Virtual(90)));
        assert_eq!(target(&known, 121), Some(Target::Virtual(90)));
        assert_eq!(target(&[100, 120], 103), Some(Target::Real(100)));
        assert_eq!(Target::Real(90).to_string(), "sm_90");
    }

    #[test]
    fn errors_come_with_the_compilers_words() {
        let nvrtc = match Nvrtc::find() {
            Ok(nvrtc) => nvrtc,
            Err(missing) => return eprintln!("skipped: {missing}"),
        };
        let compile = |source: &str, headers: &[(&str, &str)], target| {
            let options = [format!("-arch={target}")];
            nvrtc.compile(("kernel.cu", source), headers, &options, target)
        };
        let real = Target::Real(90);
        let error = compile("int f( { }", &[], real).unwrap_err().to_string();
        assert!(error.contains("kernel.cu(1): error"), "{error}");
        let source = "#include \"one.cuh\"\nextern \"C\" __global__ void k(int *a) { *a = ONE; }";
        assert!(compile(source, &[], real).unwrap_err().to_string().contains("one.cuh"));
        let headers = [("one.cuh", "#define ONE 1")];
        let cubin = compile(source, &headers, real).unwrap();
        assert_eq!(&cubin[..4], b"\x7fELF");
        let ptx = compile(source, &headers, Target::Virtual(90)).unwrap();
        assert_eq!(ptx.last(), Some(&0));
        assert!(String::from_utf8_lossy(&ptx).contains(".entry k("));
    }
}
