#include "service/kernels/movement/scatter.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "service/core/error.h"

namespace meshd::kernels {
namespace {

using tensor::DType;

constexpr int64_t kTuplesAtOnce = 512;

// The body returns its updates unchanged.
bool is_replacement(const TileProgram& body) {
  if (!body.instructions.empty() || body.outputs.size() * 2 != static_cast<size_t>(body.input_count)) return false;
  for (size_t i = 0; i < body.outputs.size(); ++i) {
    if (body.outputs[i] != body.outputs.size() + i) return false;
  }
  return true;
}

// Sums of single elements: the commonest scatter, without a kernel call for each.
template <typename T>
void add_elements(const IndexRun& run, std::byte* array, const std::byte* update) {
  constexpr auto kSize = static_cast<int64_t>(sizeof(T));
  for (size_t i = 0; i < run.operand.size(); ++i) {
    if (run.operand[i] < 0) continue;
    std::byte* at = array + run.operand[i] * kSize;
    T sum;
    T more;
    std::memcpy(&sum, at, sizeof(T));
    std::memcpy(&more, update + run.slice[i] * kSize, sizeof(T));
    sum = static_cast<T>(sum + more);
    std::memcpy(at, &sum, sizeof(T));
  }
}

bool adds_elements(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kFloat64:
    case DType::kInt32:
    case DType::kInt64:
    case DType::kUint32:
    case DType::kUint64:
      return true;
    default:
      return false;
  }
}

}  // namespace

Scatter::Scatter(IndexTable table, tensor::Dims window, tensor::Dims update_strides, tensor::Dims array_strides,
                 TileProgram body)
    : table_(std::move(table)), body_(std::move(body)) {
  is_empty_ = tensor::element_count(window) == 0 || table_.count() == 0;
  // The innermost loops that run through both arrays side by side become one run.
  size_t last = window.size();
  int64_t expected = 1;
  while (last > 0 &&
         (window[last - 1] == 1 || (update_strides[last - 1] == expected && array_strides[last - 1] == expected))) {
    expected *= window[--last];
  }
  run_length_ = expected;
  const auto head = [last](tensor::Dims& dims) {
    dims.resize(last);
    return std::move(dims);
  };
  outer_ = head(window);
  outer_update_ = head(update_strides);
  outer_array_ = head(array_strides);

  for (size_t i = 0; i < body_.outputs.size(); ++i) elem_sizes_.push_back(tensor::size_bytes(body_.registers[i]));
  lanes_ = std::min(tile_lanes(body_), std::max<int64_t>(run_length_, 1));
  const ScalarOp op = as_single_binary(body_);
  if (is_replacement(body_)) {
    apply_ = Apply::kReplace;
  } else if (op != ScalarOp::kCopy) {
    binary_ = body_.instructions.front().kernel;
    const bool is_single = run_length_ == 1 && outer_.empty();
    apply_ = op == ScalarOp::kAdd && is_single && adds_elements(body_.registers[0]) ? Apply::kAddOne : Apply::kBinary;
  }
}

// Combines runs of elements; holds the memory that a body needs.
struct Scatter::Rows {
  const Scatter& scatter;
  TileScratch scratch;

  explicit Rows(const Scatter& of) : scatter(of), scratch(of.body_, of.lanes_) {}

  void apply(std::byte* const* arrays, int64_t array_at, const std::byte* const* updates, int64_t update_at) {
    const std::vector<int64_t>& sizes = scatter.elem_sizes_;
    const int64_t length = scatter.run_length_;
    if (scatter.apply_ == Apply::kReplace) {
      for (size_t k = 0; k < sizes.size(); ++k) {
        std::memcpy(arrays[k] + array_at * sizes[k], updates[k] + update_at * sizes[k],
                    static_cast<size_t>(length * sizes[k]));
      }
      return;
    }
    if (scatter.apply_ != Apply::kProgram) {
      const std::byte* operands[2] = {arrays[0] + array_at * sizes[0], updates[0] + update_at * sizes[0]};
      scatter.binary_(operands, arrays[0] + array_at * sizes[0], length);
      return;
    }
    for (int64_t lane = 0; lane < length; lane += scatter.lanes_) {
      const int64_t count = std::min(scatter.lanes_, length - lane);
      for (size_t k = 0; k < sizes.size(); ++k) {
        const auto bytes = static_cast<size_t>(count * sizes[k]);
        std::memcpy(scratch.reg(static_cast<uint16_t>(k)), arrays[k] + (array_at + lane) * sizes[k], bytes);
        std::memcpy(scratch.reg(static_cast<uint16_t>(sizes.size() + k)), updates[k] + (update_at + lane) * sizes[k],
                    bytes);
      }
      run_tile(scatter.body_, scratch, count);
      for (size_t k = 0; k < sizes.size(); ++k) {
        std::memcpy(arrays[k] + (array_at + lane) * sizes[k], scratch.reg(scatter.body_.outputs[k]),
                    static_cast<size_t>(count * sizes[k]));
      }
    }
  }
};

void Scatter::scatter_single(const IndexRun& run, std::byte* array, const std::byte* update) const {
  switch (body_.registers[0]) {
    case DType::kFloat32:
      return add_elements<float>(run, array, update);
    case DType::kFloat64:
      return add_elements<double>(run, array, update);
    case DType::kInt32:
    case DType::kUint32:
      return add_elements<uint32_t>(run, array, update);
    case DType::kInt64:
    case DType::kUint64:
      return add_elements<uint64_t>(run, array, update);
    default:  // excluded by adds_elements()
      throw core::Error("internal", "scatter has no loop for " + std::string(tensor::name(body_.registers[0])));
  }
}

void Scatter::run(std::byte* const* arrays, const std::byte* indices, const std::byte* const* updates,
                  const int64_t* shifts, core::Checkpoint* checkpoint) const {
  if (is_empty_) return;
  IndexRun run;
  Rows rows(*this);
  tensor::Dims index(outer_.size());
  const int64_t tuples = table_.count();
  for (int64_t tuple = 0; tuple < tuples; tuple += kTuplesAtOnce) {
    core::pass(checkpoint);
    run.read_checked(table_, indices, tuple, std::min(kTuplesAtOnce, tuples - tuple), shifts);
    if (apply_ == Apply::kAddOne) {
      scatter_single(run, arrays[0], updates[0]);
      continue;
    }
    for (size_t i = 0; i < run.operand.size(); ++i) {
      if (run.operand[i] < 0) continue;
      int64_t array_at = run.operand[i];
      int64_t update_at = run.slice[i];
      std::fill(index.begin(), index.end(), 0);
      for (;;) {
        rows.apply(arrays, array_at, updates, update_at);
        core::pass(checkpoint);
        size_t d = outer_.size();
        for (; d > 0; --d) {
          array_at += outer_array_[d - 1];
          update_at += outer_update_[d - 1];
          if (++index[d - 1] < outer_[d - 1]) break;
          array_at -= outer_array_[d - 1] * outer_[d - 1];
          update_at -= outer_update_[d - 1] * outer_[d - 1];
          index[d - 1] = 0;
        }
        if (d == 0) break;
      }
    }
  }
}

}  // namespace meshd::kernels
