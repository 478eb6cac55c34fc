"""Vector types for numba, whose values hold one number for each of several individuals.

A kernel for a population gives each individual a *lane*: 16 individuals in single precision, 8 in double. The compiler
vectorises only simple loops by itself; without these types a pair pass is four times slower. On processors with
narrower registers LLVM splits the vectors; the arithmetic, and so every bit of the result, stays the same.

Arrays of lanes are C-contiguous with shape ``(n, lanes(dtype))``. There is no bounds check.
"""

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.base import BaseContext
from numba.core.datamodel import DataModelManager
from numba.core.typing.templates import ConcreteTemplate, Signature, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

from moerank.arrays import FloatType

Build: TypeAlias = Callable[..., ir.Value | None]
Lowering: TypeAlias = Callable[[BaseContext, ir.IRBuilder, Signature, Sequence[ir.Value]], ir.Value]
Intrinsic: TypeAlias = tuple[Signature, Lowering]

INT32, INT64 = ir.IntType(32), ir.IntType(64)
_WIDTH = {types.float32: 16, types.float64: 8}


def lanes(dtype: FloatType) -> int:
    """Return the number of individuals that share one vector of `dtype`: 16 for float32, 8 for float64."""
    return 64 // np.dtype(dtype).itemsize


def word_type(n_lanes: int) -> type[np.unsignedinteger[Any]]:
    """Return the integer type that has one bit for each lane of a vector."""
    return np.uint16 if n_lanes == 16 else np.uint8


class LaneType(types.Type):
    """The numba type of a vector; `element` is a float type, or boolean for the result of a comparison."""

    def __init__(self, element: types.Type, width: int) -> None:
        self.element = element
        self.width = width
        super().__init__(name=f"lanes({element}, {width})")

    @property
    def llvm(self) -> ir.VectorType:
        """The LLVM type of the vector."""
        scalar = {
            types.float32: ir.FloatType(),
            types.float64: ir.DoubleType(),
            types.boolean: ir.IntType(1),
        }
        return ir.VectorType(scalar[self.element], self.width)


@register_model(LaneType)
class _LaneModel(models.PrimitiveModel):
    def __init__(self, manager: DataModelManager, lane_type: LaneType) -> None:
        super().__init__(manager, lane_type, lane_type.llvm)


_VALUES = {element: LaneType(element, width) for element, width in _WIDTH.items()}
_MASKS = {width: LaneType(types.boolean, width) for width in _WIDTH.values()}


def _define(
    operation: Callable[..., object], build: Build, operand: LaneType, result: LaneType
) -> None:
    """Register a binary `operation` with numba; `build` makes its code from the LLVM values."""

    class Template(ConcreteTemplate):
        key = operation
        cases = (signature(result, operand, operand),)

    infer_global(operation)(Template)
    lower = lower_builtin(operation, operand, operand)
    lower(lambda context, builder, sig, args: build(builder, *args))


def _comparison(sign: str) -> Build:
    return lambda builder, a, b: builder.fcmp_ordered(sign, a, b)


for _element, _values in _VALUES.items():
    _mask = _MASKS[_WIDTH[_element]]
    _define(operator.add, ir.IRBuilder.fadd, _values, _values)
    _define(operator.sub, ir.IRBuilder.fsub, _values, _values)
    _define(operator.mul, ir.IRBuilder.fmul, _values, _values)
    _define(operator.truediv, ir.IRBuilder.fdiv, _values, _values)
    _define(operator.gt, _comparison(">"), _values, _mask)
    _define(operator.ge, _comparison(">="), _values, _mask)
    _define(operator.eq, _comparison("=="), _values, _mask)
for _mask in _MASKS.values():
    _define(operator.and_, ir.IRBuilder.and_, _mask, _mask)


def _lowered(sig: Signature, build: Build) -> Intrinsic:
    """Return the signature and code generator of an intrinsic; `build` takes LLVM values, pointers for arrays."""

    def lower(
        context: BaseContext, builder: ir.IRBuilder, sig: Signature, args: Sequence[ir.Value]
    ) -> ir.Value:
        values = [
            context.make_array(kind)(context, builder, value).data
            if isinstance(kind, types.Array)
            else value
            for kind, value in zip(sig.args, args, strict=True)
        ]
        result = build(builder, *values)
        return context.get_dummy_value() if sig.return_type == types.void else result

    return sig, lower


def _row(builder: ir.IRBuilder, numbers: ir.Value, row: ir.Value, vector: LaneType) -> ir.Value:
    """Return the pointer to a row of a lane array, as one vector."""
    pointer = builder.gep(numbers, [builder.mul(row, INT64(vector.width))])
    return builder.bitcast(pointer, vector.llvm.as_pointer())


def _indices(numbers: Iterable[int]) -> ir.Constant:
    indices = list(numbers)
    return ir.Constant(ir.VectorType(INT32, len(indices)), indices)


def _undefined(vector: ir.VectorType) -> ir.Constant:
    return ir.Constant(vector, ir.Undefined)


def _external(
    builder: ir.IRBuilder, name: str, result: ir.Type, *arguments: ir.Type
) -> ir.Function:
    """Return the function of LLVM with this name."""
    return builder.module.declare_intrinsic(name, (), ir.FunctionType(result, arguments))


@intrinsic
def load(typing_context: BaseContext, array: types.Array, row: types.Integer) -> Intrinsic:
    """Return row `row` of a lane array as one vector."""
    vector = _VALUES[array.dtype]

    return _lowered(
        vector(array, types.int64),
        lambda builder, numbers, row: builder.load(
            _row(builder, numbers, row, vector), align=array.dtype.bitwidth // 8
        ),
    )


@intrinsic
def store(
    typing_context: BaseContext, array: types.Array, row: types.Integer, value: LaneType
) -> Intrinsic:
    """Write one vector to row `row` of a lane array."""
    vector = _VALUES[array.dtype]

    return _lowered(
        types.void(array, types.int64, vector),
        lambda builder, numbers, row, value: builder.store(
            value, _row(builder, numbers, row, vector), align=array.dtype.bitwidth // 8
        ),
    )


@intrinsic
def spread(typing_context: BaseContext, number: types.Float) -> Intrinsic:
    """Return a vector with `number` in every lane."""
    vector = _VALUES[number]

    def build(builder: ir.IRBuilder, number: ir.Value) -> ir.Value:
        lane = builder.insert_element(_undefined(vector.llvm), number, INT32(0))
        return builder.shuffle_vector(lane, lane, _indices([0] * vector.width))

    return _lowered(vector(number), build)


@intrinsic
def load_mask(typing_context: BaseContext, words: types.Array, index: types.Integer) -> Intrinsic:
    """Return the bits of ``words[index]`` (uint16 or uint8, bit l for lane l) as one mask."""
    mask = _MASKS[words.dtype.bitwidth]

    return _lowered(
        mask(words, types.int64),
        lambda builder, words, index: builder.bitcast(
            builder.load(builder.gep(words, [index])), mask.llvm
        ),
    )


@intrinsic
def store_mask(
    typing_context: BaseContext, words: types.Array, index: types.Integer, mask: LaneType
) -> Intrinsic:
    """Write a mask to the bits of ``words[index]``."""
    word = ir.IntType(words.dtype.bitwidth)
    return _lowered(
        types.void(words, types.int64, mask),
        lambda builder, words, index, mask: builder.store(
            builder.bitcast(mask, word), builder.gep(words, [index])
        ),
    )


@intrinsic
def store_eight(
    typing_context: BaseContext,
    words: types.Array,
    start: types.Integer,
    rows: types.Array,
    n_bytes: types.Integer,
    byte: types.Integer,
) -> Intrinsic:
    """Write the bits of a byte of each row, the highest first, to eight words from `start` on, bit l for row l.

    `rows` (lanes, n_bytes) is C-contiguous.
    """
    width, octet = words.dtype.bitwidth, ir.IntType(8)

    def build(
        builder: ir.IRBuilder,
        words: ir.Value,
        start: ir.Value,
        rows: ir.Value,
        n_bytes: ir.Value,
        position: ir.Value,
    ) -> None:
        bits = _undefined(ir.VectorType(octet, width))
        for row in range(width):
            bits = builder.insert_element(
                bits, builder.load(builder.gep(rows, [position])), INT32(row)
            )
            position = builder.add(position, n_bytes)
        for k in range(8):
            highest = builder.icmp_signed("<", bits, ir.Constant(bits.type, None))
            word = builder.bitcast(highest, ir.IntType(width))
            builder.store(word, builder.gep(words, [builder.add(start, INT64(k))]))
            bits = builder.add(bits, bits)

    return _lowered(types.void(words, types.int64, rows, types.int64, types.int64), build)


@intrinsic
def blend(
    typing_context: BaseContext, mask: LaneType, value: LaneType, otherwise: LaneType
) -> Intrinsic:
    """Return, lane by lane, `value` where `mask` is set and `otherwise` where it is not."""
    return _lowered(value(mask, value, otherwise), ir.IRBuilder.select)


@intrinsic
def load_at(
    typing_context: BaseContext, like: LaneType, array: types.Array, position: types.Integer
) -> Intrinsic:
    """Return the numbers of an array (n,) of any precision from `position` on, as a vector of the type of `like`."""
    number = _VALUES[array.dtype].llvm.element
    source = ir.VectorType(number, like.width)

    def build(
        builder: ir.IRBuilder, _: ir.Value, numbers: ir.Value, position: ir.Value
    ) -> ir.Value:
        pointer = builder.bitcast(builder.gep(numbers, [position]), source.as_pointer())
        value = builder.load(pointer, align=array.dtype.bitwidth // 8)
        if array.dtype == like.element:
            return value
        convert = builder.fptrunc if array.dtype == types.float64 else builder.fpext
        return convert(value, like.llvm)

    return _lowered(like(like, array, types.int64), build)


@intrinsic
def least(typing_context: BaseContext, values: LaneType) -> Intrinsic:
    """Return the smallest number of a vector, none of which is NaN."""

    def build(builder: ir.IRBuilder, vector: ir.Value) -> ir.Value:
        while (n := vector.type.count) > 1:  # compare the upper half with the lower
            low = builder.shuffle_vector(vector, _undefined(vector.type), _indices(range(n // 2)))
            high = builder.shuffle_vector(
                vector, _undefined(vector.type), _indices(range(n // 2, n))
            )
            vector = builder.select(builder.fcmp_ordered("<", low, high), low, high)
        return builder.extract_element(vector, INT32(0))

    return _lowered(values.element(values), build)


@intrinsic
def prefetch(
    typing_context: BaseContext, numbers: types.Array, position: types.Integer
) -> Intrinsic:
    """Bring the numbers of an array (n,) around `position` into the cache; any position is allowed."""

    def build(builder: ir.IRBuilder, numbers: ir.Value, position: ir.Value) -> None:
        address = builder.bitcast(builder.gep(numbers, [position]), ir.IntType(8).as_pointer())
        function = _external(
            builder, "llvm.prefetch.p0i8", ir.VoidType(), address.type, INT32, INT32, INT32
        )
        # For reading, and more than once.
        builder.call(function, [address, INT32(0), INT32(2), INT32(1)])

    return _lowered(types.void(numbers, types.int64), build)


@intrinsic
def sum_four(
    typing_context: BaseContext, a: LaneType, b: LaneType, c: LaneType, d: LaneType
) -> Intrinsic:
    """Return the sums of four vectors; lane l has the sum of vector l modulo four.

    Neighbours are added first, then the neighbours among these sums, and so on.
    """

    def build(builder: ir.IRBuilder, *vectors: ir.Value) -> ir.Value:
        def add_neighbours(x: ir.Value, y: ir.Value, n_sums: int) -> ir.Value:
            evens = builder.shuffle_vector(x, y, _indices(range(0, 2 * n_sums, 2)))
            odds = builder.shuffle_vector(x, y, _indices(range(1, 2 * n_sums, 2)))
            return builder.fadd(evens, odds)

        v0, v1, v2, v3 = vectors
        halves = add_neighbours(v0, v1, a.width), add_neighbours(v2, v3, a.width)
        vector = add_neighbours(*halves, a.width)
        while vector.type.count > 4:
            vector = add_neighbours(vector, vector, vector.type.count // 2)
        return builder.shuffle_vector(vector, vector, _indices(lane % 4 for lane in range(a.width)))

    return _lowered(a(a, b, c, d), build)


@intrinsic
def bits_of(typing_context: BaseContext, mask: LaneType) -> Intrinsic:
    """Return a mask as a number, bit l for lane l."""
    word = ir.IntType(mask.width)
    return _lowered(
        types.int64(mask),
        lambda builder, values: builder.zext(builder.bitcast(values, word), INT64),
    )


@intrinsic
def put(
    typing_context: BaseContext, vectors: types.UniTuple, index: types.Integer, vector: LaneType
) -> Intrinsic:
    """Return a tuple of vectors with another one at an index, which is constant where the compiler unrolls a loop."""

    def build(builder: ir.IRBuilder, old: ir.Value, index: ir.Value, vector: ir.Value) -> ir.Value:
        new = old
        for i in range(vectors.count):
            is_there = builder.icmp_signed("==", index, INT64(i))
            entry = builder.select(is_there, vector, builder.extract_value(old, i))
            new = builder.insert_value(new, entry, i)
        return new

    return _lowered(vectors(vectors, types.int64, vector), build)


@intrinsic
def fused(typing_context: BaseContext, a: LaneType, b: LaneType, c: LaneType) -> Intrinsic:
    """Return a · b + c, rounded once. The bits are the same on processors without such an instruction."""

    def build(builder: ir.IRBuilder, *vectors: ir.Value) -> ir.Value:
        name = f"llvm.fma.v{a.width}f{a.element.bitwidth}"
        return builder.call(_external(builder, name, a.llvm, *[a.llvm] * 3), vectors)

    return _lowered(a(a, b, c), build)


@intrinsic
def first_bit(typing_context: BaseContext, bits: types.Integer) -> Intrinsic:
    """Return the index of the lowest bit that is set; `bits` (int64) is not 0."""
    return _lowered(
        types.int64(types.int64), lambda builder, value: builder.cttz(value, ir.IntType(1)(1))
    )
