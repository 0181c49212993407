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

constexpr double kWorkItemFlops = 1e8;  // at most, where there are several images
// Where one work item is not enough there are a multiple of so many, which 2, 4 and 8 threads share evenly; by weights
// so many at most.
constexpr int64_t kEvenWorkItems = 8;
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

struct OneDnnPlan : Convolution::Plan {
  enum class Way { kForward, kData, kWeights };

  ConvolutionSpec spec;
  Way kind = Way::kForward;
  int64_t prim_groups = 1;  ///< groups that one primitive computes together
  int64_t outer_groups = 1;
  int64_t images_per_work_item = 1;
  int64_t work_items_per_group = 1;
  double call_flops = 0;
  std::unordered_map<int64_t, Step> steps;  ///< by number of images
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
        if (work_item >= outer_groups * work_items_per_group) {
          add_parts(call, work_item - outer_groups * work_items_per_group);
          continue;
        }
        const int64_t group = work_item / work_items_per_group;
        const int64_t image = work_item % work_items_per_group * images_per_work_item;
        const std::byte* const from = call.lhs + group * spec.lhs.group * lhs_elem;
        const std::byte* const kernel = call.rhs + (group * spec.rhs.group + second_offset) * rhs_elem;
        std::byte* const to = call.out + group * spec.out.group * out_elem;
        core::UncheckedCall unchecked(call_flops > kUncheckedCallFlops ? call.checkpoint : nullptr);
        if (kind != Way::kWeights) {
          run_images(from, kernel, to, image, call.scratch);
        } else if (part_bytes > 0) {
          run_weights(from, kernel, image, call.workspace + work_item * part_bytes, call.scratch);
        } else {
          run_weights(from, kernel, image, call.scratch + made_at, call.scratch);
          write_weights(call.scratch + made_at, to, call.scratch);
        }
        unchecked.end();
      }
    } catch (const dnnl::error& error) {
      throw core::Error("internal", "a convolution failed").with_internal(error.what());
    }
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

  void run_images(const std::byte* lhs, const std::byte* rhs, std::byte* out, int64_t image, std::byte* scratch) const {
    const int64_t images = std::min(images_per_work_item, spec.batch - image);
    const Step& step = steps.at(images);
    dnnl::stream stream(cpu_engine());
    const std::byte* const kernel = second_is_packed ? step.second_side.read(rhs, scratch + second_at) : rhs;
    const memory weights = brought(stream, at(second_given, kernel), step.second, scratch + reordered_at);
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
    const Step& step = steps.at(std::min(images_per_work_item, spec.in_features - image));
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
    memory from = at(steps.begin()->second.result, made);
    const bool is_f32 = spec.out_dtype == DType::kFloat32;
    memory home = at(result_given, is_f32 ? out : result_home.place(out, scratch + result_at));
    dnnl::reorder(from, home).execute(stream, from, home);
    if (!is_f32) result_home.write(out, scratch + result_at);
  }

  void add_parts(const Convolution::Call& call, int64_t group) const {
    std::byte* const sum = call.workspace + group * work_items_per_group * part_bytes;
    const auto elements = static_cast<int64_t>(steps.begin()->second.result.get_size() / sizeof(float));
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
    const int64_t work_items = work_items_of(flops_of_one * static_cast<double>(spec_.batch));
    plan.images_per_work_item = std::max<int64_t>(1, core::ceil_div(spec_.batch, work_items));
    plan.call_flops = flops_of_one * static_cast<double>(plan.images_per_work_item);
    if (plan.call_flops > kMostCallFlops) return false;
    plan.work_items_per_group = core::ceil_div(spec_.batch, plan.images_per_work_item);
    plan.work_count = plan.outer_groups * plan.work_items_per_group;
    for (const int64_t count : {plan.images_per_work_item, spec_.batch % plan.images_per_work_item}) {
      if (count == 0 || plan.steps.contains(count)) continue;
      Step step;
      const bool fits = forward ? forward_step(count, step) : data_step(count, step);
      if (!fits) return false;
      step.second_side = kernel_side;
      step.first_side = image_side(count, in_, groups * spec_.in_features, spec_.lhs.major, spec_.lhs.spatial,
                                   spec_.lhs.minor, spec_.lhs_dtype);
      step.result_side = image_side(count, out_, groups * spec_.out_features, spec_.out.major, spec_.out.spatial,
                                    spec_.out.minor, spec_.out_dtype);
      plan.steps.emplace(count, std::move(step));
    }
    return true;
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

  bool forward_step(int64_t count, Step& step) const {
    const int64_t groups = plan_->prim_groups;
    step.first = images(count, groups * spec_.in_features, in_);
    step.result = images(count, groups * spec_.out_features, out_);
    const auto desc = forward_desc(
        dnnl::prop_kind::forward_inference, step.first, any_kernel(spec_.out_features, spec_.in_features, kernel_),
        step.result, numbers(spec_, [](const ConvolutionDim& dim) { return dim.stride; }),
        numbers(spec_, [](const ConvolutionDim& dim) { return dim.rhs_dilation - 1; }),
        numbers(spec_, [](const ConvolutionDim& dim) { return dim.pad_low; }), numbers(spec_, padding_high));
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
    const int64_t parts = std::clamp<int64_t>(std::min(work_items_of(flops), most_parts), 1, kEvenWorkItems);
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
      plan.steps.emplace(count, std::move(step));
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

  /// Calls of about kWorkItemFlops.
  static int64_t work_items_of(double flops) {
    const auto least = static_cast<int64_t>(std::ceil(flops / kWorkItemFlops));
    return least <= 1 ? 1 : core::round_up(least, kEvenWorkItems);
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
      for (const auto& [count, step] : plan.steps) bytes = std::max(bytes, of(step));
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
