// Values that are not numbers: lists, arrays, tables. Elements of kVariant and kResource tensors.
#pragma once

#include <memory>

namespace floe {

class Object {
 public:
  virtual ~Object() = default;
};

// Shared by every tensor that refers to the object. A kernel that is its input's last reader may
// move the handle out of the input's view (KernelContext::Donatable) and write the object in place
// when the count is one.
using Handle = std::shared_ptr<Object>;

}  // namespace floe
