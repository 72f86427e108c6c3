// Any bytes as what strings of a request may hold: images, tf.train.Examples, CSV, tensors. The
// first byte says which op reads the others.
#include <zlib.h>

#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "base/budget.h"
#include "base/status.h"
#include "kernels/kernel.h"
#include "tests/fuzz/fuzzer.h"
#include "tests/fuzz/random.h"

namespace floe::fuzz {
namespace {

constexpr int64_t kMaxBytes = 1 << 20;

// An op with the inputs that follow the bytes.
struct Reader {
  const char* op;
  Attrs attrs;
  std::vector<Tensor> inputs;
  bool vector = false;  // takes [1] strings, not a scalar
};

Attrs With(std::initializer_list<std::pair<const char*, AttrValue>> values) {
  Attrs attrs;
  for (const auto& [name, value] : values) attrs.Set(name, value);
  return attrs;
}
Tensor Texts(const Shape& shape, std::vector<std::string> texts) {
  Tensor t = Tensor::Allocate(DType::kString, shape);
  std::move(texts.begin(), texts.end(), t.view().as<std::string>());
  return t;
}
template <class T>
Tensor Numbers(DType dtype, const Shape& shape, std::vector<T> values) {
  Tensor t = Tensor::Allocate(dtype, shape);
  if (!values.empty()) std::memcpy(t.mutable_data(), values.data(), values.size() * sizeof(T));
  return t;
}

std::vector<Reader> MakeReaders() {
  using Types = std::vector<DType>;
  using Shapes = std::vector<SymShape>;
  const Types kinds = {DType::kFloat32, DType::kInt64, DType::kString};
  const Tensor none = Texts(Shape({0}), {}), keys = Texts(Shape({3}), {"x", "n", "s"});
  const Tensor f = Numbers<float>(DType::kFloat32, Shape({2}), {1, 2}),
               i = Numbers<int64_t>(DType::kInt64, {}, {7}), s = Texts({}, {"pad"});
  std::vector<Reader> all;
  all.push_back(
      {"DecodeJpeg", With({{"try_recover_truncated", true}, {"acceptable_fraction", 0.5f}}), {}});
  all.push_back({"DecodeImage", With({{"dtype", DType::kFloat32}, {"channels", int64_t{3}}}), {}});
  all.push_back({"DecodeImage", With({{"channels", int64_t{4}}}), {}});
  all.push_back({"DecodePng", With({{"dtype", DType::kUInt16}}), {}});
  all.push_back({"DecodeAndCropJpeg",
                 With({{"ratio", int64_t{2}}}),
                 {Numbers<int32_t>(DType::kInt32, Shape({4}), {1, 1, 2, 3})}});
  all.push_back({"DecodeBmp", {}, {}});
  all.push_back({"ExtractJpegShape", {}, {}});
  all.push_back({"ParseExampleV2",
                 With({{"num_sparse", int64_t{3}}, {"sparse_types", kinds}}),
                 {none, keys, none, none},
                 true});
  all.push_back({"ParseExampleV2",
                 With({{"num_sparse", int64_t{0}},
                       {"Tdense", kinds},
                       {"dense_shapes", Shapes{{2}, {Dim::Unknown()}, {Dim::Unknown(), 2}}}}),
                 {none, none, keys, none, f, i, s},
                 true});
  all.push_back({"ParseExampleV2",
                 With({{"num_sparse", int64_t{0}},
                       {"ragged_value_types", kinds},
                       {"ragged_split_types", Types{DType::kInt32, DType::kInt64, DType::kInt32}}}),
                 {none, none, none, keys},
                 true});
  all.push_back({"DecodeCSV", With({{"OUT_TYPE", Types{DType::kInt64, DType::kString}}}), {i, s}});
  all.push_back({"DecodeGif", {}, {}});
  all.push_back({"ParseTensor", With({{"out_type", DType::kFloat32}}), {}});
  all.push_back({"ParseTensor", With({{"out_type", DType::kString}}), {}});
  all.push_back({"DecodeCompressed", With({{"compression_type", std::string("ZLIB")}}), {}});
  all.push_back({"DecodeCompressed", With({{"compression_type", std::string("GZIP")}}), {}});
  all.push_back({"ParseSequenceExampleV2",
                 With({{"Ncontext_sparse", int64_t{1}},
                       {"context_sparse_types", Types{DType::kString}},
                       {"Nfeature_list_sparse", int64_t{1}},
                       {"feature_list_sparse_types", Types{DType::kString}},
                       {"Nfeature_list_dense", int64_t{1}},
                       {"feature_list_dense_types", Types{DType::kFloat32}},
                       {"feature_list_dense_shapes", Shapes{{2}}},
                       {"feature_list_ragged_value_types", Types{DType::kInt64}},
                       {"feature_list_ragged_split_types", Types{DType::kInt32}}}),
                 {none, Texts(Shape({1}), {"s"}), none, none, Texts(Shape({1}), {"s"}),
                  Texts(Shape({1}), {"x"}), Texts(Shape({1}), {"n"}),
                  Numbers<uint8_t>(DType::kBool, Shape({1}), {1})},
                 true});
  return all;
}
const std::vector<Reader>& Readers() {
  static const std::vector<Reader> all = MakeReaders();
  return all;
}

class Outputs : public OutputAllocator {
 public:
  absl::StatusOr<TensorView> Allocate(int, DType dtype, const Shape& shape) override {
    const size_t each = dtype == DType::kString ? sizeof(std::string) : DTypeSize(dtype);
    FLOE_RETURN_IF_ERROR(CheckedElements(shape.dims(), each, kMaxBytes).status());
    tensors_.push_back(Tensor::Allocate(dtype, shape));
    return tensors_.back().view();
  }
  void TouchAll() const {
    for (const Tensor& t : tensors_) {
      if (t.dtype() != DType::kString) Touch(t.view().as<char>(), t.view().bytes());
    }
  }

 private:
  std::vector<Tensor> tensors_;
};

absl::Status Run(const Reader& reader, const std::string& bytes) {
  Node node;
  node.op = FindOp(reader.op);
  node.attrs = reader.attrs;
  std::vector<Tensor> inputs = {Texts(reader.vector ? Shape({1}) : Shape(), {bytes})};
  inputs.insert(inputs.end(), reader.inputs.begin(), reader.inputs.end());
  std::vector<ValueInfo> infos;
  std::vector<TensorView> in, out;
  for (const Tensor& t : inputs) {
    infos.push_back({{t.dtype(), SymShape(t.shape())}, {}, {}});
    in.push_back(t.view());
  }
  const absl::StatusOr<Types> types = node.op->infer({node, infos});
  if (!types.ok()) Fail("a reader's node is refused: " + types.status().ToString());
  const KernelOptions options;
  const auto kernel =
      FindKernel(reader.op, DeviceKind::kCpu, DType::kString)(KernelArgs{node, infos, options});
  if (!kernel.ok()) Fail("a reader's kernel is refused: " + kernel.status().ToString());
  Outputs outputs;
  if (!node.op->allocates) {
    for (const TensorType& type : *types) {
      FLOE_ASSIGN_OR_RETURN(const TensorView view,
                            outputs.Allocate(0, type.dtype, type.shape.At(1)));
      out.push_back(view);
    }
  }
  ThreadPool pool(1);
  FLOE_RETURN_IF_ERROR((*kernel)->Run({in, out, nullptr, &pool, &outputs}));
  outputs.TouchAll();
  return absl::OkStatus();
}

absl::Status Read(const std::string& bytes) {
  if (bytes.empty()) return absl::OkStatus();
  const Reader& reader = Readers()[static_cast<uint8_t>(bytes[0]) % Readers().size()];
  Budget budget({.max_value_bytes = kMaxBytes, .max_bytes = 16 * kMaxBytes});
  const BudgetScope scope(&budget);
  return CatchOutOfMemory([&] { return Run(reader, bytes.substr(1)); });
}

// Makes the checksums of a PNG's chunks right again, or else nothing gets past the first.
void MendPng(std::string* bytes) {
  constexpr size_t kFirst = 9, kRest = 12;  // behind the op and the signature; size, kind, checksum
  for (size_t at = kFirst; at + kRest <= bytes->size();) {
    auto* const chunk = reinterpret_cast<uint8_t*>(bytes->data()) + at;
    const size_t size =
        static_cast<size_t>(chunk[0]) << 24 | chunk[1] << 16 | chunk[2] << 8 | chunk[3];
    if (size > bytes->size() - at - kRest) return;
    const auto sum = static_cast<uint32_t>(crc32(0, chunk + 4, static_cast<uInt>(size + 4)));
    for (int i = 0; i < 4; ++i) chunk[8 + size + i] = static_cast<uint8_t>(sum >> (24 - 8 * i));
    at += kRest + size;
  }
}

}  // namespace

absl::Status RunUnit(const std::string& bytes) { return Read(bytes); }

std::string MutateUnit(const std::string& bytes, size_t max_size, Random& random) {
  std::string mutant = bytes;
  if (mutant.empty() || random.OneIn(50))
    mutant.insert(0, 1, static_cast<char>(random.Below(Readers().size())));
  mutant = mutant[0] + MutateBytes(mutant.substr(1), max_size - 1);
  if (mutant.compare(1, 4, "\x89PNG") == 0 && !random.OneIn(8)) MendPng(&mutant);
  return mutant;
}

std::string CrossUnits(const std::string& one, const std::string& other, Random& random) {
  return SpliceBytes(one, other, random);
}

}  // namespace floe::fuzz
