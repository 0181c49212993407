// The compilation pipeline: program text -> parsed program -> lowered program (plan). Each stage has a cache:
//
// 1. parse: reads, verifies and inlines. Key: digest of format and text.
// 2. trace: a program of NumPy syntax becomes a module for the types of its arguments. Key: program, types, static
//    values, mesh.
// 3. with_static: static arguments become constants. Key: program, digest of their positions, types and values.
// 4. specialise: dynamic dimensions become numbers. Key: program, types of the arguments.
// 5. lower: propagates, partitions and plans. Key: program, abstract mesh, device count, shardings, donation, whether
//    ops are fused.
//
// A plan names no device, so nothing is compiled for the devices of a run; count_binding only counts, for clients,
// with which device lists a lowering has run.
//
// Counters exclude cache hits. Example (behaviour A11): one program, lowered for one mesh x=2 and run on devices {0,
// 1}, then on {2, 3}. Out: parse_count 1, lower_count 1, bind_count 2.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "service/compile/derivation.h"
#include "service/compile/plan/plan.h"
#include "service/compile/work_memory.h"
#include "service/core/locked.h"
#include "service/core/lru_cache.h"
#include "service/core/memory_ledger.h"
#include "service/ir/program.h"
#include "service/mesh/mesh.h"
#include "service/numpy/numpy.h"
#include "service/sharding/tensor_sharding.h"
#include "service/tensor/dense_value.h"

namespace meshd::compile {

/// A program that is read and verified. Immutable.
struct ParsedProgram {
  std::string id;      ///< prog_<digest of format and text>
  std::string format;  ///< "stablehlo" or "numpy"
  std::string text;
  /// Of NumPy syntax: what was read. Its modules are empty until it is traced.
  numpy::ProgramRef numpy;
  bool is_traced = false;
  std::string result_tree;        ///< of a traced program: numpy::Traced::result_tree
  std::vector<std::string> logs;  ///< of a traced program: the texts of its effects
  Derivation derivation;          ///< how the program was made of what its text says
  ir::ModuleRef module;           ///< as written
  ir::ModuleRef flat;             ///< calls inlined
  /// Dynamic dimensions of `flat` have become numbers; `module` still has those that the text writes.
  bool is_specialised = false;
  /// Token-free arguments and results of @main: indices into its parameter lists.
  std::vector<size_t> arguments;
  std::vector<size_t> results;

  /// A program of NumPy syntax that has to be traced before anything asks for its arguments.
  [[nodiscard]] bool needs_trace() const { return numpy != nullptr && !is_traced; }
  /// @main with the signature that requests are held to.
  [[nodiscard]] const ir::Function& signature() const { return (is_specialised ? flat : module)->main(); }
  /// A result has a size that depends on data. Known of what has no dynamic arguments.
  [[nodiscard]] bool has_bounded_results() const {
    return !flat->main().results.empty() && flat->main().results.back().is_sizes;
  }
  [[nodiscard]] const ir::Parameter& argument(size_t i) const { return signature().arguments[arguments[i]]; }
  [[nodiscard]] const ir::Parameter& result(size_t i) const { return signature().results[results[i]]; }
};
using ParsedRef = std::shared_ptr<const ParsedProgram>;

/// What a lowering depends on beside the program.
struct LowerRequest {
  /// Abstract form of the request's mesh; nothing: the request has none.
  std::optional<mesh::Mesh> mesh;
  /// Devices of the run: as many as the mesh has positions, where there is a mesh.
  int64_t device_count = 1;
  /// Token-free; over `mesh` or a mesh of the module. Nothing: left to the text or to propagation.
  std::vector<std::optional<sharding::TensorSharding>> in_shardings;
  std::vector<std::optional<sharding::TensorSharding>> out_shardings;
  /// Token-free positions that the caller donates; nothing: those that the text donates.
  std::optional<std::vector<int64_t>> donate;
  /// Every op is a step of its own, whatever the settings say: for a run that looks for the first op that makes a NaN.
  bool is_unfused = false;
};

/// A program planned for any devices of one abstract mesh. Immutable.
struct LoweredProgram {
  std::string key;  ///< the cache's: program and request
  std::string id;   ///< lowered_<digest of the key>
  ParsedRef parsed;
  LowerRequest request;  ///< what it was lowered for
  PlanRef plan;
  /// Final shardings by token-free position, closed; mesh may be null where nothing is sharded.
  std::vector<sharding::TensorSharding> argument_shardings;
  std::vector<sharding::TensorSharding> result_shardings;
  std::vector<int64_t> donated;  ///< token-free argument positions that a run donates
  std::vector<std::string> warnings;
};
using LoweredRef = std::shared_ptr<const LoweredProgram>;

struct CompileCounters {
  int64_t parse_count = 0, parse_hits = 0;
  int64_t trace_count = 0, trace_hits = 0;
  int64_t static_count = 0, static_hits = 0;
  int64_t specialise_count = 0, specialise_hits = 0;
  int64_t lower_count = 0, lower_hits = 0;
  int64_t bind_count = 0, bind_hits = 0;
};

struct DifferentiationRequest;  // rewrite/gradient_text.h

/// Told of each lowering that somebody asks for.
class LoweringObserver {
 public:
  virtual ~LoweringObserver() = default;
  /// `is_known`: the cache had it. On the thread that asks, which waits; must not throw. Any thread.
  virtual void on_lowered(const LoweredProgram& lowered, const LowerRequest& request, bool is_known) noexcept = 0;
};

/// Owns the caches. Any thread. A miss is worked on outside of the lock: two threads may do the same work, and one
/// result is kept.
class Compiler {
 public:
  /// `settings`: of all plans. `cache_entries`: how many entries each cache keeps; `cache_bytes`: how many bytes all of
  /// them keep, of which plans may have three eighths, programs as they were written and traced programs an eighth
  /// each. The least recently used ones leave. `memory` holds what is kept.
  Compiler(const PlanSettings& settings, size_t cache_entries, int64_t cache_bytes = INT64_MAX,
           core::MemoryReservation memory = {});

  /// Reads and verifies. Throws what program::parse_stablehlo and numpy::read throw; unsupported_format for other
  /// formats.
  ParsedRef parse(const std::string& format, const std::string& text);
  /// The parsed program with this id if the cache still has it.
  ParsedRef find(const std::string& id);
  /// A program of NumPy syntax for arguments of these types. Throws what numpy::trace throws.
  ParsedRef trace(const ParsedRef& parsed, const numpy::Inputs& inputs, const std::optional<mesh::Mesh>& mesh);
  /// rewrite/static_arguments.h: the program with these arguments as constants; itself where there are none.
  ParsedRef with_static(const ParsedRef& parsed, const std::map<size_t, tensor::DenseValue>& values);
  /// rewrite/specialised.h: the program for arguments of these types; itself where no argument is dynamic.
  ParsedRef specialise(const ParsedRef& parsed, const std::vector<tensor::TensorType>& arguments);
  /// Propagates, partitions, plans. Throws invalid_spec, sharding_mismatch, too_few_devices, unsupported_*.
  LoweredRef lower(const ParsedRef& parsed, const LowerRequest& request);
  /// The text of the program's derivative. Nothing of it is kept.
  std::string gradient_text(const ParsedProgram& parsed, const DifferentiationRequest& request);
  /// The cache has it: it was not too large, and has not left since.
  bool keeps(const LoweredProgram& lowered);
  /// Counts that a lowering runs on these devices: true when it was counted with them before.
  bool count_binding(const LoweredRef& lowered, const std::vector<int64_t>& devices);
  [[nodiscard]] CompileCounters counters() const;
  /// How full the caches of parsed and of lowered programs are, of the entries and bytes that they may have: 0 to 1, of
  /// the fullest.
  [[nodiscard]] double fullness() const;
  /// From here on `account` holds what a compilation takes while it runs. Where it refuses, parse(), gradient_text()
  /// and those between throw memory_full where others hold it, and memory_exceeded where there is not so much.
  void count_work(const WorkAccount& account);
  /// Before any other call; null: nobody is told. It must outlive the calls of lower().
  void set_observer(LoweringObserver* observer) { observer_ = observer; }
  [[nodiscard]] const PlanSettings& settings() const { return settings_; }

 private:
  struct State {
    State(size_t entries, int64_t bytes, core::MemoryReservation holds)
        : parsed(entries, bytes / 8),
          traced(entries, bytes / 8),
          with_static(entries, bytes / 8),
          specialised(entries, bytes / 8),
          lowered(entries, bytes / 8 * 3),
          bound(entries, bytes / 8),
          memory(std::move(holds)) {}
    /// Makes the reservation what the caches keep.
    void settle();
    core::LruCache<ParsedRef> parsed, traced, with_static, specialised;
    core::LruCache<LoweredRef> lowered;
    core::LruCache<bool> bound;
    CompileCounters counters;
    core::MemoryReservation memory;
    WorkAccount work;
  };
  /// The cached value of `key`, or what `make` gives; counts a hit or a piece of work. `work`: the bytes that the piece
  /// takes while it is done, about.
  template <typename Value, typename Work, typename Make>
  Value cached(core::LruCache<Value> State::*cache, const std::string& key, int64_t CompileCounters::*count,
               int64_t CompileCounters::*hits, Work&& work, Make&& make);

  const PlanSettings settings_;
  LoweringObserver* observer_ = nullptr;
  mutable core::Locked<State> state_;
};

/// Meshes of a module that have axes.
std::vector<const ir::NamedMesh*> real_meshes(const ir::Module& module);
/// How many devices a run needs for all of the module's meshes, maximal ones too: their device ids are below. 0: there
/// is no mesh.
int64_t device_span(const ir::Module& module);

}  // namespace meshd::compile
