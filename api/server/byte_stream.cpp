#include "api/server/byte_stream.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>

namespace meshd::api {

namespace {

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

}  // namespace

ByteStream::Result PlainStream::read(std::span<std::byte> destination) {
  while (true) {
    const ssize_t count = ::recv(socket_, destination.data(), destination.size(), MSG_DONTWAIT);
    if (count > 0) return {Outcome::kBytes, static_cast<size_t>(count)};
    if (count == 0) return {Outcome::kEnd};
    if (errno == EINTR) continue;
    return {would_block(errno) ? Outcome::kWouldBlockRead : Outcome::kBroken};
  }
}

ByteStream::Result PlainStream::write(std::span<const iovec> pieces) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(pieces.data());  // sendmsg does not write to it
  message.msg_iovlen = pieces.size();
  while (true) {
    const ssize_t count = ::sendmsg(socket_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) return {Outcome::kBytes, static_cast<size_t>(count)};
    if (errno == EINTR) continue;
    return {would_block(errno) ? Outcome::kWouldBlockWrite : Outcome::kBroken};
  }
}

}  // namespace meshd::api
