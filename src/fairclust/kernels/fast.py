"""Arithmetic that compilers can vectorise: flags that let them reorder sums, minima, an exponential and a logarithm."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

# Checkers of types do not know that Numba gives these functions their first argument.
_intrinsic: Any = intrinsic

FAST = {"contract", "reassoc", "nsz", "arcp"}
"""A kernel with these flags that another kernel calls also needs ``forceinline=True``. Without it Numba optimises the
called kernel a second time as a part of its caller, which can reorder sums once more. The process that compiles both
would run the first version in the caller, later processes would run the second one, and their digits would differ."""


@_intrinsic
def _reinterpreted(typingctx, x):  # type: ignore[no-untyped-def]
    """The bits of a float64 as an integer, and those of an integer as a real number of as many bits."""
    of_integer = types.float32 if x.bitwidth == 32 else types.float64
    new = types.uint64 if x == types.float64 else of_integer

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.bitcast(args[0], context.get_value_type(new))

    return new(x), codegen


def _in_llvm(name, doc):  # type: ignore[no-untyped-def]
    def typed(typingctx, old, new):  # type: ignore[no-untyped-def]
        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            type_ = args[0].type
            function = ir.FunctionType(type_, [type_, type_])
            return builder.call(builder.module.declare_intrinsic(f"llvm.{name}", [type_], function), args)

        return old(old, new), codegen

    typed.__doc__ = doc
    return _intrinsic(typed)


# Python's and NumPy's minima take several times as long, because of their rules for NaN. For ``if new < x[i]: x[i] =
# new`` the compiler makes instructions that store some entries of a vector only. On many processors these are slow.
smaller = _in_llvm("minnum", "The smaller of two real numbers; for ``x[i] = smaller(x[i], new)``.")
larger = _in_llvm("maxnum", "The larger of two real numbers; for ``x[i] = larger(x[i], new)``.")
larger_int = _in_llvm("smax", "The larger of two integers.")


@_intrinsic
def where_less(typingctx, a, b, then, otherwise):  # type: ignore[no-untyped-def]
    """``then if a < b else otherwise``, never as a branch."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.select(builder.fcmp_ordered("<", *args[:2]), *args[2:])

    return then(a, b, then, otherwise), codegen


@_intrinsic
def quotient(typingctx, a, b):  # type: ignore[no-untyped-def]
    """``a / b`` without Python's check of zero, with which a loop would not vectorise."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.fdiv(*args)

    return a(a, b), codegen


def exp(x):  # type: ignore[no-untyped-def]
    raise TypeError("compiled code only")


@overload(exp, inline="always", jit_options={"fastmath": FAST})
def _exp_overload(x):  # type: ignore[no-untyped-def]
    """exp of numbers at most 0, as a plain polynomial after range reduction, so that loops vectorise.

    The relative error is below 2e-7 in float32 and 1e-15 in float64. Arguments below -80 (float64: -700) become that
    limit, so that results are normal numbers even after division by a row's sum: subnormal arithmetic is slow.
    """
    # The bits of the mantissa, the bias of the exponent, the limit, log(2) in two parts, and coefficients from r^2 on.
    # In double precision these are 1 / n!: abs(r) <= log(2) / 2, so the terms after r^13 / 13! are below 1e-17.
    real: Any = np.float64 if x == types.float64 else np.float32
    integer: Any = np.int64 if x == types.float64 else np.int32
    if x == types.float64:
        bits, excess, limit, hi, lo = 52, 1023, -700.0, 6.93147180369123816490e-1, 1.90821492927058770002e-10
        series = tuple(1 / math.factorial(n) for n in range(2, 14))
    else:
        bits, excess, limit, hi, lo = 23, 127, -80.0, 0.693359375, -2.12194440e-4
        series = 0.5, 1.6666665459e-1, 4.1665795894e-2, 8.3334519073e-3, 1.3981999507e-3, 1.9875691500e-4
    mantissa, bias = integer(bits), integer(excess)
    floor, ln2_hi, ln2_lo = real(limit), real(hi), real(lo)
    log2e, half, one = real(1.4426950408889634), real(0.5), real(1.0)
    first, *others = map(real, reversed(series))
    coefficients = tuple(others)

    def exp(x):  # type: ignore[no-untyped-def]
        x = where_less(x, floor, floor, x)
        # AVX2 converts real numbers to integers of 32 bits only.
        n = np.int32(x * log2e - half)
        f = real(n)
        r = (x - f * ln2_hi) - f * ln2_lo
        y = first
        for c in coefficients:
            y = y * r + c
        y = y * r * r + r + one
        return y * _reinterpreted(integer((n + bias) << mantissa))

    return exp


def log(x):  # type: ignore[no-untyped-def]
    raise TypeError("compiled code only")


@overload(log, inline="always", jit_options={"fastmath": FAST})
def _log_overload(x):  # type: ignore[no-untyped-def]
    """log of float64 numbers of at least 1, with an error of 1e-15 relative to the larger of 1 and the result."""

    def double(x):  # type: ignore[no-untyped-def]
        # x = 2^n (1 + f) with 1 + f from sqrt(1/2) to sqrt(2). A float64 has its exponent in the bits from 52 on, so
        # the bits of x minus those of sqrt(1/2), shifted by 52, are n.
        n = (_reinterpreted(x) - np.uint64(0x3FE6A09E667F3BCD)) >> np.uint64(52)
        f = _reinterpreted(_reinterpreted(x) - (n << np.uint64(52))) - 1.0
        # log(1 + f) = 2 atanh(s) = 2 (s + s^3 / 3 + s^5 / 5 + ...), with abs(s) <= 0.172
        s = quotient(f, 2.0 + f)
        z = s * s
        # In a loop, Numba would warn of its own variables when it compiles kernels of points with weights.
        y = ((2.0 / 21.0 * z + 2.0 / 19.0) * z + 2.0 / 17.0) * z + 2.0 / 15.0
        y = ((y * z + 2.0 / 13.0) * z + 2.0 / 11.0) * z + 2.0 / 9.0
        y = ((y * z + 2.0 / 7.0) * z + 2.0 / 5.0) * z + 2.0 / 3.0
        return np.float64(np.int32(n)) * 0.6931471805599453 + (y * z * s + 2.0 * s)

    return double
