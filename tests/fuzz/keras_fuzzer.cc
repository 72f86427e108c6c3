// Any bytes as a file of Keras: zip, JSON, HDF5, layers; then compile, bind and two runs, within
// small limits. Units are .keras archives, compressed, or .h5 files.
#include <zip.h>

#include <nlohmann/json.hpp>

#include "base/budget.h"
#include "base/status.h"
#include "model/import/keras/archive.h"
#include "model/import/keras/json.h"
#include "model/import/keras/keras.h"
#include "model/import/keras/layer.h"
#include "tests/fuzz/fuzzer.h"
#include "tests/fuzz/hdf5_in_process.h"
#include "tests/fuzz/run_model.h"

namespace floe::fuzz {
namespace {

using keras::Json;

absl::Status LoadAndRun(const std::string& bytes, Random random) {
  ImportOptions import;
  import.limits = kLimits;
  FLOE_ASSIGN_OR_RETURN(ImportedModel imported, ImportKerasBytes(bytes, import));
  return CompileAndRun(std::move(imported), random);
}

// The two entries of an archive that say what a model is.
struct Parts {
  std::string config, weights;
};

bool Read(const std::string& bytes, Parts* parts) {
  Budget budget(ResourceLimits{.max_value_bytes = 1 << 20, .max_bytes = 1 << 22});
  const BudgetScope scope(&budget);
  const auto archive = keras::Archive::Open(bytes);
  if (!archive.ok()) return false;
  const auto config = archive->Read("config.json"), weights = archive->Read("model.weights.h5");
  if (!config.ok() || !weights.ok()) return false;
  parts->config.assign(static_cast<const char*>(config->data()), config->bytes());
  parts->weights.assign(static_cast<const char*>(weights->data()), weights->bytes());
  return true;
}

bool AddEntry(zip_t* archive, const char* name, const std::string& bytes) {
  zip_source_t* const source = zip_source_buffer(archive, bytes.data(), bytes.size(), 0);
  const zip_int64_t index = source == nullptr ? -1 : zip_file_add(archive, name, source, 0);
  if (index < 0) return false;
  zip_file_set_dostime(archive, index, 0, 0x21, 0);
  return true;
}

std::string Write(const Parts& parts) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* const out = zip_source_buffer_create(nullptr, 0, 0, &error);
  zip_source_keep(out);
  zip_t* const archive = zip_open_from_source(out, ZIP_TRUNCATE, &error);
  std::string bytes;
  if (archive != nullptr && AddEntry(archive, "config.json", parts.config) &&
      AddEntry(archive, "model.weights.h5", parts.weights) && zip_close(archive) == 0 &&
      zip_source_open(out) == 0) {
    zip_source_seek(out, 0, SEEK_END);
    bytes.resize(static_cast<size_t>(zip_source_tell(out)));
    zip_source_seek(out, 0, SEEK_SET);
    zip_source_read(out, bytes.data(), bytes.size());
    zip_source_close(out);
  }
  zip_source_free(out);
  return bytes;
}

// ---- changes of a configuration ----

void Collect(Json* json, std::vector<Json*>* all) {
  all->push_back(json);
  if (!json->is_structured()) return;
  for (Json& item : *json) Collect(&item, all);
}

Json Interesting(Random& random) {
  static const std::vector<Json> values{nullptr, true,   0,     1,     -1,        2,        3,
                                        1 << 20, 1e300,  -0.5,  0.3,   "same",    "valid",  "",
                                        "relu",  "tanh", "int", "sum", INT64_MIN, INT64_MAX};
  return values[random.Below(static_cast<int>(values.size()))];
}

void Change(Json* config, Random& random) {
  std::vector<Json*> all;
  Collect(config, &all);
  Json* const at = all[random.Below(static_cast<int>(all.size()))];
  const std::vector<std::string> names = keras::LayerNames();
  switch (random.Below(6)) {
    case 0:
      *at = Interesting(random);
      break;
    case 1:
      *at = Json(*all[random.Below(static_cast<int>(all.size()))]);
      break;
    case 2:
      if (at->is_structured() && !at->empty()) at->erase(at->begin());
      break;
    case 3:
      if (at->is_array() && at->size() < 64)
        at->push_back(at->empty() ? Interesting(random) : Json((*at)[0]));
      break;
    case 4:
      if (at->is_object())
        (*at)["class_name"] = names[random.Below(static_cast<int>(names.size()))];
      break;
    default:
      if (at->is_number()) *at = at->get<double>() * 2 - 1;
  }
}

}  // namespace
}  // namespace floe::fuzz

// libhdf5 asks for as much memory as a file says before it looks whether the file has as much; it
// takes no for an answer.
extern "C" const char* __asan_default_options();  // NOLINT: the name is the sanitizer's
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }  // NOLINT

// It also forgets a few bytes for some damaged files.
extern "C" const char* __lsan_default_suppressions();                            // NOLINT: as above
extern "C" const char* __lsan_default_suppressions() { return "leak:libhdf5"; }  // NOLINT

namespace floe::fuzz {

absl::Status RunUnit(const std::string& bytes) {
  keras::Hdf5ParserStarter() = StartHdf5Thread;
  return LoadAndRun(bytes, ChoicesOf(bytes));
}

std::string MutateUnit(const std::string& bytes, size_t max_size, Random& random) {
  Parts parts;
  constexpr int kBytesOnceIn = 20;
  if (random.OneIn(kBytesOnceIn) || !Read(bytes, &parts)) return MutateBytes(bytes, max_size);
  auto config = keras::ParseJson(parts.config);
  constexpr int kWeightsOnceIn = 4;
  if (!config.ok() || random.OneIn(kWeightsOnceIn)) {
    std::string& part = config.ok() ? parts.weights : parts.config;
    part = MutateBytes(part, part.size() + 64);
  } else {
    for (int changes = 1 + random.Below(3); changes > 0; --changes) Change(&*config, random);
    parts.config = config->dump(-1, ' ', true, Json::error_handler_t::replace);
  }
  return Write(parts);
}

std::string CrossUnits(const std::string& one, const std::string& other, Random&) {
  Parts parts, others;
  if (!Read(one, &parts) || !Read(other, &others)) return "";
  parts.weights = others.weights;
  return Write(parts);
}

}  // namespace floe::fuzz
