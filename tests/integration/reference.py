"""The arithmetic of mandelq-job(5), written once more from its text: exact integers for every fma,
nothing shared with the programs. For tiny pictures.

reference.py counts|smooth|gray FILE.npy WIDTH HEIGHT LIMIT bounds XMIN XMAX YMIN YMAX
reference.py counts|smooth|gray FILE.npy WIDTH HEIGHT LIMIT center RE IM ZOOM
"""
import math
import sys
from fractions import Fraction

import numpy as np


def fma(a, b, c):
    """a*b+c, rounded once: the division of two integers rounds correctly."""
    na, da = a.as_integer_ratio()
    nb, db = b.as_integer_ratio()
    nc, dc = c.as_integer_ratio()
    return (na * nb * dc + nc * da * db) / (da * db * dc)


def grid(width, height, form, numbers):
    n = [Fraction(text) for text in numbers]
    if form == "bounds":
        xmin, xmax, ymin, ymax = n
        dx, dy = (xmax - xmin) / width, (ymax - ymin) / height
    else:
        re, im, zoom = n
        dx = dy = 4 / (zoom * height)
        xmin, ymax = re - dx * width / 2, im + 2 / zoom
    return float(xmin), float(dx), float(ymax), float(dy)


def step(x, y, re, im):
    t = fma(y, y, -re)
    y = fma(x + x, y, im)
    return fma(x, x, -t), y


def norm2(x, y):
    return fma(x, x, y * y)


def escape(re, im, limit):
    x = y = 0.0
    for n in range(limit):
        x, y = step(x, y, re, im)
        if norm2(x, y) >= 4:
            return n, x, y
    return limit, x, y


def smooth(re, im, limit):
    n, x, y = escape(re, im, limit)
    if n == limit:
        return float(limit)
    k = 0
    while norm2(x, y) < 2.0**20 and k < 32:
        x, y = step(x, y, re, im)
        k += 1
    return n + (k + 1 - math.log2(math.log2(norm2(x, y)) / 2))


def picture(width, height, limit, form, numbers, value):
    xmin, dx, ymax, dy = grid(width, height, form, numbers)
    return [
        [value(fma(i + 0.5, dx, xmin), fma(-(j + 0.5), dy, ymax), limit) for i in range(width)]
        for j in range(height)
    ]


def gray(re, im, limit):
    n = escape(re, im, limit)[0]
    return 0 if n == limit else 1 + n % 255


def main(kind, path, width, height, limit, form, *numbers):
    value, dtype = {
        "counts": (lambda *c: escape(*c)[0], "<u4"),
        "smooth": (smooth, "<f4"),
        "gray": (gray, "u1"),
    }[kind]
    rows = picture(int(width), int(height), int(limit), form, numbers, value)
    np.save(path, np.array(rows, dtype=dtype))


if __name__ == "__main__":
    main(*sys.argv[1:])
