// A message of protobuf that may be left half made when memory runs out.
#pragma once

#include <exception>
#include <memory>

namespace floe {

// Maps of protobuf are broken where memory for an entry could not be had, and end the process when
// they are destroyed. A message that std::bad_alloc leaves is kept instead.
struct DestroyUnlessThrown {
  template <typename Message>
  void operator()(Message* message) const {
    if (std::uncaught_exceptions() == 0) delete message;
  }
};

// What holds a message with maps, of its own or in its parts, while a file becomes a graph. On the
// stack are only messages without: entries and headers of bundles, shapes, tensors.
template <typename Message>
using MessagePtr = std::unique_ptr<Message, DestroyUnlessThrown>;

template <typename Message>
MessagePtr<Message> NewMessage() {
  return MessagePtr<Message>(new Message);
}

}  // namespace floe
