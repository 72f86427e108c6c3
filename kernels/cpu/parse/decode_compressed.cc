// DecodeCompressed: strings that zlib or gzip made shorter, at their length again.
#include <zlib.h>

#include <algorithm>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/memory_budget.h"
#include "base/status.h"
#include "kernels/cpu/function_kernel.h"

namespace floe::kernels {
namespace {

constexpr int kGzipFormat = 16;  // zlib's sign for it, beside the bits of the window

// Unpacks one string. `taken` counts what a run has unpacked so far: a short string may stand for
// one of a thousand times its length.
absl::Status Inflate(const std::string& packed, bool gzip, std::string* to, int64_t* taken) {
  if (packed.size() > UINT32_MAX)
    return absl::InvalidArgumentError(absl::StrCat(packed.size(), " bytes are past zlib's limit"));
  z_stream stream{};
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  if (inflateInit2(&stream, MAX_WBITS + (gzip ? kGzipFormat : 0)) != Z_OK)
    return absl::ResourceExhaustedError("no memory for zlib");
  const std::unique_ptr<z_stream, decltype(&inflateEnd)> end(&stream, &inflateEnd);
  constexpr size_t kFirst = 4096, kMostStep = 1 << 22;
  int result = packed.empty() ? Z_STREAM_END : Z_OK;
  size_t used = 0;
  MemoryShare share;
  while (result == Z_OK) {
    FLOE_RETURN_IF_ERROR(CheckRunTime());
    const size_t step = std::clamp(used, kFirst, kMostStep);
    *taken += static_cast<int64_t>(step);
    FLOE_RETURN_IF_ERROR(CheckValueBytes(*taken));
    FLOE_ASSIGN_OR_RETURN(MemoryShare more, TakeMemory(static_cast<int64_t>(step)));
    share.Add(std::move(more));
    to->resize(used + step);
    stream.next_out = reinterpret_cast<Bytef*>(to->data() + used);
    stream.avail_out = static_cast<uInt>(step);
    result = inflate(&stream, Z_NO_FLUSH);
    used += step - stream.avail_out;
    // Without more input the rest of a string that was cut off is not missed, as in TensorFlow.
    if (result == Z_BUF_ERROR || (stream.avail_in == 0 && stream.avail_out != 0)) break;
  }
  to->resize(used);
  if (result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("inflate() failed with error ", result, ": ",
                                                 stream.msg == nullptr ? "" : stream.msg));
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeInflate(const KernelArgs& args) {
  const std::string type = args.node.attrs.String("compression_type");
  const bool plain = type.empty() || type == "NONE", gzip = type == "GZIP";
  return FromFunction([plain, gzip](const KernelContext& ctx) -> absl::Status {
    const auto* from = ctx.in(0).as<std::string>();
    auto* to = ctx.out(0).as<std::string>();
    int64_t taken = 0;
    for (int64_t i = 0; i < ctx.in(0).elements(); ++i) {
      to[i].clear();
      if (plain) {
        to[i] = from[i];
      } else {
        FLOE_RETURN_IF_ERROR(Inflate(from[i], gzip, &to[i], &taken));
      }
    }
    return absl::OkStatus();
  });
}
FLOE_REGISTER_KERNEL(DecodeCompressed, kCpu, MakeInflate, DType::kString);

}  // namespace
}  // namespace floe::kernels
