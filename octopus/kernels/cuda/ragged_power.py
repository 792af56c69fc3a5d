"""`gamma` on a GPU: a power in a third of the library's instructions, which pays where memory is as fast.

`2 ** (exponent * log2(value))`, with the logarithm as a sum of two float32, since what it is off by counts as often as
the exponent says. The value is `2 ** whole * mantissa` with a mantissa between the roots of 1/2 and 2, whose logarithm
is a polynomial. What this can't take, `is_usual` tells, and the library's function does; so an element's result
depends on nothing but the element and its exponent, whatever else a thread does.
"""

from __future__ import annotations

import numpy as np

from octopus.backends.cuda.language import bits_as_float, device, float_as_bits
from octopus.kernels import pixelwise
from octopus.kernels.cuda.ptx import exp2, fma

LARGEST_EXPONENT = np.float32(16)  # in absolute terms; the error grows with it
BEYOND = np.uint32(0x73800000)  # bits of 2**104: values from here on, and negative ones, are not usual
ROOT = np.int32(0x3F3504F3)  # bits of the root of 1/2
EXPONENT = np.int32(-0x800000)  # the upper nine bits
UP, DOWN = np.float32(2**24), np.float32(-24)  # so that the smallest values have an exponent of their own
PER_STEP = np.float32(2**-23)
ONE = np.float32(1)
LN2 = np.float32(np.log(2))
# log2(1 + x) / x, least error relative to it; by powers of x, rounded to float32 one after the other.
C0, C1, C2, C3, C4, C5, C6, C7, C8 = (
    np.float32(c)
    for c in (
        1.442695, -0.7213474, 0.480909, -0.36070052, 0.28795245, -0.23901615, 0.21549211, -0.20678112, 0.12580463,
    )
)  # fmt: skip


def power(value, exponent):
    """`value ** exponent` for a usual value other than 0 and a usual exponent.

    Off by up to 4e-7 + 3e-8 * |exponent| of the result, of which 2.4e-7 are the GPU's own `2 ** x`.
    """
    bits = np.int32(float_as_bits(value * UP))
    whole = np.int32(np.int32(bits - ROOT) & EXPONENT)  # of two int32 Numba makes an int64
    x = bits_as_float(np.uint32(bits - whole)) - ONE
    p = fma(fma(fma(fma(C8, x, C7), x, C6), x, C5), x, C4)
    p = fma(fma(fma(fma(p, x, C3), x, C2), x, C1), x, C0)
    # Each product that is added to something is part of an `fma`: nothing is left to the compiler.
    steps = fma(np.float32(whole), PER_STEP, DOWN)
    log = fma(x, p, steps)
    rest = fma(x, p, steps - log)
    high = exponent * log
    low = fma(exponent, rest, fma(exponent, log, -high))
    return exp2(high) * fma(low, LN2, ONE)


def at_zero(exponent):
    """`0 ** exponent`."""
    if exponent > 0:
        return np.float32(0)
    return np.float32(1) if exponent == 0 else np.float32(np.inf)


def is_usual(value, exponent):
    """Whether `power` may do it, or the value is 0: neither negative (nor -0) nor huge nor NaN, exponents up to 16."""
    return float_as_bits(value) < BEYOND and abs(exponent) <= LARGEST_EXPONENT


_power, _at_zero, _is_usual = (device(function) for function in (power, at_zero, is_usual))
_library = device(pixelwise.gamma)


@device
def _usual(value, exponent, zero):
    found = _power(value, exponent)
    return zero if value == 0 else found


@device
def gamma(value, exponent, unused):
    """As `pixelwise.gamma`."""
    if _is_usual(value, exponent):
        return _usual(value, exponent, _at_zero(exponent))
    return _library(value, exponent, unused)


@device
def _bits(value):
    return float_as_bits(value)


@device
def _flag(value, exponent, place):
    return np.int32(0) if _is_usual(value, exponent) else np.int32(1 << place)


@device
def _chosen(flag, a, b, c, d):
    return a if flag == 1 else b if flag == 2 else c if flag == 4 else d


@device
def gamma_four(values, exponent, unused):
    """The same for four values."""
    a, b, c, d = values
    zero = _at_zero(exponent)
    p, q = _usual(a, exponent, zero), _usual(b, exponent, zero)
    r, s = _usual(c, exponent, zero), _usual(d, exponent, zero)
    largest = max(max(_bits(a), _bits(b)), max(_bits(c), _bits(d)))
    if largest < BEYOND and abs(exponent) <= LARGEST_EXPONENT:
        return p, q, r, s
    others = np.int32(_flag(a, exponent, 0) | _flag(b, exponent, 1) | _flag(c, exponent, 2) | _flag(d, exponent, 3))
    # In a loop, since the library's function, of a hundred instructions, would else stand here four times.
    while others != 0:
        last = np.int32(others & -others)
        value = _library(_chosen(last, a, b, c, d), exponent, unused)
        p = value if last == 1 else p
        q = value if last == 2 else q
        r = value if last == 4 else r
        s = value if last == 8 else s
        others = np.int32(others & np.int32(others - last))
    return p, q, r, s


@device
def gamma_of_bytes(value, exponent, unused):
    """As `pixelwise.gamma_of_bytes`."""
    return pixelwise.FULL * gamma(value * pixelwise.PER_FULL, exponent, unused)


@device
def gamma_of_four_bytes(values, exponent, unused):
    """The same for four values."""
    a, b, c, d = values
    full, per_full = pixelwise.FULL, pixelwise.PER_FULL
    a, b, c, d = gamma_four((a * per_full, b * per_full, c * per_full, d * per_full), exponent, unused)
    return full * a, full * b, full * c, full * d
