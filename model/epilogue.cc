#include "model/epilogue.h"

#include "model/attrs.h"

namespace floe {
namespace {

constexpr char kName[] = "epilogue";

}  // namespace

Epilogue EpilogueOf(const Attrs& attrs) { return attrs.Get<Epilogue>(kName, {}); }

void SetEpilogue(const Epilogue& epilogue, Attrs* attrs) { attrs->Set(kName, epilogue); }

}  // namespace floe
