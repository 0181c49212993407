// Fused loops worked out one element at a time, with no tiles, no collapsing and no direct loops: what FusedKernel is
// held to.
#pragma once

#include <cstring>
#include <vector>

#include "service/kernels/fused/fused_loop.h"

namespace meshd::kernels {

using Bytes = std::vector<std::byte>;

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

template <class T>
std::vector<T> values_of(const Bytes& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

/// Runs a program on one lane.
inline std::vector<Bytes> run_one(const TileProgram& program, const std::vector<Bytes>& inputs) {
  TileScratch scratch(program, 1);
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::memcpy(scratch.reg(static_cast<uint16_t>(i)), inputs[i].data(), inputs[i].size());
  }
  run_tile(program, scratch, 1);
  std::vector<Bytes> outputs;
  for (const uint16_t reg : program.outputs) {
    const std::byte* const lane = scratch.reg(reg);
    outputs.emplace_back(lane, lane + tensor::size_bytes(program.registers[reg]));
  }
  return outputs;
}

/// The element of an input at an index of the iteration space.
inline Bytes input_at(const FusedLoop& loop, size_t i, const tensor::Dims& index, const std::vector<Bytes>& operands,
                      const tensor::Dims& dim_offsets) {
  const FusedInput& input = loop.inputs[i];
  const tensor::DType dtype = loop.program.registers[i];
  const auto size = static_cast<size_t>(tensor::size_bytes(dtype));
  Bytes element(size);
  if (input.kind == FusedInput::Kind::kIota) {
    const auto dim = static_cast<size_t>(input.iota_dim);
    const int64_t value = index[dim] + dim_offsets[dim];
    const auto* const from = reinterpret_cast<const std::byte*>(&value);
    find_scalar_kernel(ScalarOp::kConvert, tensor::DType::kInt64, dtype)(&from, element.data(), 1);
    return element;
  }
  int64_t place = input.offset;
  for (size_t d = 0; d < index.size(); ++d) place += index[d] * input.strides[d];
  const Bytes& operand = operands[static_cast<size_t>(input.operand)];
  std::memcpy(element.data(), operand.data() + place * static_cast<int64_t>(size), size);
  return element;
}

/// The results of a fused loop.
inline std::vector<Bytes> run_naively(const FusedLoop& loop, const std::vector<Bytes>& operands,
                                      const tensor::Dims& dim_offsets) {
  const size_t rank = loop.dims.size();
  std::vector<bool> reduced(rank, false);
  if (loop.reduce) {
    for (const int dim : loop.reduce->dims) reduced[static_cast<size_t>(dim)] = true;
  }
  int64_t results = 1;
  for (size_t d = 0; d < rank; ++d) results *= reduced[d] ? 1 : loop.dims[d];
  std::vector<std::vector<Bytes>> sums(static_cast<size_t>(results));
  std::vector<Bytes> init;
  if (loop.reduce) {
    for (const int operand : loop.reduce->init_operands) init.push_back(operands[static_cast<size_t>(operand)]);
    for (auto& sum : sums) sum = init;
  }
  const int64_t total = tensor::element_count(loop.dims);
  tensor::Dims index(rank, 0);
  for (int64_t flat = 0; flat < total; ++flat) {
    int64_t rest = flat;
    for (size_t d = rank; d-- > 0;) {
      index[d] = rest % loop.dims[d];
      rest /= loop.dims[d];
    }
    int64_t place = 0;
    for (size_t d = 0; d < rank; ++d) {
      if (!reduced[d]) place = place * loop.dims[d] + index[d];
    }
    std::vector<Bytes> inputs;
    for (size_t i = 0; i < loop.inputs.size(); ++i) inputs.push_back(input_at(loop, i, index, operands, dim_offsets));
    std::vector<Bytes> values = run_one(loop.program, inputs);
    auto& sum = sums[static_cast<size_t>(place)];
    if (!loop.reduce) {
      sum = std::move(values);
      continue;
    }
    std::vector<Bytes> both = sum;
    both.insert(both.end(), values.begin(), values.end());
    sum = run_one(loop.reduce->reducer, both);
  }
  std::vector<Bytes> outputs(loop.program.outputs.size());
  for (const auto& sum : sums) {
    for (size_t k = 0; k < sum.size(); ++k) outputs[k].insert(outputs[k].end(), sum[k].begin(), sum[k].end());
  }
  return outputs;
}

/// Runs the kernel, its work items cut at the given places.
inline std::vector<Bytes> run_kernel(const FusedKernel& kernel, const std::vector<Bytes>& operands,
                                     const std::vector<int64_t>& cuts, const tensor::Dims& dim_offsets) {
  const FusedLoop& loop = kernel.loop();
  int64_t results = 1;
  for (size_t d = 0; d < loop.dims.size(); ++d) {
    bool is_reduced = false;
    if (loop.reduce) {
      for (const int dim : loop.reduce->dims) is_reduced = is_reduced || static_cast<size_t>(dim) == d;
    }
    results *= is_reduced ? 1 : loop.dims[d];
  }
  std::vector<Bytes> outputs;
  std::vector<std::byte*> result_memory;
  std::vector<const std::byte*> operand_memory;
  for (const uint16_t reg : loop.program.outputs) {
    outputs.emplace_back(static_cast<size_t>(results * tensor::size_bytes(loop.program.registers[reg])),
                         std::byte{0xAB});
  }
  for (Bytes& output : outputs) result_memory.push_back(output.data());
  for (const Bytes& operand : operands) operand_memory.push_back(operand.data());
  FusedCall call;
  call.operands = operand_memory.data();
  call.results = result_memory.data();
  call.dim_offsets = dim_offsets.data();
  Bytes workspace(static_cast<size_t>(kernel.workspace_bytes()), std::byte{0xCD});
  call.workspace = workspace.data();
  int64_t from = 0;
  for (const int64_t cut : cuts) {
    call.begin = from;
    call.end = cut;
    kernel.run(call);
    from = cut;
  }
  call.begin = from;
  call.end = kernel.work_count();
  kernel.run(call);
  return outputs;
}

}  // namespace meshd::kernels
