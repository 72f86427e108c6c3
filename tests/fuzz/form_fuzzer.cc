// Any bytes as a model in floe's own form: read, compile, bind and two runs. A unit is the content
// of the form's sections; header, table and padding are laid around it, as nearly all changes to
// those would end at the first check. A unit that is a GraphDef, as the seeds are, goes through the
// writer and must come back as it was.
#include <algorithm>
#include <cstring>

#include "base/aligned_buffer.h"
#include "base/status.h"
#include "model/form/form.h"
#include "model/form/layout.h"
#include "tests/fuzz/fuzzer.h"
#include "tests/fuzz/run_model.h"

namespace floe::fuzz {
namespace {

constexpr char kTag[] = {'F', 'O', 'R', 'M'};

// What stands in front of a unit's sections.
struct UnitHeader {
  char tag[4];
  uint32_t items[form::kSections];
  uint32_t bytes[form::kSections];
};

bool IsSections(const std::string& unit) {
  return unit.size() >= sizeof(UnitHeader) && std::memcmp(unit.data(), kTag, sizeof kTag) == 0;
}

// The file with these sections; one that is cut off gets what is left.
AlignedBuffer LayOut(const std::string& unit) {
  UnitHeader sizes;
  std::memcpy(&sizes, unit.data(), sizeof sizes);
  form::Section table[form::kSections];
  uint64_t end = form::kTableEnd, at = sizeof sizes;
  uint64_t from[form::kSections];
  for (int k = 0; k < form::kSections; ++k) {
    const bool weights = k + 1 == form::kSections;
    const uint64_t bytes = std::min<uint64_t>(sizes.bytes[k], unit.size() - at);
    const uint64_t offset =
        AlignUp(end, weights ? form::kWeightsAlignment : form::kSectionAlignment);
    table[k] = {static_cast<uint32_t>(k) + 1, 0, offset, bytes, sizes.items[k]};
    from[k] = at;
    at += bytes;
    end = offset + bytes;
  }
  AlignedBuffer file(end);
  std::memset(file.data(), 0, end);
  form::Header header{};
  std::memcpy(header.magic, form::kMagic, sizeof header.magic);
  header.version = form::kVersion;
  header.byte_order = form::kByteOrder;
  header.file_bytes = end;
  header.sections = form::kSections;
  std::memcpy(file.data(), &header, sizeof header);
  std::memcpy(file.data() + sizeof header, table, sizeof table);
  for (int k = 0; k < form::kSections; ++k)
    std::memcpy(file.data() + table[k].offset, unit.data() + from[k], table[k].bytes);
  return file;
}

// The other way round.
std::string Sections(const std::string& file) {
  form::Section table[form::kSections];
  std::memcpy(table, file.data() + sizeof(form::Header), sizeof table);
  UnitHeader sizes;
  std::memcpy(sizes.tag, kTag, sizeof kTag);
  std::string content;
  for (int k = 0; k < form::kSections; ++k) {
    sizes.items[k] = static_cast<uint32_t>(table[k].items);
    sizes.bytes[k] = static_cast<uint32_t>(table[k].bytes);
    content.append(file, table[k].offset, table[k].bytes);
  }
  return std::string(reinterpret_cast<const char*>(&sizes), sizeof sizes) + content;
}

absl::Span<const uint8_t> BytesOf(const AlignedBuffer& buffer) {
  return {reinterpret_cast<const uint8_t*>(buffer.data()), buffer.size()};
}

absl::StatusOr<ImportedModel> Read(const AlignedBuffer& file, FormCheck check) {
  Budget budget(kLimits);
  const BudgetScope scope(&budget);
  FLOE_ASSIGN_OR_RETURN(FormModel form, ReadForm(BytesOf(file), nullptr, check));
  ImportedModel model;
  model.graph = std::move(form.graph);
  model.signatures = std::move(form.signatures);
  return model;
}

absl::StatusOr<std::string> Convert(const std::string& graph_def) {
  ImportOptions import;
  import.limits = kLimits;
  FLOE_ASSIGN_OR_RETURN(ImportedModel imported, ImportBytes(graph_def, import));
  FormModel form;
  form.graph = std::move(imported.graph);
  form.signatures = std::move(imported.signatures);
  return SerializeForm(form);
}

absl::Status RunConverted(const std::string& graph_def, Random random) {
  FLOE_ASSIGN_OR_RETURN(const std::string bytes, Convert(graph_def));
  AlignedBuffer file(bytes.size());
  std::memcpy(file.data(), bytes.data(), bytes.size());
  absl::StatusOr<ImportedModel> model = Read(file, FormCheck::kAll);
  if (!model.ok()) Fail("what was written cannot be read: " + model.status().ToString());
  FormModel again;
  again.graph = model->graph;
  again.signatures = model->signatures;
  if (SerializeForm(again).value_or("") != bytes) Fail("a model changes when it is written again");
  return CompileAndRun(*std::move(model), random);
}

absl::Status RunUnit(const std::string& unit, Random random) {
  if (!IsSections(unit)) return RunConverted(unit, random);
  const AlignedBuffer file = LayOut(unit);
  FLOE_ASSIGN_OR_RETURN(ImportedModel model, Read(file, FormCheck::kStructure));
  return CompileAndRun(std::move(model), random);
}

// Numbers are four or eight bytes and mean counts, positions and kinds.
void ChangeNumber(std::string* bytes, Random& random) {
  const size_t size = random.OneIn(4) ? 8 : 4;
  if (bytes->size() < size) return;
  const size_t at = static_cast<size_t>(random.Below(bytes->size() - size + 1));
  uint64_t number = 0;
  std::memcpy(&number, bytes->data() + at, size);
  number = random.OneIn(3)   ? static_cast<uint64_t>(random.Integer())
           : random.OneIn(2) ? number + static_cast<uint64_t>(random.Below(5)) - 2
                             : static_cast<uint64_t>(random.Below(20));
  std::memcpy(bytes->data() + at, &number, size);
}

// A piece of `from` over or into `to`.
void CopyPiece(std::string* to, const std::string& from, Random& random) {
  if (from.empty() || to->empty()) return;
  const size_t begin = static_cast<size_t>(random.Below(from.size()));
  const size_t bytes = std::min<size_t>(from.size() - begin, 4u * (1 + random.Below(16)));
  const size_t at = static_cast<size_t>(random.Below(to->size()));
  to->replace(at, random.OneIn(2) ? bytes : 0, from, begin, bytes);
}

std::string AsSections(const std::string& unit) {
  if (IsSections(unit)) return unit;
  const absl::StatusOr<std::string> file = Convert(unit);
  return file.ok() ? Sections(*file) : unit;
}

}  // namespace
}  // namespace floe::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace floe::fuzz;
  const UnitTimer timer;
  const std::string unit(reinterpret_cast<const char*>(data), size);
  Report(RunUnit(unit, ChoicesOf(data, size)));
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  using namespace floe::fuzz;
  Random random(seed);
  std::string unit = AsSections(std::string(reinterpret_cast<const char*>(data), size));
  for (int changes = 1 + random.Below(3); changes > 0; --changes) {
    switch (random.Below(4)) {
      case 0:
        unit = MutateBytes(unit, max_size);
        break;
      case 1:
        CopyPiece(&unit, std::string(unit), random);
        break;
      default:
        ChangeNumber(&unit, random);
        break;
    }
  }
  return Give(unit, data, max_size);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t* data1, size_t size1, const uint8_t* data2,
                                 size_t size2, uint8_t* out, size_t max_out_size, unsigned seed) {
  using namespace floe::fuzz;
  Random random(seed);
  std::string unit = AsSections(std::string(reinterpret_cast<const char*>(data1), size1));
  CopyPiece(&unit, AsSections(std::string(reinterpret_cast<const char*>(data2), size2)), random);
  return Give(unit, out, max_out_size);
}
