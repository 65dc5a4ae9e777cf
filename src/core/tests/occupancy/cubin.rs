//! Reads a cubin's description of its kernels: an ELF file whose section `.nv.info` holds a list of
//! attributes.

/// Attributes that belong to a function (`EIATTR_...` in the output of nvdisasm and cuobjdump).
const REGISTERS: u8 = 0x2f;
const FRAME_BYTES: u8 = 0x11;

/// Format of an attribute whose value has the stated length; the values of all others take two
/// bytes.
const SIZED: u8 = 4;

/// Name of the section with the shared memory that the system reserves in every block. If it
/// exists, the kernels' own sections begin behind it.
const RESERVED: &str = ".nv.shared.reserved.0";
const RESERVED_BYTES: u32 = 1024;

/// Resources of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kernel {
    pub name: String,
    /// 32-bit registers of a thread.
    pub registers: u32,
    /// Bytes of local memory of a thread: data that did not fit into registers.
    pub local_bytes: u32,
    /// Bytes of static shared memory of a block.
    pub static_shared_bytes: u32,
}

struct Section {
    name: String,
    offset: usize,
    bytes: usize,
    /// The section that this one refers to.
    link: usize,
}

/// Returns the kernels of a cubin, in its order. Panics if it is none.
pub fn kernels(cubin: &[u8]) -> Vec<Kernel> {
    let sections = sections(cubin);
    let named = |name: &str| sections.iter().find(|section| section.name == name);
    let symbols = named(".symtab").expect("a table of symbols");
    let strings = sections[symbols.link].offset;
    let reserved = if named(RESERVED).is_some() { RESERVED_BYTES } else { 0 };
    let info = named(".nv.info").expect("attributes");
    let mut kernels: Vec<Kernel> = Vec::new();
    for (attribute, function, value) in attributes(&cubin[info.offset..][..info.bytes]) {
        let name = text(cubin, strings + u32_at(cubin, symbols.offset + 24 * function) as usize);
        // Functions that are called have attributes as well; only kernels have parameters.
        if named(&format!(".nv.info.{name}")).is_none() {
            continue;
        }
        let known = kernels.iter().position(|kernel| kernel.name == name);
        let at = known.unwrap_or_else(|| {
            let own = named(&format!(".nv.shared.{name}"));
            let static_shared_bytes = own.map_or(0, |own| own.bytes as u32 - reserved);
            kernels.push(Kernel { name, static_shared_bytes, ..Kernel::default() });
            kernels.len() - 1
        });
        match attribute {
            REGISTERS => kernels[at].registers = value,
            FRAME_BYTES => kernels[at].local_bytes = value,
            _ => {}
        }
    }
    kernels
}

/// Returns (attribute, number of the function's symbol, value) of the requested attributes.
fn attributes(mut list: &[u8]) -> Vec<(u8, usize, u32)> {
    let mut found = Vec::new();
    while list.len() >= 4 {
        let (format, attribute) = (list[0], list[1]);
        let size = if format == SIZED { u16_at(list, 2) } else { 0 };
        if size == 8 {
            found.push((attribute, u32_at(list, 4) as usize, u32_at(list, 8)));
        }
        list = &list[4 + size..];
    }
    found
}

fn sections(elf: &[u8]) -> Vec<Section> {
    assert_eq!(&elf[..5], b"\x7fELF\x02", "an ELF file of 64 bits");
    let (first, size, count) = (u64_at(elf, 40), u16_at(elf, 58), u16_at(elf, 60));
    let header = |number: usize| first + number * size;
    let names = u64_at(elf, header(u16_at(elf, 62)) + 24);
    let section = |number| {
        let at = header(number);
        Section {
            name: text(elf, names + u32_at(elf, at) as usize),
            offset: u64_at(elf, at + 24),
            bytes: u64_at(elf, at + 32),
            link: u32_at(elf, at + 40) as usize,
        }
    };
    (0..count).map(section).collect()
}

fn text(elf: &[u8], at: usize) -> String {
    let bytes = elf[at..].split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}

fn u16_at(bytes: &[u8], at: usize) -> usize {
    u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap()).into()
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> usize {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize
}

/// A cubin laid out by hand: the header, five sections, and their headers.
fn by_hand(reserved: bool) -> Vec<u8> {
    // Names of sections and symbols in one table, found by their text.
    let names =
        b"\0.symtab\0.nv.info\0.nv.info.fast\0.nv.shared.fast\0.nv.shared.reserved.0\0helper\0";
    let name = |wanted: &str| {
        let wanted = format!("\0{wanted}\0");
        names.windows(wanted.len()).position(|w| w == wanted.as_bytes()).unwrap() as u32 + 1
    };
    let words = |words: &[u32]| words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>();
    // "fast" is the end of another name; symbol 0 belongs to none.
    let mut symbols = vec![0; 24];
    for symbol in [name(".nv.info.fast") + 9, name("helper")] {
        symbols.extend(words(&[symbol, 0, 0, 0, 0, 0]));
    }
    let pair = |attribute: u32, function, value| {
        words(&[u32::from(SIZED) | attribute << 8 | 8 << 16, function, value])
    };
    let info = [
        pair(u32::from(REGISTERS), 1, 96),
        // One without a size, whose value looks like a size.
        words(&[0x0008_3703]),
        pair(u32::from(FRAME_BYTES), 1, 24),
        pair(u32::from(REGISTERS), 2, 40),
        // Another size, which is skipped.
        words(&[u32::from(SIZED) | 0x12 << 8 | 4 << 16, 7]),
    ]
    .concat();
    let mut elf = b"\x7fELF\x02\x01".to_vec();
    elf.resize(64, 0);
    let mut headers = vec![0; 64];
    let mut add = |elf: &mut Vec<u8>, name: u32, content: &[u8], bytes: usize, link: u32| {
        let (offset, bytes) = ((elf.len() as u64).to_le_bytes(), (bytes as u64).to_le_bytes());
        let begin = [words(&[name, 0, 0, 0, 0, 0]), offset.to_vec(), bytes.to_vec()].concat();
        headers.extend(begin);
        headers.extend(words(&[link, 0, 0, 0, 0, 0]));
        elf.extend_from_slice(content);
    };
    add(&mut elf, 0, names, names.len(), 0);
    add(&mut elf, name(".symtab"), &symbols, symbols.len(), 1);
    add(&mut elf, name(".nv.info"), &info, info.len(), 0);
    add(&mut elf, name(".nv.info.fast"), &[], 0, 0);
    add(&mut elf, name(".nv.shared.fast"), &[], 1024 + 400, 0);
    if reserved {
        add(&mut elf, name(".nv.shared.reserved.0"), &[], 64, 0);
    }
    let count = (headers.len() / 64) as u16;
    let first = (elf.len() as u64).to_le_bytes();
    elf[40..48].copy_from_slice(&first);
    elf[58..60].copy_from_slice(&64u16.to_le_bytes());
    elf[60..62].copy_from_slice(&count.to_le_bytes());
    elf[62..64].copy_from_slice(&1u16.to_le_bytes());
    elf.extend(headers);
    elf
}

#[test]
fn figures_of_a_kernel_are_read() {
    let expected = |static_shared_bytes| Kernel {
        name: "fast".into(),
        registers: 96,
        local_bytes: 24,
        static_shared_bytes,
    };
    assert_eq!(kernels(&by_hand(false)), [expected(1424)]);
    assert_eq!(kernels(&by_hand(true)), [expected(400)]);
}
