//! YUV4MPEG2 files (y4m). GStreamer 1.22 reads few of their formats, and headers of at most
//! [`LONGEST_HEADER`] bytes.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// Longest header that GStreamer reads, with its line end.
const LONGEST_HEADER: usize = 80;

/// Longest header that is looked at.
const LONGEST_LINE: u64 = 4096;

/// Returns why GStreamer does not read a file, with the command that converts it; `None` if it does.
pub(super) fn refusal(path: &Path, file: &mut File) -> io::Result<Option<String>> {
    let header = header(file)?;
    let colours = word(&header, 'C').unwrap_or("420");
    let (what, options) = match colours {
        "420" | "420jpeg" | "420mpeg2" | "420paldv" | "422" | "444"
            if header.len() > LONGEST_HEADER =>
        {
            (format!("a header of {} bytes", header.len()), "")
        }
        "420" | "420jpeg" | "420mpeg2" | "420paldv" | "422" | "444" => return Ok(None),
        // GStreamer has names for these formats of FFV1 only.
        "mono" | "mono16" | "411" | "420p10" | "420p12" | "422p10" | "422p12" | "444p10"
        | "444p12" => (format!("the format C{colours}"), ""),
        "444alpha" => (format!("the format C{colours}"), "-pix_fmt yuv444p "),
        _ => (format!("the format C{colours}"), "-pix_fmt gray16le "),
    };
    let name = path.display();
    Ok(Some(format!(
        "{name}: GStreamer reads no YUV4MPEG2 file with {what}; convert it: ffmpeg -i '{name}' {options}-c:v ffv1 \
         OUTPUT.mkv"
    )))
}

/// Returns where a second file begins behind the frames of the first one.
pub(super) fn second(file: &mut File) -> io::Result<Option<u64>> {
    let header = header(file)?;
    let Some(frame) = frame_bytes(&header) else { return Ok(None) };
    let mut begin = header.len() as u64;
    let mut file = BufReader::new(file);
    loop {
        file.seek(SeekFrom::Start(begin))?;
        let line = line(&mut file)?;
        if line.starts_with("YUV4MPEG2 ") {
            return Ok(Some(begin));
        }
        if !line.starts_with("FRAME") {
            return Ok(None);
        }
        let Some(next) = begin.checked_add(line.len() as u64 + frame) else { return Ok(None) };
        begin = next;
    }
}

fn header(file: &mut File) -> io::Result<String> {
    file.rewind()?;
    line(&mut BufReader::new(file))
}

/// Reads a line of ASCII with its end.
fn line(file: &mut impl BufRead) -> io::Result<String> {
    let mut line = Vec::new();
    Read::take(file, LONGEST_LINE).read_until(b'\n', &mut line)?;
    // One character a byte, so that lengths are kept.
    Ok(line.iter().map(|&byte| if byte.is_ascii() { char::from(byte) } else { '?' }).collect())
}

/// Returns the value of the first word that begins with this letter.
fn word(header: &str, letter: char) -> Option<&str> {
    header.split_ascii_whitespace().skip(1).find_map(|word| word.strip_prefix(letter))
}

/// Returns the size of a frame in the formats that GStreamer reads.
fn frame_bytes(header: &str) -> Option<u64> {
    let side = |letter| word(header, letter)?.parse::<u64>().ok().filter(|&side| side < 1 << 16);
    let (width, height) = (side('W')?, side('H')?);
    let (across, down) = match word(header, 'C').unwrap_or("420") {
        "420" | "420jpeg" | "420mpeg2" | "420paldv" => (2, 2),
        "422" => (2, 1),
        "444" => (1, 1),
        _ => return None,
    };
    Some(width * height + 2 * width.div_ceil(across) * height.div_ceil(down))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn formats_that_gstreamer_lacks_are_refused_with_the_command() {
        let of = |words: &str| {
            let mut file = tempfile::tempfile().unwrap();
            write!(file, "YUV4MPEG2 W4 H2 F30:1 Ip A0:0{words}\nFRAME\n").unwrap();
            refusal(Path::new("a b.y4m"), &mut file).unwrap().unwrap_or_default()
        };
        for words in ["", " C420", " C420jpeg XYSCSS=420JPEG", " C422", " C444 XCOLORRANGE=FULL"] {
            assert_eq!(of(words), "", "{words}");
        }
        for words in [" C420p10 XYSCSS=420P10", " Cmono", " C444p12"] {
            assert!(of(words).contains("ffmpeg -i 'a b.y4m' -c:v ffv1 OUTPUT.mkv"), "{words}");
        }
        assert!(of(" C444alpha").contains(" -pix_fmt yuv444p -c:v ffv1 "));
        assert!(of(" C420p14").contains(" -pix_fmt gray16le -c:v ffv1 "));
        let long = of(&format!(" C422 X{}", "y".repeat(LONGEST_HEADER)));
        assert!(long.contains("a header of 1") && long.contains("' -c:v ffv1"), "{long}");
    }
}
