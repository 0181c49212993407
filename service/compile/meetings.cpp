// What brings shards of several positions together: reshards as block copies, reductions over shards, collectives of
// the text.
#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <numeric>

#include "service/compile/draft.h"
#include "service/core/error.h"
#include "service/kernels/cache_size.h"
#include "service/kernels/movement.h"
#include "service/kernels/stream_store.h"

namespace meshd::compile {
namespace {

using sharding::AtomMask;
using sharding::MeshView;

constexpr int64_t kReduceUnitElements = int64_t{1} << 14;
constexpr int64_t kReduceTileBytes = 8192;  // partial results of a tile stay in the first cache
constexpr int64_t kMostEnumerated = 512;    // shards up to which layouts over two meshes are compared one by one

// One value's layout: which block of the whole each shard is.
struct BlockLayout {
  const Draft* draft;
  const DraftValue* value;

  [[nodiscard]] const MeshView& view() const { return draft->tables.view(value->view); }
  [[nodiscard]] int64_t parts(size_t dim) const { return sharding::part_count(view(), value->dim_atoms[dim]); }
  [[nodiscard]] int64_t shard_count() const { return draft->tables[value->table].count(); }
  [[nodiscard]] AtomMask cut() const {
    AtomMask out = 0;
    for (const auto& atoms : value->dim_atoms) {
      for (const int atom : atoms) out |= AtomMask{1} << atom;
    }
    return out;
  }
  // Writes the coordinates that part `part` of `dim` has.
  void set_part(size_t dim, int64_t part, tensor::Dims& coords) const {
    const auto& atoms = value->dim_atoms[dim];
    for (size_t i = atoms.size(); i-- > 0;) {
      const int64_t size = view().atom_sizes[static_cast<size_t>(atoms[i])];
      coords[static_cast<size_t>(atoms[i])] = part % size;
      part /= size;
    }
  }
};

struct Copy {
  int64_t from_shard = 0;
  tensor::Dims from_start;
  tensor::Dims to_start;
  tensor::Dims extent;
};

// All blocks of `from` that shard `to_shard` of `to` is made of. Atoms that `from` varies over outside of its dims keep
// the target's coordinate where the target varies over them, else take 0.
std::vector<Copy> copies_into(const BlockLayout& from, const BlockLayout& to, int64_t to_shard) {
  const size_t rank = to.value->type.dims.size();
  const tensor::Dims to_coords = to.draft->tables.coordinates(to.value->table, to_shard);
  tensor::Dims coords(from.view().atom_sizes.size(), 0);
  if (from.value->view == to.value->view) {
    const AtomMask kept = from.value->varies & ~from.cut() & to.value->varies;
    for (size_t i = 0; i < coords.size(); ++i) {
      if (kept >> i & 1) coords[i] = to_coords[i];
    }
  }
  // Ranges of parts of `from` that overlap, for each dimension.
  tensor::Dims start(rank), stop(rank), first(rank), last(rank);
  for (size_t d = 0; d < rank; ++d) {
    start[d] = sharding::part_index(to.view(), to.value->dim_atoms[d], to_coords) * to.value->type.dims[d];
    stop[d] = std::min(start[d] + to.value->type.dims[d], to.value->logical_dims[d]);
    if (stop[d] <= start[d]) return {};
    first[d] = start[d] / from.value->type.dims[d];
    last[d] = (stop[d] - 1) / from.value->type.dims[d];
  }
  std::vector<Copy> out;
  tensor::Dims part = first;
  while (true) {
    Copy copy;
    for (size_t d = 0; d < rank; ++d) {
      from.set_part(d, part[d], coords);
      const int64_t begin = part[d] * from.value->type.dims[d];
      const int64_t low = std::max(begin, start[d]);
      copy.from_start.push_back(low - begin);
      copy.to_start.push_back(low - start[d]);
      copy.extent.push_back(std::min(begin + from.value->type.dims[d], stop[d]) - low);
    }
    copy.from_shard = from.view().distinct_index(from.value->varies, coords);
    out.push_back(std::move(copy));
    size_t d = rank;
    while (d > 0 && part[d - 1] == last[d - 1]) {
      part[d - 1] = first[d - 1];
      --d;
    }
    if (d == 0) return out;
    ++part[d - 1];
  }
}

int64_t linear(const tensor::Dims& dims, const tensor::Dims& index) {
  int64_t out = 0;
  for (size_t d = 0; d < dims.size(); ++d) out = out * dims[d] + index[d];
  return out;
}

// Atoms of a dimension that cut, without those of size one.
std::vector<int> cutting(const MeshView& view, const std::vector<int>& atoms) {
  std::vector<int> out;
  for (const int atom : atoms) {
    if (view.atom_sizes[static_cast<size_t>(atom)] != 1) out.push_back(atom);
  }
  return out;
}

MeetingSource source_of(const Draft& draft, int32_t operand, LocalId id, int64_t shard) {
  MeetingSource out;
  const DraftValue& value = draft.value(id);
  out.operand = operand;
  out.place = static_cast<int32_t>(shard);
  out.shard = static_cast<int32_t>(shard);
  out.table = value.table;
  out.device = draft.tables[value.table].device_of_shard[static_cast<size_t>(shard)];
  out.bytes = value.bytes;
  return out;
}

// Everything that moves one shard of a reshard, with distinct block shapes prepared once.
struct ReshardCopies {
  struct Piece {
    size_t shape = 0;
    int64_t to_offset = 0;    // bytes
    int64_t from_offset = 0;  // bytes
    int64_t first_unit = 0;
    tensor::Dims to_start;
    tensor::Dims extent;
  };
  std::vector<kernels::StridedCopy> shapes;
  std::vector<std::vector<Piece>> pieces;  // by shard
  tensor::Dims to_dims;
  int64_t element = 1;

  void run(const MeetingCall& call) const {
    const auto& list = pieces[static_cast<size_t>(call.shard)];
    for (size_t i = 0; i < list.size(); ++i) {
      const Piece& piece = list[i];
      const kernels::StridedCopy& shape = shapes[piece.shape];
      const int64_t begin = std::max(call.begin - piece.first_unit, int64_t{0});
      const int64_t end = std::min(call.end - piece.first_unit, shape.unit_count());
      if (begin >= end) continue;
      if (call.packed != nullptr && call.packed[i] != 0) {
        if (begin != 0) continue;
        const tensor::Dims zeros(piece.extent.size(), 0);
        kernels::copy_block(call.results[0], to_dims, piece.to_start, call.sources[i], piece.extent, zeros,
                            piece.extent, element);
        continue;
      }
      shape.run(call.results[0] + piece.to_offset, call.sources[i] + piece.from_offset, begin, end);
    }
  }
};

// Reduction over shards in a fixed order, over ranges of elements.
struct ShardReducer {
  kernels::TileProgram program;
  kernels::ScalarKernel direct = nullptr;
  std::vector<int64_t> element_bytes;  // by operand
  int64_t count = 0;
  size_t operands = 1;

  void run(const MeetingCall& call, size_t members) const {
    const int64_t start = call.begin * kReduceUnitElements;
    const int64_t stop = std::min(count, call.end * kReduceUnitElements);
    if (direct != nullptr) return run_direct(call, members, start, stop);
    const int64_t lanes = kernels::tile_lanes(program);
    kernels::TileScratch scratch(program, lanes);
    for (int64_t at = start; at < stop; at += lanes) {
      const int64_t width = std::min(lanes, stop - at);
      for (size_t k = 0; k < operands; ++k) copy_lanes(call.results[k], call.sources[k], k, at, width);
      for (size_t member = 1; member < members; ++member) {
        for (size_t k = 0; k < operands; ++k) {
          const auto bytes = static_cast<size_t>(width * element_bytes[k]);
          std::memcpy(scratch.reg(static_cast<uint16_t>(k)), call.results[k] + at * element_bytes[k], bytes);
          std::memcpy(scratch.reg(static_cast<uint16_t>(operands + k)),
                      call.sources[member * operands + k] + at * element_bytes[k], bytes);
        }
        kernels::run_tile(program, scratch, width);
        for (size_t k = 0; k < operands; ++k) {
          std::memcpy(call.results[k] + at * element_bytes[k], scratch.reg(program.outputs[k]),
                      static_cast<size_t>(width * element_bytes[k]));
        }
      }
    }
  }

 private:
  void copy_lanes(std::byte* to, const std::byte* from, size_t k, int64_t at, int64_t width) const {
    std::memcpy(to + at * element_bytes[k], from + at * element_bytes[k],
                static_cast<size_t>(width * element_bytes[k]));
  }

  // One known operation: member after member over tiles that stay in the first cache. A large result leaves past the
  // caches, which saves reading its lines before they are written.
  void run_direct(const MeetingCall& call, size_t members, int64_t start, int64_t stop) const {
    const int64_t size = element_bytes[0];
    if (members == 1) return copy_lanes(call.results[0], call.sources[0], 0, start, stop - start);
    alignas(64) std::array<std::byte, kReduceTileBytes> buffer;
    const bool streams = count * size >= kernels::streaming_bytes();
    const int64_t tile = kReduceTileBytes / size;
    for (int64_t at = start; at < stop; at += tile) {
      const int64_t width = std::min(tile, stop - at);
      std::byte* const result = call.results[0] + at * size;
      std::byte* const out = streams ? buffer.data() : result;
      const std::byte* left = call.sources[0] + at * size;
      for (size_t member = 1; member < members; ++member) {
        const std::byte* const pair[] = {left, call.sources[member] + at * size};
        direct(pair, out, width);
        left = out;
      }
      if (streams) kernels::stream_copy(result, out, width * size);
    }
    if (streams) kernels::stream_fence();
  }
};

}  // namespace

bool reshard_is_rename(Draft& draft, const LocalOp& op, std::vector<int32_t>& map) {
  const BlockLayout from{&draft, &draft.value(op.operands[0])};
  const BlockLayout to{&draft, &draft.value(op.results[0])};
  if (from.value->type != to.value->type) return false;
  const size_t rank = to.value->type.dims.size();
  const bool same_view = from.value->view == to.value->view;
  bool same = same_view;
  bool whole = true;
  for (size_t d = 0; d < rank; ++d) {
    same = same && cutting(from.view(), from.value->dim_atoms[d]) == cutting(to.view(), to.value->dim_atoms[d]);
    whole = whole && from.parts(d) == 1 && to.parts(d) == 1;
  }
  if (same) {
    for (int64_t shard = 0; shard < to.shard_count(); ++shard) {
      map.push_back(static_cast<int32_t>(from.view().project(to.value->varies, shard, from.value->varies)));
    }
    return true;
  }
  if (whole && !same_view) {
    map.assign(static_cast<size_t>(to.shard_count()), 0);
    return true;
  }
  if (same_view || to.shard_count() > kMostEnumerated || tensor::element_count(to.value->type) == 0) return false;
  for (int64_t shard = 0; shard < to.shard_count(); ++shard) {
    const std::vector<Copy> copies = copies_into(from, to, shard);
    if (copies.size() > 1) return false;
    if (copies.size() == 1 && copies[0].from_start != copies[0].to_start) return false;
    map.push_back(copies.empty() ? 0 : static_cast<int32_t>(copies[0].from_shard));
  }
  return true;
}

std::shared_ptr<Meeting> make_reshard(Draft& draft, const LocalOp& op) {
  const BlockLayout from{&draft, &draft.value(op.operands[0])};
  const BlockLayout to{&draft, &draft.value(op.results[0])};
  const int64_t element = tensor::size_bytes(to.value->type.dtype);
  auto meeting = std::make_shared<Meeting>();
  auto copies = std::make_shared<ReshardCopies>();
  copies->to_dims = to.value->type.dims;
  copies->element = element;
  meeting->source_dims = from.value->type.dims;
  meeting->element_bytes = element;
  const tensor::Dims to_strides = tensor::row_major_strides(to.value->type.dims);
  const tensor::Dims from_strides = tensor::row_major_strides(from.value->type.dims);
  std::map<tensor::Dims, size_t> shapes;
  for (int64_t shard = 0; shard < to.shard_count(); ++shard) {
    std::vector<MeetingSource> sources;
    std::vector<ReshardCopies::Piece> pieces;
    int64_t units = 0;
    if (tensor::element_count(to.value->type) > 0) {
      for (Copy& copy : copies_into(from, to, shard)) {
        const auto [found, is_new] = shapes.try_emplace(copy.extent, copies->shapes.size());
        if (is_new) copies->shapes.emplace_back(copy.extent, to_strides, from_strides, element);
        ReshardCopies::Piece piece;
        piece.shape = found->second;
        piece.to_offset = linear(to.value->type.dims, copy.to_start) * element;
        piece.from_offset = linear(from.value->type.dims, copy.from_start) * element;
        piece.first_unit = units;
        units += copies->shapes[found->second].unit_count();
        MeetingSource source = source_of(draft, 0, op.operands[0], copy.from_shard);
        source.bytes = tensor::element_count(copy.extent) * element;
        source.start = copy.from_start;
        source.extent = copy.extent;
        piece.to_start = std::move(copy.to_start);
        piece.extent = std::move(copy.extent);
        sources.push_back(std::move(source));
        pieces.push_back(std::move(piece));
      }
    }
    meeting->sources.push_back(std::move(sources));
    meeting->units.push_back(units);
    copies->pieces.push_back(std::move(pieces));
  }
  meeting->run = [copies](const MeetingCall& call) { copies->run(call); };
  return meeting;
}

std::shared_ptr<Meeting> make_reduce_shards(Draft& draft, const LocalOp& op) {
  auto meeting = std::make_shared<Meeting>();
  ShardReducer reducer;
  reducer.program = ops::compile_scalar_region(*draft.program->function, op.regions.at(0));
  reducer.operands = op.operands.size();
  const DraftValue& first = draft.value(op.operands[0]);
  reducer.count = tensor::element_count(first.type);
  for (const LocalId id : op.operands) reducer.element_bytes.push_back(tensor::size_bytes(draft.value(id).type.dtype));
  const kernels::ScalarOp single = kernels::as_single_binary(reducer.program);
  if (single != kernels::ScalarOp::kCopy)
    reducer.direct = kernels::find_scalar_kernel(single, first.type.dtype, first.type.dtype);

  const DraftValue& result = draft.value(op.results[0]);
  const MeshView& view = draft.tables.view(result.view);
  const int64_t members = view.distinct_count(op.reduced);
  for (int64_t shard = 0; shard < draft.tables[result.table].count(); ++shard) {
    std::vector<MeetingSource> sources;
    const tensor::Dims base = draft.tables.coordinates(result.table, shard);
    for (int64_t member = 0; member < members; ++member) {
      tensor::Dims coords = view.coordinates(op.reduced, member);
      for (size_t i = 0; i < coords.size(); ++i) {
        if ((op.reduced >> i & 1) == 0) coords[i] = base[i];
      }
      for (size_t k = 0; k < op.operands.size(); ++k) {
        const int64_t source = view.distinct_index(draft.value(op.operands[k]).varies, coords);
        sources.push_back(source_of(draft, static_cast<int32_t>(k), op.operands[k], source));
      }
    }
    meeting->sources.push_back(std::move(sources));
    meeting->units.push_back(core::ceil_div(reducer.count, kReduceUnitElements));
  }
  meeting->run = [reducer = std::move(reducer), members](const MeetingCall& call) {
    reducer.run(call, static_cast<size_t>(members));
  };
  return meeting;
}

std::shared_ptr<Meeting> make_group(Draft& draft, const LocalOp& op) {
  const LocalView local(draft, op);
  const ops::Body body = ops::body_of(*op.def, local.view);
  const auto* kernel = std::get_if<ops::GroupKernel>(&body);
  if (kernel == nullptr) throw core::Error("unsupported_op", "'" + op.name + "' is no collective");
  auto meeting = std::make_shared<Meeting>();
  std::map<size_t, std::shared_ptr<const ops::PreparedGroup>> prepared;
  struct Role {
    std::shared_ptr<const ops::PreparedGroup> group;  // null: zeros
    int64_t member = 0;
    size_t member_count = 0;
  };
  std::vector<Role> role_of_device(static_cast<size_t>(draft.tables.device_count()));
  std::vector<const std::vector<int64_t>*> group_of_device(role_of_device.size(), nullptr);
  for (const auto& group : op.groups) {
    auto& made = prepared[group.size()];
    if (made == nullptr) {
      made =
          std::make_shared<const ops::PreparedGroup>(kernel->prepare(local.view, static_cast<int64_t>(group.size())));
    }
    // A pair has one source and one target; other groups give every member its output.
    const size_t senders = kernel->is_permutation ? 1 : group.size();
    for (size_t i = kernel->is_permutation ? 1 : 0; i < group.size(); ++i) {
      const auto device = static_cast<size_t>(group[i]);
      role_of_device.at(device) = {made, static_cast<int64_t>(i), senders};
      group_of_device.at(device) = &group;
    }
  }
  const size_t operand_count = op.operands.size();
  const ShardTable& table = draft.tables[draft.value(op.results[0]).table];
  std::vector<Role> roles;
  for (const int32_t device : table.device_of_shard) {
    const Role& role = role_of_device[static_cast<size_t>(device)];
    std::vector<MeetingSource> sources;
    for (size_t member = 0; member < role.member_count; ++member) {
      const int64_t from = (*group_of_device[static_cast<size_t>(device)])[member];
      for (size_t k = 0; k < operand_count; ++k) {
        const ShardTable& operand = draft.tables[draft.value(op.operands[k]).table];
        const int32_t shard = operand.shard_of_device.at(static_cast<size_t>(from));
        sources.push_back(source_of(draft, static_cast<int32_t>(k), op.operands[k], std::max(shard, 0)));
      }
    }
    meeting->sources.push_back(std::move(sources));
    meeting->units.push_back(1);
    roles.push_back(role);
  }
  std::vector<int64_t> result_bytes;
  for (const LocalId id : op.results) result_bytes.push_back(draft.value(id).bytes);
  meeting->run = [roles = std::move(roles), operand_count,
                  result_bytes = std::move(result_bytes)](const MeetingCall& call) {
    const Role& role = roles[static_cast<size_t>(call.shard)];
    if (role.group == nullptr) {
      for (size_t i = 0; i < result_bytes.size(); ++i)
        std::memset(call.results[i], 0, static_cast<size_t>(result_bytes[i]));
      return;
    }
    std::vector<const std::byte* const*> members;
    for (size_t member = 0; member < role.member_count; ++member)
      members.push_back(call.sources + member * operand_count);
    role.group->run({members, role.member, call.results});
  };
  return meeting;
}

}  // namespace meshd::compile
