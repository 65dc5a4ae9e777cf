//! Folders of the known data sets.

use image::{ImageBuffer, Luma};

use super::*;

/// A folder with these files, each an image of one column and this many rows.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new(rows: u32, files: &[&str]) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        let picture = ImageBuffer::from_pixel(1, rows, Luma([9u8]));
        for file in files {
            let path = folder.at(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            match ["pfm", "txt", "npy"].iter().any(|end| file.ends_with(end)) {
                true => fs::write(path, "").unwrap(),
                false => picture.save(path).unwrap(),
            }
        }
        folder
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn contents(&self) -> Contents {
        self.contents_of(true)
    }

    fn contents_of(&self, needs_truth: bool) -> Contents {
        let names = fs::read_dir(self.0.path()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name()).collect();
        contents(self.0.path(), &names, needs_truth)
    }

    /// Returns the only pair.
    fn item(&self) -> Item {
        let Contents { mut items, lacks_truth } = self.contents();
        assert!(items.len() == 1 && !lacks_truth);
        items.remove(0).1.unwrap()
    }

    /// Returns the names of files of the folder.
    fn names<'a>(&self, paths: impl IntoIterator<Item = &'a PathBuf>) -> Vec<String> {
        let name = |path: &PathBuf| path.strip_prefix(self.0.path()).unwrap().display().to_string();
        paths.into_iter().map(name).collect()
    }
}

#[test]
fn middlebury_2001_to_2006_by_the_height_of_their_pictures() {
    for (rows, files, scale, disparities) in [
        (383, ["im2.ppm", "im6.ppm", "disp2.pgm"], 8.0, 32),
        (375, ["im2.png", "im6.png", "disp2.png"], 4.0, 64),
        (750, ["im2.png", "im6.png", "disp2.pgm"], 2.0, 128),
        (1500, ["im2.png", "im6.png", "disp2.png"], 1.0, 256),
        (370, ["view1.png", "view5.png", "disp1.png"], 3.0, 86),
        (555, ["view1.png", "view5.png", "disp1.png"], 2.0, 128),
        (1110, ["view1.png", "view5.png", "disp1.png"], 1.0, 256),
    ] {
        let folder = Folder::new(rows, &files);
        let item = folder.item();
        assert_eq!(folder.names(item.files()), files, "{rows}");
        let all = item.truth.all.unwrap();
        assert_eq!((all.scale, all.mask, all.unknown), (Some(scale), None, None), "{rows}");
        assert_eq!(
            (item.disparities, item.truth.non_occluded),
            (Some(disparities), None),
            "{rows}"
        );
    }
    let files = ["im2.png", "im6.png", "disp2.png", "nonocc.png", "all.png"];
    let folder = Folder::new(375, &files);
    let Areas { non_occluded, all, .. } = folder.item().truth;
    let masks = [non_occluded, all].map(|truth| truth.unwrap().mask.unwrap());
    assert_eq!(folder.names(&masks), ["nonocc.png", "all.png"]);

    let odd = Folder::new(100, &files).contents().items.remove(0).1.unwrap_err().to_string();
    assert!(odd.contains("disp2.png has 100 rows") && odd.contains("gt_scale"), "{odd}");
}

#[test]
fn kitti_with_both_truths_and_either() {
    let files = [
        "image_2/000000_10.png",
        "image_3/000000_10.png",
        "image_2/000000_11.png",
        "disp_noc_0/000000_10.png",
        "disp_occ_0/000000_10.png",
        "disp_occ_0/000001_10.png",
        "disp_occ_0/readme.txt",
    ];
    let folder = Folder::new(5, &files);
    let items = folder.contents().items;
    let names: Vec<_> = items.iter().map(|(name, _)| name.clone().unwrap()).collect();
    assert_eq!(names, ["000000_10.png", "000001_10.png"]);
    let [first, second] = [0, 1].map(|i| items[i].1.as_ref().unwrap());
    assert_eq!(folder.names(first.files()), [files[0], files[1], files[3], files[4]]);
    assert_eq!((first.disparities, &second.truth.non_occluded), (Some(128), &None));

    let folder = Folder::new(
        5,
        &["image_0/a.png", "image_1/a.png", "colored_0/a.png", "colored_1/a.png", "disp_noc/a.png"],
    );
    let item = folder.item();
    assert_eq!(folder.names(item.files()), ["image_0/a.png", "image_1/a.png", "disp_noc/a.png"]);
    assert_eq!(item.truth.all, None);
}

#[test]
fn driving_stereo_booster_and_tartanair() {
    for (files, names, unknown, of_depth) in [
        (
            [
                "left-image-half-size/a.1.jpg",
                "right-image-half-size/a.1.jpg",
                "disparity-map-half-size/a.1.png",
            ],
            "a.1.png",
            None,
            None,
        ),
        (
            [
                "train-left-image/2018/a.jpg",
                "train-right-image/2018/a.jpg",
                "train-disparity-map/2018/a.png",
            ],
            "2018/a.png",
            None,
            None,
        ),
        (["camera_00/im3.png", "camera_02/im3.png", "disp_00.npy"], "im3.png", Some(0.0), None),
        (
            [
                "image_left/000003_left.png",
                "image_right/000003_right.png",
                "depth_left/000003_left_depth.npy",
            ],
            "000003.png",
            None,
            Some(80.0),
        ),
    ] {
        let folder = Folder::new(5, &files);
        let mut items = folder.contents().items;
        assert_eq!(items.len(), 1, "{files:?}");
        let (name, item) = items.remove(0);
        let item = item.unwrap();
        assert_eq!(name.unwrap(), names);
        assert_eq!(folder.names(item.files()), files);
        let all = item.truth.all.unwrap();
        assert_eq!((all.unknown, all.of_depth, all.scale), (unknown, of_depth, None));
        assert_eq!((item.disparities, item.truth.non_occluded), (None, None));
    }
}

#[test]
fn middlebury_2014_and_eth3d() {
    let folder =
        Folder::new(5, &["im0.png", "im1.png", "disp0GT.pfm", "mask0nocc.png", "calib.txt"]);
    let calibration = "cam0=[400 0 50; 0 400 40; 0 0 1]\ncam1=[400 0 50; 0 400 40; 0 0 1]\n\
                       doffs=0\nbaseline=100\nwidth=100\nheight=80\nndisp=70\n";
    fs::write(folder.at("calib.txt"), calibration).unwrap();
    let item = folder.item();
    assert_eq!(item.disparities, Some(70));
    assert_eq!(
        folder.names(item.files()),
        ["im0.png", "im1.png", "disp0GT.pfm", "mask0nocc.png", "disp0GT.pfm", "calib.txt"]
    );
    fs::write(folder.at("calib.txt"), "ndisp=70\n").unwrap();
    assert!(folder.contents().items.remove(0).1.is_err());

    let folder = Folder::new(5, &["im0.png", "im1.png", "disp0.pfm"]);
    let item = folder.item();
    assert_eq!((item.disparities, item.truth.non_occluded), (None, None));
}

#[test]
fn eth3d_as_it_is_downloaded() {
    let files = [
        "two_view_training/delivery_area_1l/im0.png",
        "two_view_training/delivery_area_1l/im1.png",
        "two_view_training_gt/delivery_area_1l/disp0GT.pfm",
        "two_view_training_gt/delivery_area_1l/mask0nocc.png",
    ];
    let folder = Folder::new(5, &files);
    let scene = folder.at("two_view_training/delivery_area_1l");
    let names = ["im0.png", "im1.png"].map(OsString::from).into();
    let mut found = contents(&scene, &names, true);
    let item = found.items.remove(0).1.unwrap();
    let root = fs::canonicalize(folder.0.path()).unwrap();
    let truth = item.truth.non_occluded.unwrap();
    assert_eq!(truth.file, root.join(files[2]));
    assert_eq!(truth.mask, Some(root.join(files[3])));
    assert!(item.truth.all.is_some_and(|all| all.mask.is_none() && all.file == truth.file));
}

#[test]
fn pairs_to_be_submitted_need_no_truth() {
    let kitti = ["image_2/a_10.png", "image_3/a_10.png", "image_2/a_11.png", "image_3/a_11.png"];
    for (files, found) in [
        (&["im0.png", "im1.png"][..], 1),
        (&kitti, 1),
        (&["view1.png", "view5.png"], 0),
        (&["camera_00/a.png", "camera_02/a.png"], 0),
    ] {
        let folder = Folder::new(5, files);
        let items = folder.contents_of(false).items;
        assert_eq!(items.len(), found, "{files:?}");
        for (_, item) in items {
            let item = item.unwrap();
            assert_eq!(folder.names(&item.eyes), files[..2]);
            assert_eq!((item.truth.non_occluded, item.truth.all), (None, None));
        }
    }
}

#[test]
fn pictures_without_truth_are_told_apart_from_nothing() {
    for (files, lacks_truth) in [
        (&["im0.png", "im1.png"][..], true),
        (&["view1.png", "view5.png", "disp5.png"], true),
        (&["im0.png", "disp0.pfm"], false),
        (&["image_2/a.png", "image_3/a.png"], false),
        (&[], false),
    ] {
        let contents = Folder::new(5, files).contents();
        assert_eq!((contents.items.len(), contents.lacks_truth), (0, lacks_truth), "{files:?}");
    }
}
