//! Checks of OpenEXR files by their headers: views, layers, parts and compression that the decoder leaves out.

use std::collections::BTreeSet;

use exr::compression::Compression;
use exr::meta::MetaData;
use exr::meta::header::Header;

use super::unread::Unread;

/// Fails if the file holds more than one image, or a kind that the decoder does not read. Content with an
/// unreadable header passes, because the decoder reports it.
pub(super) fn check(content: &[u8]) -> Result<(), Unread> {
    let Ok(meta) = MetaData::read_from_buffered(content, false) else { return Ok(()) };
    let parts: Vec<&Header> = meta.headers.iter().filter(|header| !header.deep).collect();
    let layers: BTreeSet<String> = parts.iter().flat_map(|part| layers(part)).collect();
    let coloured: Vec<&&Header> = parts.iter().filter(|part| is_coloured(part)).collect();
    let views = views(&parts, &layers);
    if parts.len() > 1 && (coloured.len() > 1 || views.len() > 1) {
        let content = match views.len() {
            0 | 1 => format!("{} pictures as parts", coloured.len()),
            _ => format!("the views {} as parts", listed(&views)),
        };
        return Err(Unread::several(&content, "exrmultipart -separate -i IN.exr -o OUT"));
    }
    if views.len() > 1 {
        return Err(Unread::several(
            &format!("the views {}", listed(&views)),
            &views.iter().map(|view| command(view, &layers)).collect::<Vec<_>>().join("; "),
        ));
    }
    let Some(part) = coloured.first() else { return check_layers(&parts, &layers) };
    match part.compression {
        Compression::DWAA(_) | Compression::DWAB(_) => Err(Unread::kind(
            "EXR with the compression DWAA or DWAB",
            "ffmpeg -i IN.exr -pix_fmt gbrpf32le OUT.exr",
        )),
        Compression::HTJ2K32 | Compression::HTJ2K256 => Err(Unread::other(
            "EXR with the compression HTJ2K is not read; write it with ZIP or PIZ".to_owned(),
        )),
        _ => Ok(()),
    }
}

/// Fails with the name of a layer in colour of a file that has no image besides layers.
fn check_layers(parts: &[&Header], layers: &BTreeSet<String>) -> Result<(), Unread> {
    let is_red = |layer: &&String| parts.iter().any(|part| has(part, &format!("{layer}.R")));
    let Some(layer) = layers.iter().find(is_red) else { return Ok(()) };
    Err(Unread::other(format!(
        "it has no channels R, G and B; this makes a picture of one of its layers ({}): `{}`",
        listed(&layers.iter().cloned().collect::<Vec<_>>()),
        command(layer, layers)
    )))
}

fn has(part: &Header, name: &str) -> bool {
    part.channels.list.iter().any(|channel| channel.name.to_string() == name)
}

fn is_coloured(part: &Header) -> bool {
    ["R", "G", "B"].into_iter().all(|name| has(part, name))
}

/// Returns the names before the last dot of channels.
fn layers(part: &Header) -> Vec<String> {
    let names = part.channels.list.iter().map(|channel| channel.name.to_string());
    names.filter_map(|name| Some(name.rsplit_once('.')?.0.to_owned())).collect()
}

/// Returns the views that the file has, by the names of parts, or of layers beside a default view without a name.
fn views(parts: &[&Header], layers: &BTreeSet<String>) -> Vec<String> {
    let of_parts = parts.iter().filter_map(|part| part.own_attributes.view_name.as_ref());
    let stated = parts.iter().find_map(|part| part.own_attributes.multi_view_names.as_ref());
    let stated: Vec<String> = stated.into_iter().flatten().map(ToString::to_string).collect();
    let has_default = parts.iter().any(|part| is_coloured(part));
    let is_view = |name: &str| matches!(name.to_lowercase().as_str(), "left" | "right");
    let is_stated = |name: &String| stated.contains(name) || is_view(name);
    let layers = layers.iter().filter(|layer| is_stated(layer)).cloned();
    let mut views: Vec<String> = Vec::new();
    let default = stated.first().cloned().filter(|_| has_default);
    for view in of_parts.map(ToString::to_string).chain(default).chain(layers) {
        if !views.contains(&view) {
            views.push(view);
        }
    }
    if has_default && stated.is_empty() && views == ["right"] {
        views.insert(0, "left".to_owned());
    }
    views
}

fn listed(names: &[String]) -> String {
    names.join(" and ")
}

/// Returns the command that writes a view or layer to a file of its own.
fn command(name: &str, layers: &BTreeSet<String>) -> String {
    let layer = if layers.contains(name) { format!("-layer '{name}' ") } else { String::new() };
    format!("ffmpeg {layer}-i IN.exr -pix_fmt gbrpf32le '{name}.exr'")
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use exr::prelude::*;

    use super::*;

    /// Returns a part with these channels, 2x1 pixels.
    fn part(channels: &[&str], attributes: LayerAttributes) -> Layer<AnyChannels<FlatSamples>> {
        let channel = |name: &&str| AnyChannel::new(*name, FlatSamples::F32(vec![0.25, 0.5]));
        let channels = AnyChannels::sort(channels.iter().map(channel).collect());
        Layer::new((2, 1), attributes, Encoding::UNCOMPRESSED, channels)
    }

    fn written(parts: Vec<Layer<AnyChannels<FlatSamples>>>) -> Vec<u8> {
        let mut file = Cursor::new(Vec::new());
        let attributes = ImageAttributes::with_size((2, 1));
        let image = Image::from_layers(attributes, parts);
        image.write().to_buffered(&mut file).unwrap();
        file.into_inner()
    }

    fn refusal(content: &[u8]) -> String {
        check(content).err().map(|error| error.to_string()).unwrap_or_default()
    }

    const RGB: [&str; 3] = ["R", "G", "B"];

    fn with_rgb<'a>(more: &[&'a str]) -> Vec<&'a str> {
        RGB.into_iter().chain(more.iter().copied()).collect()
    }

    #[test]
    fn views_in_one_part_are_named_with_the_commands_that_split_them() {
        let views = |names: &[&str]| LayerAttributes {
            multi_view_names: Some(names.iter().map(|name| Text::from(*name)).collect()),
            ..LayerAttributes::default()
        };
        let right = ["right.R", "right.G", "right.B"];
        let both = part(&with_rgb(&right), views(&["left", "right"]));
        let told = refusal(&written(vec![both]));
        assert!(told.contains("the views left and right"), "{told}");
        assert!(told.contains("`ffmpeg -i IN.exr"), "{told}");
        assert!(told.contains("ffmpeg -layer 'right' -i IN.exr"), "{told}");
        let unstated = part(&with_rgb(&right), LayerAttributes::default());
        assert!(refusal(&written(vec![unstated])).contains("the views left and right"));
        let named = ["left.R", "left.G", "left.B", "right.R", "right.G", "right.B"];
        let told = refusal(&written(vec![part(&named, LayerAttributes::default())]));
        assert!(told.contains("ffmpeg -layer 'left' -i"), "{told}");
        let one = part(&with_rgb(&["A", "diffuse.R", "depth.Z"]), views(&["left"]));
        assert_eq!(refusal(&written(vec![one])), "");
        let one_of_both = part(&RGB, views(&["left", "right"]));
        assert_eq!(refusal(&written(vec![one_of_both])), "");
        let layers = part(&["Main.R", "Main.G", "Main.B"], LayerAttributes::default());
        let told = refusal(&written(vec![layers]));
        assert!(told.contains("layers (Main)") && told.contains("-layer 'Main'"), "{told}");
        assert_eq!(refusal(&written(vec![part(&["Y"], LayerAttributes::default())])), "");
    }

    #[test]
    fn pictures_as_parts_are_named() {
        let of = |name: &str, channels: &[&str]| part(channels, LayerAttributes::named(name));
        let told = refusal(&written(vec![of("left", &RGB), of("right", &RGB)]));
        assert!(told.contains("2 pictures as parts") && told.contains("exrmultipart"), "{told}");
        assert_eq!(refusal(&written(vec![of("beauty", &RGB), of("depth", &["Z"])])), "");
        assert_eq!(refusal(b"\x76\x2f\x31\x01"), "");
    }

    #[test]
    fn compression_that_is_not_read_is_named() {
        let mut file = written(vec![part(&RGB, LayerAttributes::default())]);
        let name = b"compression\0compression\0\x01\0\0\0";
        let at = file.windows(name.len()).position(|window| window == name).unwrap() + name.len();
        assert_eq!(refusal(&file), "");
        for number in [8, 9] {
            file[at] = number;
            let told = refusal(&file);
            assert!(told.contains("DWAA or DWAB") && told.contains("`ffmpeg"), "{told}");
        }
    }

    #[test]
    fn damaged_headers_do_not_panic() {
        let of = |name: &str, channels: &[&str]| part(channels, LayerAttributes::named(name));
        let file = written(vec![of("left", &RGB), of("right", &["right.R", "Z"])]);
        for at in 0..file.len().min(900) {
            for value in [0, 1, 0x7f, 0xff, file[at] ^ 0x20] {
                let mut damaged = file.clone();
                damaged[at] = value;
                let _ = check(&damaged);
            }
            let _ = check(&file[..at]);
        }
    }
}
