// What one node does to the rows of its inputs: by the rules of its op, and by those of values that
// hold any number of elements for each row.
#pragma once

#include <vector>

#include "kernels/kernel.h"
#include "model/flat_rows.h"
#include "model/op_def.h"

namespace floe {

// The inputs of the node being visited.
struct NodeInputs {
  std::vector<ValueInfo> infos;
  std::vector<RowMark> marks;
  std::vector<Flat> flats;

  bool Has(RowMark mark) const;
  RowMark Lost() const;  // what outputs are that no rule lets keep rows
};

// One mark for all outputs.
RowMark MarkOfNode(const Node& node, const NodeInputs& in, const Types& outputs);

// Looks at the outputs that are kMixed, for nodes without subgraphs: `flats` gets what they are by
// a rule of flat values, or with elements in the place of rows. Where that makes rows of them
// again, or numbers that are known, `values` and `marks` say so. `node_number` names the divisions
// that the node makes.
absl::Status FollowFlatRows(const Node& node, int node_number, const NodeInputs& in,
                            const KernelOptions& options, std::vector<ValueInfo>* values,
                            std::vector<RowMark>* marks, std::vector<Flat>* flats);

}  // namespace floe
