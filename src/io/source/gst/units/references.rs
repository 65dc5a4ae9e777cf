//! Finds the access units of an H.264 or H.265 stream that build on a missing frame, by their headers.
//!
//! A decoder replaces a missing reference frame by another one, and delivers the dependent frames like any
//! others. In H.264, reference frames are numbered consecutively (ITU-T H.264, 7.4.3, `frame_num`). In H.265,
//! each frame lists the frames that it builds on (ITU-T H.265, 8.3.2, the reference picture set).

use std::collections::VecDeque;
use std::io::Cursor;

use cros_codecs::codec::h264::parser as h264;
use cros_codecs::codec::h265::parser as h265;

use crate::source::byte_stream::Codec;
use stereod_core::thread;

/// Longest header of a slice, and longest parameter set, in bytes.
const HEADER_MAX: usize = 4096;

/// Order counts that are remembered, to notice one that comes again. No frame builds on more than 16 others.
const RECENT: usize = 64;

/// Relation of a unit's frame to the frames that it builds on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::source::gst) enum Fate {
    /// All of them are whole, or it builds on none.
    Whole,
    /// Not all are whole, but the stream becomes whole by intra refresh from here on.
    Recovering,
    /// One of them is missing or not whole.
    Missing,
}

/// An access unit by its headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::source::gst) struct Unit {
    pub fate: Fate,
    /// True if other frames may build on its frame, and the decoder delivers it.
    pub is_reference: bool,
    /// Number of the key frame that it builds on, if only indirectly.
    pub key: u64,
}

/// The part of a [`Unit`] that follows from the headers.
type Judged = Option<(Fate, bool)>;

/// Facts from the headers besides those of pictures.
#[derive(Default)]
struct Headers {
    /// Key frames so far.
    keys: u64,
    /// Set while the parser cannot read the parameters of the stream, so that nothing can be told.
    unreadable: Option<String>,
    /// First number of a recovery point in the current unit.
    recovery: Option<i32>,
}

impl Headers {
    /// Notes whether a parameter set could be read.
    fn note<T>(&mut self, read: Result<T, String>) {
        self.unreadable = read.err();
    }

    /// Notes a recovery point, if this NAL unit has one.
    fn note_recovery(&mut self, nal: &[u8], header: usize, codec: Codec) {
        self.recovery = self.recovery.or(recovery_point(nal, header, codec));
    }
}

/// Follows the references of one stream.
pub(in crate::source::gst) struct References {
    stream: Stream,
    headers: Headers,
    was_told: bool,
}

// SAFETY: the parsers share their parameter sets by `Rc`. No clone of one leaves `References`, so all of them
// move to the other thread together.
unsafe impl Send for References {}

enum Stream {
    H264(Box<H264>),
    H265(Box<H265>),
}

impl References {
    /// Follows a stream from its beginning.
    pub fn new(codec: Codec) -> Self {
        let stream = match codec {
            Codec::H264 => Stream::H264(Box::default()),
            Codec::H265 => Stream::H265(Box::default()),
        };
        Self { stream, headers: Headers::default(), was_told: false }
    }

    /// Takes the next unit.
    pub fn next(&mut self, unit: &[u8]) -> Unit {
        let Self { stream, headers, .. } = self;
        headers.recovery = None;
        let read = thread::guarded("the reader of video headers", || {
            // Every slice of a frame has the same numbers.
            let mut judged = nal_units(unit).map(|nal| match stream {
                Stream::H264(stream) => stream.next(nal, headers),
                Stream::H265(stream) => stream.next(nal, headers),
            });
            judged.find_map(Result::transpose).transpose()
        });
        let judged = match read.unwrap_or_else(|broken| Err(broken.to_string())) {
            Ok(judged) => judged,
            Err(why) if self.headers.unreadable.is_none() => {
                tracing::debug!("the header of a frame cannot be read: {why}");
                self.lose();
                Some((Fate::Missing, true))
            }
            Err(_) => None,
        };
        if let Some(why) = &self.headers.unreadable
            && !std::mem::replace(&mut self.was_told, true)
        {
            tracing::warn!(
                "the video's parameters cannot be read ({why}): missing frames are not noticed"
            );
        }
        let (fate, is_reference) = match self.headers.unreadable {
            // Without a picture nothing can be missing.
            None => judged.unwrap_or((Fate::Whole, false)),
            Some(_) => (Fate::Whole, false),
        };
        Unit { fate, is_reference, key: self.headers.keys }
    }

    /// Takes the next unit. Returns its fate, and whether it is a frame of H.264 without any reference, from which
    /// a stream without recovery points can be decoded.
    pub fn next_or_intra(&mut self, unit: &[u8]) -> (Fate, bool) {
        let fate = self.next(unit).fate;
        let is_intra = match &mut self.stream {
            Stream::H264(stream) if fate == Fate::Missing => {
                thread::guarded("the reader of video headers", || stream.is_intra(unit))
                    .unwrap_or(false)
            }
            _ => false,
        };
        (fate, is_intra)
    }

    /// Notes that frames are missing here.
    pub fn lose(&mut self) {
        match &mut self.stream {
            Stream::H264(stream) => stream.state = State::Missing,
            Stream::H265(stream) => stream.lose(),
        }
    }

    /// Reports whether the display order may differ from the order of the units.
    pub fn may_reorder(&self) -> bool {
        match &self.stream {
            Stream::H264(stream) => stream.has_bidirectional,
            Stream::H265(stream) => stream.has_bidirectional,
        }
    }

    /// Notes that the decoder has lost a frame that builds on this key frame.
    pub fn lose_of(&mut self, key: u64) {
        if key == self.headers.keys {
            self.lose();
        }
    }
}

/// Splits a byte stream into its NAL units, each with a start code of three bytes.
fn nal_units(unit: &[u8]) -> impl Iterator<Item = &[u8]> {
    let find = |bytes: &[u8]| bytes.windows(3).position(|three| three == [0, 0, 1]);
    let mut rest = find(unit).map_or(&[][..], |begin| &unit[begin..]);
    std::iter::from_fn(move || {
        let inside = rest.get(3..)?;
        let (own, after) = rest.split_at(find(inside).map_or(rest.len(), |at| 3 + at));
        rest = after;
        Some(own)
    })
}

/// Returns the part of a NAL unit that can have a header.
fn head(nal: &[u8]) -> Cursor<&[u8]> {
    Cursor::new(&nal[..nal.len().min(HEADER_MAX)])
}

/// Returns the first number of a recovery point message, if a NAL unit of supplemental information has one
/// (ITU-T H.264, D.1.8; H.265, D.2.8). `header`: bytes of the NAL unit before the messages.
fn recovery_point(nal: &[u8], header: usize, codec: Codec) -> Option<i32> {
    let mut zeros = 0;
    let mut payload = Vec::new();
    // Without the bytes against emulated start codes.
    for &byte in nal.get(3 + header..)? {
        let is_emulation = zeros >= 2 && byte == 3;
        zeros = if byte == 0 { zeros + 1 } else { 0 };
        if !is_emulation {
            payload.push(byte);
        }
    }
    let mut rest = &payload[..];
    loop {
        let mut number = || {
            let mut sum = 0_usize;
            loop {
                let (&byte, after) = rest.split_first()?;
                rest = after;
                sum += usize::from(byte);
                if byte != 0xff {
                    return Some(sum);
                }
            }
        };
        let (kind, length) = (number()?, number()?);
        let (message, after) = rest.split_at_checked(length)?;
        rest = after;
        if kind == 6 {
            let ue = i32::try_from(exponential_golomb(message)?).ok()?;
            return Some(match codec {
                Codec::H264 => ue,
                // Signed: 0, 1, -1, 2, -2.
                Codec::H265 if ue % 2 == 0 => -ue / 2,
                Codec::H265 => ue / 2 + 1,
            });
        }
    }
}

/// Reads the number at the beginning of `bytes` (ITU-T H.264, 9.1).
fn exponential_golomb(bytes: &[u8]) -> Option<u32> {
    let bit = |at: usize| bytes.get(at / 8).map(|byte| u32::from(byte >> (7 - at % 8) & 1));
    let zeros = (0..32).find(|&at| bit(at) == Some(1))?;
    let value = (zeros..=2 * zeros).try_fold(0_u64, |sum, at| Some(2 * sum + u64::from(bit(at)?)));
    u32::try_from(value? - 1).ok()
}

/// State of an H.264 stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// A frame that later ones may build on is missing.
    #[default]
    Missing,
    /// Whole again from the reference frame with this number on.
    Recovering(u32),
    Whole,
}

#[derive(Default)]
struct H264 {
    parser: h264::Parser,
    state: State,
    /// Number of the last reference frame.
    previous: Option<u32>,
    /// Order count of the frame of recovery; frames shown earlier are incomplete.
    leading: Option<u16>,
    /// True if a frame builds on frames in two directions.
    has_bidirectional: bool,
}

impl H264 {
    /// Takes a NAL unit. Judges a picture by its first slice.
    fn next(&mut self, bytes: &[u8], headers: &mut Headers) -> Result<Judged, String> {
        // Of types that the parser does not know.
        let Ok(nal) = h264::Nalu::next(&mut head(bytes)) else { return Ok(None) };
        match nal.header.type_ {
            h264::NaluType::Sps => headers.note(self.parser.parse_sps(&nal)),
            h264::NaluType::Pps => headers.note(self.parser.parse_pps(&nal)),
            h264::NaluType::Sei => headers.note_recovery(bytes, 1, Codec::H264),
            h264::NaluType::Slice | h264::NaluType::SliceDpa | h264::NaluType::SliceIdr => {
                let slice = self.parser.parse_slice_header(nal)?;
                return self.judge(&slice, headers).map(Some);
            }
            _ => {}
        }
        Ok(None)
    }

    /// Reports whether all slices of a unit are intra-coded.
    fn is_intra(&self, unit: &[u8]) -> bool {
        let mut kinds = nal_units(unit).filter_map(|bytes| {
            let nal = h264::Nalu::next(&mut head(bytes)).ok()?;
            let is_slice =
                matches!(nal.header.type_, h264::NaluType::Slice | h264::NaluType::SliceDpa);
            let slice = is_slice.then(|| self.parser.parse_slice_header(nal));
            slice.map(|slice| slice.is_ok_and(|slice| slice.header.slice_type.is_i()))
        });
        kinds.next() == Some(true) && kinds.all(|is_intra| is_intra)
    }

    fn judge(
        &mut self,
        slice: &h264::Slice<'_>,
        headers: &mut Headers,
    ) -> Result<(Fate, bool), String> {
        let (header, nal) = (&slice.header, &slice.nalu.header);
        let pps = self.parser.get_pps(header.pic_parameter_set_id).ok_or("no parameters")?;
        let sps = &pps.sps;
        let (number, count) = (u32::from(header.frame_num), sps.max_frame_num());
        let is_reference = nal.ref_idc != 0;
        self.has_bidirectional |= header.slice_type.is_b();
        let is_next = self.previous.is_some_and(|previous| {
            // The second field of a frame has the number of the first. Some encoders give non-reference
            // frames that number, too.
            number == (previous + 1) % count
                || number == previous && (header.field_pic_flag || !is_reference)
        });
        // If gaps are allowed, temporal layers may be left out, but no frame may build on one of them.
        let builds_on_newest = !slice.header.slice_type.is_i()
            && header.num_ref_idx_l0_active_minus1 == 0
            && !header.ref_pic_list_modification_flag_l0;
        if nal.idr_pic_flag {
            (self.state, self.leading) = (State::Whole, None);
            headers.keys += 1;
        } else if !is_next && (!sps.gaps_in_frame_num_value_allowed_flag || builds_on_newest) {
            self.state = State::Missing;
        }
        if let (State::Missing, Some(frames)) = (self.state, headers.recovery) {
            self.state = State::Recovering(number.wrapping_add_signed(frames) % count);
        }
        let shown = header.pic_order_cnt_lsb;
        if self.state == State::Recovering(number) {
            (self.state, self.leading) = (State::Whole, Some(shown));
            headers.keys += 1;
        }
        // Order counts are compared modulo their number.
        let half = 1_u32 << (sps.log2_max_pic_order_cnt_lsb_minus4 + 3);
        let is_leading =
            self.leading.filter(|_| sps.pic_order_cnt_type == 0).is_some_and(|first| {
                let later = u32::from(shown.wrapping_sub(first)) & (2 * half - 1);
                if later > 0 && later < half {
                    self.leading = None;
                }
                later >= half
            });
        if is_reference {
            // Operation 5 resets the numbers.
            let marking = &header.dec_ref_pic_marking.inner;
            let is_reset = marking.iter().any(|m| m.memory_management_control_operation == 5);
            self.previous = Some(if is_reset { 0 } else { number });
        }
        let fate = match self.state {
            State::Whole if !is_leading => Fate::Whole,
            State::Recovering(_) => Fate::Recovering,
            _ => Fate::Missing,
        };
        Ok((fate, is_reference))
    }
}

#[derive(Default)]
struct H265 {
    parser: h265::Parser,
    /// Order counts of the reference frames, and whether each is whole.
    frames: Vec<(i32, bool)>,
    /// Reference for the order counts of later frames.
    anchor: i32,
    /// Order counts since the last key frame.
    recent: VecDeque<i32>,
    /// Order count from which the stream is whole again after intra refresh.
    recovered: Option<i32>,
    /// False at the beginning, and after the end of a sequence.
    is_begun: bool,
    /// True if a frame builds on frames in two directions.
    has_bidirectional: bool,
}

impl H265 {
    /// Takes a NAL unit. Judges a picture by its first slice.
    fn next(&mut self, bytes: &[u8], headers: &mut Headers) -> Result<Judged, String> {
        use h265::NaluType::{EobNut, EosNut, PpsNut, PrefixSeiNut, SpsNut};
        let Ok(nal) = h265::Nalu::next(&mut head(bytes)) else { return Ok(None) };
        match nal.header.type_ {
            // Further layers are not decoded.
            _ if nal.header.nuh_layer_id > 0 => {}
            SpsNut => headers.note(self.parser.parse_sps(&nal)),
            PpsNut => headers.note(self.parser.parse_pps(&nal)),
            PrefixSeiNut => headers.note_recovery(bytes, 2, Codec::H265),
            EosNut | EobNut => self.is_begun = false,
            kind if (kind as u32) < 32 => {
                let header = nal.header.clone();
                let slice = self.parser.parse_slice_header(nal)?.header;
                return self.judge(&header, &slice, headers).map(Some);
            }
            _ => {}
        }
        Ok(None)
    }

    fn judge(
        &mut self,
        nal: &h265::NaluHeader,
        slice: &h265::SliceHeader,
        headers: &mut Headers,
    ) -> Result<(Fate, bool), String> {
        let kind = nal.type_;
        self.has_bidirectional |= slice.type_.is_b();
        let pps = self.parser.get_pps(slice.pic_parameter_set_id).ok_or("no parameters")?;
        let sps = pps.sps.clone();
        let order = self.begin(kind, slice, order_counts(&sps));
        headers.keys += u64::from(kind.is_irap());

        let references = match kind.is_idr() {
            true => Vec::new(),
            false => references(&sps, slice, order)?,
        };
        // The frames that are kept, and whether this frame builds on whole ones alone.
        let mut kept: Vec<(i32, bool)> = Vec::new();
        let (mut is_complete, mut builds_on_whole) = (true, true);
        for Reference { order, modulus, is_used } in references {
            let is_it = |(other, _): &&(i32, bool)| match modulus {
                Some(count) => (other - order).rem_euclid(count) == 0,
                None => *other == order,
            };
            match self.frames.iter().find(is_it) {
                Some(&found) => {
                    kept.push(found);
                    builds_on_whole &= found.1 || !is_used;
                }
                None => is_complete &= !is_used,
            }
        }
        let is_whole = is_complete && builds_on_whole;
        if let Some(frames) = headers.recovery
            && !is_whole
        {
            self.recovered = self.recovered.or(Some(order + frames));
        } else if !is_complete {
            self.recovered = None;
        }
        let fate = match self.recovered {
            _ if is_whole => Fate::Whole,
            Some(from) if order >= from => Fate::Whole,
            Some(_) => Fate::Recovering,
            None => Fate::Missing,
        };
        self.frames = kept;
        self.frames.push((order, fate == Fate::Whole));
        self.recent.push_back(order);
        self.recent.drain(..self.recent.len().saturating_sub(RECENT));
        let is_of_no_other = kind.is_slnr();
        if nal.nuh_temporal_id() == 0 && !kind.is_rasl() && !kind.is_radl() && !is_of_no_other {
            self.anchor = order;
        }
        Ok((fate, !is_of_no_other && slice.pic_output_flag))
    }

    /// Returns the order count of a picture (8.3.1), and forgets the frames before one that begins a sequence.
    fn begin(&mut self, kind: h265::NaluType, slice: &h265::SliceHeader, count: i32) -> i32 {
        let lsb = i32::from(slice.pic_order_cnt_lsb);
        let begins = kind.is_idr() || kind.is_bla() || kind.is_irap() && !self.is_begun;
        self.is_begun = true;
        if begins {
            (self.anchor, self.recovered) = (lsb, None);
            self.frames.clear();
            self.recent.clear();
            return lsb;
        }
        // The nearest to the anchor.
        let ahead = (lsb - self.anchor).rem_euclid(count);
        let order = self.anchor + if ahead >= count / 2 { ahead - count } else { ahead };
        if self.recent.contains(&order) {
            // A key frame is missing, after which the counts began again.
            self.lose();
        }
        order
    }

    fn lose(&mut self) {
        self.frames.clear();
        self.recovered = None;
    }
}

/// Returns the number of order counts that slices tell apart.
fn order_counts(sps: &h265::Sps) -> i32 {
    1 << (sps.log2_max_pic_order_cnt_lsb_minus4 + 4)
}

/// A frame that is kept for a picture.
struct Reference {
    /// Its order count.
    order: i32,
    /// Number by which the order count is known, if not as a whole.
    modulus: Option<i32>,
    /// True if the picture itself builds on it.
    is_used: bool,
}

/// Returns the reference picture set of a picture with this order count (8.3.2).
fn references(
    sps: &h265::Sps,
    slice: &h265::SliceHeader,
    order: i32,
) -> Result<Vec<Reference>, String> {
    let short = match slice.short_term_ref_pic_set_sps_flag {
        true => sps.short_term_ref_pic_set.get(usize::from(slice.short_term_ref_pic_set_idx)),
        false => Some(&slice.short_term_ref_pic_set),
    };
    let short = short.ok_or("no reference picture set")?;
    let sides = [
        (short.num_negative_pics, &short.delta_poc_s0, &short.used_by_curr_pic_s0),
        (short.num_positive_pics, &short.delta_poc_s1, &short.used_by_curr_pic_s1),
    ];
    let mut references = Vec::new();
    for (number, deltas, used) in sides {
        for (delta, &is_used) in deltas.iter().zip(used).take(usize::from(number)) {
            references.push(Reference { order: order + delta, modulus: None, is_used });
        }
    }
    let (lsb, count) = (i32::from(slice.pic_order_cnt_lsb), order_counts(sps));
    for i in 0..usize::from(slice.num_long_term_sps + slice.num_long_term_pics) {
        let (own, is_used) = (slice.poc_lsb_lt[i] as i32, slice.used_by_curr_pic_lt[i]);
        references.push(match slice.delta_poc_msb_present_flag[i] {
            true => {
                let cycles = slice.delta_poc_msb_cycle_lt[i] as i32;
                let order = order - lsb + own - cycles.saturating_mul(count);
                Reference { order, modulus: None, is_used }
            }
            false => Reference { order: own, modulus: Some(count), is_used },
        });
    }
    Ok(references)
}
