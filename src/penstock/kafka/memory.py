"""Two doors from Python into LLVM for the compiled walk: a typed `njit`, and memcpy between two arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

import numba
from numba.core import cgutils, types
from numba.extending import intrinsic

if TYPE_CHECKING:
    from collections.abc import Callable

    from llvmlite import ir

F = TypeVar("F", bound="Callable[..., Any]")


def compiled(function: F) -> F:
    """Compile with numba at the first call, kept on disk for later processes; runs without the GIL."""
    return cast("F", numba.njit(cache=True, nogil=True)(function))


def _memcpy(_context: Any, target: Any, _at: Any, source: Any, _start: Any, _size: Any) -> Any:  # noqa: ANN401 - numba's
    """Copy `size` bytes from `source[start]` to `target[at]`; the caller has checked both ranges.

    Numba's slice assignment takes 43 ns for 100 bytes, its byte loop 129 ns, this 7 ns.
    """

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:  # noqa: ANN401
        utils: Any = cgutils
        into = utils.create_struct_proxy(signature.args[0])(context, builder, args[0]).data
        out_of = utils.create_struct_proxy(signature.args[2])(context, builder, args[2]).data
        utils.raw_memcpy(builder, builder.gep(into, [args[1]]), builder.gep(out_of, [args[3]]), args[4], 1)
        return context.get_dummy_value()

    return types.void(target, types.intp, source, types.intp, types.intp), emit


memcpy: Callable[[Any, int, Any, int, int], None] = cast("Any", intrinsic(_memcpy))
