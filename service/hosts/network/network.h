// The seam to a message library: what ranks send each other, without MPI's words. The module libmeshd_mpi.so implements
// it on MPI, tests/support/fake_network.h between threads of one process. Headers alone: the module links nothing.
//
// A message is a header and bytes. Messages between two ranks arrive whole and in the order in which they were sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace meshd::hosts {

struct Header {
  uint32_t kind = 0;
  uint32_t reserved = 0;
  uint64_t run = 0;
  int64_t visit = 0;
  int64_t shard = 0;
  int64_t source = 0;
  uint64_t bytes = 0;  ///< that follow
};

/// Who takes messages. Calls come from one thread, the network's own; they must not wait. What they throw ends the
/// process: ranks that do not understand each other cannot go on.
class Receiver {
 public:
  virtual ~Receiver() = default;
  /// A message begins: where its bytes go, as many as the header says. The memory stays until end().
  virtual std::span<std::byte> begin(int peer, const Header& header) = 0;
  /// Its bytes are there. Of one peer no other message begins before.
  virtual void end(int peer, const Header& header) = 0;
  /// The peer lives: a part of a message has come of it, or it has taken a large part of one.
  virtual void moved(int /*peer*/) {}
};

/// One rank's end. Any thread. Never waits, but for open and close.
class Network {
 public:
  /// Without close(): the ranks end each other (MPI_Abort).
  virtual ~Network() = default;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  /// Ranks on this machine, this one included.
  [[nodiscard]] virtual int local_size() const = 0;
  /// Messages are taken from now on. Once.
  virtual void start(std::shared_ptr<Receiver> receiver) = 0;
  /// `keep` owns the bytes, which do not change until it is released. Where it throws, nothing is sent.
  virtual void send(int peer, const Header& header, std::span<const std::byte> bytes,
                    std::shared_ptr<const void> keep) = 0;
  /// True: messages are expected soon, and it may poll; false: it sleeps between looks.
  virtual void expect_traffic(bool is_soon) = 0;
  /// Once all ranks have nothing more to say: sends what is left, and returns when every rank has called it.
  virtual void close() = 0;
};

}  // namespace meshd::hosts
