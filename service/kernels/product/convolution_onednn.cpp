// Convolutions by oneDNN, in f32, on the calling thread. A convolution whose operand has holes is a gradient by data,
// one whose kernel is larger than its result a gradient by weights: so StableHLO expresses gradients, and oneDNN has
// fast loops for them. Images are channels last, which its loops read in place; the kernel is reordered for them.
#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

#include "service/core/checked_math.h"
#include "service/core/error.h"
#include "service/kernels/elementwise/scalar_op.h"
#include "service/kernels/movement/strided_side.h"
#include "service/kernels/product/convolution.h"
#include "service/kernels/product/onednn_engine.h"

namespace meshd::kernels {
namespace {

using dnnl::memory;
using tensor::Dims;
using tensor::DType;

constexpr double kWorkItemFlops = 8e6;  // of one convolution,
constexpr double kWeightsFlops = 3e7;   // of one by weights, whose parts are added,
constexpr double kOfSeveralFlops =
    1e8;  // and of either where a step has several shards, of which threads have one each
// Where more than four work items are wanted there are a multiple of so many, which 2, 4 and 8 threads share evenly; by
// weights so many at most.
constexpr int64_t kEvenWorkItems = 8;
constexpr int64_t kLeastRows = 3;  // of a piece of the result
// A call that long is none that others wait for; one that would be longer than some seconds is left to columns, which
// pass checkpoints.
constexpr double kUncheckedCallFlops = 1e9;
constexpr double kMostCallFlops = 1e11;

memory::format_tag channels_last(size_t spatial) {
  return spatial == 1 ? memory::format_tag::nwc : spatial == 2 ? memory::format_tag::nhwc : memory::format_tag::ndhwc;
}

/// Spatial sizes as oneDNN takes them; `of` selects which of a dimension's numbers.
memory::dims numbers(const ConvolutionSpec& spec, int64_t (*of)(const ConvolutionDim&)) {
  memory::dims out;
  for (const ConvolutionDim& dim : spec.dims) out.push_back(of(dim));
  return out;
}

memory::dims joined(memory::dims head, const memory::dims& tail) {
  head.insert(head.end(), tail.begin(), tail.end());
  return head;
}

/// Dense images, channels last: extent and strides of (batch, spatial, channels).
StridedSide image_side(int64_t batch, const memory::dims& spatial, int64_t channels, int64_t batch_stride,
                       const Dims& spatial_strides, int64_t channel_stride, DType dtype) {
  const Dims extent = joined(joined({batch}, spatial), {channels});
  const Dims strides = joined(joined({batch_stride}, spatial_strides), {channel_stride});
  return StridedSide(extent, strides, dtype, DType::kFloat32);
}

/// One primitive with its memory descriptors.
struct Step {
  dnnl::primitive primitive;
  memory::desc first;   ///< images read
  memory::desc second;  ///< the kernel; by weights: the other images
  memory::desc result;  ///< images; by weights: the kernel made
  memory::desc scratchpad;
  StridedSide first_side;
  StridedSide second_side;  ///< of the kernel where it is packed; by weights: of the other images
  StridedSide result_side;  ///< by weights not used
};

/// Rows of the result that a work item makes, and what its primitive reads for them.
struct Piece {
  ConvolutionDim dim;   ///< of the rows: the sizes and the padding of this piece
  int64_t lhs_row = 0;  ///< the first row that is read
  int64_t out_row = 0;  ///< and that is made
  size_t step = 0;      ///< which of the primitives of so many images
};

struct OneDnnPlan : Convolution::Plan {
  enum class Way { kForward, kData, kWeights };

  ConvolutionSpec spec;
  Way kind = Way::kForward;
  int64_t prim_groups = 1;  ///< groups that one primitive computes together
  int64_t outer_groups = 1;
  int64_t images_per_work_item = 1;
  int64_t work_items_per_group = 1;
  std::vector<Piece> pieces;  ///< of each image, by images and data
  double call_flops = 0;
  std::unordered_map<int64_t, std::vector<Step>> steps;  ///< by number of images, one for each size of pieces
  /// Of one group's kernel that a first work item reorders for all others, in the workspace, in front of a barrier; 0:
  /// each work item reorders it for itself.
  int64_t shared_kernel_bytes = 0;
  // By weights, a sum over images: work items of a group are its parts, added in order behind a barrier.
  int64_t part_bytes = 0;  ///< of one part, in the workspace; 0: there is one, which needs none
  ScalarKernel add = nullptr;
  // The kernel, packed where it is turned around or of another type (by weights: the other images).
  int64_t second_offset = 0;
  bool second_is_packed = false;
  memory::desc second_given;
  // By weights: the resulting kernel in the caller's layout.
  memory::desc result_given;
  StridedSide result_home;
  // Places in scratch.
  int64_t second_at = 0;
  int64_t reordered_at = 0;
  int64_t result_at = 0;
  int64_t made_at = 0;
  int64_t pad_at = 0;
  int64_t lhs_elem = 4;
  int64_t rhs_elem = 4;
  int64_t out_elem = 4;

  void run(const Convolution::Call& call) const override {
    try {
      for (int64_t work_item = call.begin; work_item < call.end; ++work_item) {
        core::pass(call.checkpoint);
        kind == Way::kWeights ? run_weights_item(call, work_item) : run_images_item(call, work_item);
      }
    } catch (const dnnl::error& error) {
      throw core::Error("internal", "a convolution failed").with_internal(error.what());
    }
  }

  void run_images_item(const Convolution::Call& call, int64_t item) const {
    const auto kernel_of = [&](int64_t group) {
      return call.rhs + (group * spec.rhs.group + second_offset) * rhs_elem;
    };
    if (shared_kernel_bytes > 0) {
      if (item < outer_groups) {
        reorder_kernel(kernel_of(item), call.workspace + item * shared_kernel_bytes, call.scratch);
        return;
      }
      item -= outer_groups;
    }
    const int64_t group = item / work_items_per_group;
    const int64_t in_group = item % work_items_per_group;
    const auto piece_count = static_cast<int64_t>(pieces.size());
    const Piece& piece = pieces[static_cast<size_t>(in_group % piece_count)];
    const int64_t image = in_group / piece_count * images_per_work_item;
    core::UncheckedCall unchecked(call_flops > kUncheckedCallFlops ? call.checkpoint : nullptr);
    run_images(call.lhs + (group * spec.lhs.group + piece.lhs_row * spec.lhs.spatial[0]) * lhs_elem,
               shared_kernel_bytes > 0 ? call.workspace + group * shared_kernel_bytes : kernel_of(group),
               call.out + (group * spec.out.group + piece.out_row * spec.out.spatial[0]) * out_elem, image, piece,
               call.scratch);
    unchecked.end();
  }

  void run_weights_item(const Convolution::Call& call, int64_t item) const {
    if (item >= outer_groups * work_items_per_group) {
      add_parts(call, item - outer_groups * work_items_per_group);
      return;
    }
    const int64_t group = item / work_items_per_group;
    const int64_t image = item % work_items_per_group * images_per_work_item;
    const std::byte* const from = call.lhs + group * spec.lhs.group * lhs_elem;
    const std::byte* const others = call.rhs + (group * spec.rhs.group + second_offset) * rhs_elem;
    core::UncheckedCall unchecked(call_flops > kUncheckedCallFlops ? call.checkpoint : nullptr);
    if (part_bytes > 0) {
      run_weights(from, others, image, call.workspace + item * part_bytes, call.scratch);
    } else {
      run_weights(from, others, image, call.scratch + made_at, call.scratch);
      write_weights(call.scratch + made_at, call.out + group * spec.out.group * out_elem, call.scratch);
    }
    unchecked.end();
  }

  static memory at(const memory::desc& desc, const std::byte* data) {
    return memory(desc, cpu_engine(), const_cast<std::byte*>(data));
  }

  /// Reordered for the primitive.
  static memory brought(dnnl::stream& stream, const memory& given, const memory::desc& wanted, std::byte* scratch) {
    if (given.get_desc() == wanted) return given;
    memory to = at(wanted, scratch);
    dnnl::reorder(given, to).execute(stream, const_cast<memory&>(given), to);
    return to;
  }

  [[nodiscard]] const Step& any_step() const { return steps.begin()->second.front(); }

  void reorder_kernel(const std::byte* rhs, std::byte* to, std::byte* scratch) const {
    dnnl::stream stream(cpu_engine());
    const std::byte* const kernel = second_is_packed ? any_step().second_side.read(rhs, scratch + second_at) : rhs;
    memory given = at(second_given, kernel);
    memory made = at(any_step().second, to);
    dnnl::reorder(given, made).execute(stream, given, made);
  }

  /// `rhs` is the kernel as the program has it, or reordered in the workspace.
  void run_images(const std::byte* lhs, const std::byte* rhs, std::byte* out, int64_t image, const Piece& piece,
                  std::byte* scratch) const {
    const int64_t images = std::min(images_per_work_item, spec.batch - image);
    const Step& step = steps.at(images)[piece.step];
    dnnl::stream stream(cpu_engine());
    memory weights;
    if (shared_kernel_bytes > 0) {
      weights = at(step.second, rhs);
    } else {
      const std::byte* const kernel = second_is_packed ? step.second_side.read(rhs, scratch + second_at) : rhs;
      weights = brought(stream, at(second_given, kernel), step.second, scratch + reordered_at);
    }
    const std::byte* const from = step.first_side.read(lhs + image * spec.lhs.major * lhs_elem, scratch);
    std::byte* const home = out + image * spec.out.major * out_elem;
    std::byte* const to = step.result_side.place(home, scratch + result_at);
    const bool is_forward = kind == Way::kForward;
    step.primitive.execute(stream, {{is_forward ? DNNL_ARG_SRC : DNNL_ARG_DIFF_DST, at(step.first, from)},
                                    {DNNL_ARG_WEIGHTS, weights},
                                    {is_forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_SRC, at(step.result, to)},
                                    {DNNL_ARG_SCRATCHPAD, at(step.scratchpad, scratch + pad_at)}});
    step.result_side.write(home, scratch + result_at);
  }

  /// The gradient by images from `image` on, in the primitive's layout.
  void run_weights(const std::byte* lhs, const std::byte* rhs, int64_t image, std::byte* made,
                   std::byte* scratch) const {
    const Step& step = steps.at(std::min(images_per_work_item, spec.in_features - image)).front();
    dnnl::stream stream(cpu_engine());
    const std::byte* const images = step.first_side.read(lhs + image * spec.lhs.minor * lhs_elem, scratch);
    const std::byte* const others = step.second_side.read(rhs + image * spec.rhs.minor * rhs_elem, scratch + second_at);
    step.primitive.execute(stream, {{DNNL_ARG_SRC, at(step.first, images)},
                                    {DNNL_ARG_DIFF_DST, at(step.second, others)},
                                    {DNNL_ARG_DIFF_WEIGHTS, at(step.result, made)},
                                    {DNNL_ARG_SCRATCHPAD, at(step.scratchpad, scratch + pad_at)}});
  }

  void write_weights(const std::byte* made, std::byte* out, std::byte* scratch) const {
    dnnl::stream stream(cpu_engine());
    memory from = at(any_step().result, made);
    const bool is_f32 = spec.out_dtype == DType::kFloat32;
    memory home = at(result_given, is_f32 ? out : result_home.place(out, scratch + result_at));
    dnnl::reorder(from, home).execute(stream, from, home);
    if (!is_f32) result_home.write(out, scratch + result_at);
  }

  void add_parts(const Convolution::Call& call, int64_t group) const {
    std::byte* const sum = call.workspace + group * work_items_per_group * part_bytes;
    const auto elements = static_cast<int64_t>(any_step().result.get_size() / sizeof(float));
    for (int64_t part = 1; part < work_items_per_group; ++part) {
      const std::byte* const pair[] = {sum, sum + part * part_bytes};
      add(pair, sum, elements);
    }
    write_weights(sum, call.out + group * spec.out.group * out_elem, call.scratch);
  }
};

/// Builds a plan; throws dnnl::error where oneDNN has nothing.
class Builder {
 public:
  Builder(const ConvolutionSpec& spec, OneDnnPlan::Way kind) : spec_(spec), plan_(std::make_shared<OneDnnPlan>()) {
    plan_->spec = spec;
    plan_->kind = kind;
    plan_->lhs_elem = tensor::size_bytes(spec.lhs_dtype);
    plan_->rhs_elem = tensor::size_bytes(spec.rhs_dtype);
    plan_->out_elem = tensor::size_bytes(spec.out_dtype);
    attributes_.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    in_ = numbers(spec, [](const ConvolutionDim& dim) { return dim.in; });
    kernel_ = numbers(spec, [](const ConvolutionDim& dim) { return dim.kernel; });
    out_ = numbers(spec, [](const ConvolutionDim& dim) { return dim.out; });
    tag_ = channels_last(spec.dims.size());
  }

  /// Null where only oneDNN's reference loops would run.
  std::shared_ptr<const OneDnnPlan> build() {
    const bool by_weights = plan_->kind == OneDnnPlan::Way::kWeights;
    const bool joins = by_weights ? spec_.lhs.group == spec_.batch * spec_.lhs.major &&
                                        spec_.rhs.group == spec_.out_features * spec_.rhs.major
                                  : spec_.lhs.group == spec_.in_features * spec_.lhs.minor &&
                                        spec_.out.group == spec_.out_features * spec_.out.minor;
    plan_->prim_groups = joins ? spec_.groups : 1;
    plan_->outer_groups = joins ? 1 : spec_.groups;
    const bool fits = by_weights ? build_weights() : build_images();
    if (!fits) return nullptr;
    finish();
    return plan_;
  }

 private:
  [[nodiscard]] memory::desc images(int64_t batch, int64_t channels, const memory::dims& spatial) const {
    return {joined({batch, channels}, spatial), memory::data_type::f32, tag_};
  }
  [[nodiscard]] memory::desc any_kernel(int64_t out, int64_t in, const memory::dims& spatial) const {
    const int64_t groups = plan_->prim_groups;
    return {joined(groups > 1 ? memory::dims{groups, out, in} : memory::dims{out, in}, spatial), memory::data_type::f32,
            memory::format_tag::any};
  }
  /// The kernel as the program has it, with the output features `out` of the primitive at `out_stride`.
  memory::desc given_kernel(int64_t out, int64_t in, const memory::dims& spatial, int64_t group_stride,
                            int64_t out_stride, int64_t in_stride, const Dims& spatial_strides) const {
    const bool grouped = plan_->prim_groups > 1;
    return {joined(grouped ? memory::dims{plan_->prim_groups, out, in} : memory::dims{out, in}, spatial),
            memory::data_type::f32,
            joined(grouped ? memory::dims{group_stride, out_stride, in_stride} : memory::dims{out_stride, in_stride},
                   spatial_strides)};
  }

  bool build_images() {
    OneDnnPlan& plan = *plan_;
    const bool forward = plan.kind == OneDnnPlan::Way::kForward;
    plan.way = forward ? "oneDNN forward" : "oneDNN by data";
    const int64_t groups = plan.prim_groups;
    // By data, the lhs is the output of a convolution whose kernel had input and output features swapped, and its taps
    // reversed.
    const int64_t kernel_out = forward ? spec_.out_features : spec_.in_features;
    const int64_t kernel_in = forward ? spec_.in_features : spec_.out_features;
    const int64_t out_stride = forward ? spec_.rhs.major : spec_.rhs.minor;
    const int64_t in_stride = forward ? spec_.rhs.minor : spec_.rhs.major;
    Dims strides = spec_.rhs.spatial;
    for (size_t d = 0; d < strides.size(); ++d) {
      const bool turned = kernel_[d] > 1 && spec_.dims[d].is_reversed == forward;
      if (!turned) continue;
      plan.second_offset += (kernel_[d] - 1) * strides[d];
      strides[d] = -strides[d];
      plan.second_is_packed = true;
    }
    plan.second_is_packed = plan.second_is_packed || spec_.rhs_dtype != DType::kFloat32;
    StridedSide kernel_side;
    if (plan.second_is_packed) {
      Dims extent = joined({groups, kernel_out, kernel_in}, kernel_);
      kernel_side = StridedSide(extent, joined({spec_.rhs.group, out_stride, in_stride}, strides), spec_.rhs_dtype,
                                DType::kFloat32);
      const Dims dense = tensor::row_major_strides(extent);
      plan.second_given = given_kernel(kernel_out, kernel_in, kernel_, dense[0], dense[1], dense[2],
                                       Dims(dense.begin() + 3, dense.end()));
    } else {
      plan.second_given = given_kernel(kernel_out, kernel_in, kernel_, spec_.rhs.group, out_stride, in_stride, strides);
    }

    const double flops_of_one = 2.0 * static_cast<double>(groups * spec_.out_features * spec_.in_features) *
                                static_cast<double>(tensor::element_count(kernel_)) *
                                static_cast<double>(tensor::element_count(forward ? out_ : in_));
    const double item_flops = spec_.copies > 1 ? kOfSeveralFlops : kWorkItemFlops;
    const int64_t work_items = work_items_of(flops_of_one * static_cast<double>(spec_.batch), item_flops);
    plan.images_per_work_item = std::max<int64_t>(1, core::ceil_div(spec_.batch, work_items));
    set_pieces(forward && spec_.copies == 1 ? core::ceil_div(work_items, spec_.batch) : 1);
    const auto piece_count = static_cast<int64_t>(plan.pieces.size());
    plan.call_flops = flops_of_one * static_cast<double>(plan.images_per_work_item) / static_cast<double>(piece_count);
    if (plan.call_flops > kMostCallFlops) return false;
    plan.work_items_per_group = core::ceil_div(spec_.batch, plan.images_per_work_item) * piece_count;
    plan.work_count = plan.outer_groups * plan.work_items_per_group;
    for (const int64_t count : {plan.images_per_work_item, spec_.batch % plan.images_per_work_item}) {
      if (count == 0 || plan.steps.contains(count)) continue;
      std::vector<Step> made;
      for (const Piece& piece : plan.pieces) {
        if (piece.step < made.size()) continue;
        Step& step = made.emplace_back();
        const bool fits = forward ? forward_step(count, piece.dim, step) : data_step(count, step);
        if (!fits) return false;
        step.second_side = kernel_side;
        const auto rows = [&](memory::dims sizes, int64_t of_piece) {
          sizes[0] = of_piece;
          return sizes;
        };
        step.first_side = image_side(count, rows(in_, piece.dim.in), groups * spec_.in_features, spec_.lhs.major,
                                     spec_.lhs.spatial, spec_.lhs.minor, spec_.lhs_dtype);
        step.result_side = image_side(count, rows(out_, piece.dim.out), groups * spec_.out_features, spec_.out.major,
                                      spec_.out.spatial, spec_.out.minor, spec_.out_dtype);
      }
      plan.steps.emplace(count, std::move(made));
    }
    share_reordered_kernel();
    return true;
  }

  /// Cuts the rows of the result into pieces, of which the middle ones have one size. A piece has at least as many rows
  /// as windows overlap in, so that no row is read by more than two pieces.
  void set_pieces(int64_t wanted) {
    const ConvolutionDim& dim = spec_.dims[0];
    plan_->pieces = {{.dim = dim}};
    if (wanted <= 1) return;
    const int64_t reach = (dim.kernel - 1) * dim.rhs_dilation + 1;
    const int64_t least = std::max(core::ceil_div(reach, dim.stride), kLeastRows);
    const int64_t rows = core::ceil_div(dim.out, std::clamp<int64_t>(dim.out / least, 1, wanted));
    std::vector<Piece> pieces;
    std::vector<ConvolutionDim> sizes;
    for (int64_t row = 0; row < dim.out; row += rows) {
      Piece piece{.dim = dim, .out_row = row};
      piece.dim.out = std::min(rows, dim.out - row);
      const int64_t first = row * dim.stride - dim.pad_low;
      const int64_t last = first + (piece.dim.out - 1) * dim.stride + reach;
      piece.lhs_row = std::clamp<int64_t>(first, 0, dim.in - 1);
      piece.dim.in = std::clamp<int64_t>(last, piece.lhs_row + 1, dim.in) - piece.lhs_row;
      piece.dim.pad_low = piece.lhs_row - first;
      if (piece.dim.pad_low < 0 || padding_high(piece.dim) < 0) return;  // a window of padding alone
      const auto same = std::find_if(sizes.begin(), sizes.end(), [&](const ConvolutionDim& size) {
        return size.in == piece.dim.in && size.out == piece.dim.out && size.pad_low == piece.dim.pad_low;
      });
      piece.step = static_cast<size_t>(same - sizes.begin());
      if (same == sizes.end()) sizes.push_back(piece.dim);
      pieces.push_back(piece);
    }
    plan_->pieces = std::move(pieces);
  }

  /// Where several work items would reorder the kernel alike.
  void share_reordered_kernel() {
    OneDnnPlan& plan = *plan_;
    const memory::desc& wanted = plan.any_step().second;
    if (spec_.copies > 1 || plan.work_items_per_group == 1) return;
    if (!plan.second_is_packed && wanted == plan.second_given) return;
    for (const auto& [count, steps] : plan.steps) {
      for (const Step& step : steps) {
        if (step.second != wanted) return;
      }
    }
    plan.shared_kernel_bytes = core::round_up(static_cast<int64_t>(wanted.get_size()), 64);
    plan.barriers = {plan.outer_groups};
    plan.workspace_bytes = plan.outer_groups * plan.shared_kernel_bytes;
    plan.work_count += plan.outer_groups;
  }

  template <typename Descriptor>
  static bool has_fast_loops(const Descriptor& descriptor) {
    return std::string_view(descriptor.impl_info_str()).find("ref") == std::string_view::npos;
  }

  dnnl::convolution_forward::primitive_desc forward_desc(dnnl::prop_kind kind, const memory::desc& src,
                                                         const memory::desc& weights, const memory::desc& dst,
                                                         const memory::dims& strides, const memory::dims& dilations,
                                                         const memory::dims& low, const memory::dims& high) const {
    return {dnnl::convolution_forward::desc(kind, dnnl::algorithm::convolution_direct, src, weights, dst, strides,
                                            dilations, low, high),
            attributes_, cpu_engine()};
  }

  /// `rows`: the first spatial dimension, of a piece.
  bool forward_step(int64_t count, const ConvolutionDim& rows, Step& step) const {
    const int64_t groups = plan_->prim_groups;
    ConvolutionSpec spec = spec_;
    spec.dims[0] = rows;
    step.first =
        images(count, groups * spec.in_features, numbers(spec, [](const ConvolutionDim& dim) { return dim.in; }));
    step.result =
        images(count, groups * spec.out_features, numbers(spec, [](const ConvolutionDim& dim) { return dim.out; }));
    const auto desc = forward_desc(
        dnnl::prop_kind::forward_inference, step.first, any_kernel(spec.out_features, spec.in_features, kernel_),
        step.result, numbers(spec, [](const ConvolutionDim& dim) { return dim.stride; }),
        numbers(spec, [](const ConvolutionDim& dim) { return dim.rhs_dilation - 1; }),
        numbers(spec, [](const ConvolutionDim& dim) { return dim.pad_low; }), numbers(spec, padding_high));
    if (!has_fast_loops(desc)) return false;
    step.second = desc.weights_desc();
    step.scratchpad = desc.scratchpad_desc();
    step.primitive = dnnl::convolution_forward(desc);
    return true;
  }

  /// Places behind the last element that the last window reaches.
  static int64_t padding_high(const ConvolutionDim& dim) {
    return (dim.out - 1) * dim.stride + (dim.kernel - 1) * dim.rhs_dilation + 1 - dim.in - dim.pad_low;
  }
  static int64_t data_padding_low(const ConvolutionDim& dim) {
    return (dim.kernel - 1) * dim.rhs_dilation - dim.pad_low;
  }
  static int64_t data_padding_high(const ConvolutionDim& dim) {
    return (dim.in - 1) * dim.lhs_dilation + (dim.kernel - 1) * dim.rhs_dilation + 1 - dim.out - data_padding_low(dim);
  }

  bool data_step(int64_t count, Step& step) const {
    for (const ConvolutionDim& dim : spec_.dims) {
      if (dim.stride != 1 || data_padding_low(dim) < 0 || data_padding_high(dim) <= -dim.lhs_dilation) return false;
    }
    const int64_t groups = plan_->prim_groups;
    step.first = images(count, groups * spec_.in_features, in_);
    step.result = images(count, groups * spec_.out_features, out_);
    const memory::desc weights = any_kernel(spec_.in_features, spec_.out_features, kernel_);
    const memory::dims strides = numbers(spec_, [](const ConvolutionDim& dim) { return dim.lhs_dilation; });
    const memory::dims dilations = numbers(spec_, [](const ConvolutionDim& dim) { return dim.rhs_dilation - 1; });
    const memory::dims low = numbers(spec_, data_padding_low);
    const memory::dims high = numbers(spec_, data_padding_high);
    const auto hint = forward_desc(dnnl::prop_kind::forward_training, step.result, weights, step.first, strides,
                                   dilations, low, high);
    const dnnl::convolution_backward_data::primitive_desc desc(
        dnnl::convolution_backward_data::desc(dnnl::algorithm::convolution_direct, step.result, weights, step.first,
                                              strides, dilations, low, high),
        attributes_, cpu_engine(), hint);
    if (!has_fast_loops(desc)) return false;
    step.second = desc.weights_desc();
    step.scratchpad = desc.scratchpad_desc();
    step.primitive = dnnl::convolution_backward_data(desc);
    return true;
  }

  /// out[b, o, y] = sum over i, k of lhs[b, i, y + k] rhs[i, o, k]: the gradient of a kernel of b x o x y taps, for
  /// images i with input lhs of channels b and output gradient rhs of channels o.
  bool build_weights() {
    OneDnnPlan& plan = *plan_;
    plan.way = "oneDNN by weights";
    const int64_t groups = plan.prim_groups;
    const double kernel_elements = static_cast<double>(groups * spec_.batch * spec_.out_features) *
                                   static_cast<double>(tensor::element_count(out_));
    const double flops = 2.0 * kernel_elements * static_cast<double>(spec_.in_features) *
                         static_cast<double>(tensor::element_count(kernel_));
    // Parts are worth their sum where all of them are no larger than the images.
    const double image_elements = static_cast<double>(spec_.in_features * groups) *
                                  static_cast<double>(spec_.batch * tensor::element_count(in_) +
                                                      spec_.out_features * tensor::element_count(kernel_));
    const auto most_parts = static_cast<int64_t>(std::min(image_elements / kernel_elements, 1e6));
    const double item_flops = spec_.copies > 1 ? kOfSeveralFlops : kWeightsFlops;
    const int64_t parts =
        std::clamp<int64_t>(std::min(work_items_of(flops, item_flops), most_parts), 1, kEvenWorkItems);
    plan.images_per_work_item = core::ceil_div(spec_.in_features, parts);
    plan.work_items_per_group = core::ceil_div(spec_.in_features, plan.images_per_work_item);
    plan.call_flops = flops / static_cast<double>(plan.work_items_per_group);
    if (plan.call_flops > kMostCallFlops) return false;
    memory::desc made = any_kernel(spec_.out_features, spec_.batch, out_);
    for (const int64_t count : {plan.images_per_work_item, spec_.in_features % plan.images_per_work_item}) {
      if (count == 0 || plan.steps.contains(count)) continue;
      Step step;
      if (!weights_step(count, made, step)) return false;
      made = step.result;  // in one layout, to be added
      plan.steps[count].push_back(std::move(step));
    }
    const Dims extent = joined({groups, spec_.out_features, spec_.batch}, out_);
    const Dims strides_home = joined({spec_.out.group, spec_.out.minor, spec_.out.major}, spec_.out.spatial);
    if (spec_.out_dtype == DType::kFloat32) {
      plan.result_given = given_kernel(spec_.out_features, spec_.batch, out_, strides_home[0], strides_home[1],
                                       strides_home[2], spec_.out.spatial);
    } else {
      plan.result_home = StridedSide(extent, strides_home, spec_.out_dtype, DType::kFloat32);
      const Dims dense = tensor::row_major_strides(extent);
      plan.result_given = given_kernel(spec_.out_features, spec_.batch, out_, dense[0], dense[1], dense[2],
                                       Dims(dense.begin() + 3, dense.end()));
    }
    for (size_t d = 0; d < spec_.dims.size(); ++d) {
      if (spec_.dims[d].is_reversed) plan.second_offset += (kernel_[d] - 1) * spec_.rhs.spatial[d];
    }
    plan.work_count = plan.outer_groups * plan.work_items_per_group;
    if (plan.work_items_per_group == 1) return true;
    plan.part_bytes = core::round_up(static_cast<int64_t>(made.get_size()), 64);
    plan.add = find_scalar_kernel(ScalarOp::kAdd, DType::kFloat32, DType::kFloat32);
    plan.barriers = {plan.work_count};
    plan.workspace_bytes = plan.work_count * plan.part_bytes;
    plan.work_count += plan.outer_groups;
    return true;
  }

  /// Of about so many operations each.
  static int64_t work_items_of(double flops, double item_flops) {
    const auto least = static_cast<int64_t>(std::ceil(flops / item_flops));
    if (least <= 1) return 1;
    return least <= kEvenWorkItems / 2 ? core::round_up(least, 2) : core::round_up(least, kEvenWorkItems);
  }

  bool weights_step(int64_t count, const memory::desc& made, Step& step) const {
    const int64_t groups = plan_->prim_groups;
    step.first = images(count, groups * spec_.batch, in_);
    step.second = images(count, groups * spec_.out_features, kernel_);
    const memory::dims strides = numbers(spec_, [](const ConvolutionDim& dim) { return dim.rhs_dilation; });
    const memory::dims dilations = numbers(spec_, [](const ConvolutionDim& dim) { return dim.stride - 1; });
    const memory::dims low = numbers(spec_, [](const ConvolutionDim& dim) { return dim.pad_low; });
    const memory::dims high = numbers(spec_, padding_high);
    const auto hint =
        forward_desc(dnnl::prop_kind::forward_training, step.first, made, step.second, strides, dilations, low, high);
    const dnnl::convolution_backward_weights::primitive_desc desc(
        dnnl::convolution_backward_weights::desc(dnnl::algorithm::convolution_direct, step.first, made, step.second,
                                                 strides, dilations, low, high),
        attributes_, cpu_engine(), hint);
    if (!has_fast_loops(desc)) return false;
    step.result = desc.diff_weights_desc();
    step.scratchpad = desc.scratchpad_desc();
    step.primitive = dnnl::convolution_backward_weights(desc);
    step.first_side = image_side(count, in_, groups * spec_.batch, spec_.lhs.minor, spec_.lhs.spatial, spec_.lhs.major,
                                 spec_.lhs_dtype);
    Dims turned = spec_.rhs.spatial;
    for (size_t d = 0; d < turned.size(); ++d) {
      if (spec_.dims[d].is_reversed) turned[d] = -turned[d];
    }
    step.second_side = image_side(count, kernel_, groups * spec_.out_features, spec_.rhs.minor, turned, spec_.rhs.major,
                                  spec_.rhs_dtype);
    return true;
  }

  /// Places in scratch.
  void finish() {
    OneDnnPlan& plan = *plan_;
    const auto largest = [&](int64_t (*of)(const Step&)) {
      int64_t bytes = 0;
      for (const auto& [count, steps] : plan.steps) {
        for (const Step& step : steps) bytes = std::max(bytes, of(step));
      }
      return core::round_up(bytes, 64);
    };
    plan.second_at = largest([](const Step& step) { return step.first_side.scratch_bytes(); });
    plan.reordered_at = plan.second_at + largest([](const Step& step) { return step.second_side.scratch_bytes(); });
    plan.result_at =
        plan.reordered_at + largest([](const Step& step) { return static_cast<int64_t>(step.second.get_size()); });
    plan.made_at = plan.result_at + plan.result_home.scratch_bytes() +
                   largest([](const Step& step) { return step.result_side.scratch_bytes(); });
    plan.pad_at = plan.made_at + largest([](const Step& step) { return static_cast<int64_t>(step.result.get_size()); });
    plan.scratch_bytes =
        plan.pad_at + largest([](const Step& step) { return static_cast<int64_t>(step.scratchpad.get_size()); });
  }

  const ConvolutionSpec& spec_;
  std::shared_ptr<OneDnnPlan> plan_;
  dnnl::primitive_attr attributes_;
  memory::dims in_;
  memory::dims kernel_;
  memory::dims out_;
  memory::format_tag tag_;
};

}  // namespace

std::shared_ptr<const Convolution::Plan> plan_convolution_onednn(const ConvolutionSpec& spec) {
  if (convolution_type(spec.lhs_dtype, spec.rhs_dtype, spec.out_dtype) != DType::kFloat32) return nullptr;
  if (spec.dims.empty() || spec.dims.size() > 3 || spec.in_features == 0) return nullptr;
  bool has_holes = false;
  double taps = 1;
  double positions = 1;
  for (const ConvolutionDim& dim : spec.dims) {
    if (dim.in == 0 || dim.kernel == 0) return nullptr;
    has_holes = has_holes || dim.lhs_dilation != 1;
    if (dim.lhs_dilation == 1 && dim.pad_low < 0) return nullptr;
    taps *= static_cast<double>(dim.kernel);
    positions *= static_cast<double>(dim.out);
  }
  // The kernel of a gradient by weights is what the images of the result were.
  const bool by_weights = taps > positions && (positions == 1 || !has_disjoint_windows(spec));
  const OneDnnPlan::Way way = has_holes    ? OneDnnPlan::Way::kData
                              : by_weights ? OneDnnPlan::Way::kWeights
                                           : OneDnnPlan::Way::kForward;
  try {
    return Builder(spec, way).build();
  } catch (const dnnl::error&) {
    return nullptr;
  }
}

}  // namespace meshd::kernels
