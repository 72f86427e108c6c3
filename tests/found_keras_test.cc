// Keras files and SavedModels of all sorts beside the checkout against the answers of the library
// that wrote them, with and without passes; and hostile files, which may cost seconds and no more.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <filesystem>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/local_model.h"
#include "model/half.h"
#include "tests/corpus_case.h"

namespace floe::cli {
namespace {

namespace fs = std::filesystem;

// What fails today, FOLDER/FILE. The test fails when anything else does, and when one of these has
// begun to pass; the list has only to shrink.
const std::set<std::string>& Listed() {
  static const std::set<std::string> listed = {
      // Keras 2 lost the operands of tf.einsum when it saved these, and cannot load them either.
      "k5-keras2-functions/einsum.h5", "k5-keras2-functions/einsum.keras"};
  return listed;
}

fs::path Finds() { return fs::path(FLOE_SOURCE_DIR) / ".." / "shared" / "finds"; }

std::string KeyOf(const fs::path& file) {
  return absl::StrCat(file.parent_path().filename().string(), "/", file.filename().string());
}

// NAME.EXT.what or NAME.what, whichever is there.
std::string Beside(const fs::path& model, const std::string& what) {
  const fs::path full = model.string() + what;
  return fs::exists(full) ? full.string() : fs::path(model).replace_extension(what).string();
}

// Strings of this one are pickled, which no reader but Python's knows.
NamedTensors FeatureSpaceInputs() {
  Tensor age = Tensor::Allocate(DType::kFloat32, {2, 1}), chol = age;
  chol = Tensor::Allocate(DType::kFloat32, {2, 1});
  Tensor sex = Tensor::Allocate(DType::kInt32, {2, 1});
  Tensor ca = Tensor::Allocate(DType::kInt32, {2, 1});
  Tensor thal = Tensor::Allocate(DType::kString, {2, 1});
  for (int row = 0; row < 2; ++row) {
    static_cast<float*>(age.mutable_data())[row] = row == 0 ? 30 : 60;
    static_cast<float*>(chol.mutable_data())[row] = row == 0 ? 200 : 230;
    static_cast<int32_t*>(sex.mutable_data())[row] = row;
    static_cast<int32_t*>(ca.mutable_data())[row] = row == 0 ? 1 : 3;
    static_cast<std::string*>(thal.mutable_data())[row] = row == 0 ? "fixed" : "normal";
  }
  return {{"age", age}, {"sex", sex}, {"thal", thal}, {"chol", chol}, {"ca", ca}};
}

absl::StatusOr<NamedTensors> InputsFor(const fs::path& model) {
  if (KeyOf(model) == "k11-featurespace/featurespace.keras") return FeatureSpaceInputs();
  return ReadNpz(Beside(model, ".in.npz"));
}

bool IsNumber(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

// The answers by the signature's keys, or by position where the file has other names.
Tensor ToFloat32(const TensorView& from) {
  Tensor to = Tensor::Allocate(DType::kFloat32, from.shape);
  for (int64_t i = 0; i < from.elements(); ++i)
    static_cast<float*>(to.mutable_data())[i] = static_cast<float>(from.as<BFloat16>()[i]);
  return to;
}

absl::Status Compare(const SignatureDef& def, const NamedTensors& answers,
                     const ExecContext& context) {
  corpus::CorpusCase tolerance;
  tolerance.atol = 1e-5;
  if (answers.size() != def.outputs.size())
    return absl::DataLossError(
        absl::StrCat(def.outputs.size(), " outputs, expected ", answers.size()));
  for (size_t k = 0; k < answers.size(); ++k) {
    const std::string& key = def.outputs[k].key;
    const Tensor* named = FindTensor(answers, key);
    const Tensor& want = named == nullptr ? answers[k].second : *named;
    const TensorView& out = context.Output(static_cast<int>(k));
    // NumPy has no bfloat16: such answers lie in the file as float32.
    const Tensor wide = out.dtype == DType::kBFloat16 ? ToFloat32(out) : Tensor();
    tolerance.rtol = wide.valid() ? 0x1p-7 : 1e-4;  // one unit in the last place of bfloat16
    FLOE_RETURN_IF_ERROR(Annotate(
        corpus::CompareTensors(tolerance, wide.valid() ? wide.view() : out, want.view()), key));
  }
  return absl::OkStatus();
}

absl::Status Check(const fs::path& model_file, const std::vector<std::string>& disabled_passes) {
  FLOE_ASSIGN_OR_RETURN(const NamedTensors arrays, InputsFor(model_file));
  FLOE_ASSIGN_OR_RETURN(const NamedTensors answers, ReadNpz(Beside(model_file, ".expected.npz")));
  LocalOptions options;
  options.compile.disabled_passes = disabled_passes;
  FLOE_ASSIGN_OR_RETURN(const LocalModel model, LoadLocal(model_file.string(), options));
  MatchOptions match;
  match.by_position = std::all_of(arrays.begin(), arrays.end(),
                                  [](const auto& named) { return IsNumber(named.first); });
  FLOE_ASSIGN_OR_RETURN(const std::vector<Tensor> inputs, MatchInputs(model.def(), arrays, match));
  FLOE_ASSIGN_OR_RETURN(const BoundCall call, BindCall(*model.signature, inputs));
  ExecContext context;  // what it answers may not depend on what memory held before
  for (const MemoryFill fill : {MemoryFill::kOnes, MemoryFill::kStripes}) {
    context.CheckMemory(fill);
    FLOE_RETURN_IF_ERROR(RunCall(call, context));
    FLOE_RETURN_IF_ERROR(Compare(model.def(), answers, context));
  }
  return absl::OkStatus();
}

void ExpectAsListed(const std::string& key, const std::string& failure) {
  if (Listed().count(key) != 0)
    EXPECT_NE(failure, "") << key << " passes; take it off the list";
  else
    EXPECT_EQ(failure, "") << key;
}

class FoundKeras : public testing::TestWithParam<std::string> {};

TEST_P(FoundKeras, GivesTheWritersAnswers) {
  if (GetParam().empty()) GTEST_SKIP() << "needs ../shared";
  const fs::path model = GetParam();
  std::string failure;
  for (const std::vector<std::string>& disabled : {std::vector<std::string>(), {"all"}}) {
    const absl::Status status = Check(model, disabled);
    if (!status.ok())
      absl::StrAppend(&failure, disabled.empty() ? "" : "without passes: ", status.ToString(),
                      "\n");
  }
  ExpectAsListed(KeyOf(model), failure);
}

// What is wrong with how `floectl inspect` took the file, in a process of its own; "" when it ended
// by itself, in time and in memory, whatever it said.
std::string Inspect(const std::string& file) {
#ifdef FLOE_SANITIZED  // many times slower, and the memory is mostly the sanitizer's own
  constexpr rlim_t kSeconds = 300;
  constexpr int64_t kMostKilobytes = int64_t{1} << 23;
#else
  constexpr rlim_t kSeconds = 10;
  constexpr int64_t kMostKilobytes = int64_t{1} << 20;
#endif
  const std::string program = std::string(FLOE_BINARY_DIR) + "/floectl";
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit{kSeconds, kSeconds};
    setrlimit(RLIMIT_CPU, &limit);
    if (const int null = open("/dev/null", O_WRONLY); null >= 0) {  // what it says counts nothing
      dup2(null, STDOUT_FILENO);
      dup2(null, STDERR_FILENO);
    }
    execl(program.c_str(), program.c_str(), "inspect", file.c_str(), nullptr);
    _exit(126);
  }
  int status = 0;
  rusage used{};
  if (child < 0 || wait4(child, &status, 0, &used) != child) return "cannot start a process";
  if (WIFSIGNALED(status)) return absl::StrCat("ended by signal ", WTERMSIG(status));
  if (WEXITSTATUS(status) == 126) return absl::StrCat("cannot run ", program);
  if (used.ru_maxrss > kMostKilobytes) return absl::StrCat("took ", used.ru_maxrss, " kB");
  return "";
}

class HostileKeras : public testing::TestWithParam<std::string> {};

TEST_P(HostileKeras, CostsSecondsAndNoMore) {
  if (GetParam().empty()) GTEST_SKIP() << "needs ../shared";
  ExpectAsListed(KeyOf(GetParam()), Inspect(GetParam()));
}

bool IsModel(const fs::path& path) {
  return path.extension() == ".keras" || path.extension() == ".h5" ||
         fs::exists(path / "saved_model.pb");
}

// The models in the folders of finds that begin with this letter. An empty path stands for "there
// are none".
std::vector<std::string> Models(char kind) {
  std::vector<std::string> models;
  std::error_code none;
  for (const auto& group : fs::directory_iterator(Finds(), none)) {
    const std::string name = group.path().filename().string();
    if (name.size() < 2 || name[0] != kind ||
        std::isdigit(static_cast<unsigned char>(name[1])) == 0)
      continue;
    for (const auto& entry : fs::directory_iterator(group.path(), none))
      if (IsModel(entry.path())) models.push_back(entry.path().string());
  }
  std::sort(models.begin(), models.end());
  if (models.empty()) models.emplace_back();
  return models;
}

std::string TestName(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param.empty() ? "none" : KeyOf(info.param);
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Models, FoundKeras, testing::ValuesIn(Models('k')), TestName);
INSTANTIATE_TEST_SUITE_P(Models, HostileKeras, testing::ValuesIn(Models('h')), TestName);

}  // namespace
}  // namespace floe::cli
