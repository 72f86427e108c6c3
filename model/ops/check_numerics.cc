// Ops that pass their input on and look at it: what models keep from being debugged.
#include "model/op_def.h"

namespace floe {
namespace {

RowMark LookedAtRows(const RowContext& c) { return c.marks[0]; }

// Print(input, data...): a server prints nothing.
const OpRegistrar kPrint({.name = "Print",
                          .infer = InferSame,
                          .rows = LookedAtRows,
                          .time_major = LookedAtRows,
                          .alias = true,
                          .input_types = "T ?",
                          .limits = "prints nothing"});

// CheckNumerics(tensor): fails the run where a value is infinite or NaN.
const OpRegistrar kCheckNumerics({.name = "CheckNumerics",
                                  .infer = InferSame,
                                  .rows = LookedAtRows,
                                  .time_major = LookedAtRows,
                                  .in_place = 1,
                                  .input_types = "T",
                                  .tensorflow = {"CheckNumerics", "CheckNumericsV2"}});

}  // namespace
}  // namespace floe
