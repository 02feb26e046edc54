"""Doors from Python into LLVM for compiled loops: a typed `njit`, memcpy, wide loads and stores, and more.

Loads numba. Loops come here by `penstock.compiled`, when one of them is first called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

import numba
from llvmlite import ir as untyped_ir
from numba.core import cgutils as untyped_cgutils
from numba.core import types
from numba.extending import intrinsic

if TYPE_CHECKING:
    from collections.abc import Callable

    from llvmlite import ir

cgutils: Any = untyped_cgutils
F = TypeVar("F", bound="Callable[..., Any]")


def njit(function: F, *, inline: bool) -> F:
    """Compile at the first call, kept on disk for later processes; runs without the GIL."""
    return cast("F", numba.njit(cache=True, nogil=True, forceinline=inline)(function))


def _memcpy(_typing: Any, target: Any, at: Any, source: Any, start: Any, size: Any) -> Any:  # noqa: ANN401 - numba's types
    """Copy `source[start:start + size]` to `target[at:at + size]`; the caller has checked both ranges.

    Numba's slice assignment takes 43 ns for 100 bytes, its byte loop 129 ns, this 7 ns.
    """
    return types.void(target, at, source, start, size), _emit


def _emit(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:  # noqa: ANN401
    target, at, source, start, size = values
    into = cgutils.create_struct_proxy(signature.args[0])(context, builder, target).data
    out_of = cgutils.create_struct_proxy(signature.args[2])(context, builder, source).data
    cgutils.raw_memcpy(builder, builder.gep(into, [at]), builder.gep(out_of, [start]), size, 1)
    return context.get_dummy_value()


memcpy = cast("Callable[[Any, int, Any, int, int], None]", intrinsic(_memcpy))


def _high_product(_typing: Any, a: Any, b: Any) -> Any:  # noqa: ANN401 - numba's types
    """The upper 64 bits of the 128 of an unsigned product."""
    return types.uint64(a, b), _emit_product


def _emit_product(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:  # noqa: ANN401
    wide = untyped_ir.IntType(128)
    a, b = (
        builder.zext(context.cast(builder, value, given, types.uint64), wide)
        for value, given in zip(values, signature.args, strict=True)
    )
    return builder.trunc(builder.lshr(builder.mul(a, b), untyped_ir.Constant(wide, 64)), untyped_ir.IntType(64))


high_product = cast("Callable[[Any, Any], Any]", intrinsic(_high_product))


def _borrowed(_typing: Any, array: Any) -> Any:  # noqa: ANN401 - numba's types
    """The same array without a count of its references, valid while the caller holds the original.

    Numba counts with atomic instructions wherever an array enters a function: 5 to 20 ns each, millions of times.
    """
    return array(array), _emit_borrowed


def _emit_borrowed(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:  # noqa: ANN401
    proxy = cgutils.create_struct_proxy(signature.return_type)(context, builder, values[0])
    proxy.meminfo = cgutils.get_null_value(proxy.meminfo.type)
    return proxy._getvalue()  # noqa: SLF001 - numba's own way


borrowed = cast("Callable[[Any], Any]", intrinsic(_borrowed))


def _word_at(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> ir.Value:  # noqa: ANN401
    """The address of 8 bytes of an array; with NUMBA_BOUNDSCHECK they are checked as numba checks an index."""
    array, at = cgutils.create_struct_proxy(signature.args[0])(context, builder, values[0]), values[1]
    if context.enable_boundscheck:
        size = builder.extract_value(array.shape, 0)
        cgutils.do_boundscheck(context, builder, at, size)
        cgutils.do_boundscheck(context, builder, builder.add(at, untyped_ir.Constant(at.type, 7)), size)
    return builder.bitcast(builder.gep(array.data, [at]), untyped_ir.IntType(64).as_pointer())


def _load(_typing: Any, source: Any, at: Any) -> Any:  # noqa: ANN401 - numba's types
    """The 8 bytes from `source[at]` on as one number, the first one lowest; the caller has checked the range."""
    return types.uint64(source, at), _emit_load


def _emit_load(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:  # noqa: ANN401
    return builder.load(_word_at(context, builder, signature, values), align=1)


def _store(_typing: Any, target: Any, at: Any, value: Any) -> Any:  # noqa: ANN401, ARG001 - numba's types
    """Write a number to the 8 bytes from `target[at]` on, as `load` reads it; the caller has checked the range."""
    return types.void(target, at, types.uint64), _emit_store


def _emit_store(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:  # noqa: ANN401
    builder.store(values[2], _word_at(context, builder, signature, values), align=1)
    return context.get_dummy_value()


load = cast("Callable[[Any, int], Any]", intrinsic(_load))
store = cast("Callable[[Any, int, Any], None]", intrinsic(_store))
