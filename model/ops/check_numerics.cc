// Ops that pass their input on and look at it: what models keep from being debugged.
#include "model/op_def.h"

namespace floe {
namespace {

RowMark LookedAtRows(const RowContext& c) { return c.marks[0]; }

// Print(input, data...): a server prints nothing.
const OpRegistrar kPrint({.name = "Print",
                          .min_inputs = 1,
                          .max_inputs = -1,
                          .infer = InferSame,
                          .rows = LookedAtRows,
                          .time_major = LookedAtRows,
                          .alias = true,
                          .tensorflow = {"Print"},
                          .limits = "prints nothing"});

// CheckNumerics(tensor): fails the run where a value is infinite or NaN.
const OpRegistrar kCheckNumerics({.name = "CheckNumerics",
                                  .min_inputs = 1,
                                  .max_inputs = 1,
                                  .infer = InferSame,
                                  .rows = LookedAtRows,
                                  .time_major = LookedAtRows,
                                  .in_place = 1,
                                  .tensorflow = {"CheckNumerics", "CheckNumericsV2"}});

}  // namespace
}  // namespace floe
