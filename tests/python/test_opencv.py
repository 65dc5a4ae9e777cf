"""The drop-in for cv2.StereoSGBM, and both programs on real pictures."""

import os
import pickle
import subprocess

import numpy as np
import pytest

import stereod
from stereod import opencv

cv2 = pytest.importorskip("cv2")


def test_the_form_is_opencvs(teddy):
    left, right = teddy
    arguments = (0, 64, 5, 200, 800, 1, 0, 10, 100, 2)
    theirs = cv2.StereoSGBM_create(*arguments).compute(left, right)
    ours = stereod.StereoSGBM_create(*arguments, engine="cpu").compute(left, right)
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    assert ours.min() == theirs.min() == -16
    both = (ours >= 0) & (theirs >= 0)
    assert (abs(ours - theirs)[both] <= 16).mean() > 0.9
    points = cv2.reprojectImageTo3D(ours.astype(np.float32) / 16, np.eye(4))
    assert points.shape == (*ours.shape, 3)


def test_smallest_disparity_and_given_array(teddy):
    left, right = teddy
    out = np.zeros(left.shape[:2], np.int16)
    matcher = stereod.StereoSGBM_create(minDisparity=8, numDisparities=48, engine="cpu")
    assert matcher.compute(left, right, out) is out
    assert out.min() == 7 * 16


def test_the_array_for_the_result_is_used_as_opencv_does(scene):
    left, right, _ = scene
    ours = stereod.StereoSGBM_create(numDisparities=32, engine="cpu")
    theirs = cv2.StereoSGBM_create(numDisparities=32)
    expected, shape = ours.compute(left, right), left.shape
    for out in [
        np.zeros(shape, np.int16),
        np.zeros((shape[0], shape[1] + 8), np.int16)[:, :-8],
        np.zeros((*shape, 1), np.int16),
        np.zeros(shape, np.float32),
        np.zeros((shape[0] - 1, shape[1]), np.int16),
    ]:
        before = out.copy()
        found, reference = (matcher.compute(left, right, out.copy()) for matcher in (ours, theirs))
        assert (found.shape, found.dtype) == (reference.shape, reference.dtype)
        found = ours.compute(left, right, out)
        assert (found.reshape(shape) == expected).all()
        assert (found is out) == (theirs.compute(left, right, before) is before)
    out = np.zeros(shape, np.int16)
    out.flags.writeable = False
    for wrong, error in [(out, ValueError), ([1], TypeError)]:
        with pytest.raises(cv2.error):
            theirs.compute(left, right, wrong)
        with pytest.raises(error, match="disparity"):
            ours.compute(left, right, wrong)


@pytest.mark.parametrize(
    "layout",
    [
        lambda image: image[..., None],
        lambda image: np.ascontiguousarray(image[:, ::-1])[:, ::-1],
        lambda image: np.ascontiguousarray(image[::-1])[::-1],
        lambda image: np.asfortranarray(image),
        lambda image: np.repeat(image, 2, axis=1)[:, ::2],
        lambda image: np.asmatrix(image),
    ],
)
def test_layouts_are_those_of_opencv(scene, layout):
    pair = scene[:2]
    for matcher in [
        cv2.StereoSGBM_create(numDisparities=32),
        stereod.StereoSGBM_create(numDisparities=32, engine="cpu"),
    ]:
        assert (matcher.compute(*map(layout, pair)) == matcher.compute(*pair)).all()


def test_names_are_opencvs():
    for name in dir(cv2):
        if name.startswith(("STEREO_SGBM", "StereoSGBM_MODE", "StereoMatcher_")):
            assert getattr(stereod, name) == getattr(cv2, name), name
    public = [name for name in dir(cv2.StereoSGBM) if not name.startswith("_")]
    assert all(hasattr(stereod.StereoSGBM, name) for name in public)
    assert stereod.StereoSGBM.MODE_HH == cv2.StereoSGBM_MODE_HH
    assert stereod.StereoSGBM.create(3, 32, mode=1).getMode() == 1
    assert stereod.StereoSGBM().getDefaultName() == cv2.StereoSGBM_create().getDefaultName()
    assert not stereod.StereoSGBM().empty() and stereod.StereoSGBM().clear() is None


def test_every_setter_has_its_getter():
    ours, theirs = stereod.StereoSGBM_create(), cv2.StereoSGBM_create()
    names = [name[3:] for name in dir(theirs) if name.startswith("set")]
    assert len(names) == 11
    for name in names:
        assert getattr(ours, f"get{name}")() == getattr(theirs, f"get{name}")(), name
        parameter = name if name in ("P1", "P2") else name[0].lower() + name[1:]
        for matcher in (ours, theirs):
            getattr(matcher, f"set{name}")(3)
            assert getattr(matcher, f"get{name}")() == 3
            getattr(matcher, f"set{name}")(**{parameter: np.int64(2)})
            assert getattr(matcher, f"get{name}")() == 2


def test_parameters_without_effect_are_one_warning(caplog):
    opencv._told.clear()
    for _ in range(2):
        matcher = stereod.StereoSGBM_create(blockSize=5, P1=8, P2=32, numDisparities=64)
        matcher.setP1(9)
    (warning,) = caplog.records
    assert warning.levelname == "WARNING"
    for name in ("blockSize", "P1", "P2"):
        assert f"{name} (" in warning.getMessage()
    assert "preFilterCap" not in warning.getMessage()
    matcher.setPreFilterCap(31)
    assert "preFilterCap (" in caplog.records[1].getMessage()


@pytest.mark.parametrize(
    "value", [32.7, 32.0, "32", True, np.True_, [32], np.array(32), np.float32(32), 2**31, -(2**31) - 1]
)
def test_values_that_opencv_refuses_are_refused_at_once(value):
    for library in (cv2, stereod):
        with pytest.raises((TypeError, ValueError)) as error:
            library.StereoSGBM_create(numDisparities=value)
        matcher = library.StereoSGBM_create()
        with pytest.raises(error.type) as at_setter:
            matcher.setNumDisparities(value)
    assert "numDisparities" in str(error.value) and "numDisparities" in str(at_setter.value)


def test_unknown_names_are_refused_at_once():
    for name in ("numDisparites", "speckle_window", "fit"):
        for library in (cv2, stereod):
            # From Python 3.13 on OpenCV's has other words.
            words = f"'{name}' is an invalid keyword argument|got an unexpected keyword argument '{name}'"
            with pytest.raises(TypeError, match=words) as error:
                library.StereoSGBM_create(**{name: 3})
        assert name != "numDisparites" or "did you mean numDisparities" in str(error.value)
    with pytest.raises(ValueError, match="`cost`"):
        stereod.StereoSGBM_create(cost="zncc")
    with pytest.raises(TypeError):
        stereod.StereoSGBM_create(*range(12))
    for library in (cv2, stereod):
        with pytest.raises(AttributeError):
            library.StereoSGBM_create().numDisparities = 64


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("numDisparities", 0),
        ("numDisparities", -16),
        ("numDisparities", 2048),
        ("minDisparity", -3000),
        ("minDisparity", 3000),
        ("minDisparity", 500),
        ("disp12MaxDiff", 2**20),
        ("speckleRange", 2**20),
        ("mode", 9),
    ],
)
def test_wrong_values_are_named(scene, name, value):
    with pytest.raises(ValueError, match=name) as error:
        stereod.StereoSGBM_create(**{name: value}, engine="cpu").compute(*scene[:2])
    assert "_" not in str(error.value).split(":")[0], error.value


@pytest.mark.parametrize("name", ["a.yml", "a.yaml", "a.xml", "a.json", "a.yml.gz", "a.xml.gz", "a.txt"])
def test_files_are_opencvs(tmp_path, name):
    values = {name: 3 + i for i, name in enumerate(opencv._DEFAULTS)}
    values["mode"] = 2
    ours, theirs = stereod.StereoSGBM_create(**values), cv2.StereoSGBM_create(**values)
    ours.save(tmp_path / f"ours_{name}")
    theirs.save(str(tmp_path / f"theirs_{name}"))
    for file in (f"ours_{name}", f"theirs_{name}"):
        storage = cv2.FileStorage(str(tmp_path / file), cv2.FILE_STORAGE_READ)
        for matcher in (stereod.StereoSGBM_create(), cv2.StereoSGBM_create()):
            matcher.read(storage.getNode("my_object"))
            found = {
                key: getattr(matcher, f"get{key[0].upper()}{key[1:]}")() for key in opencv._DEFAULTS
            }
            assert found == values, file


def test_parameters_go_into_an_open_file_of_opencv(tmp_path):
    path = str(tmp_path / "both.yml")
    storage = cv2.FileStorage(path, cv2.FILE_STORAGE_WRITE)
    stereod.StereoSGBM_create(2, 48).write(storage, "first")
    stereod.StereoSGBM_create(4, 64).write(storage)
    storage.release()
    storage = cv2.FileStorage(path, cv2.FILE_STORAGE_READ)
    for node, expected in [(storage.getNode("first"), 48), (storage.root(), 64)]:
        for matcher in (cv2.StereoSGBM_create(), stereod.StereoSGBM_create()):
            matcher.read(node)
            assert matcher.getNumDisparities() == expected
    ours = stereod.StereoSGBM_create()
    for wrong, text in [
        (storage.getNode("none"), "holds no StereoMatcher.SGBM"),
        (storage.getNode("mode"), "holds no StereoMatcher.SGBM"),
        (path, "fn is str"),
    ]:
        with pytest.raises((ValueError, TypeError), match=text):
            ours.read(wrong)
    for content, text in [
        ("numDisparities: 32.5", "no whole number for numDisparities"),
        ("numDisparities: 32", "no whole number for blockSize"),
    ]:
        path = str(tmp_path / "part.yml")
        with open(path, "w") as file:
            file.write(f'%YAML:1.0\n---\nname: "StereoMatcher.SGBM"\nminDisparity: 1\n{content}\n')
        storage = cv2.FileStorage(path, cv2.FILE_STORAGE_READ)
        with pytest.raises(ValueError, match=text):
            ours.read(storage.root())
    assert (ours.getMinDisparity(), ours.getNumDisparities()) == (0, 16)
    with pytest.raises(OSError, match="none"):
        ours.save(tmp_path / "none/a.yml")


def test_a_matcher_can_be_pickled(scene):
    left, right, _ = scene
    matcher = stereod.StereoSGBM_create(1, 32, engine="cpu", paths=8)
    expected = matcher.compute(left, right)
    again = pickle.loads(pickle.dumps(matcher))
    assert (again.compute(left, right) == expected).all() and again.getMinDisparity() == 1


def test_own_parameters_go_before_opencvs(scene):
    left, right, _ = scene
    matcher = stereod.StereoSGBM_create(numDisparities=16, disparities=32, channels="rgb", engine="cpu")
    assert matcher.compute(left, right).max() > 16 * 16


SETTINGS = [
    {},
    {"cost": "census"},
    {"cost": "ad", "paths": 8},
    {"cost": "sad", "paths": 0, "cost_window": 0, "prior": 0},
    {"cost": "mi", "disparities": 48},
    {"paths": 5, "median": 5},
    {"subpixel": "parabola", "uniqueness": 15},
    {"fill": "rays", "left_right": "off"},
    {"min_confidence": 64},
    {"p1": 8, "p2": 60, "p2_mode": "fixed"},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("engine", ["cpu", "cuda"])
def test_the_bytes_are_the_programs(teddy, tmp_path, settings, engine):
    program = os.environ.get("STEREOD_TEST_PROGRAM")
    if not program:
        pytest.skip("STEREOD_TEST_PROGRAM names no stereod to compare with")
    left, right = teddy
    settings = {"disparities": 64, **settings}
    try:
        ours = stereod.Matcher(engine=engine, channels="bgr", **settings)(left, right)
    except stereod.DeviceError as error:
        pytest.skip(str(error))
    ours.write_png(tmp_path / "ours.png")
    for name, image in (("left.png", left), ("right.png", right)):
        cv2.imwrite(str(tmp_path / name), image)
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]
    command = [program, "match", "left.png", "right.png", "-o", "theirs.png"]
    subprocess.run([*command, "--engine", engine, *flags], cwd=tmp_path, check=True)
    theirs = cv2.imread(str(tmp_path / "theirs.png"), cv2.IMREAD_UNCHANGED)
    assert (cv2.imread(str(tmp_path / "ours.png"), cv2.IMREAD_UNCHANGED) == theirs).all()
    assert theirs.any()
