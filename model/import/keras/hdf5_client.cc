#include "model/import/keras/hdf5_client.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/deflate_limits.h"
#include "base/message_socket.h"
#include "base/owned_fd.h"
#include "base/quoted.h"
#include "base/status.h"

namespace floe::keras::hdf5 {
namespace {

constexpr uint64_t kSlack = uint64_t{1} << 16;
constexpr size_t kMostWords = 1000;

absl::Status Refused(std::string_view why) {
  return absl::InvalidArgumentError(Printable(why, kMostWords));
}
absl::Status BrokeRules(const std::string& how) {
  return absl::InvalidArgumentError(
      absl::StrCat("the HDF5 parser answered against the rules (", how,
                   "): the file is damaged, or made to harm; save the model again"));
}

// A parser that reads says so all the time.
absl::Status WaitForParser(int socket, short events) {
  constexpr Duration kLongestSilence = std::chrono::seconds(120);
  constexpr int kCheckMillis = 50;
  const TimePoint end = Clock::Steady().Now() + kLongestSilence;
  while (Clock::Steady().Now() < end) {
    pollfd ready{socket, events, 0};
    const int got = ::poll(&ready, 1, kCheckMillis);
    if (got < 0 && errno != EINTR) return absl::ErrnoToStatus(errno, "poll");
    if (got > 0) return absl::OkStatus();
    FLOE_RETURN_IF_ERROR(CheckRunTime());
  }
  return absl::UnavailableError("silence");
}

// ---- parts of a description ----

// Skips an attribute; its description is what was skipped.
void SkipAttribute(Reader* reader) {
  const auto count = reader->Take<uint32_t>();
  if (count == kRefused) {
    reader->Text();
    return;
  }
  for (uint32_t k = 0; k < count && reader->ok(); ++k) reader->Text();
}

void SkipEntry(Reader* reader) {
  const auto kind = reader->Take<EntryKind>();
  if (kind == EntryKind::kRefused) reader->Text();
  if (kind != EntryKind::kDataset) return;
  reader->Take<DType>();
  const auto rank = reader->Take<uint32_t>();
  for (uint32_t k = 0; k < std::min(rank, kMaxRank); ++k) reader->Take<uint64_t>();
  reader->Take<Layout>();
  for (int k = 0; k < 3; ++k) reader->Take<uint64_t>();
}

// The names of a list, each with its description.
template <typename Skip>
absl::Status Split(const std::string& answer, Reader* reader, const Skip& skip, PaidBytes* paid,
                   std::vector<Group::Named>* all) {
  constexpr uint64_t kLeastBytes = 5;  // of one
  const auto count = reader->Take<uint32_t>();
  if (count > reader->left() / kLeastBytes) return BrokeRules("a count without end");
  FLOE_ASSIGN_OR_RETURN(*paid, PaidBytes::Take(static_cast<int64_t>(count * sizeof(Group::Named))));
  all->reserve(count);
  for (uint32_t k = 0; k < count; ++k) {
    const std::string_view name = reader->Text();
    const size_t begin = answer.size() - reader->left();
    skip(reader);
    if (!reader->ok()) return BrokeRules("a list that is cut off");
    all->emplace_back(
        name, std::string_view(answer).substr(begin, answer.size() - reader->left() - begin));
  }
  std::sort(all->begin(), all->end());
  return absl::OkStatus();
}

bool IsElementType(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kFloat32:
    case DType::kFloat64:
    case DType::kBool:
      return true;
    default:
      return IsInteger(dtype);
  }
}

// ---- memory that the parser fills ----

// Its size is fixed; what is written to it can be fixed as well.
absl::StatusOr<OwnedFd> MemoryOf(int64_t bytes) {
  OwnedFd file(::memfd_create("floe-hdf5", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (file.get() < 0) return absl::ErrnoToStatus(errno, "memfd_create");
  if (::ftruncate(file.get(), bytes) != 0 ||
      ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
    return absl::ErrnoToStatus(errno, "memfd");
  return file;
}

// Fails where somebody can still write it.
absl::Status Seal(int file) {
  constexpr int kAll = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  if (::fcntl(file, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL) != 0 ||
      (::fcntl(file, F_GET_SEALS) & kAll) != kAll)
    return BrokeRules("it keeps the numbers that it gave away");
  return absl::OkStatus();
}

// Sealed memory as long as somebody uses it.
struct Mapping {
  PaidBytes paid;
  void* memory = MAP_FAILED;
  size_t size = 0;
  Mapping() = default;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (memory != MAP_FAILED) ::munmap(memory, size);
  }
};

}  // namespace

absl::StatusOr<PaidBytes> PaidBytes::Take(int64_t bytes) {
  FLOE_RETURN_IF_ERROR(CheckBlockBytes(bytes));
  PaidBytes paid;
  FLOE_ASSIGN_OR_RETURN(paid.share_, TakeMemory(bytes));
  paid.charge_ = MemoryCharge(bytes);
  return paid;
}

const Group::Named* Group::Find(const std::vector<Named>& all, std::string_view name) {
  const auto found = std::lower_bound(
      all.begin(), all.end(), name, [](const Named& one, auto other) { return one.first < other; });
  return found != all.end() && found->first == name ? &*found : nullptr;
}

absl::Status Client::Start() {
  FLOE_ASSIGN_OR_RETURN(parser_, Hdf5ParserStarter()(static_cast<int64_t>(file_.size())));
  FLOE_ASSIGN_OR_RETURN(parsers_, PaidBytes::Take(parser_->own_bytes()));
  PaidBytes paid;
  return Ask({.kind = Kind::kOpen, .at = kProtocol, .extent = file_.size()}, "", -1, 0, &paid)
      .status();
}

absl::StatusOr<std::unique_ptr<Group>> Client::List(const std::string& path) {
  const uint64_t most = 2 * file_.size() + kSlack;
  auto group = std::make_unique<Group>();
  FLOE_ASSIGN_OR_RETURN(group->answer, Ask({.kind = Kind::kList, .at = most}, path, -1,
                                           most + kSlack, &group->paid_answer));
  listed_ += group->answer.size();
  if (listed_ > 2 * most) return Refused("its groups have more names than the file has room for");
  Reader reader(group->answer);
  absl::Status split =
      Split(group->answer, &reader, SkipAttribute, &group->paid_attributes, &group->attributes);
  if (split.ok())
    split = Split(group->answer, &reader, SkipEntry, &group->paid_entries, &group->entries);
  if (!split.ok()) return End(split);
  return group;
}

absl::StatusOr<Tensor> Client::Fill(const std::string& path, const Dataset& data) {
  auto mapping = std::make_shared<Mapping>();
  FLOE_ASSIGN_OR_RETURN(mapping->paid, PaidBytes::Take(data.bytes));
  FLOE_ASSIGN_OR_RETURN(const PaidBytes scratch, PaidBytes::Take(data.scratch));
  FLOE_ASSIGN_OR_RETURN(const OwnedFd file, MemoryOf(data.bytes));
  FLOE_RETURN_IF_ERROR(over_);
  filled_ += data.bytes;
  FLOE_RETURN_IF_ERROR(parser_->Allow(filled_, data.scratch));
  PaidBytes paid;
  FLOE_RETURN_IF_ERROR(Ask({.kind = Kind::kFill}, path, file.get(), 0, &paid).status());
  if (absl::Status sealed = Seal(file.get()); !sealed.ok()) return End(sealed);
  mapping->size = static_cast<size_t>(data.bytes);
  mapping->memory = ::mmap(nullptr, mapping->size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (mapping->memory == MAP_FAILED) return absl::ErrnoToStatus(errno, "mmap");
  const void* const memory = mapping->memory;
  return Tensor::Borrow(data.dtype, data.shape, std::move(mapping), memory);
}

absl::Status Client::End(const absl::Status& why) {
  over_ = why;
  parser_.reset();
  return over_;
}

absl::StatusOr<std::string> Client::Ask(const Frame& request, const std::string& path, int file,
                                        uint64_t most, PaidBytes* paid) {
  FLOE_RETURN_IF_ERROR(over_);
  absl::StatusOr<std::string> answer = Talk(request, path, file, most, paid);
  if (!answer.ok()) {
    const bool closed = absl::IsUnavailable(answer.status());
    return End(closed ? parser_->WhyItEnded() : answer.status());
  }
  Reader reader(*answer);
  const auto code = static_cast<absl::StatusCode>(reader.Take<uint8_t>());
  if (code == absl::StatusCode::kOk) return answer->substr(1);
  const absl::Status refused = Refused(reader.Rest());
  return code == absl::StatusCode::kFailedPrecondition
             ? absl::FailedPreconditionError(refused.message())
             : refused;
}

// UNAVAILABLE: the parser has ended.
absl::StatusOr<std::string> Client::Talk(const Frame& request, const std::string& path, int file,
                                         uint64_t most, PaidBytes* paid) {
  const int socket = parser_->socket();
  Frame sent = request;
  sent.size = static_cast<uint32_t>(path.size());
  FLOE_RETURN_IF_ERROR(SendBytes(socket, &sent, sizeof(sent), WaitForParser, file));
  FLOE_RETURN_IF_ERROR(SendBytes(socket, path.data(), path.size(), WaitForParser));
  for (;;) {
    Frame frame{};
    FLOE_RETURN_IF_ERROR(ReceiveBytes(socket, &frame, sizeof(frame), WaitForParser));
    if (frame.kind == Kind::kRead) {
      FLOE_RETURN_IF_ERROR(ServeRead(frame));
      continue;
    }
    if (frame.kind != Kind::kAnswer) return BrokeRules("a message that is not known");
    if (frame.size == 0 || frame.size > most + kSlack) return BrokeRules("an answer without end");
    FLOE_ASSIGN_OR_RETURN(*paid, PaidBytes::Take(frame.size));
    std::string answer(frame.size, '\0');
    FLOE_RETURN_IF_ERROR(ReceiveBytes(socket, answer.data(), answer.size(), WaitForParser));
    return answer;
  }
}

absl::Status Client::ServeRead(const Frame& read) {
  if (read.size != 0 || read.at > file_.size() || read.extent > file_.size() - read.at)
    return BrokeRules("it asks for bytes outside the file");
  return SendBytes(parser_->socket(), file_.data() + read.at, read.extent, WaitForParser);
}

absl::StatusOr<Dataset> ParseDataset(std::string_view description, uint64_t file_size) {
  Reader reader(description);
  const auto kind = reader.Take<EntryKind>();
  if (kind == EntryKind::kRefused) return Refused(reader.Text());
  if (kind != EntryKind::kDataset) return Refused("not an array");
  Dataset data{.dtype = reader.Take<DType>()};
  const auto rank = reader.Take<uint32_t>();
  if (!IsElementType(data.dtype) || rank > kMaxRank) return BrokeRules("an array of no type");
  for (uint32_t k = 0; k < rank; ++k) {
    const auto dim = reader.Take<uint64_t>();
    if (dim > INT64_MAX) return Refused("a dimension past every limit");
    data.shape.push_back(static_cast<int64_t>(dim));
  }
  data.layout = reader.Take<Layout>();
  data.at = reader.Take<uint64_t>();
  const auto stored = static_cast<int64_t>(std::min(reader.Take<uint64_t>(), file_size));
  const auto scratch = reader.Take<uint64_t>();
  if (!reader.ok()) return BrokeRules("an array that is cut off");
  auto elements = CheckedElements(data.shape.dims(), DTypeSize(data.dtype));
  if (!elements.ok()) return Refused(std::string(elements.status().message()));
  data.bytes = *elements * static_cast<int64_t>(DTypeSize(data.dtype));
  if (data.bytes == 0) return data;
  const bool chunked = data.layout == Layout::kChunked;
  const int64_t most = chunked ? stored * kMaxDeflateRatio + kDeflateSlackBytes : stored;
  if (stored == 0 || data.bytes > most)
    return Refused(
        absl::StrCat("it declares ", data.bytes, " bytes and the file has ", stored, " for it"));
  if (chunked && scratch / 2 > static_cast<uint64_t>(most))
    return Refused(absl::StrCat("its chunks have ", scratch / 2, " bytes and the file has ", stored,
                                " for them"));
  data.scratch = chunked ? static_cast<int64_t>(scratch) : 0;
  const auto bytes = static_cast<uint64_t>(data.bytes);
  if (data.layout == Layout::kPlain && (data.at > file_size || file_size - data.at < bytes))
    return Refused("its numbers are cut off");
  return data;
}

absl::StatusOr<std::vector<std::string>> ParseStrings(std::string_view description) {
  Reader reader(description);
  const auto count = reader.Take<uint32_t>();
  if (count == kRefused) return Refused(reader.Text());
  std::vector<std::string> all;
  for (uint32_t k = 0; k < count && reader.left() > 0; ++k) all.emplace_back(reader.Text());
  return all;
}

}  // namespace floe::keras::hdf5
