#!/usr/bin/env python3
"""Shapes that depend on data, against NumPy on the elements that are there, and the same over meshes: bounded_shapes_test.py BINARY.

Each program makes a value of a bounded type with a size that is an argument, and has one op (or a loop, a branch, a call) on it. The bounds
and the padding must not show, wherever the padding is: every program runs with several sizes, whole and over 2 and 3 devices.
"""
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
from server import Meshd, ok  # noqa: E402

f=np.float32
B="tensor<?xf32, #stablehlo.bounds<8>>"
def P(sig, body, ret, rt): return f"func.func public @main({sig}) -> ({rt}) {{\n{body}\n return {ret} : {rt}\n}}"
X=np.arange(1,9,dtype=f)
X2=np.arange(1,33,dtype=f).reshape(8,4)
S=f"%0 = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<8xf32>, tensor<i32>) -> {B}\n"
S2="tensor<?x4xf32, #stablehlo.bounds<8, ?>>"
SS=f"%0 = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<8x4xf32>, tensor<i32>) -> {S2}\n"
sig="%x: tensor<8xf32>, %n: tensor<i32>"
sig2="%x: tensor<8x4xf32>, %n: tensor<i32>"
Z="%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
C=[]
def add(name, text, mk, ns=(0,1,3,5,8)):
    for n in ns: C.append((f"{name}[{n}]", text, [mk, np.int32(n)] if not callable(mk) else mk(n)))
add("set", P(sig,S,"%0",B), X)
add("set2", P(sig2,SS,"%0",S2), X2)
add("neg", P(sig,S+f"%1 = stablehlo.negate %0 : {B}\n%2 = stablehlo.multiply %1, %0 : {B}","%2",B), X)
add("get", P(sig,S+f"%1 = stablehlo.get_dimension_size %0, dim = 0 : ({B}) -> tensor<i32>","%1","tensor<i32>"), X)
for op in ("add","multiply","maximum","minimum"):
    add("reduce_"+op, P(sig,S+Z.replace("0.0","1.0" if op=="multiply" else "0.0")+f"%1 = stablehlo.reduce(%0 init: %z) applies stablehlo.{op} across dimensions = [0] : ({B}, tensor<f32>) -> tensor<f32>","%1","tensor<f32>"), X)
add("reduce_minor", P(sig2,SS+Z+f"%1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [1] : ({S2}, tensor<f32>) -> {B}","%1",B), X2)
add("reduce_major", P(sig2,SS+Z+f"%1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [0] : ({S2}, tensor<f32>) -> tensor<4xf32>","%1","tensor<4xf32>"), X2)
T2="tensor<4x?xf32, #stablehlo.bounds<?, 8>>"
add("transpose", P(sig2,SS+f"%1 = stablehlo.transpose %0, dims = [1, 0] : ({S2}) -> {T2}","%1",T2), X2)
add("dot_contract", P(sig2,SS+f"%1 = stablehlo.dot_general %0, %0, contracting_dims = [0] x [0] : ({S2}, {S2}) -> tensor<4x4xf32>","%1","tensor<4x4xf32>"), X2)
SQ="tensor<?x?xf32, #stablehlo.bounds<8, 8>>"
add("dot_free", P(sig2,SS+f"%1 = stablehlo.dot_general %0, %0, contracting_dims = [1] x [1] : ({S2}, {S2}) -> {SQ}","%1",SQ), X2)
add("reverse", P(sig,S+f"%1 = stablehlo.reverse %0, dims = [0] : {B}","%1",B), X)
B16="tensor<?xf32, #stablehlo.bounds<16>>"
add("concat", P(sig,S+f"%1 = stablehlo.concatenate %0, %0, dim = 0 : ({B}, {B}) -> {B16}","%1",B16), X)
add("concat_static", P(sig,S+f"%1 = stablehlo.concatenate %0, %x, dim = 0 : ({B}, tensor<8xf32>) -> {B16}","%1",B16), X)
B11="tensor<?xf32, #stablehlo.bounds<11>>"
add("pad", P(sig,S+Z.replace('0.0','7.0')+f"%1 = stablehlo.pad %0, %z, low = [1], high = [2], interior = [0] : ({B}, tensor<f32>) -> {B11}","%1",B11), X)
B17="tensor<?xf32, #stablehlo.bounds<17>>"
add("pad_int", P(sig,S+Z.replace('0.0','7.0')+f"%1 = stablehlo.pad %0, %z, low = [1], high = [1], interior = [1] : ({B}, tensor<f32>) -> {B17}","%1",B17), X, ns=(1,3,5,8))
B32="tensor<?xf32, #stablehlo.bounds<32>>"
add("reshape_merge", P(sig2,SS+f"%1 = stablehlo.reshape %0 : ({S2}) -> {B32}","%1",B32), X2)
add("dyn_reshape", P(sig2,SS+f"""%g = stablehlo.get_dimension_size %0, dim = 0 : ({S2}) -> tensor<i32>
%c4 = stablehlo.constant dense<4> : tensor<i32>
%m = stablehlo.multiply %g, %c4 : tensor<i32>
%s = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>
%1 = stablehlo.dynamic_reshape %0, %s : ({S2}, tensor<1xi32>) -> {B32}""","%1",B32), X2)
# transposed then merge (minor bounded): needs compaction
add("reshape_compact", P(sig2,SS+f"""%t = stablehlo.transpose %0, dims = [1, 0] : ({S2}) -> {T2}
%1 = stablehlo.reshape %t : ({T2}) -> {B32}""","%1",B32), X2)
add("dyn_iota", P("%n: tensor<i32>",f"%s = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>\n%1 = stablehlo.dynamic_iota %s, dim = 0 : (tensor<1xi32>) -> {B}","%1",B), lambda n:[np.int32(n)])
add("dyn_bcast", P("%x: tensor<f32>, %n: tensor<i32>",f"%s = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>\n%1 = stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [] : (tensor<f32>, tensor<1xi32>) -> {B}","%1",B), f(3))
add("dyn_bcast_of_bounded", P(sig,S+f"""%g = stablehlo.get_dimension_size %0, dim = 0 : ({B}) -> tensor<i32>
%g1 = stablehlo.reshape %g : (tensor<i32>) -> tensor<1xi32>
%c = stablehlo.constant dense<3> : tensor<1xi32>
%s = stablehlo.concatenate %c, %g1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
%1 = stablehlo.dynamic_broadcast_in_dim %0, %s, dims = [1] : ({B}, tensor<2xi32>) -> tensor<3x?xf32, #stablehlo.bounds<?, 8>>""","%1","tensor<3x?xf32, #stablehlo.bounds<?, 8>>"), X)
add("rds", P(sig,f"""%o = stablehlo.constant dense<1> : tensor<1xi32>
%s = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
%1 = stablehlo.real_dynamic_slice %x, %o, %s, %o : (tensor<8xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> {B}""","%1",B), X, ns=(1,3,5,8))
add("dyn_pad", P(sig,f"""%o = stablehlo.constant dense<1> : tensor<1xi32>
%zz = stablehlo.constant dense<0> : tensor<1xi32>
%p = stablehlo.constant dense<9.0> : tensor<f32>
%s = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
%1 = stablehlo.dynamic_pad %x, %p, %s, %o, %zz : (tensor<8xf32>, tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> {B17}""","%1",B17), X)
add("sort", P(sig,S+f"""%1 = "stablehlo.sort"(%0) <{{dimension = 0 : i64, is_stable = true}}> ({{
^bb0(%a: tensor<f32>, %b: tensor<f32>):
 %c = stablehlo.compare GT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
 stablehlo.return %c : tensor<i1>
}}) : ({B}) -> {B}""","%1",B), X[[3,1,6,0,7,2,5,4]])
add("while", P(sig,S+f"""%i0 = stablehlo.constant dense<0> : tensor<i32>
%c3 = stablehlo.constant dense<3> : tensor<i32>
%c1 = stablehlo.constant dense<1> : tensor<i32>
%r:2 = stablehlo.while(%i = %i0, %v = %0) : tensor<i32>, {B}
cond {{
 %p = stablehlo.compare LT, %i, %c3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
 stablehlo.return %p : tensor<i1>
}} do {{
 %j = stablehlo.add %i, %c1 : tensor<i32>
 %g = stablehlo.get_dimension_size %v, dim = 0 : ({B}) -> tensor<i32>
 %h = stablehlo.subtract %g, %c1 : tensor<i32>
 %z0 = stablehlo.maximum %h, %i0 : tensor<i32>
 %w = stablehlo.set_dimension_size %v, %z0, dim = 0 : ({B}, tensor<i32>) -> {B}
 %w2 = stablehlo.add %w, %w : {B}
 stablehlo.return %j, %w2 : tensor<i32>, {B}
}}""","%r#1",B), X)
add("if", P(sig,S+f"""%c3 = stablehlo.constant dense<3> : tensor<i32>
%p = stablehlo.compare LT, %n, %c3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
%r = "stablehlo.if"(%p) ({{
 %w = stablehlo.set_dimension_size %x, %c3, dim = 0 : (tensor<8xf32>, tensor<i32>) -> {B}
 stablehlo.return %w : {B}
}}, {{
 %w = stablehlo.negate %0 : {B}
 stablehlo.return %w : {B}
}}) : (tensor<i1>) -> {B}""","%r",B), X)
add("gather_idx", P("%x: tensor<8xi32>, %n: tensor<i32>, %t: tensor<5xf32>","""%0 = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<8xi32>, tensor<i32>) -> tensor<?xi32, #stablehlo.bounds<8>>
%1 = "stablehlo.gather"(%t, %0) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>, indices_are_sorted = false}> : (tensor<5xf32>, tensor<?xi32, #stablehlo.bounds<8>>) -> """+B,"%1",B), lambda n:[np.array([0,4,2,9,1,3,-2,0],np.int32),np.int32(n),np.arange(10,15,dtype=f)])
add("gather_op", P("%x: tensor<8xf32>, %n: tensor<i32>, %t: tensor<5xi32>",S+"""%1 = "stablehlo.gather"(%0, %t) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>, indices_are_sorted = false}> : ("""+B+""", tensor<5xi32>) -> tensor<5xf32>""","%1","tensor<5xf32>"), lambda n:[X,np.int32(n),np.array([0,4,2,9,1],np.int32)], ns=(1,3,5,8))
add("scatter", P("%x: tensor<8xi32>, %n: tensor<i32>, %t: tensor<5xf32>, %u: tensor<8xf32>","""%0 = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<8xi32>, tensor<i32>) -> tensor<?xi32, #stablehlo.bounds<8>>
%v = stablehlo.set_dimension_size %u, %n, dim = 0 : (tensor<8xf32>, tensor<i32>) -> """+B+"""
%1 = "stablehlo.scatter"(%t, %0, %v) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false}> ({
^bb0(%a: tensor<f32>, %b: tensor<f32>):
 %c = stablehlo.add %a, %b : tensor<f32>
 stablehlo.return %c : tensor<f32>
}) : (tensor<5xf32>, tensor<?xi32, #stablehlo.bounds<8>>, """+B+""") -> tensor<5xf32>""","%1","tensor<5xf32>"), lambda n:[np.array([0,4,2,3,1,3,2,0],np.int32),np.int32(n),np.arange(10,15,dtype=f),X])
add("dyn_slice", P(sig,S+f"%c = stablehlo.constant dense<6> : tensor<i32>\n%1 = stablehlo.dynamic_slice %0, %c, sizes = [3] : ({B}, tensor<i32>) -> tensor<3xf32>","%1","tensor<3xf32>"), X, ns=(3,5,8))
add("dus", P(sig,S+f"%c = stablehlo.constant dense<6> : tensor<i32>\n%u = stablehlo.constant dense<[-1.0, -2.0]> : tensor<2xf32>\n%1 = stablehlo.dynamic_update_slice %0, %u, %c : ({B}, tensor<2xf32>, tensor<i32>) -> {B}","%1",B), X, ns=(2,3,5,8))
add("dus_bounded_update", P("%x: tensor<8xf32>, %n: tensor<i32>, %y: tensor<10xf32>",S+f"%c = stablehlo.constant dense<4> : tensor<i32>\n%1 = stablehlo.dynamic_update_slice %y, %0, %c : (tensor<10xf32>, {B}, tensor<i32>) -> tensor<10xf32>","%1","tensor<10xf32>"), lambda n:[X,np.int32(n),-np.arange(10,dtype=f)])
RW=lambda w,s,lo,hi,res: f"""%1 = "stablehlo.reduce_window"(%0, %z) <{{window_dimensions = array<i64: {w}>, window_strides = array<i64: {s}>, base_dilations = array<i64: 1>, window_dilations = array<i64: 1>, padding = dense<[[{lo}, {hi}]]> : tensor<1x2xi64>}}> ({{
^bb0(%a: tensor<f32>, %b: tensor<f32>):
 %c = stablehlo.add %a, %b : tensor<f32>
 stablehlo.return %c : tensor<f32>
}}) : ({B}, tensor<f32>) -> {res}"""
B3="tensor<?xf32, #stablehlo.bounds<3>>"
add("rw", P(sig,S+Z+RW(3,2,0,0,B3),"%1",B3), X, ns=(3,5,8))
add("rw_pad", P(sig,S+Z+RW(3,1,1,1,B),"%1",B), X)
CV="tensor<1x?x1xf32, #stablehlo.bounds<?, 6, ?>>"
CI="tensor<1x?x1xf32, #stablehlo.bounds<?, 8, ?>>"
add("conv", P("%x: tensor<1x8x1xf32>, %n: tensor<i32>, %k: tensor<3x1x2xf32>",f"""%0 = stablehlo.set_dimension_size %x, %n, dim = 1 : (tensor<1x8x1xf32>, tensor<i32>) -> {CI}
%1 = stablehlo.convolution(%0, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {{stride = [1], pad = [[1, 1]]}} {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : ({CI}, tensor<3x1x2xf32>) -> tensor<1x?x2xf32, #stablehlo.bounds<?, 8, ?>>""","%1","tensor<1x?x2xf32, #stablehlo.bounds<?, 8, ?>>"), lambda n:[X.reshape(1,8,1),np.int32(n),np.arange(6,dtype=f).reshape(3,1,2)], ns=(1,3,5,8))
add("slice", P(sig,S+f"%1 = stablehlo.slice %0 [0:3] : ({B}) -> tensor<3xf32>","%1","tensor<3xf32>"), X, ns=(3,5,8))
add("bcast", P(sig,S+f"%1 = stablehlo.broadcast_in_dim %0, dims = [0] : ({B}) -> {S2}","%1",S2), X)
add("argmax", P(sig,S+f"""%i = stablehlo.get_dimension_size %0, dim = 0 : ({B}) -> tensor<i32>
%s = stablehlo.reshape %i : (tensor<i32>) -> tensor<1xi32>
%io = stablehlo.dynamic_iota %s, dim = 0 : (tensor<1xi32>) -> tensor<?xi32, #stablehlo.bounds<8>>
%m = stablehlo.constant dense<0xFF800000> : tensor<f32>
%zi = stablehlo.constant dense<0> : tensor<i32>
%r:2 = stablehlo.reduce(%0 init: %m), (%io init: %zi) across dimensions = [0] : ({B}, tensor<?xi32, #stablehlo.bounds<8>>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
 reducer(%a: tensor<f32>, %b: tensor<f32>) (%c: tensor<i32>, %d: tensor<i32>) {{
 %p = stablehlo.compare GE, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
 %v = stablehlo.select %p, %a, %b : tensor<i1>, tensor<f32>
 %w = stablehlo.select %p, %c, %d : tensor<i1>, tensor<i32>
 stablehlo.return %v, %w : tensor<f32>, tensor<i32>
 }}""","%r#1","tensor<i32>"), X[[3,1,6,0,7,2,5,4]], ns=(1,3,5,8))
add("dyn_conv", P("%x: tensor<1x8x1xf32>, %n: tensor<i32>, %k: tensor<3x1x2xf32>","""%s = stablehlo.reshape %n : (tensor<i32>) -> tensor<1x1xi32>
%p = stablehlo.concatenate %s, %s, dim = 1 : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x2xi32>
%1 = "stablehlo.dynamic_conv"(%x, %k, %p) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = 1 : i64}> : (tensor<1x8x1xf32>, tensor<3x1x2xf32>, tensor<1x2xi32>) -> tensor<1x?x2xf32, #stablehlo.bounds<?, 22, ?>>""","%1","tensor<1x?x2xf32, #stablehlo.bounds<?, 22, ?>>"), lambda n:[X.reshape(1,8,1),np.int32(n),np.arange(6,dtype=f).reshape(3,1,2)])
add("dyn_gather", P("%x: tensor<8xf32>, %n: tensor<i32>, %t: tensor<2x1xi32>","""%s = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
%1 = "stablehlo.dynamic_gather"(%x, %t, %s) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false}> : (tensor<8xf32>, tensor<2x1xi32>, tensor<1xi32>) -> tensor<2x?xf32, #stablehlo.bounds<?, 8>>""","%1","tensor<2x?xf32, #stablehlo.bounds<?, 8>>"), lambda n:[X,np.int32(n),np.array([[1],[6]],np.int32)])
add("call", f"""func.func private @f(%v: {B}) -> {B} {{
 %1 = stablehlo.exponential %v : {B}
 return %1 : {B}
}}
"""+P(sig,S+f"%1 = call @f(%0) : ({B}) -> {B}","%1",B), X)
add("arg", P(f"%x: {B}, %n: tensor<i32>",Z+f"""%1 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : ({B}, tensor<f32>) -> tensor<f32>
%2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<4xf32>""","%2","tensor<4xf32>"), lambda n:[X[:n],np.int32(n)], ns=(0,5,8))

def conv_of(x, k, low, high):
    padded = np.pad(x[0, :, 0], (low, high))
    count = max(0, len(padded) - 2)
    return np.array([[padded[i : i + 3] @ k[:, 0] for i in range(count)]], f).reshape(1, count, 2)


def interleaved(x, low, high):
    out = np.full(low + high + max(0, 2 * len(x) - 1), 7, f)
    out[low : len(out) - high : 2] = x
    return out


def windows(x, window, stride, low, high):
    padded = np.pad(x, (low, high))
    return np.array([padded[i : i + window].sum() for i in range(0, len(padded) - window + 1, stride)], f)


def shrunk(x, n):
    for _ in range(3):
        n = max(n - 1, 0)
        x = x * 2
    return x[:n]


def added(x, indices, updates):
    out = x.copy()
    np.add.at(out, indices, updates)
    return out


def updated(x, update, at):
    out = x.copy()
    at = min(at, len(x) - len(update))
    out[at : at + len(update)] = update
    return out


EXPECTED = {
    "set": lambda x, n: x[:n],
    "set2": lambda x, n: x[:n],
    "neg": lambda x, n: -x[:n] * x[:n],
    "get": lambda x, n: np.int32(n),
    "reduce_add": lambda x, n: x[:n].sum(),
    "reduce_multiply": lambda x, n: x[:n].prod(),
    "reduce_maximum": lambda x, n: x[:n].max(initial=0),
    "reduce_minimum": lambda x, n: x[:n].min(initial=0),
    "reduce_minor": lambda x, n: x[:n].sum(axis=1),
    "reduce_major": lambda x, n: x[:n].sum(axis=0),
    "transpose": lambda x, n: x[:n].T,
    "dot_contract": lambda x, n: x[:n].T @ x[:n],
    "dot_free": lambda x, n: x[:n] @ x[:n].T,
    "reverse": lambda x, n: x[:n][::-1],
    "concat": lambda x, n: np.concatenate([x[:n], x[:n]]),
    "concat_static": lambda x, n: np.concatenate([x[:n], x]),
    "pad": lambda x, n: np.pad(x[:n], (1, 2), constant_values=7),
    "pad_int": lambda x, n: interleaved(x[:n], 1, 1),
    "reshape_merge": lambda x, n: x[:n].ravel(),
    "dyn_reshape": lambda x, n: x[:n].ravel(),
    "reshape_compact": lambda x, n: x[:n].T.ravel(),
    "dyn_iota": lambda n: np.arange(n, dtype=f),
    "dyn_bcast": lambda x, n: np.full(n, x),
    "dyn_bcast_of_bounded": lambda x, n: np.stack([x[:n]] * 3),
    "rds": lambda x, n: x[1:n],
    "dyn_pad": lambda x, n: np.pad(x, (n, 1), constant_values=9),
    "sort": lambda x, n: np.sort(x[:n])[::-1],
    "while": lambda x, n: shrunk(x, n),
    "if": lambda x, n: x[:3] if n < 3 else -x[:n],
    "gather_idx": lambda i, n, x: x[np.clip(i[:n], 0, 4)],
    "gather_op": lambda x, n, i: x[np.clip(i, 0, n - 1)],
    "scatter": lambda i, n, x, u: added(x, i[:n], u[:n]),
    "dyn_slice": lambda x, n: x[min(6, n - 3) : min(6, n - 3) + 3],
    "dus": lambda x, n: updated(x[:n], np.array([-1, -2], f), 6),
    "dus_bounded_update": lambda x, n, y: updated(y, x[:n], 4),
    "rw": lambda x, n: windows(x[:n], 3, 2, 0, 0),
    "rw_pad": lambda x, n: windows(x[:n], 3, 1, 1, 1),
    "conv": lambda x, n, k: conv_of(x[:, :n], k, 1, 1),
    "slice": lambda x, n: x[:3],
    "bcast": lambda x, n: np.stack([x[:n]] * 4, axis=1),
    "argmax": lambda x, n: np.int32(x[:n].argmax()),
    "dyn_conv": lambda x, n, k: conv_of(x, k, n, n),
    "dyn_gather": lambda x, n, i: np.stack([x[min(at, 8 - n) : min(at, 8 - n) + n] for at in i[:, 0]]),
    "call": lambda x, n: np.exp(x[:n]),
    "arg": lambda x, n: np.full(4, x.sum()),
}


def value(array):
    array = np.asarray(array)
    return {"dtype": str(array.dtype), "shape": list(array.shape), "data": array.tolist()}


def run(server, text, arguments, devices):
    body = {"program": {"text": text}, "arguments": [value(each) for each in arguments]}
    if devices > 1:
        body["mesh"] = {"axis_names": ["x"], "devices": list(range(devices))}
        body["in_shardings"] = [{"spec": [["x"]] + [[]] * (np.ndim(each) - 1) if np.ndim(each) else []} for each in arguments]
    answer = ok(server.ask("POST", "/v1/run", body))["results"]
    assert len(answer) == 1, f"one result is the program's: {answer}"
    return np.array(answer[0]["data"], float).reshape(answer[0]["shape"])


def main():
    failed = 0
    assert {name.split("[")[0] for name, _, _ in C} == set(EXPECTED)
    with Meshd(sys.argv[1]) as server:
        for name, text, arguments in C:
            wanted = np.asarray(EXPECTED[name.split("[")[0]](*arguments))
            for devices in (1, 2, 3):
                try:
                    got = run(server, text, arguments, devices)
                    assert got.shape == wanted.shape, f"shape {got.shape}, expected {wanted.shape}"
                    np.testing.assert_allclose(got, wanted, rtol=1e-6)
                except AssertionError as error:
                    failed += 1
                    print(f"FAILED {name} on {devices} devices: {error}")
    print(f"{len(C)} programs, {failed} failures")
    return 1 if failed else 0


sys.exit(main())
