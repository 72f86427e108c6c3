// ValueList: the values of a tensor where they lie in a message, found first and decoded later.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "base/wire_reader.h"
#include "model/tensor.h"
#include "server/request/inference.h"

namespace floe::server {

// How a list of values is written. All but the last are repeated fields; kPrefixed is one piece
// with each string behind its length, four bytes of little endian.
enum class ListKind : uint8_t { kNone, kFixed32, kFixed64, kVarint, kStrings, kPrefixed };

// Views point into the message.
struct ValueList {
  ListKind kind = ListKind::kNone;  // kNone: there are no values
  uint32_t field = 0;               // of the list, in `messages`
  bool several_fields = false;      // values in more than one list
  int64_t values = 0;               // a complex number is two
  int64_t bytes = 0;                // of them on the wire
  std::string_view last;            // of strings that are a repeated field
  std::string_view before;          // what is put before each of those
  std::string_view packed;          // the values, where they lie in one piece
  // Messages with that field. Values that come in several pieces are read there.
  absl::InlinedVector<std::string_view, 1> messages;
};

// Whether a field of this wire type belongs to such a list: packed values, or a single one.
bool IsPieceOf(ListKind kind, WireType type);

// Counts a piece of the field `field`, which is such a list, and makes it that of `*list` when it
// is the first with values. Of pieces of several fields the lowest number stays. False: it is no
// piece of such a list.
bool AddPiece(uint32_t field, ListKind kind, std::string_view piece, ValueList* list);

// The strings of a kPrefixed list; -1: the last one is cut off.
int64_t CountPrefixed(std::string_view bytes);

// Calls visit(number) for each value of a list of varints.
template <typename Visit>
void ForEachVarintOf(const ValueList& list, Visit visit);

// What decoding to a tensor of so many elements takes, the last value sent again and again where
// there are fewer. Saturates.
int64_t DecodedBytes(const ValueList& list, DType dtype, int64_t elements);

// Gives the view its data, in `storage`, where it has none: the values, the last one repeated, or
// zeros and empty strings when there are none. Dtype and list fit, and no more values than elements
// were sent. Its bytes are charged before, and paid for here. The data may be unaligned.
absl::Status DecodeValues(const ValueList& list, InputStorage* storage, TensorView* view);

// Of the details of a list.
namespace value_list {

// Calls visit(piece) for the list's values: packed ones, a single one, or a string.
template <typename Visit>
void ForEachPiece(const ValueList& list, Visit visit) {
  if (!list.packed.empty()) return visit(list.packed);
  for (const std::string_view message : list.messages) {
    WireReader reader(message);
    uint32_t field;
    WireType type;
    std::string_view piece;
    while (!reader.Done() && reader.ReadTag(&field, &type) && reader.ReadValue(type, &piece))
      if (field == list.field && IsPieceOf(list.kind, type)) visit(piece);
  }
}

}  // namespace value_list

template <typename Visit>
void ForEachVarintOf(const ValueList& list, Visit visit) {
  value_list::ForEachPiece(list, [&visit](std::string_view piece) {
    WireReader reader(piece);
    uint64_t value;
    while (!reader.Done() && reader.ReadVarint(&value)) visit(value);
  });
}

}  // namespace floe::server
