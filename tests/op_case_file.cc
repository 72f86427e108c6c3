#include "tests/op_case_file.h"

#include <complex>
#include <cstdint>
#include <fstream>
#include <string>
#include <type_traits>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "model/half.h"

namespace floe::corpus {
namespace {

absl::Status Malformed(const std::string& what) { return absl::InvalidArgumentError(what); }

bool ParseValue(const std::string& word, double* value) { return absl::SimpleAtod(word, value); }
bool ParseValue(const std::string& word, float* value) { return absl::SimpleAtof(word, value); }
bool ParseValue(const std::string& word, bool* value) { return absl::SimpleAtob(word, value); }
bool ParseValue(const std::string& word, std::string* value) {
  return word.size() >= 2 && word.front() == '"' && word.back() == '"' &&
         absl::CUnescape(word.substr(1, word.size() - 2), value);
}
template <typename T>
bool ParseValue(const std::string& word, T* value) {
  if constexpr (std::is_integral_v<T>) {
    using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
    Wide wide = 0;
    if (!absl::SimpleAtoi(word, &wide)) return false;
    *value = static_cast<T>(wide);
    return static_cast<Wide>(*value) == wide;
  } else {
    float wide = 0;
    if (!absl::SimpleAtof(word, &wide)) return false;
    *value = T(wide);
    return true;
  }
}

template <typename T>
struct Part {  // what one word holds
  using Type = T;
  static constexpr int kWords = 1;
};
template <typename T>
struct Part<std::complex<T>> {
  using Type = T;
  static constexpr int kWords = 2;
};

template <typename T>
absl::StatusOr<Tensor> ParseValues(DType dtype, const Shape& shape,
                                   absl::Span<const std::string> words) {
  Tensor tensor = Tensor::Allocate(dtype, shape);
  const int64_t parts = shape.elements() * Part<T>::kWords;
  if (static_cast<int64_t>(words.size()) != parts)
    return Malformed(absl::StrCat(words.size(), " values, expected ", parts));
  auto* values = static_cast<typename Part<T>::Type*>(tensor.mutable_data());
  for (int64_t i = 0; i < parts; ++i) {
    if (!ParseValue(words[i], &values[i]))
      return Malformed(absl::StrCat("'", words[i], "' is no ", DTypeName(dtype)));
  }
  return tensor;
}

absl::StatusOr<Tensor> ParseValues(DType dtype, const Shape& shape,
                                   absl::Span<const std::string> words) {
  switch (PlainDType(dtype)) {
    case DType::kFloat32:
      return ParseValues<float>(dtype, shape, words);
    case DType::kFloat64:
      return ParseValues<double>(dtype, shape, words);
    case DType::kFloat16:
      return ParseValues<Half>(dtype, shape, words);
    case DType::kBFloat16:
      return ParseValues<BFloat16>(dtype, shape, words);
    case DType::kInt8:
      return ParseValues<int8_t>(dtype, shape, words);
    case DType::kInt16:
      return ParseValues<int16_t>(dtype, shape, words);
    case DType::kInt32:
      return ParseValues<int32_t>(dtype, shape, words);
    case DType::kInt64:
      return ParseValues<int64_t>(dtype, shape, words);
    case DType::kUInt8:
      return ParseValues<uint8_t>(dtype, shape, words);
    case DType::kUInt16:
      return ParseValues<uint16_t>(dtype, shape, words);
    case DType::kUInt32:
      return ParseValues<uint32_t>(dtype, shape, words);
    case DType::kUInt64:
      return ParseValues<uint64_t>(dtype, shape, words);
    case DType::kBool:
      return ParseValues<bool>(dtype, shape, words);
    case DType::kComplex64:
      return ParseValues<std::complex<float>>(dtype, shape, words);
    case DType::kComplex128:
      return ParseValues<std::complex<double>>(dtype, shape, words);
    case DType::kString:
      return ParseValues<std::string>(dtype, shape, words);
    default:
      return Malformed(absl::StrCat("values of dtype ", DTypeName(dtype)));
  }
}

// "[2,3]", "[]".
absl::StatusOr<Shape> ParseShape(const std::string& word) {
  if (word.size() < 2 || word.front() != '[' || word.back() != ']')
    return Malformed(absl::StrCat("'", word, "' is no shape"));
  Shape shape;
  const std::string dims = word.substr(1, word.size() - 2);
  for (const std::string& dim :
       std::vector<std::string>(absl::StrSplit(dims, ',', absl::SkipEmpty()))) {
    int64_t size = 0;
    if (!absl::SimpleAtoi(dim, &size) || size < 0)
      return Malformed(absl::StrCat("'", word, "' is no shape"));
    shape.push_back(size);
  }
  return shape;
}

// NAME DTYPE SHAPE VALUE...; of a random output LOW HIGH MEAN DEVIATION are the values.
absl::StatusOr<CorpusTensor> ParseTensor(absl::Span<const std::string> words, bool random) {
  if (words.size() < 3) return Malformed("expected NAME DTYPE SHAPE");
  FLOE_ASSIGN_OR_RETURN(const DType dtype, DTypeFromName(words[1]));
  FLOE_ASSIGN_OR_RETURN(const Shape shape, ParseShape(words[2]));
  CorpusTensor tensor{words[0], {}, {}};
  if (!random) {
    FLOE_ASSIGN_OR_RETURN(tensor.value, ParseValues(dtype, shape, words.subspan(3)));
    return tensor;
  }
  tensor.value = Tensor::Allocate(dtype, shape);
  ValueBounds bounds;
  double* const numbers[] = {&bounds.low, &bounds.high, &bounds.mean, &bounds.deviation};
  if (words.size() != 3 + std::size(numbers)) return Malformed("expected four bounds");
  for (size_t i = 0; i < std::size(numbers); ++i) {
    if (!absl::SimpleAtod(words[3 + i], numbers[i]))
      return Malformed(absl::StrCat("'", words[3 + i], "' is no number"));
  }
  tensor.bounds = bounds;
  return tensor;
}

absl::StatusOr<CorpusCase> ParseCase(absl::Span<const std::string> words) {
  if (words.empty()) return Malformed("a case without a name");
  CorpusCase c;
  // Cases leave the versions of their graphs out; all are of TensorFlow 2.
  c.variants.push_back({words[0], {}, "versions { producer: 1000 }\n", {}});
  for (const std::string& word : words.subspan(1)) {
    if (word == "batchable") {
      c.batchable = true;
      continue;
    }
    const bool relative = absl::StartsWith(word, "rtol=");
    if ((!relative && !absl::StartsWith(word, "atol=")) ||
        !absl::SimpleAtod(word.substr(5), relative ? &c.rtol : &c.atol))
      return Malformed(absl::StrCat("'", word, "' is none of rtol=R, atol=A and batchable"));
  }
  return c;
}

// `functions`: those of the last case's library.
absl::Status ParseLine(const std::string& line, std::vector<CorpusCase>* cases,
                       std::string* functions) {
  const std::vector<std::string> all = absl::StrSplit(line, ' ');
  const std::string& kind = all[0];
  const absl::Span<const std::string> words = absl::MakeConstSpan(all).subspan(1);
  if (kind == "case") {
    FLOE_ASSIGN_OR_RETURN(CorpusCase c, ParseCase(words));
    cases->push_back(std::move(c));
    return absl::OkStatus();
  }
  if (cases->empty()) return Malformed("expected 'case NAME'");
  CorpusCase& c = cases->back();
  CorpusVariant& variant = c.variants[0];
  if (kind == "node") {
    absl::StrAppend(&variant.text, line, "\n");
  } else if (kind == "function") {
    absl::StrAppend(functions, line, "\n");
  } else if (kind == "init") {
    c.init_ops.push_back(line.substr(5));
  } else if (kind == "feed") {
    FLOE_ASSIGN_OR_RETURN(CorpusTensor tensor, ParseTensor(words, false));
    c.inputs.push_back(std::move(tensor));
  } else if (kind == "want" || kind == "bounds") {
    FLOE_ASSIGN_OR_RETURN(CorpusTensor tensor, ParseTensor(words, kind == "bounds"));
    variant.outputs.push_back(tensor.name);
    c.outputs.push_back(std::move(tensor));
  } else if (kind == "fetch") {
    variant.outputs.push_back(line.substr(6));
  } else if (kind == "fails") {
    c.fails = line.substr(6);
  } else {
    return Malformed(absl::StrCat("a line cannot begin with '", kind, "'"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<CorpusCase>> ReadOpCases(const std::filesystem::path& file) {
  std::vector<CorpusCase> cases;
  std::ifstream stream(file);
  if (!stream) return absl::NotFoundError(absl::StrCat("cannot read ", file.string()));
  int number = 0;
  std::string functions;
  const auto finish = [&] {
    if (!functions.empty())
      absl::StrAppend(&cases.back().variants[0].text, "library {\n", functions, "}\n");
    functions.clear();
  };
  for (std::string line; std::getline(stream, line);) {
    ++number;
    if (line.empty() || line[0] == '#') {
      finish();
      continue;
    }
    const absl::Status parsed = ParseLine(line, &cases, &functions);
    if (!parsed.ok()) return Annotate(parsed, absl::StrCat(file.filename().string(), ":", number));
  }
  finish();
  for (CorpusCase& c : cases) c.folder = file.parent_path();
  return cases;
}

}  // namespace floe::corpus
