// ModelServerConfig -> models.
#include "config/model_server_config.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "config/base_path.h"
#include "config/limits.h"
#include "tensorflow_serving/config/model_server_config.pb.h"

namespace floe {
namespace {

namespace pb = tensorflow::serving;
using PolicyProto = pb::FileSystemStoragePathSourceConfig::ServableVersionPolicy;

constexpr char kList[] = "model_config_list";

// The models of the context, by name.
using KnownModels = std::map<std::string_view, const ModelConfig*>;

// One entry of the list while it is read.
class Entry {
 public:
  Entry(const pb::ModelConfig& proto, int index, const ModelListContext& context,
        const KnownModels& known, std::vector<std::string>* mistakes,
        std::vector<std::string>* notes)
      : proto_(proto),
        index_(index),
        context_(context),
        known_(known),
        list_(context.places == nullptr ? nullptr
                                        : context.places->GetTreeForNested(ListField(), -1)),
        places_(list_ == nullptr ? nullptr : list_->GetTreeForNested(ConfigField(), index)),
        mistakes_(mistakes),
        notes_(notes) {}

  ModelConfig Read() {
    ModelConfig model = Base();
    model.name = proto_.name();
    model.where = context_.file.empty() ? Path("") : Place("");
    if (model.name.empty())
      Fail("name", "is missing; expected name: \"NAME\", what clients call the model");
    ReadBasePath(&model);
    ReadPlatform();
    model.versions = ReadPolicy();
    model.version_labels = ReadLabels();
    if (proto_.has_logging_config())
      notes_->push_back(absl::StrCat(Place("logging_config"), ": ", Path("logging_config"),
                                     " has no effect here: requests are not logged"));
    return model;
  }

 private:
  static const google::protobuf::FieldDescriptor* ListField() {
    return pb::ModelServerConfig::descriptor()->FindFieldByName(kList);
  }
  static const google::protobuf::FieldDescriptor* ConfigField() {
    return pb::ModelConfigList::descriptor()->FindFieldByName("config");
  }

  // "model_config_list.config[2].name"
  std::string Path(const std::string& field) const {
    return absl::StrCat(kList, ".config[", index_, "]", field.empty() ? "" : ".", field);
  }
  // "file:line" of a field, or of the entry when it does not have it.
  std::string Place(const std::string& field) const {
    if (list_ == nullptr) return context_.file;
    std::string own =
        places_ == nullptr ? context_.file : PlaceOf(context_.file, *places_, proto_, field);
    if (own != context_.file) return own;
    return absl::StrCat(context_.file, ":", list_->GetLocation(ConfigField(), index_).line + 1);
  }
  void Fail(const std::string& field, const std::string& message) {
    const std::string place = Place(field);
    mistakes_->push_back(
        absl::StrCat(place, place.empty() ? "" : ": ", Path(field), ": ", message));
  }

  ModelConfig Base() const {
    const auto found = known_.find(proto_.name());
    return found == known_.end() ? context_.defaults : *found->second;
  }

  void ReadBasePath(ModelConfig* model) {
    absl::StatusOr<std::string> path = LocalPath(proto_.base_path(), context_.directory);
    if (!path.ok()) return Fail("base_path", std::string(path.status().message()));
    if (path->empty()) {
      Fail("base_path",
           "is missing; expected base_path: \"PATH\", the directory that holds <version>/ "
           "directories");
    } else if (path->front() != '/') {
      Fail("base_path", absl::StrCat("'", *path,
                                     "' is relative, which a call cannot be; expected an "
                                     "absolute path on the server"));
    }
    model->base_path = *std::move(path);
  }

  void ReadPlatform() {
    const std::string& platform = proto_.model_platform();
    if (!platform.empty() && platform != "tensorflow")
      Fail("model_platform", absl::StrCat("'", platform,
                                          "' is not served here; expected "
                                          "\"tensorflow\", or no model_platform"));
    if (proto_.model_type() == pb::OTHER)
      Fail("model_type", "OTHER is not served here; expected TENSORFLOW, or no model_type");
  }

  VersionPolicy ReadPolicy() {
    VersionPolicy policy;
    const PolicyProto& from = proto_.model_version_policy();
    switch (from.policy_choice_case()) {
      case PolicyProto::kAll:
        policy.kind = VersionPolicy::Kind::kAll;
        break;
      case PolicyProto::kSpecific:
        policy.kind = VersionPolicy::Kind::kSpecific;
        policy.specific.assign(from.specific().versions().begin(),
                               from.specific().versions().end());
        if (policy.specific.empty())
          Fail("model_version_policy",
               "specific names no version; expected specific { versions: NUMBER }");
        break;
      default:  // latest, or nothing said
        policy.latest =
            std::clamp<int64_t>(from.latest().num_versions(), kLatestRange.low, kLatestRange.high);
        break;
    }
    for (const int64_t version : policy.specific)
      if (version < 0)
        Fail("model_version_policy",
             absl::StrCat("version ", version, " is negative; expected a directory's number"));
    SortUnique(&policy.specific);
    return policy;
  }

  std::map<std::string, int64_t> ReadLabels() {
    std::map<std::string, int64_t> labels(proto_.version_labels().begin(),
                                          proto_.version_labels().end());
    for (const auto& [label, version] : labels) {
      if (label.empty())
        Fail("version_labels", "a label has no name; expected key: \"LABEL\" value: VERSION");
      if (version < 0)
        Fail("version_labels", absl::StrCat("label '", label, "' has version ", version,
                                            ", which is negative; expected a directory's number"));
    }
    return labels;
  }

  const pb::ModelConfig& proto_;
  const int index_;
  const ModelListContext& context_;
  const KnownModels& known_;
  const TextPlaces* const list_;
  const TextPlaces* const places_;
  std::vector<std::string>* const mistakes_;
  std::vector<std::string>* const notes_;
};

}  // namespace

absl::StatusOr<std::vector<ModelConfig>> ModelsOf(const pb::ModelServerConfig& config,
                                                  const ModelListContext& context,
                                                  std::vector<std::string>* notes) {
  const std::string prefix = context.file.empty() ? "" : absl::StrCat(context.file, ": ");
  if (config.config_case() == pb::ModelServerConfig::kCustomModelConfig)
    return absl::InvalidArgumentError(
        absl::StrCat(prefix, "custom_model_config is not read here; expected ", kList));
  if (config.config_case() == pb::ModelServerConfig::CONFIG_NOT_SET && context.may_be_empty) {
    notes->push_back(absl::StrCat(prefix, "there is no ", kList, ": it names no models to serve"));
    return std::vector<ModelConfig>();
  }
  if (config.config_case() != pb::ModelServerConfig::kModelConfigList)
    return absl::InvalidArgumentError(
        absl::StrCat(prefix, "there is no ", kList, "; expected ", kList,
                     " { config { name: \"NAME\" base_path: \"PATH\" } ... }"));
  if (config.model_config_list().config_size() > kMaxModels)
    return absl::InvalidArgumentError(absl::StrCat(prefix, kList, ": ",
                                                   config.model_config_list().config_size(),
                                                   " models; expected at most ", kMaxModels));
  KnownModels known;
  if (context.known != nullptr)
    for (const ModelConfig& model : *context.known) known.emplace(model.name, &model);
  std::vector<std::string> mistakes;
  std::vector<ModelConfig> models;
  std::map<std::string, std::vector<std::string>> places;  // by name
  for (int i = 0; i < config.model_config_list().config_size(); ++i) {
    ModelConfig model =
        Entry(config.model_config_list().config(i), i, context, known, &mistakes, notes).Read();
    if (!model.name.empty()) {
      std::vector<std::string>& others = places[model.name];
      for (const std::string& other : others)
        mistakes.push_back(absl::StrCat(model.where, ": the model name '", model.name,
                                        "' is taken (", other, "); names must differ"));
      others.push_back(model.where);
    }
    models.push_back(std::move(model));
  }
  if (!mistakes.empty()) return absl::InvalidArgumentError(absl::StrJoin(mistakes, "\n"));
  return models;
}

absl::StatusOr<std::vector<ModelConfig>> ParseModelServerConfig(const std::string& text,
                                                                const ModelListContext& context,
                                                                std::vector<std::string>* notes) {
  pb::ModelServerConfig config;
  TextPlaces places;
  FLOE_RETURN_IF_ERROR(ParseTextProto(text, context.file, &config, &places));
  ModelListContext located = context;
  located.places = &places;
  return ModelsOf(config, located, notes);
}

}  // namespace floe
