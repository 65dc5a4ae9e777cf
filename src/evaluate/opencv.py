# Matches a rectified pair with OpenCV's StereoSGBM, all 8 paths and the checks that its documentation suggests.
# Standard input: both grey images, 8 bits, row by row. Standard output: the median of the times in seconds
# (float64), then the disparity in 1/16 px (int16, -32768 unknown), little endian.
import sys
import time

import cv2
import numpy

if len(sys.argv) == 1:
    print(cv2.__version__)
    sys.exit()
width, height, least, count, repeat = map(int, sys.argv[1:])
left, right = numpy.frombuffer(sys.stdin.buffer.read(), numpy.uint8).reshape(2, height, width)
matcher = cv2.StereoSGBM_create(
    minDisparity=least, numDisparities=-(-count // 16) * 16, blockSize=5, P1=8 * 25, P2=32 * 25, preFilterCap=63,
    disp12MaxDiff=1, uniquenessRatio=10, speckleWindowSize=100, speckleRange=2, mode=cv2.STEREO_SGBM_MODE_HH)
times = []
for _ in range(repeat):
    begin = time.perf_counter()
    disparity = matcher.compute(left, right)
    times.append(time.perf_counter() - begin)
disparity[disparity < 16 * least] = -32768
sys.stdout.buffer.write(numpy.array(sorted(times)[repeat // 2], "<f8").tobytes())
sys.stdout.buffer.write(disparity.astype("<i2").tobytes())
