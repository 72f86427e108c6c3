// GIF files: the frames are found first, so that their number and sizes are checked before there is
// memory for them. Then each is painted over the one before, as TensorFlow does.
#include <algorithm>
#include <array>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/status.h"
#include "kernels/cpu/image/image_files.h"

namespace floe::kernels {
namespace {

constexpr int kNoColour = -1;

absl::Status Invalid(const std::string& what) {
  return absl::InvalidArgumentError("Invalid GIF data: " + what);
}

class Bytes {
 public:
  explicit Bytes(std::string_view all) : all_(all) {}
  bool Has(size_t n) const { return n <= all_.size() - at_; }
  uint8_t Next() { return static_cast<uint8_t>(all_[at_++]); }  // needs Has(1)
  int64_t Next16() {                                            // needs Has(2)
    const int64_t low = Next();
    return low | static_cast<int64_t>(Next()) << 8;
  }
  std::string_view Take(size_t n) {  // needs Has(n)
    at_ += n;
    return all_.substr(at_ - n, n);
  }
  // Blocks of a byte with their size and so many bytes, up to an empty one; false when they are cut
  // short. each(block)
  template <class F>
  bool Blocks(const F& each) {
    while (Has(1)) {
      const size_t size = Next();
      if (size == 0) return true;
      if (!Has(size)) return false;
      each(Take(size));
    }
    return false;
  }
  size_t at() const { return at_; }
  void MoveTo(size_t at) { at_ = at; }

 private:
  const std::string_view all_;
  size_t at_ = 0;
};

struct Frame {
  int64_t left = 0, top = 0, width = 0, height = 0;
  bool interlaced = false;
  int transparent = kNoColour;
  std::string_view colours;  // three bytes each
  size_t data = 0;           // where the size of its codes is
};

std::string_view Colours(Bytes* bytes, uint8_t flags, bool* ok) {
  if ((flags & 0x80) == 0) return {};
  const size_t size = 3 * (size_t{2} << (flags & 7));
  *ok = bytes->Has(size);
  return *ok ? bytes->Take(size) : std::string_view();
}

absl::StatusOr<std::vector<Frame>> FramesOf(std::string_view all) {
  constexpr size_t kSignature = 6, kScreen = 7, kDescriptor = 9;
  std::vector<Frame> frames;
  // Of a truncated file the frames that are whole will do.
  const auto cut = [&frames]() -> absl::StatusOr<std::vector<Frame>> {
    if (frames.empty()) return Invalid("it ends too soon");
    return std::move(frames);
  };
  Bytes bytes(all);
  if (!bytes.Has(kSignature + kScreen)) return cut();
  bytes.Take(kSignature + 4);
  bool ok = true;
  const uint8_t screen = bytes.Next();
  bytes.Take(2);
  const std::string_view shared = Colours(&bytes, screen, &ok);
  Frame next;
  bool controlled = false;
  while (ok) {
    if (!bytes.Has(2)) return cut();
    const uint8_t kind = bytes.Next();
    if (kind == 0x21) {  // an extension; 0xf9 tells of the next frame
      const bool control = bytes.Next() == 0xf9 && !controlled;
      bool first = true;
      ok = bytes.Blocks([&](std::string_view block) {
        if (control && first && block.size() == 4 && (block[0] & 1) != 0)
          next.transparent = static_cast<uint8_t>(block[3]);
        first = false;
      });
      controlled = controlled || control;
      continue;
    }
    if (kind != 0x2c) break;  // the end, or nothing that is known
    if (!bytes.Has(kDescriptor)) return cut();
    next.left = bytes.Next16(), next.top = bytes.Next16();
    next.width = bytes.Next16(), next.height = bytes.Next16();
    const uint8_t flags = bytes.Next();
    next.interlaced = (flags & 0x40) != 0;
    next.colours = Colours(&bytes, flags, &ok);
    if (next.colours.empty()) next.colours = shared;
    next.data = bytes.at();
    if (!ok || !bytes.Has(1)) return cut();
    bytes.Next();
    ok = bytes.Blocks([](std::string_view) {});
    if (!ok) return cut();
    if (next.width == 0 || next.height == 0) return Invalid("a frame of no size");
    // The most that codes of two bits or more can stand for.
    constexpr int64_t kMostPixels = 4 * 4096;
    if (next.width * next.height > static_cast<int64_t>(bytes.at() - next.data) * kMostPixels)
      return Invalid(absl::StrCat("a frame of ", next.width, " x ", next.height, " pixels in ",
                                  bytes.at() - next.data, " bytes"));
    frames.push_back(next);
    next = Frame();
    controlled = false;
  }
  return cut();
}

// Codes of a frame turned into pixels: Lempel, Ziv and Welch's.
class Unpacker {
 public:
  Unpacker(int bits, std::vector<uint8_t>* pixels, size_t count)
      : bits_(bits), clear_(1 << bits), pixels_(pixels), count_(count) {
    Clear();
  }
  // False for codes that mean nothing; those after the last pixel are left out.
  bool Add(std::string_view block) {
    for (const char c : block) {
      if (Full() || ended_) return true;
      held_ |= static_cast<uint32_t>(static_cast<uint8_t>(c)) << held_bits_;
      held_bits_ += 8;
      while (held_bits_ >= width_ && !Full() && !ended_) {
        const int code = static_cast<int>(held_ & ((1u << width_) - 1));
        held_ >>= width_;
        held_bits_ -= width_;
        if (!Take(code)) return false;
      }
    }
    return true;
  }
  bool Full() const { return pixels_->size() == count_; }

 private:
  static constexpr int kMostCodes = 4096, kMostBits = 12;

  void Clear() {
    next_ = clear_ + 2;
    width_ = bits_ + 1;
    last_ = -1;
  }
  bool Take(int code) {
    if (code == clear_) {
      Clear();
      return true;
    }
    if (code == clear_ + 1) {
      ended_ = true;
      return true;
    }
    if (last_ < 0) {
      if (code >= clear_) return false;
      first_ = static_cast<uint8_t>(code);
      pixels_->push_back(first_);
      last_ = code;
      return true;
    }
    if (code > next_ || (code == next_ && next_ == kMostCodes)) return false;
    int length = 0;
    int walk = code;
    if (code == next_) {
      stack_[length++] = first_;
      walk = last_;
    }
    for (; walk >= clear_; walk = before_[walk]) stack_[length++] = pixel_[walk];
    first_ = static_cast<uint8_t>(walk);
    stack_[length++] = first_;
    while (length > 0 && !Full()) pixels_->push_back(stack_[--length]);
    if (next_ < kMostCodes) {
      before_[next_] = static_cast<uint16_t>(last_);
      pixel_[next_++] = first_;
      if (next_ == 1 << width_ && width_ < kMostBits) ++width_;
    }
    last_ = code;
    return true;
  }

  const int bits_, clear_;
  std::vector<uint8_t>* const pixels_;
  const size_t count_;
  uint32_t held_ = 0;
  int held_bits_ = 0, width_ = 0, next_ = 0, last_ = -1;
  uint8_t first_ = 0;
  bool ended_ = false;
  std::array<uint16_t, kMostCodes> before_{};
  std::array<uint8_t, kMostCodes> pixel_{};
  std::array<uint8_t, kMostCodes + 1> stack_{};
};

absl::Status Unpack(std::string_view all, const Frame& frame, std::vector<uint8_t>* pixels) {
  Bytes bytes(all);
  bytes.MoveTo(frame.data);
  const int bits = bytes.Next();
  if (bits < 1 || bits > 8) return Invalid(absl::StrCat("codes of ", bits, " bits"));
  const auto count = static_cast<size_t>(frame.width * frame.height);
  pixels->clear();
  Unpacker unpacker(bits, pixels, count);
  bool ok = true;
  bytes.Blocks([&](std::string_view block) { ok = ok && unpacker.Add(block); });
  return ok && unpacker.Full() ? absl::OkStatus() : Invalid("the codes of a frame mean no image");
}

// The line of the image that line `i` of an interlaced frame is.
int64_t LineOf(const Frame& frame, int64_t i) {
  if (!frame.interlaced) return i;
  constexpr int64_t kFirst[] = {0, 4, 2, 1}, kStep[] = {8, 8, 4, 2};
  for (int pass = 0; pass < 4; ++pass) {
    const int64_t lines = frame.height <= kFirst[pass]
                              ? 0
                              : (frame.height - kFirst[pass] + kStep[pass] - 1) / kStep[pass];
    if (i < lines) return kFirst[pass] + i * kStep[pass];
    i -= lines;
  }
  return frame.height;
}

absl::Status Paint(const Frame& frame, const std::vector<uint8_t>& pixels, int64_t height,
                   int64_t width, uint8_t* canvas) {
  for (int64_t i = 0; i < frame.height; ++i) {
    const int64_t y = frame.top + LineOf(frame, i);
    if (y >= height) continue;
    const uint8_t* from = pixels.data() + i * frame.width;
    const int64_t end = std::min(frame.left + frame.width, width);
    for (int64_t x = frame.left; x < end; ++x, ++from) {
      if (*from == frame.transparent) continue;
      if ((size_t{*from} + 1) * 3 > frame.colours.size())
        return Invalid(absl::StrCat("colour ", *from, " of ", frame.colours.size() / 3));
      std::copy_n(frame.colours.data() + size_t{*from} * 3, 3, canvas + (y * width + x) * 3);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadGif(std::string_view bytes, bool all_frames, const FrameRoom& room) {
  FLOE_ASSIGN_OR_RETURN(std::vector<Frame> frames, FramesOf(bytes));
  if (frames.empty()) return Invalid("it has no frames");
  int64_t height = 0, width = 0, most = 0;
  for (const Frame& frame : frames) {
    height = std::max(height, frame.height);
    width = std::max(width, frame.width);
    most = std::max(most, frame.height * frame.width);
    if (frame.colours.empty()) return Invalid("a frame without colours");
  }
  if (!all_frames) frames.resize(1);
  const auto count = static_cast<int64_t>(frames.size()), size = height * width * 3;
  if (size > kMaxImageElements / count)
    return Invalid(absl::StrCat(count, " frames of ", width, " x ", height, " pixels"));
  FLOE_ASSIGN_OR_RETURN(uint8_t * to, room(count, height, width));
  FLOE_RETURN_IF_ERROR(CheckBlockBytes(most));
  std::vector<uint8_t> pixels;
  pixels.reserve(static_cast<size_t>(most));
  std::fill_n(to, size, uint8_t{0});
  for (int64_t k = 0; k < count; ++k, to += size) {
    FLOE_RETURN_IF_ERROR(CheckRunTime());
    if (k > 0) std::copy_n(to - size, size, to);
    FLOE_RETURN_IF_ERROR(Unpack(bytes, frames[static_cast<size_t>(k)], &pixels));
    FLOE_RETURN_IF_ERROR(Paint(frames[static_cast<size_t>(k)], pixels, height, width, to));
  }
  return absl::OkStatus();
}

}  // namespace floe::kernels
