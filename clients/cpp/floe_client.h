// A client of floe, and of TensorFlow Serving, in one header. It needs grpc++ (1.39 or later) and
// C++17, no generated code and no protobuf:
//
//   g++ -std=c++17 -I clients/cpp program.cc -o program $(pkg-config --cflags --libs grpc++)
//
//   floe_client::Client client("127.0.0.1:8500");
//   auto answer = client.Predict("mine", {{"input", floe_client::Tensor::Of<float>({1, 4},
//   {5.1, 3.5, 1.4, 0.2})}}); if (answer.ok()) std::cout << answer->at("output").data<float>()[0];
//   else std::cerr << answer.status().error_message();
//
// Threading: threads may share a Client. Errors are results; nothing is thrown. Hosts are
// little-endian.
#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace floe_client {

// TensorFlow's numbers.
// clang-format off
enum class DType : int32_t {
  kInvalid = 0, kFloat32 = 1, kFloat64 = 2, kInt32 = 3, kUInt8 = 4, kInt16 = 5, kInt8 = 6,
  kString = 7, kComplex64 = 8, kInt64 = 9, kBool = 10, kQInt8 = 11, kQUInt8 = 12, kQInt32 = 13,
  kBFloat16 = 14, kQInt16 = 15, kQUInt16 = 16, kUInt16 = 17, kComplex128 = 18, kFloat16 = 19,
  kUInt32 = 22, kUInt64 = 23,
};
// clang-format on

// Bytes of an element; 0: strings, and types without tensors.
inline size_t SizeOf(DType dtype) {
  constexpr uint8_t kBytes[] = {0, 4, 8, 4, 1, 2, 1,  0, 8, 8, 1, 1,
                                1, 4, 2, 2, 2, 2, 16, 2, 0, 0, 4, 8};  // by TensorFlow's number
  const auto number = static_cast<size_t>(dtype);
  return number < sizeof(kBytes) ? kBytes[number] : 0;
}

template <typename T>
constexpr DType DTypeOf() {
  if constexpr (std::is_same_v<T, bool>) return DType::kBool;
  if constexpr (std::is_same_v<T, float>) return DType::kFloat32;
  if constexpr (std::is_same_v<T, double>) return DType::kFloat64;
  if constexpr (!std::is_integral_v<T>) return DType::kInvalid;
  constexpr DType kSigned[] = {DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64};
  constexpr DType kUnsigned[] = {DType::kUInt8, DType::kUInt16, DType::kUInt32, DType::kUInt64};
  constexpr int kPlace = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
  return std::is_signed_v<T> ? kSigned[kPlace] : kUnsigned[kPlace];
}

// A value with its shape. `bytes` has the elements row by row, `strings` those of kString.
struct Tensor {
  DType dtype = DType::kInvalid;
  std::vector<int64_t> shape;
  std::string bytes;
  std::vector<std::string> strings;

  // The values are not checked against the shape here: the server refuses what does not fit.
  template <typename T>
  static Tensor Of(std::vector<int64_t> shape, const std::vector<T>& values) {
    static_assert(DTypeOf<T>() != DType::kInvalid && !std::is_same_v<T, bool>, "use Raw");
    return Raw(DTypeOf<T>(), std::move(shape), values.data(), values.size() * sizeof(T));
  }
  static Tensor Of(std::vector<int64_t> shape, std::vector<std::string> values) {
    return {DType::kString, std::move(shape), {}, std::move(values)};
  }
  // Of any type but kString.
  static Tensor Raw(DType dtype, std::vector<int64_t> shape, const void* values, size_t bytes) {
    return {dtype, std::move(shape), std::string(static_cast<const char*>(values), bytes), {}};
  }

  size_t size() const {
    return dtype == DType::kString ? strings.size()
                                   : bytes.size() / std::max<size_t>(SizeOf(dtype), 1);
  }
  // The elements, or null if they are of another type. Valid while this tensor lives.
  template <typename T>
  const T* data() const {
    return dtype == DTypeOf<T>() ? reinterpret_cast<const T*>(bytes.data()) : nullptr;
  }
};

using Tensors = std::map<std::string, Tensor>;

// A value, or the status of the call that failed. The value of one that failed is empty.
template <typename T>
class Result {
 public:
  Result(T value) : value_(std::move(value)) {}                          // NOLINT: implicit
  Result(grpc::Status status) : status_(std::move(status)), value_() {}  // NOLINT: implicit; not OK
  bool ok() const { return status_.ok(); }
  const grpc::Status& status() const { return status_; }
  const T& operator*() const { return value_; }
  T& operator*() { return value_; }
  const T* operator->() const { return &value_; }

 private:
  grpc::Status status_;
  T value_;
};

// Which model, and of it which version (the newest, if neither is given) and signature.
struct Model {
  Model(const char* model) : name(model) {}             // NOLINT: implicit
  Model(std::string model) : name(std::move(model)) {}  // NOLINT: implicit
  std::string name;
  std::optional<int64_t> version;
  std::string label, signature;
};

struct TensorSpec {
  DType dtype = DType::kInvalid;
  std::optional<std::vector<int64_t>> shape;  // -1: a dim that requests decide; unset: any rank
};
struct Signature {
  std::map<std::string, TensorSpec> inputs, outputs;
};
struct Metadata {
  int64_t version = 0;
  std::map<std::string, Signature> signatures;
};

enum class State : int32_t {
  kUnknown = 0,
  kStart = 10,
  kLoading = 20,
  kAvailable = 30,
  kUnloading = 40,
  kEnd = 50
};
struct VersionStatus {
  int64_t version = 0;
  State state = State::kUnknown;
  std::string message;  // why it failed
};

struct ClientOptions {
  bool tls = false;
  std::string tls_ca, tls_cert, tls_key;  // PEM, not paths; no CA: those that gRPC knows
  std::string tls_name;  // in the server's certificate, where it is not that of the target
  std::string token;     // sent as "authorization: Bearer"
  std::chrono::milliseconds timeout{30000};  // of a call with its retries
  bool retries =
      true;  // of calls that end with UNAVAILABLE: up to four, when the server says, or ever later
};

struct CallOptions {
  std::optional<std::chrono::milliseconds> timeout;
  std::vector<std::string> outputs;  // empty: all
  std::multimap<std::string, std::string> headers;
};

// ---- The messages on the wire.
namespace wire {

inline void PutVarint(std::string* out, uint64_t value) {
  for (; value > 0x7f; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}
inline void PutNumber(std::string* out, uint32_t field, int64_t value) {
  PutVarint(out, field << 3);
  PutVarint(out, static_cast<uint64_t>(value));
}
inline void PutBytes(std::string* out, uint32_t field, std::string_view bytes) {
  PutVarint(out, field << 3 | 2);
  PutVarint(out, bytes.size());
  out->append(bytes);
}

// Goes through the fields of a message.
class Fields {
 public:
  explicit Fields(std::string_view message) : rest_(message) {}
  // False at the end, and where the bytes are no message: then ok() is false.
  bool Next() {
    if (rest_.empty() || !ok_) return false;
    uint64_t tag = 0;
    ok_ = Varint(&tag) && tag >> 3 != 0 && tag >> 3 <= std::numeric_limits<uint32_t>::max() &&
          Value(tag & 7);
    field = static_cast<uint32_t>(tag >> 3);
    return ok_;
  }
  bool ok() const { return ok_; }
  bool Is(uint32_t number, bool is_bytes) const {
    return field == number && (kind == 2) == is_bytes;
  }

  uint32_t field = 0;
  int kind = 0;            // 0: a varint; 1, 5: fixed; 2: bytes
  uint64_t value = 0;      // of a varint
  std::string_view bytes;  // of the others

  bool Varint(uint64_t* out) {
    *out = 0;
    for (int shift = 0; shift < 70 && !rest_.empty(); shift += 7) {
      const auto octet = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      *out |= static_cast<uint64_t>(octet & 0x7f) << (shift > 63 ? 63 : shift);
      if (octet < 0x80) return true;
    }
    return false;
  }
  bool empty() const { return rest_.empty(); }

 private:
  bool Value(uint64_t of_kind) {
    kind = static_cast<int>(of_kind);
    if (kind == 0) return Varint(&value);
    uint64_t size = kind == 1 ? 8 : 4;
    if ((kind == 2 && !Varint(&size)) || (kind != 1 && kind != 2 && kind != 5) ||
        size > rest_.size())
      return false;
    bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }

  std::string_view rest_;
  bool ok_ = true;
};

// Calls `take(fields)` for each field; false if the message is broken or `take` says so.
template <typename Take>
bool ForEach(std::string_view message, const Take& take) {
  Fields fields(message);
  while (fields.Next())
    if (!take(fields)) return false;
  return fields.ok();
}

// Calls `take(key, value)` for an entry of a map.
template <typename Take>
bool Entry(std::string_view entry, const Take& take) {
  std::string key;
  std::string_view value;
  const bool whole = ForEach(entry, [&](const Fields& f) {
    if (f.Is(1, true)) key = f.bytes;
    if (f.Is(2, true)) value = f.bytes;
    return true;
  });
  return whole && take(std::move(key), value);
}

inline std::string EncodeModel(const Model& model) {
  std::string out;
  PutBytes(&out, 1, model.name);
  if (model.version) {
    std::string wrapped;
    PutNumber(&wrapped, 1, *model.version);
    PutBytes(&out, 2, wrapped);
  }
  if (!model.signature.empty()) PutBytes(&out, 3, model.signature);
  if (!model.label.empty()) PutBytes(&out, 4, model.label);
  return out;
}

inline std::string EncodeTensor(const Tensor& tensor) {
  std::string shape, out;
  for (const int64_t size : tensor.shape) {
    std::string dim;
    PutNumber(&dim, 1, size);
    PutBytes(&shape, 2, dim);
  }
  PutNumber(&out, 1, static_cast<int64_t>(tensor.dtype));
  PutBytes(&out, 2, shape);
  if (!tensor.bytes.empty()) PutBytes(&out, 4, tensor.bytes);
  for (const std::string& text : tensor.strings) PutBytes(&out, 8, text);
  return out;
}

inline std::string EncodePredict(const Model& model, const Tensors& inputs,
                                 const std::vector<std::string>& outputs) {
  std::string out;
  PutBytes(&out, 1, EncodeModel(model));
  for (const auto& [name, tensor] : inputs) {
    std::string entry;
    PutBytes(&entry, 1, name);
    PutBytes(&entry, 2, EncodeTensor(tensor));
    PutBytes(&out, 2, entry);
  }
  for (const std::string& name : outputs) PutBytes(&out, 3, name);
  return out;
}

inline std::string EncodeMetadata(const Model& model) {
  std::string out;
  PutBytes(&out, 1, EncodeModel(model));
  PutBytes(&out, 2, "signature_def");
  return out;
}

inline std::string EncodeStatus(const Model& model) {
  std::string out;
  PutBytes(&out, 1, EncodeModel(model));
  return out;
}

inline bool DecodeShape(std::string_view message, std::optional<std::vector<int64_t>>* shape) {
  std::vector<int64_t> dims;
  bool any_rank = false;
  const bool whole = ForEach(message, [&](const Fields& f) {
    if (f.Is(3, false)) any_rank = f.value != 0;
    if (!f.Is(2, true)) return true;
    int64_t size = 0;
    const bool dim = ForEach(f.bytes, [&](const Fields& inner) {
      if (inner.Is(1, false)) size = static_cast<int64_t>(inner.value);
      return true;
    });
    dims.push_back(size);
    return dim;
  });
  *shape = any_rank ? std::nullopt : std::optional(std::move(dims));
  return whole;
}

// The elements of a shape; false: it is not whole, or larger than a message can be.
inline bool Elements(const std::vector<int64_t>& shape, size_t element_bytes, size_t* count) {
  constexpr uint64_t kMost = 1ull << 31;
  uint64_t product = 1;
  for (const int64_t size : shape) {
    if (size < 0 || static_cast<uint64_t>(size) > kMost) return false;
    product *= static_cast<uint64_t>(size);
    if (product > kMost) return false;
  }
  *count = product;
  return product * std::max<size_t>(element_bytes, 1) <= kMost;
}

// Values of the fields that servers fill in place of tensor_content: of a size, as they are, or as
// varints.
inline bool AppendValues(const Fields& f, size_t element_bytes, std::string* out) {
  if (f.field == 5 || f.field == 6 || f.field == 9 || f.field == 12) {
    out->append(f.bytes);
    return f.kind != 0;
  }
  const auto put = [&](uint64_t value) {
    out->append(reinterpret_cast<const char*>(&value), std::min<size_t>(element_bytes, 8));
  };
  if (f.kind == 0) put(f.value);
  if (f.kind != 2) return f.kind == 0;
  Fields packed(f.bytes);
  while (!packed.empty()) {
    uint64_t value = 0;
    if (!packed.Varint(&value)) return false;
    put(value);
  }
  return true;
}

inline bool DecodeTensor(std::string_view message, Tensor* tensor) {
  *tensor = {};
  std::string values;
  std::optional<std::vector<int64_t>> shape = std::vector<int64_t>();
  // The dtype may stand behind the values.
  const bool typed = ForEach(message, [&](const Fields& f) {
    if (f.Is(1, false)) tensor->dtype = static_cast<DType>(f.value);
    return true;
  });
  const size_t element_bytes = SizeOf(tensor->dtype);
  if (!typed || (element_bytes == 0 && tensor->dtype != DType::kString)) return false;
  const bool whole = ForEach(message, [&](const Fields& f) {
    if (f.Is(2, true)) return DecodeShape(f.bytes, &shape);
    if (f.Is(4, true)) tensor->bytes = f.bytes;
    if (f.Is(8, true)) tensor->strings.emplace_back(f.bytes);
    const bool numbers =
        (f.field >= 5 && f.field <= 17) && f.field != 8 && f.field != 14 && f.field != 15;
    return !numbers || AppendValues(f, element_bytes, &values);
  });
  size_t count = 0;
  if (!whole || !shape || !Elements(*shape, element_bytes, &count)) return false;
  tensor->shape = *std::move(shape);
  if (tensor->dtype == DType::kString) {
    if (tensor->strings.size() == 1 && count != 1)
      tensor->strings.resize(count, std::string(tensor->strings[0]));
    return tensor->strings.size() == count;
  }
  if (tensor->bytes.empty()) tensor->bytes = std::move(values);
  if (tensor->bytes.size() == element_bytes && count != 1) {  // one value stands for all
    const std::string one = std::exchange(tensor->bytes, {});
    for (size_t i = 0; i < count; ++i) tensor->bytes += one;
  }
  return tensor->bytes.size() == count * element_bytes;
}

inline bool DecodePredict(std::string_view reply, Tensors* outputs) {
  return ForEach(reply, [&](const Fields& f) {
    return !f.Is(1, true) || Entry(f.bytes, [&](std::string name, std::string_view tensor) {
      return DecodeTensor(tensor, &(*outputs)[std::move(name)]);
    });
  });
}

inline bool DecodeSpecs(std::string_view entry, std::map<std::string, TensorSpec>* specs) {
  return Entry(entry, [&](std::string name, std::string_view info) {
    TensorSpec& spec = (*specs)[std::move(name)];
    spec.shape.emplace();
    return ForEach(info, [&](const Fields& f) {
      if (f.Is(2, false)) spec.dtype = static_cast<DType>(f.value);
      return !f.Is(3, true) || DecodeShape(f.bytes, &spec.shape);
    });
  });
}

inline bool DecodeSignatures(std::string_view any, std::map<std::string, Signature>* signatures) {
  const auto signature = [&](std::string name, std::string_view message) {
    Signature& out = (*signatures)[std::move(name)];
    return ForEach(message, [&](const Fields& f) {
      if (f.Is(1, true)) return DecodeSpecs(f.bytes, &out.inputs);
      return !f.Is(2, true) || DecodeSpecs(f.bytes, &out.outputs);
    });
  };
  return ForEach(any, [&](const Fields& packed) {
    return !packed.Is(2, true) || ForEach(packed.bytes, [&](const Fields& f) {
      return !f.Is(1, true) || Entry(f.bytes, signature);
    });
  });
}

inline bool DecodeVersion(std::string_view model_spec, int64_t* version) {
  return ForEach(model_spec, [&](const Fields& f) {
    return !f.Is(2, true) || ForEach(f.bytes, [&](const Fields& wrapped) {
      if (wrapped.Is(1, false)) *version = static_cast<int64_t>(wrapped.value);
      return true;
    });
  });
}

inline bool DecodeMetadata(std::string_view reply, Metadata* metadata) {
  return ForEach(reply, [&](const Fields& f) {
    if (f.Is(1, true)) return DecodeVersion(f.bytes, &metadata->version);
    return !f.Is(2, true) || Entry(f.bytes, [&](const std::string& key, std::string_view any) {
      return key != "signature_def" || DecodeSignatures(any, &metadata->signatures);
    });
  });
}

inline bool DecodeStatus(std::string_view reply, std::vector<VersionStatus>* versions) {
  return ForEach(reply, [&](const Fields& f) {
    return !f.Is(1, true) ||
           ForEach(f.bytes, [&, &out = versions->emplace_back()](const Fields& v) {
             if (v.Is(1, false)) out.version = static_cast<int64_t>(v.value);
             if (v.Is(2, false)) out.state = static_cast<State>(v.value);
             return !v.Is(3, true) || ForEach(v.bytes, [&](const Fields& status) {
               if (status.Is(2, true)) out.message = status.bytes;
               return true;
             });
           });
  });
}

}  // namespace wire

class Client {
 public:
  // `target`: "host:8500", "unix:/run/floe/socket", or any of gRPC's. Connects with the first call.
  explicit Client(const std::string& target, ClientOptions options = {})
      : options_(std::move(options)), stub_(MakeChannel(target, options_)) {}
  // Waits for the calls of PredictAsync, so it is not for their `done`.
  ~Client() {
    std::unique_lock<std::mutex> lock(mutex_);
    ended_.wait(lock, [this] { return under_way_ == 0; });
  }

  Result<Tensors> Predict(const Model& model, const Tensors& inputs, const CallOptions& call = {}) {
    return Wait<Tensors>(kPredict, wire::EncodePredict(model, inputs, call.outputs), call,
                         wire::DecodePredict);
  }
  // `done` is called once, on a thread of gRPC's, which it must not block.
  void PredictAsync(const Model& model, const Tensors& inputs,
                    std::function<void(Result<Tensors>)> done, const CallOptions& options = {}) {
    auto* const call = new Call;  // until it ends
    Prepare(wire::EncodePredict(model, inputs, options.outputs), options, call);
    Count(1);
    stub_.UnaryCall(&call->context, kPredict, grpc::StubOptions(), &call->request, &call->reply,
                    [this, call, done = std::move(done)](const grpc::Status& status) {
                      auto result = Read<Tensors>(status, call->reply, wire::DecodePredict);
                      delete call;  // it holds the channel, which must not end on this thread
                      done(std::move(result));
                      Count(-1);
                    });
  }
  Result<Metadata> GetMetadata(const Model& model, const CallOptions& call = {}) {
    return Wait<Metadata>("/tensorflow.serving.PredictionService/GetModelMetadata",
                          wire::EncodeMetadata(model), call, wire::DecodeMetadata);
  }
  Result<std::vector<VersionStatus>> GetStatus(const Model& model, const CallOptions& call = {}) {
    return Wait<std::vector<VersionStatus>>("/tensorflow.serving.ModelService/GetModelStatus",
                                            wire::EncodeStatus(model), call, wire::DecodeStatus);
  }

 private:
  static std::shared_ptr<grpc::Channel> MakeChannel(const std::string& target,
                                                    const ClientOptions& options) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetMaxSendMessageSize(-1);
    if (options.retries) {
      arguments.SetInt("grpc.per_rpc_retry_buffer_size",
                       std::numeric_limits<int>::max());  // large requests, too
      arguments.SetServiceConfigJSON(
          R"({"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 5, "initialBackoff": "0.1s",)"
          R"("maxBackoff": "2s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}]})");
    }
    if (!options.tls)
      return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
    if (!options.tls_name.empty()) arguments.SetSslTargetNameOverride(options.tls_name);
    return grpc::CreateCustomChannel(
        target, grpc::SslCredentials({options.tls_ca, options.tls_key, options.tls_cert}),
        arguments);
  }

  // What a call needs until it ends.
  struct Call {
    grpc::ClientContext context;
    grpc::ByteBuffer request, reply;
  };

  void Prepare(std::string message, const CallOptions& options, Call* call) const {
    call->context.set_deadline(std::chrono::system_clock::now() +
                               options.timeout.value_or(options_.timeout));
    call->context.AddMetadata("floe-reply", "content");  // other servers ignore it
    if (!options_.token.empty())
      call->context.AddMetadata("authorization", "Bearer " + options_.token);
    for (const auto& [name, value] : options.headers) call->context.AddMetadata(name, value);
    auto* const owned = new std::string(std::move(message));
    const grpc::Slice slice(
        owned->data(), owned->size(), [](void* text) { delete static_cast<std::string*>(text); },
        owned);
    call->request = grpc::ByteBuffer(&slice, 1);
  }

  template <typename T, typename Decode>
  Result<T> Wait(const char* method, std::string message, const CallOptions& options,
                 const Decode& decode) {
    Call call;
    Prepare(std::move(message), options, &call);
    grpc::CompletionQueue queue;
    const auto reader = stub_.PrepareUnaryCall(&call.context, method, call.request, &queue);
    reader->StartCall();
    grpc::Status status;
    reader->Finish(&call.reply, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    queue.Shutdown();
    while (queue.Next(&tag, &ok)) continue;
    return Read<T>(status, call.reply, decode);
  }

  template <typename T, typename Decode>
  static Result<T> Read(const grpc::Status& status, const grpc::ByteBuffer& reply,
                        const Decode& decode) {
    if (!status.ok()) return status;
    grpc::Slice slice;
    T value;
    if (reply.Valid() && !reply.DumpToSingleSlice(&slice).ok())
      return grpc::Status(grpc::StatusCode::INTERNAL, "the reply cannot be read");
    if (!decode({reinterpret_cast<const char*>(slice.begin()), slice.size()}, &value))
      return grpc::Status(grpc::StatusCode::INTERNAL, "the reply is not of the expected message");
    return value;
  }

  void Count(int calls) {
    const std::lock_guard<std::mutex> lock(mutex_);
    under_way_ += calls;
    ended_.notify_all();
  }

  static constexpr char kPredict[] = "/tensorflow.serving.PredictionService/Predict";
  const ClientOptions options_;
  grpc::GenericStub stub_;
  std::mutex mutex_;
  std::condition_variable ended_;
  int under_way_ = 0;  // calls of PredictAsync; guarded by mutex_
};

}  // namespace floe_client
