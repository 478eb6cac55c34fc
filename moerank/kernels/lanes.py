"""Vectors inside numba: one value that holds one number of each of several individuals.

A kernel that treats a population gives each individual a *lane*: 16 individuals in single precision, 8 in double.
The compiler finds such vectors by itself in simple loops only; in a pair pass it misses them and is four times
slower. So this file adds two vector types to numba and just the operations the kernels use. On processors with
narrower registers LLVM splits them; the arithmetic, and so every bit of the result, stays the same.

Arrays of lanes are C-contiguous with shape ``(n, lanes(dtype))``. There is no bounds check.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

__all__ = [
    "bits_of",
    "blend",
    "first_bit",
    "fused",
    "lanes",
    "least",
    "load",
    "load_at",
    "load_converted",
    "load_mask",
    "prefetch",
    "spread",
    "store",
    "store_mask",
    "sum_four",
    "word_type",
]

_WIDTH = {types.float32: 16, types.float64: 8}


def lanes(dtype: type[np.floating[Any]]) -> int:
    """Return how many individuals share one vector of `dtype`: 16 for float32, 8 for float64."""
    return {np.dtype(np.float32): 16, np.dtype(np.float64): 8}[np.dtype(dtype)]


def word_type(n_lanes: int) -> type[np.unsignedinteger[Any]]:
    """Return the type of numbers that have one bit for each of the lanes of a vector."""
    types_of: dict[int, type[np.unsignedinteger[Any]]] = {16: np.uint16, 8: np.uint8}
    return types_of[n_lanes]


class LaneType(types.Type):
    """The numba type of a vector; `element` is a float type, or boolean for the result of a comparison."""

    def __init__(self, element: types.Type, width: int) -> None:
        self.element = element
        self.width = width
        super().__init__(name=f"lanes({element}, {width})")

    @property
    def llvm(self) -> ir.VectorType:
        """The vector as LLVM knows it."""
        scalar = {types.float32: ir.FloatType(), types.float64: ir.DoubleType(), types.boolean: ir.IntType(1)}
        return ir.VectorType(scalar[self.element], self.width)


@register_model(LaneType)
class _LaneModel(models.PrimitiveModel):
    def __init__(self, manager: Any, lane_type: LaneType) -> None:
        super().__init__(manager, lane_type, lane_type.llvm)


_VALUES = {element: LaneType(element, width) for element, width in _WIDTH.items()}
_MASKS = {width: LaneType(types.boolean, width) for width in _WIDTH.values()}


def _define(operation: Callable[..., Any], build: Callable[..., Any], result: LaneType, *arguments: LaneType) -> None:
    """Teach numba `operation` on `arguments`, built by `build` from the LLVM values."""

    class Template(AbstractTemplate):
        key = operation

        def generic(self, args: tuple[types.Type, ...], keywords: dict[str, Any]) -> Any:
            return signature(result, *arguments) if args == arguments else None

    infer_global(operation)(Template)
    lower_builtin(operation, *arguments)(lambda context, builder, sig, args: build(builder, *args))


for _element, _values in _VALUES.items():
    _mask = _MASKS[_WIDTH[_element]]
    _define(operator.add, lambda builder, a, b: builder.fadd(a, b), _values, _values, _values)
    _define(operator.sub, lambda builder, a, b: builder.fsub(a, b), _values, _values, _values)
    _define(operator.mul, lambda builder, a, b: builder.fmul(a, b), _values, _values, _values)
    _define(operator.gt, lambda builder, a, b: builder.fcmp_ordered(">", a, b), _mask, _values, _values)
    _define(operator.ge, lambda builder, a, b: builder.fcmp_ordered(">=", a, b), _mask, _values, _values)
for _mask in _MASKS.values():
    _define(operator.and_, lambda builder, a, b: builder.and_(a, b), _mask, _mask, _mask)


def _row_pointer(context: Any, builder: ir.IRBuilder, array_type: types.Array, array: Any, row: Any) -> Any:
    """Address of row `row` of a lane array, as a pointer to one vector."""
    width = ir.Constant(ir.IntType(64), _WIDTH[array_type.dtype])
    data = context.make_array(array_type)(context, builder, array).data
    address = builder.gep(data, [builder.mul(row, width)])
    return builder.bitcast(address, _VALUES[array_type.dtype].llvm.as_pointer())


@intrinsic
def load(typing_context: Any, array: types.Array, row: types.Integer) -> Any:
    """Return row `row` of a lane array as one vector."""

    def codegen(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        value = builder.load(_row_pointer(context, builder, sig.args[0], *args))
        value.align = sig.args[0].dtype.bitwidth // 8
        return value

    return _VALUES[array.dtype](array, types.int64), codegen


@intrinsic
def store(typing_context: Any, array: types.Array, row: types.Integer, value: LaneType) -> Any:
    """Write one vector to row `row` of a lane array."""

    def codegen(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        target = _row_pointer(context, builder, sig.args[0], *args[:2])
        builder.store(args[2], target).align = sig.args[0].dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(array, types.int64, _VALUES[array.dtype]), codegen


@intrinsic
def spread(typing_context: Any, number: types.Float) -> Any:
    """Return a vector with `number` in every lane."""
    result = _VALUES[number]

    def codegen(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        first = builder.insert_element(ir.Constant(result.llvm, ir.Undefined), args[0], ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), result.width), [0] * result.width)
        return builder.shuffle_vector(first, first, zeros)

    return result(number), codegen


@intrinsic
def load_mask(typing_context: Any, words: types.Array, index: types.Integer) -> Any:
    """Return the bits of ``words[index]`` (uint16 or uint8, bit l for lane l) as one mask."""
    result = _MASKS[words.dtype.bitwidth]

    def codegen(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        return builder.bitcast(builder.load(builder.gep(data, [args[1]])), result.llvm)

    return result(words, types.int64), codegen


@intrinsic
def store_mask(typing_context: Any, words: types.Array, index: types.Integer, mask: LaneType) -> Any:
    """Write a mask to the bits of ``words[index]``."""

    def codegen(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        word = builder.bitcast(args[2], ir.IntType(sig.args[2].width))
        builder.store(word, builder.gep(data, [args[1]]))
        return context.get_dummy_value()

    return types.void(words, types.int64, _MASKS[words.dtype.bitwidth]), codegen


@intrinsic
def blend(typing_context: Any, mask: LaneType, chosen: LaneType, otherwise: LaneType) -> Any:
    """Return, lane by lane, `chosen` where `mask` is set and `otherwise` where it is not."""

    def codegen(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        return builder.select(*args)

    return chosen(mask, chosen, otherwise), codegen


@intrinsic
def load_at(typing_context: Any, numbers: types.Array, position: types.Integer) -> Any:
    """Return the numbers of an array (n,) from `position` on, as one vector."""
    result = _VALUES[numbers.dtype]

    def codegen(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        value = builder.load(builder.bitcast(builder.gep(data, [args[1]]), result.llvm.as_pointer()))
        value.align = sig.args[0].dtype.bitwidth // 8
        return value

    return result(numbers, types.int64), codegen


@intrinsic
def load_converted(typing_context: Any, like: LaneType, numbers: types.Array, position: types.Integer) -> Any:
    """Return the numbers of an array (n,) of any precision from `position` on, as a vector of the type of `like`."""

    def codegen(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        element = _VALUES[sig.args[1].dtype].llvm.element
        given = ir.VectorType(element, like.width)
        data = context.make_array(sig.args[1])(context, builder, args[1]).data
        value = builder.load(builder.bitcast(builder.gep(data, [args[2]]), given.as_pointer()))
        value.align = sig.args[1].dtype.bitwidth // 8
        if element == like.llvm.element:
            return value
        widen = sig.args[1].dtype.bitwidth == 32
        return builder.fpext(value, like.llvm) if widen else builder.fptrunc(value, like.llvm)

    return like(like, numbers, types.int64), codegen


@intrinsic
def least(typing_context: Any, values: LaneType) -> Any:
    """Return the smallest number of a vector, none of which is NaN."""

    def codegen(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        vector, width = args[0], values.width
        while width > 1:  # the upper half beside the lower
            width //= 2
            nothing = ir.Constant(ir.VectorType(vector.type.element, 2 * width), ir.Undefined)
            halves = [
                ir.Constant(ir.VectorType(ir.IntType(32), width), list(range(begin, begin + width)))
                for begin in (0, width)
            ]
            low, high = (builder.shuffle_vector(vector, nothing, half) for half in halves)
            vector = builder.select(builder.fcmp_ordered("<", low, high), low, high)
        return builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))

    return values.element(values), codegen


@intrinsic
def prefetch(typing_context: Any, numbers: types.Array, position: types.Integer) -> Any:
    """Ask for the numbers of an array (n,) around `position` to be brought to the cache; any position is allowed."""

    def codegen(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        address = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(8).as_pointer())
        word = ir.IntType(32)
        form = ir.FunctionType(ir.VoidType(), [address.type, word, word, word])
        name = "llvm.prefetch.p0i8"
        function = builder.module.globals.get(name) or ir.Function(builder.module, form, name)
        builder.call(function, [address, word(0), word(2), word(1)])  # to read, and not only once
        return context.get_dummy_value()

    return types.void(numbers, types.int64), codegen


@intrinsic
def sum_four(typing_context: Any, a: LaneType, b: LaneType, c: LaneType, d: LaneType) -> Any:
    """Return the sums of the numbers of four vectors, each in the lanes of its number modulo four.

    Neighbours are added first, then the neighbours among these sums, and so on.
    """

    def codegen(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        def add_neighbours(x: Any, y: Any, n_sums: int) -> Any:
            places = [
                ir.Constant(ir.VectorType(ir.IntType(32), n_sums), list(range(begin, 2 * n_sums, 2)))
                for begin in (0, 1)
            ]
            even, odd = (builder.shuffle_vector(x, y, place) for place in places)
            return builder.fadd(even, odd)

        first, second, third, fourth = args
        halves = add_neighbours(first, second, a.width), add_neighbours(third, fourth, a.width)
        vector = add_neighbours(halves[0], halves[1], a.width)
        while vector.type.count > 4:
            vector = add_neighbours(vector, vector, vector.type.count // 2)
        repeated = ir.Constant(ir.VectorType(ir.IntType(32), a.width), [lane % 4 for lane in range(a.width)])
        return builder.shuffle_vector(vector, vector, repeated)

    return a(a, b, c, d), codegen


@intrinsic
def bits_of(typing_context: Any, mask: LaneType) -> Any:
    """Return a mask as a number, bit l for lane l."""

    def codegen(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        return builder.zext(builder.bitcast(args[0], ir.IntType(mask.width)), ir.IntType(64))

    return types.int64(mask), codegen


@intrinsic
def fused(typing_context: Any, a: LaneType, b: LaneType, c: LaneType) -> Any:
    """Return a · b + c, rounded once: the same bits everywhere, by a call for each number where there is no command."""

    def codegen(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        vector = args[0].type
        name = f"llvm.fma.v{a.width}f{a.element.bitwidth}"
        form = ir.FunctionType(vector, [vector] * 3)
        function = builder.module.globals.get(name) or ir.Function(builder.module, form, name)
        return builder.call(function, args)

    return a(a, b, c), codegen


@intrinsic
def first_bit(typing_context: Any, bits: types.Integer) -> Any:
    """Return the place of the lowest bit that is set; `bits` (int64) is not 0."""

    def codegen(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), codegen
