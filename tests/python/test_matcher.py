"""The matcher of the Python package."""

import gc
import multiprocessing
import os
import pickle
import resource
import subprocess
import sys
import threading

import numpy as np
import pytest

import stereod

CPU = {"engine": "cpu", "disparities": 32}


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


def test_strides_of_rows_are_taken_and_others_refused(scene):
    left, right, _ = scene
    matcher = stereod.Matcher(**CPU)
    expected = matcher(left, right).raw
    padded = np.zeros((left.shape[0], left.shape[1] + 13), np.uint8)
    padded[:, :-13] = left
    assert (matcher(padded[:, :-13], right).raw == expected).all()
    skipped = np.zeros((2 * left.shape[0], left.shape[1]), np.uint8)
    skipped[::2] = left
    assert (matcher(skipped[::2], right).raw == expected).all()
    for wrong, text in [
        (left[:, ::-1], "strides"),
        (left[::-1], "strides"),
        (left.T, "strides"),
        (left.astype(np.float32), "float32"),
        (left.astype(np.int16), "int16"),
        (left.astype(">u2"), "uint16|byte order|>u2"),
        (left[None], "shape"),
        (np.zeros((0, 8), np.uint8), "no pixels"),
        (left[:50], "one size"),
    ]:
        with pytest.raises((ValueError, TypeError), match=f"left|{text}") as error:
            matcher(wrong, right)
        assert "left" in str(error.value), error.value
    with pytest.raises(TypeError, match="left is list, not a NumPy array"):
        matcher([[1]], right)


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
    with pytest.raises(TypeError):
        matcher(left, right, out=out.astype(np.float32))
    out.flags.writeable = False
    with pytest.raises(TypeError):
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
    with pytest.raises(ValueError, match="time"):
        matcher.next(*pairs[0], -1.0)


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


@pytest.mark.parametrize("method", ["fork", "spawn"])
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


def test_an_interrupt_ends_a_loop(scene, tmp_path):
    script = tmp_path / "loop.py"
    script.write_text(
        "import numpy as np, signal, stereod\n"
        # Shells start programs in the background with the signal ignored.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "m = stereod.Matcher(engine='cpu', disparities=64)\n"
        "image = np.random.default_rng(0).integers(0, 256, (240, 320), dtype=np.uint8)\n"
        "m(image, image)\n"
        "print('ready', flush=True)\n"
        "while True: m(image, image)\n"
    )
    process = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(2)
    assert b"KeyboardInterrupt" in process.communicate(timeout=20)[1]


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
            return int(statm.read().split()[1]) * resource.getpagesize()

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
