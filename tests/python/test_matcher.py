"""The matcher of the Python package."""

import base64
import copy
import gc
import mmap
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import stereod
from conftest import ROOT

CPU = {"engine": "cpu", "disparities": 32}
unix = pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no forks, no such signals and no /proc")


def test_the_disparity_of_a_known_scene(scene):
    left, right, truth = scene
    d = stereod.Matcher(**CPU)(left, right)
    assert d.shape == left.shape and d.disparity.dtype == np.float32
    known = ~np.isnan(d.disparity)
    assert known.mean() > 0.8
    assert (abs(d.disparity - truth)[known] < 0.5).mean() > 0.97
    assert (np.isnan(d.disparity) == (d.raw == stereod.INVALID)).all()
    assert np.allclose(d.disparity[known], d.raw[known] / 16)
    assert (d.confidence[known] > 0).all() and (d.confidence[~known] == 0).all()
    assert (d.left == left).all() and (d.right == right).all()


def test_every_engine_gives_the_same_disparities(scene):
    left, right, _ = scene
    expected = stereod.Matcher(**CPU)(left, right)
    matcher = stereod.Matcher(engine="wgpu", disparities=32)
    try:
        d = matcher(left, right)
    except RuntimeError as error:
        assert "Vulkan" in str(error)
        pytest.skip(str(error))
    assert (d.raw == expected.raw).all() and (d.confidence == expected.confidence).all()


def test_arrays_of_every_layout_are_taken_and_other_kinds_refused(scene):
    left, right, _ = scene
    matcher = stereod.Matcher(**CPU)
    expected = matcher(left, right).raw
    height, width = left.shape
    padded = np.zeros((height, width + 13), np.uint8)
    padded[:, :-13] = left
    skipped = np.zeros((2 * height, 3 * width), np.uint8)
    skipped[::2, ::3] = left
    readonly = left.copy()
    readonly.flags.writeable = False
    for view in [
        padded[:, :-13],
        skipped[::2, ::3],
        np.ascontiguousarray(left[:, ::-1])[:, ::-1],
        np.ascontiguousarray(left[::-1])[::-1],
        np.asfortranarray(left),
        left[..., None],
        np.asfortranarray(left)[..., None],
        np.dstack([left, right])[..., :1],
        readonly,
    ]:
        assert (matcher(view, right).raw == expected).all(), view.strides
    deep = [image.astype(np.uint16) * 257 for image in (left, right)]
    flipped = [np.ascontiguousarray(image[::-1, ::-1])[::-1, ::-1] for image in deep]
    assert (matcher(*flipped).raw == matcher(*[image[..., None] for image in deep]).raw).all()
    for wrong, text in [
        (left.astype(np.float32), "float32"),
        (left.astype(np.int16), "int16"),
        (left > 9, "bool"),
        (left.astype(">u2"), "uint16|byte order|>u2"),
        (left[None], "shape"),
        (np.dstack([left] * 4), "shape"),
        (np.zeros((0, 8), np.uint8), "no pixels"),
        (left[:50], "one size"),
    ]:
        with pytest.raises((ValueError, TypeError), match=f"left.*({text})"):
            matcher(wrong, right)
    with pytest.raises(TypeError, match="left is list, not a NumPy array"):
        matcher([[1]], right)


class Tensor:
    """Has only one of the ways to hand over an array."""

    def __init__(self, array, way):
        self._array = array
        if way == "__array_interface__":
            self.__array_interface__ = array.__array_interface__


class Arrayed(Tensor):
    def __array__(self, dtype=None, copy=None):
        return self._array


class Dlpack(Tensor):
    def __dlpack__(self, **how):
        return self._array.__dlpack__(**how)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


def test_images_of_other_libraries(scene):
    left, right, _ = scene
    matcher = stereod.Matcher(**CPU)
    expected = matcher(left, right).raw
    for kind, way in [(Arrayed, ""), (Dlpack, ""), (Tensor, "__array_interface__")]:
        assert (matcher(kind(left, way), kind(right, way)).raw == expected).all(), kind


class CudaArray:
    """An array of Numba's kind on a GPU."""

    __cuda_array_interface__ = {"shape": (120, 200)}

    def copy_to_host(self):
        return None


class CudaTensor:
    """A tensor of PyTorch's kind on a GPU."""

    def __array__(self, dtype=None, copy=None):
        raise TypeError("can't convert cuda:0 device type tensor to numpy")

    def __dlpack__(self, **how):
        raise AssertionError("no library but its own can read it")

    def __dlpack_device__(self):
        return (2, 0)

    def cpu(self):
        return None


class CudaJax(CudaTensor):
    """An array of JAX's kind on a GPU, which NumPy may copy to the host."""

    def __init__(self, array):
        self._array = array

    def __array__(self, dtype=None, copy=None):
        return self._array


def test_images_in_the_memory_of_a_gpu(scene):
    left, right, _ = scene
    matcher = stereod.Matcher(**CPU)

    class Bare:
        __cuda_array_interface__ = {}

    class Cupy(CudaTensor):
        cpu = property()

        def get(self):
            return None

    for array, cure in [
        (CudaArray(), r"give right.copy_to_host\(\)"),
        (CudaTensor(), r"give right.cpu\(\)"),
        (Cupy(), r"give right.get\(\)"),
        (Bare(), "copy it to the host first"),
    ]:
        with pytest.raises(TypeError, match=f"right is .* in the memory of a GPU; .*{cure}"):
            matcher(left, array)
    assert (matcher(CudaJax(left), right).raw == matcher(left, right).raw).all()


def test_a_stack_of_pairs(scene):
    left, right, _ = scene
    rng = np.random.default_rng(1)
    noise = rng.integers(-20, 20, (4, *left.shape))
    lefts = np.clip(left + noise, 0, 255).astype(np.uint8)
    rights = np.repeat(right[None], 4, axis=0)
    # A pair of a batch belongs to no stream, also if the matcher has filters with a memory.
    matcher = stereod.Matcher(smoothing=0.5, temporal="denoise", **CPU)
    alone = [matcher(*pair) for pair in zip(lefts, rights)]
    batch = matcher.batch(lefts, rights)
    assert len(batch) == 4 and batch.raw.dtype == np.int16
    for name in ("raw", "disparity", "confidence"):
        expected = np.stack([getattr(d, name) for d in alone])
        np.testing.assert_array_equal(getattr(batch, name), expected, name)
    assert (batch[-1].raw == alone[-1].raw).all() and [d.shape for d in batch] == [left.shape] * 4
    assert [d is one for d, one in zip(batch[1:3], (batch[1], batch[2]))] == [True] * 2
    with pytest.raises(IndexError):
        batch[4]
    rig = stereod.Calibration.of_rectified(left.shape[::-1], focal_px=100, baseline_m=0.2)
    np.testing.assert_array_equal(batch.depth(rig)[2], alone[2].depth(rig))
    with pytest.raises(ValueError, match="calibration"):
        batch.depth()
    # Colours, one channel, lists, and another size.
    colours = np.repeat(lefts[..., None], 3, axis=3), np.repeat(rights[..., None], 3, axis=3)
    assert (matcher.batch(*colours).raw == batch.raw).all()
    assert (matcher.batch(lefts[..., None], list(rights)).raw == batch.raw).all()
    smaller = matcher.batch(lefts[:, :60], rights[:, :60])
    assert (smaller[1].raw == matcher(lefts[1, :60], rights[1, :60]).raw).all()
    assert stereod.Matcher(confidence=False, **CPU).batch(lefts, rights).confidence is None
    for wrong, text in [
        ((lefts, rights[:3]), "left has 4 images and right 3"),
        ((lefts[:0], rights), "left has no images"),
        ((left, right), r"shape \[120, 200\] of one image.*matcher\(left, right\) takes one"),
        ((colours[0][0], colours[1][0]), r"shape \[120, 200, 3\] of one image"),
        (([left, left[:50]], [right, right[:50]]), "200x50 pixels, but the matcher was made for 200x120"),
        ((lefts.astype(np.float32), rights), "left has the shape .*float32"),
    ]:
        with pytest.raises(ValueError, match=text):
            matcher.batch(*wrong)
    assert (matcher.batch(lefts, rights).raw == batch.raw).all()
    try:
        on_gpu = stereod.Matcher(engine="wgpu", disparities=32, smoothing=0.5, temporal="denoise")
        assert (on_gpu.batch(lefts, rights).raw == batch.raw).all()
    except RuntimeError as error:
        assert "Vulkan" in str(error)


def test_images_of_pillow(scene):
    pil = pytest.importorskip("PIL.Image")
    left, right, _ = scene
    colours = [np.dstack([image, image // 2, image // 3]) for image in (left, right)]
    matcher, bgr = stereod.Matcher(**CPU), stereod.Matcher(channels="bgr", **CPU)
    for arrays in ((left, right), colours, [image.astype(np.uint16) * 200 for image in (left, right)]):
        pictures = [pil.fromarray(array) for array in arrays]
        expected = matcher(*arrays).raw
        assert (matcher(*pictures).raw == expected).all()
        # Images of Pillow know the order of their channels.
        assert (bgr(*pictures).raw == expected).all()
    for mode in ("P", "HSV", "RGBA", "F", "1"):
        with pytest.raises(ValueError, match=rf'mode {mode}; use left.convert\("RGB"\)'):
            matcher(pil.fromarray(colours[0]).convert(mode), right)


def test_the_pairs_of_a_stream_come_back_in_order(scene):
    left, right, _ = scene
    rng = np.random.default_rng(1)
    noise = rng.integers(-20, 20, (5, *left.shape))
    pairs = [(np.clip(left + more, 0, 255).astype(np.uint8), right, i / 30) for i, more in enumerate(noise)]
    matcher = stereod.Matcher(smoothing=0.5, **CPU)
    stream = matcher.stream(pairs)
    assert iter(stream) is stream
    streamed = list(stream)
    alone = [matcher.next(*pair).raw for pair in pairs]
    assert [(d.raw == own).all() for d, own in zip(streamed, alone, strict=True)] == [True] * 5
    assert (streamed[-1].raw != stereod.Matcher(**CPU)(*pairs[-1][:2]).raw).any()
    assert next(stream, None) is None
    assert list(matcher.stream([])) == []
    for wrong, text in [
        ((left, right), r"a tuple \(left, right, time\).*this one is tuple"),
        ((left, right, -1.0), "time is -1; expected a number of seconds"),
        ((left[:50], right, 1.0), "one size"),
        ((left[:50], right[:50], 1.0), "200x50 pixels, but the matcher was made for 200x120"),
    ]:
        with pytest.raises(ValueError, match=text):
            list(matcher.stream([pairs[0], wrong]))

    def failing():
        yield pairs[0]
        raise OSError("the camera is lost")

    with pytest.raises(OSError, match="camera is lost"):
        list(matcher.stream(failing()))


@unix
def test_a_stream_in_the_child_of_a_fork_says_so(scene):
    left, right, _ = scene
    stream = stereod.Matcher(**CPU).stream((left, right, i / 30) for i in range(3))
    next(stream)
    pid = os.fork()
    if pid == 0:
        try:
            next(stream)
        except RuntimeError as error:
            os._exit(7 if "call Matcher.stream in the child" in str(error) else 1)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    assert len(list(stream)) == 2


def test_a_picture_for_notebooks(scene):
    left, right, truth = scene
    d = stereod.Matcher(**CPU)(left, right)
    picture = d.to_image(low=0, high=32)
    assert picture.shape == (*d.shape, 3) and picture.dtype == np.uint8
    assert (picture[np.isnan(d.disparity)] == 112).all()
    red, _, blue = picture[50, 90].astype(int)
    assert truth[50, 90] == 20 and red > blue
    red, _, blue = picture[10, 90].astype(int)
    assert truth[10, 90] == 9 and blue > red
    html = d._repr_html_()
    cv2 = pytest.importorskip("cv2")
    png = base64.b64decode(html.split("base64,")[1].split('"')[0])
    shown = cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_COLOR)[..., ::-1]
    assert (shown == d.to_image()).all() and repr(d) in html
    flat = np.full((20, 30), 90, np.uint8)
    unknown = stereod.Matcher(uniqueness=99, **CPU)(flat, flat)
    assert unknown.to_image().shape == (20, 30, 3)
    for wrong in [(5, 4), (np.nan, 4)]:
        with pytest.raises(ValueError, match="two disparities in order"):
            d.to_image(*wrong)


def test_colour_and_16_bits(scene):
    left, right, _ = scene
    matcher = stereod.Matcher(**CPU)
    expected = matcher(left, right).raw
    grey = [np.repeat(image[..., None], 3, axis=2) for image in (left, right)]
    assert (matcher(*grey).raw == expected).all()
    deep = [image.astype(np.uint16) * 257 for image in (left, right)]
    assert (matcher(*deep).raw == expected).mean() > 0.9
    red = np.zeros((*left.shape, 3), np.uint8)
    red[..., 0] = 255
    assert (matcher(red, red).left == 54).all()
    assert (stereod.Matcher(channels="bgr", **CPU)(red, red).left == 18).all()


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"disparites": 3}, "unknown parameter `disparites`; did you mean `disparities`"),
        ({"disparities": 2000}, "`disparities`: expected"),
        ({"disparities": "auto"}, "is a number"),
        ({"p1": 40, "p2": 3}, r"P2 is 3 and P1 is 40.*\(`p1`, `p2`\)"),
        ({"cost": "zncc"}, "one of `combined`"),
        ({"fit": 30}, "unknown parameter `fit`"),
    ],
)
def test_wrong_parameters_are_named(parameters, text):
    with pytest.raises(ValueError, match=text):
        stereod.Matcher(**parameters)


def test_parameters_that_are_no_values():
    with pytest.raises(TypeError, match="paths is list"):
        stereod.Matcher(paths=[8])
    assert stereod.Matcher(disparities=np.int64(16), p1=None).parameters["p1"] is None


def test_stubs_name_every_parameter():
    stub = (ROOT / "src/python/stereod/_native.pyi").read_text()
    body = stub.split("class _Parameters(TypedDict, total=False):\n")[1].split("\n\n")[0]
    assert [line.split(":")[0].strip() for line in body.splitlines()] == list(stereod._native.PARAMETERS)


def test_a_missing_gpu_is_its_own_error(scene):
    if stereod_has_gpu():
        pytest.skip("there is a GPU")
    with pytest.raises(stereod.DeviceError, match="driver|GPU"):
        stereod.Matcher(engine="cuda")(scene[0], scene[1])


def stereod_has_gpu():
    try:
        stereod.Matcher(engine="cuda", disparities=8)(*[np.zeros((8, 8), np.uint8)] * 2)
    except stereod.DeviceError:
        return False
    return True


def test_out_is_filled(scene):
    left, right, _ = scene
    matcher = stereod.Matcher(**CPU)
    out = np.zeros(left.shape, np.int16)
    assert (matcher(left, right, out=out).raw == out).all() and out.any()
    with pytest.raises(ValueError, match="out has the shape"):
        matcher(left, right, out=out[:5])
    floats = out.astype(np.float32)
    for wrong, shown in [(floats, r"an array \[120, 200\] of float32"), (out[0], "an array"), ([[0]], r"\[\[0\]\]")]:
        with pytest.raises(TypeError, match=rf"^out is {shown}.*; expected an int16 array \(H, W\)$"):
            matcher(left, right, out=wrong)
    out.flags.writeable = False
    with pytest.raises(TypeError, match="^out cannot be written: "):
        matcher(left, right, out=out)


def test_the_size_may_change(scene):
    left, right, _ = scene
    matcher = stereod.Matcher(**CPU)
    first = matcher(left, right).raw
    assert matcher(left[:60], right[:60]).shape == (60, left.shape[1])
    assert (matcher(left, right).raw == first).all()


def test_a_stream_remembers(scene):
    left, right, _ = scene
    rng = np.random.default_rng(1)

    def noisy(image):
        return np.clip(image + rng.normal(0, 12, image.shape), 0, 255).astype(np.uint8)

    matcher = stereod.Matcher(temporal="denoise", **CPU)
    pairs = [(noisy(left), noisy(right)) for _ in range(6)]
    streamed = [matcher.next(*pair, i / 30) for i, pair in enumerate(pairs)]
    alone = matcher(*pairs[-1])
    assert (streamed[-1].raw != alone.raw).any()
    matcher.restart()
    assert (matcher.next(*pairs[0], 0.0).raw == streamed[0].raw).all()
    for wrong, error in [(-1.0, ValueError), (float("nan"), ValueError), ("now", TypeError), (None, TypeError)]:
        with pytest.raises(error, match="^time is .*; expected a number of seconds from 0 on$"):
            matcher.next(*pairs[0], wrong)


def test_times_do_not_go_back(scene):
    left, right, _ = scene
    matcher = stereod.Matcher(temporal="denoise", **CPU)
    for time in (1.0, 1.0, 2.0):
        matcher.next(left, right, time)
    wrong = "the time of this pair, 1.5 s, is before that of the last one, 2 s; .*restart"
    with pytest.raises(ValueError, match=wrong):
        matcher.next(left, right, 1.5)
    assert matcher.next(left, right, 2.5).shape == left.shape, "the refused pair does not count"
    matcher.restart()
    matcher.next(left, right, 0)
    with pytest.raises(ValueError, match="1.5 s, is before"):
        list(matcher.stream([(left, right, time) for time in (1.0, 2.0, 1.5)]))
    with pytest.raises(TypeError, match="^time is 'now'; expected"):
        list(matcher.stream([(left, right, "now")]))
    for _ in range(2):
        assert len(matcher.batch([left, left], [right, right])) == 2


def test_status_and_occlusion(scene):
    left, right, truth = scene
    matcher = stereod.Matcher(fill="rays", **CPU)
    d = matcher(left, right)
    status = d.status
    assert ((status == stereod.UNKNOWN) == (d.raw == stereod.INVALID)).all()
    assert (d.confidence[status == stereod.FILLED] == 0).all()
    assert (status == stereod.FILLED).any() and (status == stereod.MEASURED).mean() > 0.7
    # Left of the box the right camera does not see the wall, for as many pixels as disparities differ.
    occluded = matcher.occluded(d)
    assert occluded[50:70, 71:79].mean() > 0.6 and occluded[50:70, 90:130].mean() < 0.05
    right_map = matcher.right_map(d)
    assert abs(np.median(right_map[50:70, 70:110]) / 16 - 20) < 0.3


def test_obstacles_of_a_known_scene(scene):
    left, right, truth = scene
    rig = stereod.Calibration.of_rectified((200, 120), focal_px=100, baseline_m=0.5)
    d = stereod.Matcher(disparities=32, engine="cpu")(left, right)
    # The box is 2.5 m away and ahead; the wall behind it 5.6 m.
    found = d.obstacles(rig, position_m=(0.5, 0, 1), boxes=[("crate", (75, 35, 145, 85)), ("wall", (10, 5, 60, 115))])
    crate, wall = found["things"]
    assert crate["label"] == "crate" and crate["box_px"] == [75, 35, 145, 85]
    assert crate["nearest"]["distance_m"] == pytest.approx(2.5, rel=0.05)
    assert crate["nearest"]["position_m"] == pytest.approx([3, -0.25, 1], abs=0.15)
    assert wall["nearest"]["position_m"][0] == pytest.approx(0.5 + 50 / 9, rel=0.02)
    nearest = found["nearest"]
    assert nearest["distance_m"] == pytest.approx(2.5, rel=0.05) and abs(nearest["direction_deg"]) < 25
    assert found["mount"] == {"position_m": [0.5, 0, 1], "attitude_deg": [0, 0, 0]}
    scan = found["scan"]
    assert len(scan["states"]) == len(scan["distances_m"]) and scan["states"].count("o") > 60
    for state, distance in zip(scan["states"], scan["distances_m"]):
        assert (distance is not None) == (state == "o")
    # Above all that is there, and not so far.
    assert d.obstacles(rig, band_m=(4, 5))["nearest"] is None
    assert "o" not in d.obstacles(rig, far_m=2.0)["scan"]["states"]
    wide = d.obstacles(rig, bin_deg=5)["scan"]
    assert wide["bin_deg"] == 5 and len(wide["states"]) < len(scan["states"]) / 4
    for wanted, kind, text in [({"boxes": [("a", (5, 5, 1, 9))]}, ValueError, "boxes: box 0 .*reversed"),
                               ({"boxes": ["a"]}, TypeError, "boxes"), ({"height": 1}, TypeError, "height"),
                               ({"position_m": (0, 0)}, (TypeError, ValueError), "position_m"),
                               ({"far_m": float("nan")}, ValueError, "finite"),
                               ({"attitude_deg": (0, 90, 0)}, ValueError, "ahead")]:
        with pytest.raises(kind, match=text):
            d.obstacles(rig, **wanted)
    with pytest.raises(ValueError, match="calibration"):
        d.obstacles()
    with pytest.raises(ValueError, match="confidence"):
        stereod.Matcher(disparities=32, engine="cpu", confidence=False)(left, right).obstacles(rig)


def test_threads_share_a_matcher_and_the_interpreter_is_free(scene):
    left, right, _ = scene
    matcher = stereod.Matcher(**CPU)
    expected = matcher(left, right).raw
    right_ones = []

    def work():
        for _ in range(5):
            right_ones.append((matcher(left, right).raw == expected).all())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert right_ones == [True] * 20


def test_pickled_parameters_match_alike(scene):
    left, right, _ = scene
    matcher = stereod.Matcher(cost="census", **CPU)
    again = pickle.loads(pickle.dumps(matcher))
    assert repr(again) == repr(matcher)
    assert (again(left, right).raw == matcher(left, right).raw).all()


def child(matcher, left, right, queue):
    queue.put(matcher(left, right).raw)


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_other_processes(scene, method):
    left, right, _ = scene
    matcher = stereod.Matcher(**CPU)
    expected = matcher(left, right).raw
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    process = context.Process(target=child, args=(matcher, left, right, queue))
    process.start()
    assert (queue.get(timeout=60) == expected).all()
    process.join(60)


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_results_come_back_from_other_processes(scene, method):
    left, right, _ = scene
    matcher = stereod.Matcher(**CPU)
    with multiprocessing.get_context(method).Pool(1) as pool:
        d = pool.apply_async(matcher, (left, right)).get(timeout=60)
    here = matcher(left, right)
    for name in ("raw", "disparity", "confidence", "status", "left", "right"):
        np.testing.assert_array_equal(getattr(d, name), getattr(here, name), name)
    assert (matcher.right_map(d) == matcher.right_map(here)).all()


def test_a_pickled_result_keeps_cameras_and_masks(scene):
    left, right, _ = scene
    rig = stereod.Calibration.of_rectified(left.shape[::-1], focal_px=100, baseline_m=0.2)
    matcher = stereod.Matcher(calibration=rig, confidence=False, **CPU)
    d = matcher(left, right)
    again = copy.deepcopy(pickle.loads(pickle.dumps(d)))
    assert again.confidence is None and repr(again) == repr(d)
    np.testing.assert_array_equal(again.points(), d.points())
    rounded = np.round(16 * np.nan_to_num(again.smooth(), nan=stereod.INVALID / 16))
    np.testing.assert_array_equal(rounded, d.raw)
    assert (matcher.right_map(again) == matcher.right_map(d)).all()
    kind, (state,) = d.__reduce__()
    for wrong in [state[2][:5], state[2][:0], state[2][:, :0]]:
        with pytest.raises(ValueError, match="pickled result"):
            kind((*state[:2], wrong, *state[3:]))


def odometry_of(scene, **parameters):
    left, right, _ = scene
    rig = stereod.Calibration.of_rectified(left.shape[::-1], focal_px=100, baseline_m=0.2)
    return stereod.Matcher(calibration=rig, odometry=True, **CPU, **parameters), left, right


@pytest.mark.parametrize("confidence", [True, False])
def test_odometry_tells_poses_of_a_stream(scene, confidence):
    matcher, left, right = odometry_of(scene, confidence=confidence)
    for d in [matcher.next(left, right, 1.0), *matcher.stream([(left, right, 0.0), (left, right, 0.1)])]:
        assert d.pose.shape == (4, 4) and d.pose.dtype == np.float64
        # The rig stands still.
        np.testing.assert_allclose(d.pose, np.eye(4), atol=0.02)
        told = d.odometry
        assert told["lost"] is None and told["breaks"] == 0 and len(told["covariance"]) == 36
        np.testing.assert_allclose(told["position_m"], 0, atol=0.02)
        np.testing.assert_allclose(told["quaternion"], [0, 0, 0, 1], atol=0.02)


def test_a_pair_of_no_stream_has_no_pose(scene):
    matcher, left, right = odometry_of(scene)
    for d in [matcher(left, right), *matcher.batch([left, left], [right, right])]:
        assert d.pose is None and d.odometry is None
    d = stereod.Matcher(**CPU).next(left, right, 1.0)
    assert d.pose is None and d.odometry is None


def test_odometry_needs_cameras(scene):
    left, right, _ = scene
    matcher = stereod.Matcher(odometry=True, **CPU)
    for work in [lambda: matcher.next(left, right, 0.0), lambda: next(matcher.stream([(left, right, 0.0)]))]:
        with pytest.raises(ValueError, match="`odometry` needs known cameras; make the matcher with a calibration"):
            work()


def test_a_pickled_result_keeps_its_pose(scene):
    matcher, left, right = odometry_of(scene)
    d = matcher.next(left, right, 1.0)
    again = pickle.loads(pickle.dumps(d))
    np.testing.assert_array_equal(again.pose, d.pose)
    assert again.odometry == d.odometry and d.odometry is not None
    kind, (state,) = d.__reduce__()
    lost = kind((*state[:6], (*state[6][:3], "too few points seen again", *state[6][4:])))
    assert lost.pose is None and lost.odometry["lost"] == "too few points seen again"
    with pytest.raises(ValueError, match="no known reason"):
        kind((*state[:6], (*state[6][:3], "bored", *state[6][4:])))


def test_the_right_map_needs_the_matcher_of_the_result(scene):
    left, right, _ = scene
    d = stereod.Matcher(**CPU)(left, right)
    assert stereod.Matcher(**CPU).right_map(d).shape == d.shape
    for other in [{"disparities": 16}, {"cost": "census"}, {"confidence": False}]:
        matcher = stereod.Matcher(**{**CPU, **other})
        for method in (matcher.right_map, matcher.occluded):
            with pytest.raises(ValueError, match="`disparity` is the result of another matcher"):
                method(d)
    for method in (matcher.right_map, matcher.occluded):
        with pytest.raises(TypeError, match="^disparity is an array .*; expected a stereod.Disparity"):
            method(d.raw)


@pytest.mark.parametrize("rig", [700, "rig.toml", np.eye(3), [1]])
def test_a_rig_of_a_wrong_type_is_named(scene, rig):
    left, right, _ = scene
    d = stereod.Matcher(**CPU)(left, right)
    batch = stereod.Matcher(**CPU).batch([left], [right])
    for method in (d.depth, d.depth_std, d.points, batch.depth):
        with pytest.raises(TypeError, match="^rig is .*; expected a stereod.Calibration$"):
            method(rig)
    with pytest.raises(TypeError, match="^rig is .*; expected a stereod.Calibration$"):
        d.write_ply("never.ply", rig)
    with pytest.raises(TypeError, match="^calibration is .*; expected a stereod.Calibration$"):
        stereod.Matcher(calibration=rig)


FORKS = """
import os, signal, threading, time, numpy as np, stereod
image = np.random.default_rng(0).integers(0, 256, (600, 900), dtype=np.uint8)
small = image[:60, :90].copy()
matcher = stereod.Matcher(engine="cpu", disparities=128, threads=2)
stop = threading.Event()

def work():
    while not stop.is_set():
        matcher(image, image)

def fork(delay, child):
    time.sleep(delay)
    process = os.fork()
    if process == 0:
        signal.alarm(60)
        child()
        os._exit(0)
    assert os.waitpid(process, 0)[1] == 0, delay

def use():
    found = matcher(small, small).raw
    matcher.restart()
    again = stereod.Matcher(engine="cpu", disparities=128, threads=2)(small, small).raw
    assert (found == again).all() and "CPU" in matcher.description

def drop():
    global matcher
    del matcher

# The first fork meets a thread that makes its engine, the others one that matches.
thread = threading.Thread(target=work)
thread.start()
for delay in [DELAY, 0.1, 0.2]:
    fork(delay, use)
    fork(0, drop)
stop.set()
thread.join()
print("done")
"""


@unix
def test_the_child_of_a_fork_matches_while_another_thread_did():
    # An engine takes some milliseconds to make; only the first one of a process initialises everything.
    for delay in range(12):
        script = FORKS.replace("DELAY", f"{delay / 2500}")
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=240)
        assert done.stdout == "done\n", (delay, done.stderr)


# Shells start programs in the background with the signal ignored.
INTERRUPTED = """
import signal, time, numpy as np, stereod
signal.signal(signal.SIGINT, signal.default_int_handler)
matcher = stereod.Matcher(engine="cpu", disparities={disparities}, threads=1)
image = np.random.default_rng(0).integers(0, 256, {shape}, dtype=np.uint8)
begun = time.monotonic()
stereod.Matcher(engine="cpu", disparities=64, threads=1)(image[:750, :1000], image[:750, :1000])
print(time.monotonic() - begun, flush=True)
while True: matcher(image, image)
"""


@unix
@pytest.mark.parametrize(("disparities", "shape"), [(64, (240, 320)), (1024, (3000, 4000))])
def test_an_interrupt_ends_a_loop_and_a_pair_that_takes_long(disparities, shape):
    script = INTERRUPTED.format(disparities=disparities, shape=shape)
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    # The large pair takes 256 times as long as this one.
    small = float(process.stdout.readline())
    time.sleep(1)
    process.send_signal(2)
    assert b"KeyboardInterrupt" in process.communicate(timeout=10 + 20 * small)[1]


@unix
def test_a_matcher_goes_on_after_an_interrupt(scene):
    left, right, _ = scene
    matcher = stereod.Matcher(**CPU)
    expected = matcher(left, right).raw
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        large = np.random.default_rng(0).integers(0, 256, (1000, 1600), dtype=np.uint8)
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            while True:
                matcher(large, large)
    finally:
        signal.signal(signal.SIGINT, previous)
    assert (matcher(left, right).raw == expected).all()


@unix
def test_memory_does_not_grow(scene):
    left, right, _ = scene
    left, right = left[:40, :80], right[:40, :80]
    matcher = stereod.Matcher(engine="cpu", disparities=16, threads=1)

    def use(times):
        for _ in range(times):
            d = matcher(left, right)
            assert d.disparity.shape == (40, 80) and d.status.any()
        gc.collect()
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * mmap.PAGESIZE

    before = use(2000)
    grown = use(10_000) - before
    # A leak of a byte for every four pixels and call would be 8 MB.
    assert grown < 4_000_000, grown


def test_without_video_open_says_how_to_read():
    try:
        stereod.open(os.devnull, os.devnull)
    except ImportError as error:
        assert "reads no video" in str(error)
    except OSError:
        pass
