//! The planes of a view that a network gets: its grey, or its red, green and blue.

use crate::frame::Image;

/// Returns one plane of grey or, if a network takes three channels and the view has colour, red, green and blue.
pub fn planes(view: &Image, channels: usize) -> Vec<Image> {
    let (width, height) = (view.width(), view.height());
    let Some(chroma) = view.chroma().filter(|_| channels == 3) else {
        return vec![Image::from_vec(width, height, view.pixels().to_vec())];
    };
    let (coding, differences) = (chroma.coding(), chroma.plane());
    let mut planes = [0; 3].map(|_| Vec::with_capacity(width * height));
    for y in 0..height {
        for (x, &grey) in view.row(y).iter().enumerate() {
            let rgb = coding.rgb(grey, differences.at(x, y));
            planes.iter_mut().zip(rgb).for_each(|(plane, value)| plane.push(value));
        }
    }
    planes.map(|plane| Image::from_vec(width, height, plane)).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::intensity;

    #[test]
    fn colour_is_for_networks_that_take_it() {
        let rgb = [[200, 100, 50], [90, 90, 90], [10, 60, 110], [0, 0, 0]];
        let grey = rgb.map(|[red, green, blue]| intensity(red, green, blue));
        let view = || Image::from_vec(2, 2, grey.to_vec());
        let coloured = view().with_rgb(rgb);
        for (view, channels) in [(&view(), 1), (&view(), 3), (&coloured, 1)] {
            let planes = planes(view, channels);
            assert_eq!((planes.len(), planes[0].pixels()), (1, &grey[..]));
        }
        for (channel, plane) in planes(&coloured, 3).iter().enumerate() {
            let mut both = plane.pixels().iter().zip(rgb);
            assert!(both.all(|(got, rgb)| got.abs_diff(rgb[channel]) <= 2), "{channel}: {plane:?}");
        }
    }
}
