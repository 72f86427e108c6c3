// Which tensors of an imported graph are fed and fetched.
#pragma once

#include "absl/status/statusor.h"
#include "model/graph.h"
#include "model/import/graphdef/graphdef.h"
#include "model/import/import.h"

namespace floe {

// The signature that `options` choose, or else all placeholders, what iterators and queues give to
// the outputs, and sinks. Tensors inside the graph that are to be fed become Input nodes: what only
// led to them is no longer needed. Placeholders whose default is computed are no inputs unless they
// are chosen, and then required. Placeholders of handles (resource, variant) that nothing needs are
// no inputs. INVALID_ARGUMENT names what the graph lacks, with the nearest names, and tensors whose
// type nothing tells.
absl::StatusOr<SignatureDef> BuildSignature(Graph* graph, const ImportOptions& options);

// A signature that the file has, with what the graph and `options` say of its inputs: shapes,
// defaults, and placeholders with a default that the file's signature does not name. Inputs may be
// tensors inside the graph. INVALID_ARGUMENT names what the graph lacks.
absl::StatusOr<SignatureDef> CompleteSignature(Graph* graph, SignatureDef def,
                                               const ImportOptions& options);

// The tensors that `options` name.
GraphChoice ChoiceOf(const ImportOptions& options);

}  // namespace floe
