// BatchingParameters -> BatchingConfig.
#include <google/protobuf/wrappers.pb.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "config/key_table.h"
#include "config/limits.h"
#include "config/model_server_config.h"
#include "tensorflow_serving/servables/tensorflow/session_bundle_config.pb.h"

namespace floe {
namespace {

namespace pb = tensorflow::serving;

class Reader {
 public:
  Reader(const pb::BatchingParameters& from, std::string file, const TextPlaces& places,
         std::vector<std::string>* notes)
      : from_(from), file_(std::move(file)), places_(places), notes_(notes) {}

  // A field that wraps a number and means `key`; one that is not there changes nothing.
  void Int(const char* field, const Key<ModelConfig>& key, ModelConfig* out) {
    const auto* const found = from_.GetDescriptor()->FindFieldByName(field);
    if (!from_.GetReflection()->HasField(from_, found)) return;
    const auto& wrapper = static_cast<const google::protobuf::Int64Value&>(
        from_.GetReflection()->GetMessage(from_, found));
    if (wrapper.value() < key.range->low)
      return Fail(field, absl::StrCat("expected { value: N } with N of at least ", key.range->low,
                                      ", got ", wrapper.value()));
    key.parse(absl::StrCat(AtMost(field, wrapper.value(), key.range->high)), out);
  }
  // What TensorFlow Serving runs with and is more than is possible here.
  int64_t AtMost(const char* field, int64_t value, int64_t most) {
    if (value <= most) return value;
    notes_->push_back(
        absl::StrCat(Place(field), ": ", field, ": ", value, " means ", most, " here"));
    return most;
  }
  // Sizes that come to be the same are one.
  void Sizes(std::vector<int64_t>* out) {
    if (from_.allowed_batch_sizes_size() == 0) return;
    out->clear();
    const int64_t most = ModelKey("batching.allowed_batch_sizes").range->high;
    for (const int64_t size : from_.allowed_batch_sizes()) {
      const int64_t possible = AtMost("allowed_batch_sizes", size, most);
      if (possible == size || out->empty() || out->back() != possible) out->push_back(possible);
    }
  }
  std::string Place(const std::string& field) const {
    return PlaceOf(file_, places_, from_, field);
  }
  void Fail(const char* field, const std::string& message) {
    mistakes_.push_back(absl::StrCat(Place(field), ": ", field, ": ", message));
  }
  const std::vector<std::string>& mistakes() const { return mistakes_; }

 private:
  const pb::BatchingParameters& from_;
  const std::string file_;
  const TextPlaces& places_;
  std::vector<std::string>* const notes_;
  std::vector<std::string> mistakes_;
};

}  // namespace

absl::Status ParseBatchingParameters(const std::string& text, const std::string& file,
                                     ModelConfig* model, std::vector<std::string>* notes) {
  pb::BatchingParameters from;
  TextPlaces places;
  FLOE_RETURN_IF_ERROR(ParseTextProto(text, file, &from, &places));
  ModelConfig result = *model;
  BatchingConfig& out = result.batching;
  Reader reader(from, file, places, notes);
  for (const char* name : {"max_batch_size", "batch_timeout_micros", "max_enqueued_batches",
                           "max_execution_batch_size"})
    reader.Int(name, ModelKey(absl::StrCat("batching.", name)), &result);
  reader.Int("num_batch_threads", ModelKey("workers"), &result);
  if (from.has_enable_large_batch_splitting())
    out.enable_large_batch_splitting = from.enable_large_batch_splitting().value();
  reader.Sizes(&out.allowed_batch_sizes);
  if (from.pad_variable_length_inputs()) out.pad_variable_length_inputs = true;
  if (from.has_thread_pool_name())
    notes->push_back(absl::StrCat(reader.Place("thread_pool_name"),
                                  ": thread_pool_name has no effect here: every model has threads "
                                  "of its own"));
  FillBatching(from.has_max_batch_size(), &out);
  std::vector<std::string> mistakes = reader.mistakes();
  for (const std::string& mistake : BatchingMistakes(out))
    mistakes.push_back(
        absl::StrCat(reader.Place(mistake.substr(0, mistake.find(':'))), ": ", mistake));
  if (!mistakes.empty()) return absl::InvalidArgumentError(absl::StrJoin(mistakes, "\n"));
  *model = std::move(result);
  return absl::OkStatus();
}

}  // namespace floe
