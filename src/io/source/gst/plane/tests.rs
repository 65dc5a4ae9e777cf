use super::*;

fn keep() -> Keep {
    Keep { colours: Some(Pool::new()), ..Keep::default() }
}

fn sizes(width: u32, height: u32) -> (usize, usize) {
    (width as usize, height as usize)
}

/// Converts one frame by videoconvert, as GStreamer's own opinion of each format.
fn convert(
    from: &gst_video::VideoInfo,
    data: Vec<u8>,
    to: gst_video::VideoFormat,
) -> (gst::Sample, gst_video::VideoInfo) {
    let sample = gst::Sample::builder()
        .buffer(&gst::Buffer::from_mut_slice(data))
        .caps(&from.to_caps().unwrap())
        .build();
    let info = gst_video::VideoInfo::builder(to, from.width(), from.height());
    let info =
        if from.format_info().is_rgb() == gst_video::VideoFormatInfo::from_format(to).is_rgb() {
            info.colorimetry(&from.colorimetry()).build().unwrap()
        } else {
            info.build().unwrap()
        };
    let converted = gst_video::convert_sample(
        &sample,
        &info.to_caps().unwrap(),
        Some(gst::ClockTime::from_seconds(10)),
    );
    let converted = converted.unwrap_or_else(|error| panic!("{to}: {error}"));
    let info = gst_video::VideoInfo::from_caps(converted.caps().unwrap()).unwrap();
    (converted, info)
}

fn read(sample: &gst::Sample, info: &gst_video::VideoInfo, layout: ViewLayout) -> Views {
    copy_views(sample.buffer().unwrap(), info, layout, &keep(), Tone::UpperBits).unwrap()
}

fn one(views: Views) -> Image {
    match views {
        Views::One(image) => image,
        Views::Both(..) => panic!("two views"),
    }
}

#[test]
fn luma_comes_through_every_format_unchanged() {
    gst::init().unwrap();
    // Odd sizes; values outside the limited range as well.
    let (width, height) = (37, 5);
    let luma: Vec<u8> = (0..width * height).map(|i| (i * 7 % 256) as u8).collect();
    let from =
        gst_video::VideoInfo::builder(gst_video::VideoFormat::Y444, width, height).build().unwrap();
    let mut tried = 0;
    for &format in READABLE.iter() {
        let info = gst_video::VideoFormatInfo::from_format(format);
        if !info.is_yuv() {
            continue;
        }
        let stride = from.stride()[0] as usize;
        let mut data = vec![128; from.size()];
        for (y, row) in luma.chunks(width as usize).enumerate() {
            data[y * stride..][..width as usize].copy_from_slice(row);
        }
        let (sample, info) = convert(&from, data, format);
        let image = one(read(&sample, &info, ViewLayout::Whole));
        assert_eq!((image.width(), image.height()), sizes(width, height), "{format}");
        // videoconvert itself rounds on its way to 10 and 12 bits; the next test is exact.
        let slack = u8::from((9..16).contains(&info.comp_depth(0)));
        let mut both = image.pixels().iter().zip(&luma);
        assert!(both.all(|(a, b)| a.abs_diff(*b) <= slack), "{format}");
        tried += 1;
    }
    assert!(tried >= 25, "{tried} formats");
}

#[test]
fn deeper_samples_keep_their_8_highest_bits() {
    gst::init().unwrap();
    for (format, bytes) in [
        (gst_video::VideoFormat::Gray8, vec![7u8, 200, 31]),
        (gst_video::VideoFormat::Gray16Le, vec![99, 7, 255, 200, 0, 31]),
        (gst_video::VideoFormat::Gray16Be, vec![7, 99, 200, 255, 31, 0]),
        // 10 bits in the low end of the word, then in the high end.
        (gst_video::VideoFormat::I42010le, vec![0x1f, 0, 0x23, 3, 0x7c, 0]),
        (gst_video::VideoFormat::P01010le, vec![0xc0, 7, 0xc0, 200, 0, 31]),
    ] {
        assert!(READABLE.contains(&format));
        let info = gst_video::VideoInfo::builder(format, 3, 1).build().unwrap();
        let mut data = vec![0; info.size()];
        data[..bytes.len()].copy_from_slice(&bytes);
        let buffer = gst::Buffer::from_mut_slice(data);
        let image =
            one(copy_views(&buffer, &info, ViewLayout::Whole, &keep(), Tone::UpperBits).unwrap());
        assert_eq!(image.pixels(), [7, 200, 31], "{format}");
    }
}

/// 10 or 12 bits reach the tone mapping in full, in the high or in the low bits of a word.
#[test]
fn deep_samples_keep_their_faint_texture_in_every_format() {
    gst::init().unwrap();
    let (width, height) = (48, 40);
    // 10 bits; the upper 8 are 4 throughout.
    let level = |x: usize, y: usize| 16 + ((x * 5 + y * 11) % 7 % 4) as u16;
    let levels: Vec<u16> = (0..width * height).map(|i| level(i % width, i / width)).collect();
    let samples: Vec<u16> = levels.iter().map(|level| level << 6).collect();
    let mut expected = vec![0; samples.len()];
    Tone::Local.reduce(&samples, width, &mut expected);
    let (least, most) = (expected.iter().min().unwrap(), expected.iter().max().unwrap());
    assert!(most - least >= 8, "{least} to {most}");
    use gst_video::VideoFormat as Format;
    for (format, shift, is_big) in [
        (Format::Gray16Le, 6, false),
        (Format::Gray16Be, 6, true),
        (Format::P01010le, 6, false),
        (Format::P01010be, 6, true),
        (Format::I42010le, 0, false),
        (Format::I42010be, 0, true),
        (Format::Y44412le, 2, false),
        (Format::Y44416le, 6, false),
    ] {
        assert!(READABLE.contains(&format), "{format}");
        let info = gst_video::VideoInfo::builder(format, width as u32, height as u32);
        let info = info.build().unwrap();
        let stride = info.stride()[0] as usize;
        let mut data = vec![0; info.size()];
        for (y, row) in levels.chunks(width).enumerate() {
            for (x, level) in row.iter().enumerate() {
                let word = level << shift;
                let bytes = if is_big { word.to_be_bytes() } else { word.to_le_bytes() };
                data[y * stride + 2 * x..][..2].copy_from_slice(&bytes);
            }
        }
        let buffer = gst::Buffer::from_mut_slice(data);
        let read = |tone| {
            let image = one(copy_views(&buffer, &info, ViewLayout::Whole, &keep(), tone).unwrap());
            image.pixels().to_vec()
        };
        assert_eq!(read(Tone::Local), expected, "{format}");
        assert_eq!(read(Tone::UpperBits), vec![4; expected.len()], "{format}");
    }
}

/// Other packed formats of GStreamer also arrive with their full depth.
#[test]
fn packed_10_bits_are_converted_to_words() {
    gst::init().unwrap();
    for format in [gst_video::VideoFormat::Gray10Le32, gst_video::VideoFormat::V210] {
        let text = format!(
            "videotestsrc num-buffers=1 ! video/x-raw,format={format} ! videoconvert ! \
             appsink name=sink sync=false"
        );
        let pipeline = gst::parse::launch(&text).unwrap().downcast::<gst::Pipeline>().unwrap();
        let sink = pipeline.by_name("sink").unwrap().downcast::<gstreamer_app::AppSink>().unwrap();
        sink.set_caps(Some(&readable_caps()));
        pipeline.set_state(gst::State::Playing).unwrap();
        let sample = sink.pull_sample().unwrap();
        pipeline.set_state(gst::State::Null).unwrap();
        let info = gst_video::VideoInfo::from_caps(sample.caps().unwrap()).unwrap();
        assert!(info.comp_depth(0) >= 10, "{format} became {}", info.format());
    }
}

#[test]
fn halves_are_reduced_each_by_itself() {
    gst::init().unwrap();
    let format = gst_video::VideoFormat::Gray16Le;
    let info = gst_video::VideoInfo::builder(format, 64, 20).build().unwrap();
    // The right half is bright and rough, the left one dark and faint.
    let sample = |x: usize, y: usize| match x {
        0..32 => 700 + ((x * 7 + y * 3) % 5) as u16,
        _ => 30_000 + ((x * 12345 + y * 23456) % 30_000) as u16,
    };
    let whole: Vec<u16> = (0..64 * 20).map(|i| sample(i % 64, i / 64)).collect();
    let left: Vec<u16> = whole.chunks(64).flat_map(|row| &row[..32]).copied().collect();
    let mut expected = vec![0; left.len()];
    Tone::Local.reduce(&left, 32, &mut expected);
    let data: Vec<u8> = whole.iter().flat_map(|sample| sample.to_le_bytes()).collect();
    let buffer = gst::Buffer::from_mut_slice(data);
    let views = copy_views(&buffer, &info, ViewLayout::SideBySide, &keep(), Tone::Local).unwrap();
    let Views::Both(image, _) = views else { panic!("one view") };
    assert_eq!(image.pixels(), expected);
}

#[test]
fn rgb_becomes_intensity_in_every_format() {
    gst::init().unwrap();
    let colours = [[255, 0, 0], [0, 255, 0], [0, 0, 255], [10, 200, 90], [255, 255, 255]];
    let from = gst_video::VideoInfo::builder(gst_video::VideoFormat::Rgb, 5, 1).build().unwrap();
    let expected = colours.map(|[r, g, b]| intensity(r, g, b));
    let mut tried = 0;
    for &format in READABLE.iter() {
        if !gst_video::VideoFormatInfo::from_format(format).is_rgb() {
            continue;
        }
        let mut data = vec![0; from.size()];
        data[..15].copy_from_slice(colours.as_flattened());
        let (sample, info) = convert(&from, data, format);
        // Deep samples become grey before they lose their lower bits, bytes are rounded after.
        let slack = u8::from(info.comp_depth(0) > 8);
        let image = one(read(&sample, &info, ViewLayout::Whole));
        let mut both = image.pixels().iter().zip(expected);
        assert!(both.all(|(&a, b)| a.abs_diff(b) <= slack), "{format}: {:?}", image.pixels());
        tried += 1;
    }
    assert!(tried >= 12, "{tried} formats");
}

#[test]
fn colours_come_through_every_format() {
    gst::init().unwrap();
    // Two fields that no subsampling mixes but at their border, and how videoconvert sees them.
    let (width, height) = (32, 8);
    let colours = [[180u8, 60, 40], [30, 90, 200]];
    let from = gst_video::VideoInfo::builder(gst_video::VideoFormat::Rgb, width, height);
    let from = from.build().unwrap();
    let stride = from.stride()[0] as usize;
    let mut data = vec![0; from.size()];
    for y in 0..height as usize {
        for x in 0..width as usize {
            data[y * stride + 3 * x..][..3].copy_from_slice(&colours[x / 16]);
        }
    }
    let (mut grey, mut tried) = (0, 0);
    for &format in READABLE.iter() {
        let (sample, info) = convert(&from, data.clone(), format);
        let image = one(read(&sample, &info, ViewLayout::Whole));
        if gst_video::VideoFormatInfo::from_format(format).is_gray() {
            assert!(image.chroma().is_none(), "{format}");
            grey += 1;
            continue;
        }
        for (x, colour) in [(3, colours[0]), (10, colours[0]), (21, colours[1]), (31, colours[1])] {
            for y in [0, 5, 7] {
                let got = image.rgb_at(x, y);
                let off = got.iter().zip(colour).map(|(a, b)| a.abs_diff(b)).max();
                assert!(off <= Some(4), "{format} ({x}, {y}): {got:?}, not {colour:?}");
            }
        }
        tried += 1;
    }
    assert!(tried >= 35 && grey >= 3, "{tried} formats, {grey} grey");
}

#[test]
fn each_half_has_its_own_colour_and_none_is_kept_unasked() {
    gst::init().unwrap();
    let info = gst_video::VideoInfo::builder(gst_video::VideoFormat::I420, 8, 2);
    let info = info.build().unwrap();
    let mut data = vec![100; info.size()];
    for (plane, values) in [(1, [10, 20, 30, 40]), (2, [50, 60, 70, 80])] {
        data[info.offset()[plane]..][..4].copy_from_slice(&values);
    }
    let buffer = gst::Buffer::from_mut_slice(data);
    let Views::Both(left, right) =
        copy_views(&buffer, &info, ViewLayout::SideBySide, &keep(), Tone::UpperBits).unwrap()
    else {
        panic!("one view")
    };
    let samples = |image: &Image| image.chroma().unwrap().plane().samples().to_vec();
    assert_eq!(samples(&left), [[10, 50], [20, 60]]);
    assert_eq!(samples(&right), [[30, 70], [40, 80]]);
    assert_eq!(white(&info), 231);
    let unasked = Keep { colours: None, ..keep() };
    let image = one(copy_views(&buffer, &info, ViewLayout::Whole, &unasked, Tone::Local).unwrap());
    assert!(image.chroma().is_none());
}

fn grey(width: u32, height: u32) -> (gst::Buffer, gst_video::VideoInfo) {
    let info = gst_video::VideoInfo::builder(gst_video::VideoFormat::Gray8, width, height)
        .build()
        .unwrap();
    let stride = info.stride()[0] as usize;
    let data = (0..info.size()).map(|i| (i / stride * 16 + i % stride) as u8).collect();
    (gst::Buffer::from_mut_slice::<Vec<u8>>(data), info)
}

#[test]
fn halves_go_to_their_eyes() {
    gst::init().unwrap();
    let (buffer, info) = grey(6, 2);
    let pool = keep();
    let Views::Both(left, right) =
        copy_views(&buffer, &info, ViewLayout::SideBySide, &pool, Tone::Local).unwrap()
    else {
        panic!("one view")
    };
    assert_eq!(left.pixels(), [0, 1, 2, 16, 17, 18]);
    assert_eq!(right.pixels(), [3, 4, 5, 19, 20, 21]);
    let Views::Both(top, bottom) =
        copy_views(&buffer, &info, ViewLayout::TopBottom, &pool, Tone::Local).unwrap()
    else {
        panic!("one view")
    };
    assert_eq!(top.pixels(), [0, 1, 2, 3, 4, 5]);
    assert_eq!(bottom.pixels(), [16, 17, 18, 19, 20, 21]);
    // Bytes of rows are 16 apart.
    for (layout, first, second) in [
        (ViewLayout::HalfSideBySide, [0, 0, 1, 1, 2, 2, 16, 16, 17, 17, 18, 18], 3),
        (ViewLayout::HalfTopBottom, [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5], 16),
    ] {
        let Views::Both(left, right) =
            copy_views(&buffer, &info, layout, &pool, Tone::Local).unwrap()
        else {
            panic!("one view")
        };
        assert_eq!((left.width(), left.height()), (6, 2), "{layout:?}");
        // Rounding moves a quarter of a grey level to the next whole one.
        assert_eq!(left.pixels(), first, "{layout:?}");
        assert_eq!(right.pixels(), first.map(|grey| grey + second), "{layout:?}");
    }
    for (height, rows) in [(2205, "1125"), (1470, "750")] {
        let error = ViewLayout::TopBottom.stored_size(1920, height).unwrap_err().to_string();
        assert!(error.contains("frame packing") && error.contains(rows), "{error}");
    }
    let (buffer, info) = grey(5, 3);
    let odd = copy_views(&buffer, &info, ViewLayout::SideBySide, &pool, Tone::Local)
        .unwrap_err()
        .to_string();
    assert!(odd.contains("5x3") && odd.contains("even width"), "{odd}");
    let odd = copy_views(&buffer, &info, ViewLayout::TopBottom, &pool, Tone::Local)
        .unwrap_err()
        .to_string();
    assert!(odd.contains("even height"), "{odd}");
}

#[test]
fn cropped_and_padded_buffers_are_read_where_the_picture_is() {
    gst::init().unwrap();
    let (mut buffer, info) = grey(8, 4);
    let pool = keep();
    gst_video::VideoCropMeta::add(buffer.get_mut().unwrap(), (2, 1, 3, 2));
    let image = one(copy_views(&buffer, &info, ViewLayout::Whole, &pool, Tone::Local).unwrap());
    assert_eq!(image.pixels(), [18, 19, 20, 34, 35, 36]);

    // A decoder that pads its rows says so in the buffer's video meta.
    let mut buffer = gst::Buffer::from_mut_slice((0..64u8).collect::<Vec<u8>>());
    gst_video::VideoMeta::add_full(
        buffer.get_mut().unwrap(),
        gst_video::VideoFrameFlags::empty(),
        gst_video::VideoFormat::Gray8,
        4,
        2,
        &[3],
        &[20],
    )
    .unwrap();
    let info = gst_video::VideoInfo::builder(gst_video::VideoFormat::Gray8, 4, 2).build().unwrap();
    let image = one(copy_views(&buffer, &info, ViewLayout::Whole, &pool, Tone::Local).unwrap());
    assert_eq!(image.pixels(), [3, 4, 5, 6, 23, 24, 25, 26]);

    let mut buffer = grey(8, 4).0;
    gst_video::VideoCropMeta::add(buffer.get_mut().unwrap(), (6, 0, 3, 2));
    let (_, info) = grey(8, 4);
    assert!(copy_views(&buffer, &info, ViewLayout::Whole, &pool, Tone::Local).is_err());
    let small = gst::Buffer::from_mut_slice(vec![0u8; 5]);
    assert!(copy_views(&small, &info, ViewLayout::Whole, &pool, Tone::Local).is_err());
}

#[test]
fn full_range_of_an_unknown_matrix_is_full() {
    gst::init().unwrap();
    let frame = |colorimetry: &str| {
        let caps = gst::Caps::builder("video/x-raw")
            .field("format", "I420")
            .field("width", 4)
            .field("height", 2)
            .field("framerate", gst::Fraction::new(0, 1))
            .field("colorimetry", colorimetry)
            .build();
        let info = format(&caps).unwrap();
        let mut data = vec![128; info.size()];
        let stride = info.stride()[0] as usize;
        data[..4].copy_from_slice(&[0, 60, 240, 255]);
        data[stride..][..4].copy_from_slice(&[0, 60, 240, 255]);
        let buffer = gst::Buffer::from_mut_slice(data);
        let views = copy_views(&buffer, &info, ViewLayout::Whole, &keep(), Tone::UpperBits);
        let image = one(views.unwrap());
        ([0, 1, 2, 3].map(|x| image.rgb_at(x, 0)), white(&info))
    };
    for full in ["1:0:0:0", "1:4:0:0", "1:3:5:1"] {
        let (rgb, white) = frame(full);
        assert_eq!((rgb, white), ([0, 60, 240, 255].map(|grey| [grey; 3]), WHITE), "{full}");
    }
    for limited in ["2:0:0:0", "0:0:0:0", "bt601"] {
        let (rgb, white) = frame(limited);
        // (60 - 16) * 255 / 219.
        assert_eq!(rgb, [0, 51, 255, 255].map(|grey| [grey; 3]), "{limited}");
        assert_eq!(white, WHITE_OF_LIMITED_RANGE, "{limited}");
    }
}
