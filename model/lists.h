// Objects behind list handles: TensorFlow's TensorList (variant values) and TensorArray
// (resources).
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "model/handle.h"
#include "model/shape.h"
#include "model/tensor.h"

namespace floe {

// Elements of lists that were copied because somebody else still saw the list. A loop that owns its
// list adds nothing.
inline std::atomic<int64_t> copied_list_elements{0};

// A value: whoever changes one either is its only owner (model/handle.h) or makes a copy, which
// shares the elements' bytes.
class TensorListObject final : public Object {
 public:
  TensorListObject(DType element_dtype, SymShape shape)
      : dtype(element_dtype), element_shape(std::move(shape)) {}
  TensorListObject(const TensorListObject& other)
      : Object(other),
        dtype(other.dtype),
        element_shape(other.element_shape),
        max_elements(other.max_elements),
        elements(other.elements) {
    copied_list_elements.fetch_add(static_cast<int64_t>(elements.size()),
                                   std::memory_order_relaxed);
  }

  DType dtype;
  SymShape element_shape;        // dims known or unknown; every element fits it
  int64_t max_elements = -1;     // -1: no bound
  std::vector<Tensor> elements;  // invalid ones were never written
};

// Written in place; what a reader may see is ordered by the flow values of the graph, and a run has
// one of its own.
class TensorArrayObject final : public Object {
 public:
  struct Element {
    Tensor value;
    bool written = false;
    bool cleared = false;  // by a read
  };

  DType dtype = DType::kInvalid;
  SymShape element_shape;
  bool dynamic_size = false;
  bool clear_after_read = true;
  bool identical_shapes = false;  // every element has the shape of the first one written
  std::vector<Element> elements;
};

}  // namespace floe
