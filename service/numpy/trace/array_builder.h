// Writes StableHLO for arrays of a traced program: the operations that functions are composed of, with types inferred
// and shapes broadcast. Names and meanings are jax.lax's; promotion of types is done by `binary_operands` and the
// functions above.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "service/core/hold_memory.h"
#include "service/numpy/trace/promotion.h"
#include "service/numpy/trace/value.h"
#include "service/ops/rewrites/writer.h"

namespace meshd::numpy {

using tensor::DType;

/// One traced function. One thread. Errors: Error with the current place.
class ArrayBuilder {
 public:
  /// `hold` is told of the memory of ops and constants.
  ArrayBuilder(ir::Function& function, core::HoldMemory hold);

  /// Where the expression that is traced stands: ops and errors get it.
  [[nodiscard]] Place place() const { return place_; }
  void set_place(Place place);
  [[nodiscard]] bool is_place_kept() const { return kept_places_ > 0; }
  /// While it lives, set_place() does nothing: what is traced is where it is called.
  class KeptPlace {
   public:
    explicit KeptPlace(ArrayBuilder& builder) : builder_(builder) { ++builder_.kept_places_; }
    ~KeptPlace() { --builder_.kept_places_; }
    KeptPlace(const KeptPlace&) = delete;
    KeptPlace& operator=(const KeptPlace&) = delete;

   private:
    ArrayBuilder& builder_;
  };
  /// Throws invalid_program at the current place: what Python or JAX would refuse.
  [[noreturn]] void refuse(const std::string& message) const;
  /// Throws unsupported_op at the current place: what is not done here.
  [[noreturn]] void unsupported(const std::string& message) const;

  [[nodiscard]] ops::Writer& writer() { return writer_; }

  /// Counts an op that the writer gets from elsewhere. Refuses a program of too many.
  void count_op();
  /// The op's results; types are inferred where `type` is not given. Counts ops.
  Array op(std::string_view name, const std::vector<Array>& operands, ir::AttributeList attributes = {},
           std::optional<tensor::TensorType> type = std::nullopt);
  std::vector<Array> ops(std::string_view name, const std::vector<Array>& operands, ir::AttributeList attributes,
                         const std::vector<tensor::TensorType>& types, std::vector<ir::Region> regions);
  [[nodiscard]] Array array_of(ir::ValueId id, bool weak = false);

  /// The bytes of one element of a type. Refuses what `full` refuses.
  std::vector<std::byte> element(DType to, const Value& number) const;
  /// Constants. `number` is a bool, int, float or complex; one that does not fit an integer type is refused.
  Array full(const tensor::TensorType& type, const Value& number, bool weak = false);
  Array full_like(const Array& array, const Value& number) { return full(array.type, number); }
  Array constant(const tensor::TensorType& type, std::vector<std::byte> bytes, bool weak = false);
  Array integers(const std::vector<int64_t>& values, DType dtype = DType::kInt32);
  Array iota(const tensor::TensorType& type, int64_t dim);

  /// The same elements in another type, as JAX converts: to bool by comparing with 0, of complex the real part.
  Array convert(const Array& array, DType dtype, bool weak = false);
  Array bitcast(const Array& array, DType dtype);

  Array reshape(const Array& array, tensor::Dims dims);
  Array transpose(const Array& array, const std::vector<int64_t>& permutation);
  /// NumPy's broadcasting to a shape; refused where it does not fit.
  Array broadcast_to(const Array& array, const tensor::Dims& dims);
  /// Dimension i of `array` becomes dimension into[i].
  Array broadcast_in_dim(const Array& array, const tensor::Dims& dims, const std::vector<int64_t>& into);
  /// The shape that all have after broadcasting.
  tensor::Dims broadcast_dims(const std::vector<tensor::Dims>& shapes) const;
  Array slice(const Array& array, const std::vector<int64_t>& starts, const std::vector<int64_t>& limits,
              std::vector<int64_t> strides = {});
  /// Elements [start, limit) of one dimension.
  Array slice_dim(const Array& array, int64_t dim, int64_t start, int64_t limit);
  Array reverse(const Array& array, const std::vector<int64_t>& dims);
  Array concatenate(const std::vector<Array>& arrays, int64_t dim);
  Array pad(const Array& array, const Array& value, const std::vector<int64_t>& low, const std::vector<int64_t>& high,
            std::vector<int64_t> interior = {});
  Array expand_dims(const Array& array, std::vector<int64_t> dims);

  Array compare(std::string_view direction, const Array& a, const Array& b);
  Array select(const Array& condition, const Array& a, const Array& b);
  Array add(const Array& a, const Array& b) { return op("stablehlo.add", {a, b}); }
  Array subtract(const Array& a, const Array& b) { return op("stablehlo.subtract", {a, b}); }
  Array multiply(const Array& a, const Array& b) { return op("stablehlo.multiply", {a, b}); }
  Array divide(const Array& a, const Array& b) { return op("stablehlo.divide", {a, b}); }
  Array maximum(const Array& a, const Array& b) { return op("stablehlo.maximum", {a, b}); }
  Array minimum(const Array& a, const Array& b) { return op("stablehlo.minimum", {a, b}); }
  Array logical_and(const Array& a, const Array& b) { return op("stablehlo.and", {a, b}); }
  Array logical_or(const Array& a, const Array& b) { return op("stablehlo.or", {a, b}); }
  Array logical_not(const Array& a) { return op("stablehlo.not", {a}); }
  Array negate(const Array& a) { return op("stablehlo.negate", {a}); }
  Array real(const Array& a) { return op("stablehlo.real", {a}); }
  Array imag(const Array& a) { return op("stablehlo.imag", {a}); }
  Array complex(const Array& re, const Array& im) { return op("stablehlo.complex", {re, im}); }
  /// Elementwise with a number of the same type: multiply(a, 2).
  Array with_number(const Array& a, const Value& number) { return full(a.type, number); }
  /// `value`, with other derivatives than its ops have (jax.custom_jvp): those of one other array, or, of pairs of an
  /// array and a slope, the slopes (ops::kDifferentiatedAs). All are of the value's type.
  Array differentiated_as(const Array& value, const std::vector<Array>& operands);
  /// a ** n for a known n, by repeated squaring (jax.lax.integer_pow).
  Array integer_pow(const Array& a, int64_t n);

  /// Folds dimensions with one op ("stablehlo.add") and its identity.
  Array reduce(std::string_view name, const Array& array, const std::vector<int64_t>& dims, const Value& identity);
  /// Folds several arrays with a region of your own: `body(a, b)` gets the scalars of both sides.
  std::vector<Array> reduce(const std::vector<Array>& arrays, const std::vector<Value>& identities,
                            const std::vector<int64_t>& dims,
                            const std::function<std::vector<Array>(std::vector<Array>, std::vector<Array>)>& body);
  /// Folds all elements up to each along `dim`.
  Array cumulate(std::string_view name, const Array& array, int64_t dim, const Value& identity, bool reversed);
  /// Stable; the first `key_count` arrays are compared in order, with NaNs last.
  std::vector<Array> sort(const std::vector<Array>& arrays, int64_t dim, size_t key_count);
  Array dot_general(const Array& a, const Array& b, const std::vector<int64_t>& a_contracting,
                    const std::vector<int64_t>& b_contracting, const std::vector<int64_t>& a_batch,
                    const std::vector<int64_t>& b_batch, DType result);
  Array dynamic_slice(const Array& array, const std::vector<Array>& starts, const std::vector<int64_t>& sizes);
  Array dynamic_update_slice(const Array& array, const Array& update, const std::vector<Array>& starts);

  /// The identity of minimum and maximum: the largest and the smallest value of a type.
  Value highest(DType dtype) const;
  Value lowest(DType dtype) const;

  /// A region whose arguments have these types. `body` writes its ops and returns what it gives back.
  ir::Region region(const std::vector<ir::Type>& types,
                    const std::function<std::vector<ir::ValueId>(const std::vector<ir::ValueId>&)>& body);
  /// Ops go into a region for its lifetime; its terminator is written by whoever made it.
  class InsideRegion {
   public:
    InsideRegion(ArrayBuilder& builder, ir::Region& made) : builder_(builder), guard_(builder.writer_, made.ops) {
      builder_.check_region_depth();
      ++builder_.region_depth_;
    }
    ~InsideRegion() { --builder_.region_depth_; }
    InsideRegion(const InsideRegion&) = delete;
    InsideRegion& operator=(const InsideRegion&) = delete;

   private:
    ArrayBuilder& builder_;
    ir::OpBuilder::InsertionGuard guard_;
  };
  /// How many regions are open.
  [[nodiscard]] int region_depth() const { return region_depth_; }

  /// The dimension that `axis` means, negative ones from behind; refused outside.
  int64_t axis_of(int64_t axis, int64_t rank) const;

 private:
  void check_region_depth() const;
  void hold_op();

  ir::Op source_;
  std::vector<ir::Op> no_ops_;
  ops::Writer writer_;
  Place place_;
  int region_depth_ = 0;
  int kept_places_ = 0;
  core::HoldMemory hold_;  ///< may be empty
  size_t op_count_ = 0;
  int64_t held_ops_ = 0;  ///< those in regions, too
  int64_t constant_bytes_ = 0;
};

}  // namespace meshd::numpy
